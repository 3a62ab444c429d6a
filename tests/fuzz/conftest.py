"""Fixtures of the fuzzers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep what broken bytes lead to out of the log, while a test of this folder runs."""
    logger = logging.getLogger("anchord")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)
