"""Audits: every claim re-derived, not believed. Nothing here writes."""
