"""Mirrors to read from: a folder of this machine, or a web server."""
