"""Fixtures shared by all tests: data of the workplace, and a clean environment."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import hypothesis
import pytest
from support.shared import SHARED

# Machines are noisy: what takes too long is measured in benchmarks/, as ratios.
hypothesis.settings.register_profile("anchord", deadline=None)
hypothesis.settings.load_profile("anchord")

pytest_plugins = ["support.skips", "support.both_stores"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests of shared data where the folder is absent; in CI that is a failure instead."""
    if SHARED.is_dir() or os.environ.get("CI"):
        return
    for item in items:
        if item.get_closest_marker("shared_data"):
            item.add_marker(pytest.mark.skip(reason="../shared/data is absent"))


@pytest.fixture(autouse=True, scope="session")
def _heed_interrupts() -> None:
    """Let processes that tests start heed Ctrl-C, also where the suite runs in the background.

    A shell starts what is in the background with SIGINT ignored, and that is inherited.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ANCHORD_* variable of the machine reaches a test."""
    for name in list(os.environ):
        if name.startswith("ANCHORD_"):
            monkeypatch.delenv(name)


@pytest.fixture
def shared_data() -> Path:
    """Return the folder of shared data."""
    assert SHARED.is_dir(), f"{SHARED} is absent: these tests need it"
    return SHARED
