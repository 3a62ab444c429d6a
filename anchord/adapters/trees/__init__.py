"""Trees of published files, read where they lie."""
