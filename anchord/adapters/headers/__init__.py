"""Where block headers come from."""
