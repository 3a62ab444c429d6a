"""Pure rules: values in, values out; no clock, no randomness, no input or output."""
