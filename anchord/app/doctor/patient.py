"""What is examined: one configured anchord, opened as far as it can be, to be read only."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from anchord.app.wiring import App, store_url

if TYPE_CHECKING:
    from anchord.adapters.store.vitals import ExaminedStore
    from anchord.app.config import Config, Loaded
    from anchord.ports.store import Store


class Patient:
    """One anchord, for the length of an examination.

    Args:
        app: configured; what it opens, it opens on first use.
        online: whether calendars, nodes and explorers may be asked.
        full: whether every page of the store and every row of the ledger is looked at.
    """

    def __init__(self, app: App, *, online: bool, full: bool) -> None:
        self.app = app
        self.online = online
        self.full = full
        self.now = app.clock.now()

    @property
    def loaded(self) -> Loaded:
        """The configuration with its folder."""
        return self.app.loaded

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.app.config

    @cached_property
    def url(self) -> str:
        """The store's URL."""
        return store_url(self.loaded)

    @cached_property
    def store(self) -> ExaminedStore:
        """The store, to be read only.

        Raises:
            ConfigError: absent, foreign, older or newer store.
        """
        from anchord.adapters.store.vitals import ExaminedStore

        return ExaminedStore(self.url)

    @property
    def as_store(self) -> Store:
        """The store for rules that only read, whatever else they could be given."""
        return cast("Store", self.store)

    def close(self) -> None:
        """Let go of what was opened."""
        if "store" in self.__dict__:
            self.store.close()
        self.app.close()
