"""Fixtures of the captures lane: a shop a test, over a copy of one fresh store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.storing_captures import CaptureShop


@pytest.fixture
def make_shop(tmp_path: Path) -> Iterator[Callable[..., CaptureShop]]:
    """Make shops with numbers of the policy that differ."""
    made: list[CaptureShop] = []

    def make(**numbers: Any) -> CaptureShop:
        folder = tmp_path / f"shop-{len(made)}"
        folder.mkdir()
        made.append(CaptureShop(folder, **numbers))
        return made[-1]

    yield make
    for shop in made:
        shop.close()


@pytest.fixture
def shop(make_shop: Callable[..., CaptureShop]) -> CaptureShop:
    """Return a shop with the usual numbers."""
    return make_shop()
