"""The opened configurations of a worker: each is lent to one thread at a time."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from anchord.app.service.session import Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.app.config import Loaded

PATIENCE_S = 120.0
"""How long a stage waits for its turn to write; another one may be checking headers meanwhile."""
KEPT_S = 2.0
"""How long connections, caches and signing processes are kept that nobody uses: to make them takes
as long as a short duty, and duties come in a row. They take memory, and a server has sessions for
so many, so they are not kept for longer."""


class Sessions:
    """Opens as many as are used at once, and keeps them. Any thread may use it.

    A session belongs to the thread it is lent to. Whoever gives it back after a reload, or after
    the end, closes it.

    Args:
        loaded: the configuration.
        on_progress: told (stage, done, total) within stages, on the thread that works.
    """

    def __init__(self, loaded: Loaded, on_progress: Callable[[str, int, int], None]) -> None:
        self.loaded = loaded
        self._on_progress = on_progress
        self._idle: list[tuple[Session, float | None]] = []
        """Each with when it was used, as long as it may hold what `rest` lets go of."""
        self._lock = threading.Lock()
        self._over = False

    def open(self) -> Session:
        """Open one more, which the caller closes.

        Raises:
            ConfigError: store, keys or authorities cannot be used.
        """
        session = Session(self.loaded, self._on_progress)
        session.app.store.patience_s = PATIENCE_S
        return session

    @contextlib.contextmanager
    def lend(self) -> Iterator[Session]:
        """Lend one for the length of the block."""
        session = self._usable() or self.open()
        try:
            yield session
        finally:
            self._take_back(session)

    def _usable(self) -> Session | None:
        """Return an idle one; those that hold keys of before go."""
        while True:
            with self._lock:
                session = self._idle.pop()[0] if self._idle else None
            if session is None or not session.keys_changed():
                return session
            session.close()

    def _take_back(self, session: Session) -> None:
        with self._lock:
            kept = not self._over and session.app.loaded is self.loaded
            if kept:
                self._idle.append((session, time.monotonic()))
        if not kept:
            session.close()

    def rest(self) -> None:
        """Let go of what nobody used for `KEPT_S`."""
        since = time.monotonic() - KEPT_S
        with self._lock:  # nobody is lent one that is going to rest
            for place, (session, used_at) in enumerate(self._idle):
                if used_at is not None and used_at < since:
                    session.rest()
                    self._idle[place] = (session, None)

    def renew(self, loaded: Loaded) -> None:
        """Go on with another configuration; what is lent ends with the old one.

        Raises:
            ConfigError: it cannot be used, and the one of before is kept.
        """
        Session(loaded, self._on_progress).close()
        with self._lock:
            old, self._idle, self.loaded = self._idle, [], loaded
        for session, _ in old:
            session.close()

    def close(self) -> None:
        """Close what is idle now, and the rest when it is given back."""
        with self._lock:
            self._over = True
            old, self._idle = self._idle, []
        for session, _ in old:
            session.close()
