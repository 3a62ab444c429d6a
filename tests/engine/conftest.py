"""Fixtures of the captures lane: a shop a test, over a copy of one fresh store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.parties import open_store
from support.storing_captures import CaptureShop


@pytest.fixture(scope="session")
def fresh_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a store nothing is in."""
    folder = tmp_path_factory.mktemp("fresh")
    open_store(folder).close()
    return folder / "anchord.db"


@pytest.fixture
def make_shop(fresh_store: Path, tmp_path: Path) -> Iterator[Callable[..., CaptureShop]]:
    """Make shops with numbers of the policy that differ."""
    made: list[CaptureShop] = []

    def make(**numbers: Any) -> CaptureShop:
        folder = tmp_path / f"shop-{len(made)}"
        folder.mkdir()
        made.append(CaptureShop(folder, fresh_store, **numbers))
        return made[-1]

    yield make
    for shop in made:
        shop.close()


@pytest.fixture
def shop(make_shop: Callable[..., CaptureShop]) -> CaptureShop:
    """Return a shop with the usual numbers."""
    return make_shop()
