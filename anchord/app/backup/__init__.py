"""Backups: one file that is verified when it is made, and again when it is restored."""
