"""A stand-in for the Wayback Machine: Save Page Now 2, index, replay, availability. Sandbox."""
