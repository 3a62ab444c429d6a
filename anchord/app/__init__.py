"""Interfaces: configuration, wiring, command line."""
