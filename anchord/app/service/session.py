"""One opened configuration: what passes work with, from one reload to the next."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from anchord.app.service.keys import KeyWatch
from anchord.app.service.memory import trim
from anchord.app.wiring import App
from anchord.errors import AnchordError, ConfigError, TransientError
from anchord.ports import BulkSigner

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.app.config import Config, Loaded
    from anchord.engine.archiving import Archiving

_GRACE_S = 5.0
_LOOK_S = 0.5
_REOPEN_S = 60.0
"""How long a way to the archive that cannot be opened is left alone."""


def longest_timeout(config: Config) -> float:
    """Return how long one call of the configured services may take, seconds."""
    archive = config.archive
    found = [config.anchoring.timeout_s, config.headers.file.timeout_s]
    if archive.captures.enabled:
        found.append(max(archive.captures.timeout_s, 90.0))
    if archive.items.enabled and archive.items.prefix:
        found.append(archive.items.timeout_s)
    return max(found) + _GRACE_S


class Session:
    """A configuration with everything opened that must work; used by one thread.

    Args:
        loaded: the configuration.
        on_progress: told (stage, done, total) within passes.

    Raises:
        ConfigError: store, keys or authorities cannot be used.
    """

    def __init__(self, loaded: Loaded, on_progress: Callable[[str, int, int], None]) -> None:
        self.app = App(loaded)
        self._keys = KeyWatch(self.app.key_dir)
        try:
            self.parts = self.app.parts(on_progress)
            self.mark = self.app.store.watch.mark
        except BaseException:
            self.app.close()
            raise
        self.archiving: Archiving | None = None
        self.trouble: AnchordError | None = None
        """Why the way to the archive is not open, when it ought to be."""
        self._ways = contextlib.ExitStack()
        self._tried_at: float | None = None

    def keys_changed(self) -> bool:
        """Tell whether the keyring is another one than when this was opened; see `KeyWatch`."""
        return self._keys.changed()

    def open_archive(self) -> bool:
        """Open the way to the Internet Archive when it is time to try; return whether it was tried.

        Without it anchoring goes on all the same; what is in the way may go away by itself.
        """
        due = self._tried_at is None or (
            self.trouble is not None and time.monotonic() > self._tried_at + _REOPEN_S
        )
        if not due:
            return False
        self._tried_at, self.trouble = time.monotonic(), None
        try:
            self.archiving = self._ways.enter_context(self.app.archiving(self.parts))
        except (ConfigError, TransientError) as error:
            self.trouble = error
        return True

    def drain(self, deadline: float, beat: Callable[[], None]) -> None:
        """Take in the calls to the archive that are in flight, until a moment of time.monotonic.

        What does not come is looked up by the next process, by its intent.
        """
        while self.archiving is not None and self.archiving.busy and time.monotonic() < deadline:
            beat()
            if not self.archiving.wait(_LOOK_S):
                continue
            try:
                with self.app.store.exclusive():
                    self.archiving.take_in(self.app.clock.now())
            except TransientError:  # a pass by hand is under way
                time.sleep(_LOOK_S)

    def rest(self) -> None:
        """Give back what much work took: the store's caches, and processes that sign."""
        self.app.store.rest()
        if isinstance(self.parts.signer, BulkSigner):
            self.parts.signer.close()
        trim()

    def close(self) -> None:
        """Let go of everything."""
        self.archiving = None
        try:
            self._ways.close()
        finally:
            self.app.close()
