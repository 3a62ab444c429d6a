"""The store as one thing: records, batches, ledger, counts, and the right to write."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from anchord.adapters.store.batches import Batches
from anchord.adapters.store.calls import Calls
from anchord.adapters.store.connection import Database
from anchord.adapters.store.counts import Counts
from anchord.adapters.store.database import check_revision, connect, sqlite_path
from anchord.adapters.store.exchange import Sources
from anchord.adapters.store.faces import Faces
from anchord.adapters.store.ledger import Ledger
from anchord.adapters.store.log import Log
from anchord.adapters.store.lookup import Lookup
from anchord.adapters.store.outlets import Outlets
from anchord.adapters.store.pulls import Pulls
from anchord.adapters.store.records import Records
from anchord.adapters.store.rights import FileRights, Held, Rights
from anchord.adapters.store.rights_postgres import SessionRights
from anchord.adapters.store.serving import Owner
from anchord.adapters.store.storage import Storage
from anchord.adapters.store.tokens import Tokens
from anchord.adapters.store.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from contextlib import AbstractContextManager

    from anchord.core.model import Adoption, Document, Record
    from anchord.ports import Added


class SqlStore:
    """An open store.

    Args:
        url: SQLAlchemy URL; the schema must be the one this code needs.
        known_uris: calendar URIs that are configured.
        patience_s: how long `exclusive` waits for its turn.

    Raises:
        ConfigError: absent, foreign, older or newer store.
    """

    def __init__(self, url: str, known_uris: Collection[str] = (), patience_s: float = 0.0) -> None:
        self.patience_s = patience_s
        engine = connect(url)
        check_revision(engine, url)
        database = Database(engine, url)
        self._engine, self._database = engine, database
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
        self.outlets = Outlets(database)
        self.sources = Sources(database)
        self.faces = Faces(database)
        self.watch = Watch(database, url)
        path = sqlite_path(url)
        self._rights: Rights = SessionRights(database, url) if path is None else FileRights(path)
        self._passing = Held(self._rights.passing)
        self._has_turn: Callable[[], None] = _needs_none

    def add(self, items: Sequence[Record | Adoption | Document], now: int) -> Added:
        """Take in a chunk of records; see `Records.add`."""
        return self.records.add(items, now)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the right to run passes on this store; it is let go of if we are killed.

        A thread that holds it may take it again. Within a turn it is given only to who still has
        that: a worker that slept must not write down what it was about to, hours ago.

        Raises:
            StoreBusyError: another process has it, for longer than `patience_s`; or the turn in
                which it is asked for was lost.
        """
        with self._passing(self.patience_s):
            self._has_turn()
            yield

    def serving(self, now: int, *, shared: bool = False) -> AbstractContextManager[None]:
        """Be this store's one service within the block, or with `shared` one of its workers.

        Raises:
            StoreBusyError: another service has the store; it is named.
            ConfigError: several were to share a SQLite store.
        """
        return self._rights.serving(now, shared=shared)

    def service(self) -> Owner | None:
        """Return a service that has this store now, if there is one and it can be told."""
        return self._rights.service()

    @contextlib.contextmanager
    def turn(self, name: str) -> Iterator[Callable[[], None]]:
        """Be the only worker that does `name` in the block; gives what asks whether it still is.

        A store is used for one turn at a time.

        Raises:
            StoreBusyError: another worker has its turn, or this one was lost.
            ConfigError: a SQLite store, which workers cannot share.
        """
        with self._rights.turn(name) as has_turn:
            self._has_turn = has_turn
            try:
                yield has_turn
            finally:
                self._has_turn = _needs_none

    def server_time(self) -> int | None:
        """Return what the clock of the database's machine shows, Unix seconds; None: it has none.

        Raises:
            StoreBusyError: the server does not answer.
        """
        if self._engine.dialect.name == "sqlite":
            return None
        with self._database.reading() as connection:
            moment = "SELECT extract(epoch FROM clock_timestamp())::bigint"
            return int(connection.exec_driver_sql(moment).scalar_one())

    def rest(self) -> None:
        """Give back memory; connections are opened again when they are needed."""
        self._engine.dispose()

    def close(self) -> None:
        """Release connections; may be called twice."""
        self.watch.close()
        self._engine.dispose()


def _needs_none() -> None:
    """Ask nothing: whoever takes no turns has none to lose."""
