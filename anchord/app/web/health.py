"""Whether what is served can be served: asked by probes, so often that the answer is kept."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from anchord.adapters.signers.keyring import load_keyring
from anchord.adapters.store.vitals import ExaminedStore
from anchord.app.service.logs import tell
from anchord.app.wiring import store_url
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anchord.app.config import Loaded

KEPT_S = 5.0
"""A probe that comes sooner is given the last answer."""


class Readiness:
    """Looks at store, public keys and tree. Threads may share it; one of them looks at a time.

    Args:
        loaded: the configuration.
        tree: the folder that is served; None: none.
        clock: seconds that only grow.
    """

    def __init__(
        self, loaded: Loaded, tree: Path | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._loaded, self._tree, self._clock = loaded, tree, clock
        self._lock = threading.Lock()
        self._asked_at = float("-inf")
        self._missing: list[str] = []
        self._said = ""

    def missing(self) -> list[str]:
        """Return what is in the way: "store", "keys", "tree". Why stands in the log alone."""
        with self._lock:
            if self._clock() - self._asked_at >= KEPT_S:
                reasons = self._look()
                self._missing, self._asked_at = list(reasons), self._clock()
                self._say("; ".join(reasons.values()))
            return self._missing

    def _look(self) -> dict[str, str]:
        found = {}
        try:
            store = ExaminedStore(store_url(self._loaded))
            try:
                store.ledger.head()
            finally:
                store.close()
        except AnchordError as error:
            found["store"] = str(error)
        if self._loaded.config.web.records:  # they are shown with what the keys make of them
            try:
                load_keyring(self._loaded.resolve(self._loaded.config.signer.key_dir))
            except AnchordError as error:
                found["keys"] = str(error)
        if self._tree is not None and not self._tree.is_dir():
            found["tree"] = f"{self._tree} is no folder: anchord mirror publish makes it"
        return found

    def _say(self, words: str) -> None:
        """Log what is in the way when that changes."""
        if words != self._said:
            level = logging.WARNING if words else logging.INFO
            tell(level, "ready", f"not ready: {words}" if words else "ready again")
        self._said = words
