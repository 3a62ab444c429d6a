"""The marker `both_stores`: a test that has it runs on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.stores import POSTGRES, SQLITE, close_all, keep_in


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", "both_stores: runs on SQLite and on PostgreSQL")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let tests that are marked run on both databases; `both_stores(False)` leaves one out."""
    marker = metafunc.definition.get_closest_marker("both_stores")
    if marker is not None and marker.args != (False,):
        metafunc.parametrize("kept_in", [SQLITE, POSTGRES], indirect=True, scope="module")


@pytest.fixture(autouse=True, scope="module")
def kept_in(request: pytest.FixtureRequest) -> str:
    """Return where this test's stores are kept."""
    return keep_in(getattr(request, "param", None))


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    """Close what a test left open: a server has few connections for many tests."""
    yield
    close_all()
