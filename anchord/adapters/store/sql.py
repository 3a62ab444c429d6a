"""The store as one thing: records, batches, ledger, counts, and the right to write."""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING

from anchord.adapters.store.batches import Batches
from anchord.adapters.store.calls import Calls
from anchord.adapters.store.connection import Database
from anchord.adapters.store.counts import Counts
from anchord.adapters.store.database import check_revision, connect, sqlite_path
from anchord.adapters.store.ledger import Ledger
from anchord.adapters.store.log import Log
from anchord.adapters.store.lookup import Lookup
from anchord.adapters.store.pulls import Pulls
from anchord.adapters.store.records import Records
from anchord.adapters.store.serving import Owner, owner_of, serving
from anchord.adapters.store.storage import Storage
from anchord.adapters.store.tokens import Tokens
from anchord.adapters.store.watching import Watch
from anchord.errors import ConfigError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from anchord.core.model import Adoption, Document, Record
    from anchord.ports import Added


class SqlStore:
    """An open store.

    Args:
        url: SQLAlchemy URL; the schema must be the one this code needs.
        known_uris: calendar URIs that are configured.

    Raises:
        ConfigError: absent, foreign, older or newer store.
    """

    def __init__(self, url: str, known_uris: Collection[str] = ()) -> None:
        self._url = url
        engine = connect(url)
        check_revision(engine, url)
        database = Database(engine, url)
        self._engine = engine
        self.records = Records(database, known_uris)
        self.batches = Batches(database)
        self.calls = Calls(database)
        self.ledger = Ledger(database)
        self.counts = Counts(database, known_uris)
        self.lookup = Lookup(database)
        self.storage = Storage(database)
        self.log = Log(database)
        self.tokens = Tokens(database)
        self.pulls = Pulls(database)
        self.watch = Watch(database, url)

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Take in a chunk of records; see `Records.add`."""
        return self.records.add(items, now)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the right to run passes on this store; the kernel lets go if we are killed.

        Raises:
            StoreBusyError: another process runs a pass.
        """
        path = sqlite_path(self._url)
        if path is None:
            yield
            return
        lock = path.with_name(path.name + ".lock")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigError(
                f"the lock file {lock} cannot be opened: {error.strerror}; check the folder's "
                "permissions and free space"
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = owner_of(path)
                served = f", perhaps `anchord run` ({owner})" if owner else ""
                raise StoreBusyError(
                    f"another anchord works on {path}{served}: wait for its pass to end"
                ) from None
            yield
        finally:
            os.close(handle)

    def serving(self, now: int) -> AbstractContextManager[None]:
        """Be this store's one service within the block; see `serving.serving`."""
        path = sqlite_path(self._url)
        return contextlib.nullcontext() if path is None else serving(path, now)

    def service(self) -> Owner | None:
        """Return the service that has this store now, if there is one and it can be told."""
        path = sqlite_path(self._url)
        return None if path is None else owner_of(path)

    def rest(self) -> None:
        """Give back memory; connections are opened again when they are needed."""
        self._engine.dispose()

    def close(self) -> None:
        """Release connections; may be called twice."""
        self.watch.close()
        self._engine.dispose()
