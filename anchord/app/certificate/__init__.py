"""Certificates for people: one page, as PDF and as HTML, of what was verified."""
