"""Orchestration over ports: stages, and the pass that lists them."""
