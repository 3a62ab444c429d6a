"""How an audit gets at a store: read only, and by a function that other processes can be sent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anchord.adapters.store.reading import SqlReadingStore
from anchord.app.wiring import store_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.config import Loaded


def reading_store(url: str) -> SqlReadingStore:
    """Open a store to be read only.

    Raises:
        ConfigError: absent, foreign, older or newer store.
    """
    return SqlReadingStore(url)


def open_store(loaded: Loaded) -> Callable[[], SqlReadingStore]:
    """Return what opens the configured store to be read, in this process or in another."""
    return partial(reading_store, store_url(loaded))
