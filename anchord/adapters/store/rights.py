"""The right to run passes, and to be the service of a store: who has it, and who is told so.

For a SQLite store both are locks on files beside it; the kernel lets go of them when the process
dies, however it dies. PostgreSQL keeps its own, see `rights_postgres`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from typing import TYPE_CHECKING, Protocol

from anchord.adapters.store.serving import Owner, owner_of, serving
from anchord.errors import ConfigError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

_LOOK_S = 0.05


class Rights(Protocol):
    """What may be held on a store, beside its contents."""

    def passing(self, patience_s: float) -> AbstractContextManager[None]:
        """Hold the right to run passes; StoreBusyError when it does not come free in time."""
        ...

    def serving(self, now: int, *, shared: bool) -> AbstractContextManager[None]:
        """Be a service of this store; StoreBusyError when another one stands in the way."""
        ...

    def service(self) -> Owner | None:
        """Return a service that has this store now, if there is one and it can be told."""
        ...

    def turn(self, name: str) -> AbstractContextManager[Callable[[], None]]:
        """Be the only worker that does `name`; gives what raises once the turn is lost."""
        ...


class Held:
    """Lets one thread take a right again within its own block: a stage does not ask who calls it.

    Args:
        take: gives the right for the length of a block, at most that many seconds from now.
    """

    def __init__(self, take: Callable[[float], AbstractContextManager[None]]) -> None:
        self._take = take
        self._thread: int | None = None

    @contextlib.contextmanager
    def __call__(self, patience_s: float) -> Iterator[None]:
        """Hold the right, or go on holding it."""
        me = threading.get_ident()
        if self._thread == me:
            yield
            return
        with self._take(patience_s):
            self._thread = me
            try:
                yield
            finally:
                self._thread = None


class FileRights:
    """Rights on a SQLite store.

    Args:
        path: of the store's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextlib.contextmanager
    def passing(self, patience_s: float) -> Iterator[None]:
        """Hold the lock beside the store."""
        lock = self._path.with_name(self._path.name + ".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"the lock file {lock} cannot be opened: {error.strerror}; check the folder's "
                "permissions and free space"
            ) from error
        try:
            self._lock(handle, time.monotonic() + patience_s)
            yield
        finally:
            os.close(handle)

    def _lock(self, handle: int, deadline: float) -> None:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(_LOOK_S)
                    continue
                owner = owner_of(self._path)
                served = f", perhaps `anchord run` ({owner})" if owner else ""
                raise StoreBusyError(
                    f"another anchord works on {self._path}{served}: wait for its pass to end"
                ) from None
            return

    def serving(self, now: int, *, shared: bool) -> AbstractContextManager[None]:
        """Be this store's one service.

        Raises:
            ConfigError: several were to share it, which a file cannot bear.
        """
        if shared:
            raise self._not_shared()
        return serving(self._path, now)

    def turn(self, name: str) -> AbstractContextManager[Callable[[], None]]:
        """Refuse: turns are taken by workers.

        Raises:
            ConfigError: always.
        """
        del name
        raise self._not_shared()

    def _not_shared(self) -> ConfigError:
        return ConfigError(
            f"workers need a PostgreSQL store, and {self._path} is a SQLite file: serve it "
            "with `anchord run`, or move it with `anchord migrate-store`"
        )

    def service(self) -> Owner | None:
        """Return the service that has this store now."""
        return owner_of(self._path)
