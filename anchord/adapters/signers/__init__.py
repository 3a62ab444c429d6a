"""Where signatures come from."""
