"""One browser, one store with everything in it, its server and its published tree, for this folder.

Pictures are kept in the folder that ANCHORD_SCREENSHOTS names, else in pytest's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.browser import Chromium
from support.face_places import FacePlace, Serving, plain_server

# The variable is read while the tests are collected: a test has no ANCHORD_* in its environment.
_KEPT = os.environ.get("ANCHORD_SCREENSHOTS")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    # Not for longer: while it runs, this thread has an event loop, and tests elsewhere start
    # their own.
    with Chromium() as running:
        yield running


@pytest.fixture(scope="package")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(_KEPT).absolute() if _KEPT else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="package")
def place(tmp_path_factory: pytest.TempPathFactory) -> FacePlace:
    return FacePlace(tmp_path_factory.mktemp("face"))


@pytest.fixture(scope="package")
def tree(place: FacePlace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "tree"
    place.publish(folder)
    return folder


@pytest.fixture(scope="package")
def served(place: FacePlace) -> Iterator[str]:
    """Where the store's own server is."""
    with Serving(place.place.config) as running:
        yield running.url
        assert "Traceback" not in running.said


@pytest.fixture(scope="package")
def static(tree: Path) -> Iterator[str]:
    """Where the published tree is, on a web server that knows nothing of it."""
    with plain_server(tree) as url:
        yield url
