"""Rights on a PostgreSQL store: advisory locks of a session, which end with its connection.

https://www.postgresql.org/docs/current/explicit-locking.html#ADVISORY-LOCKS. Whoever runs passes
writes through the very session that holds the right. So a process that lost its connection, and
with it the right, cannot write any more, whatever it believes. A pooler between that hands sessions
from one client to another breaks this; connect to the server itself.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import sqlalchemy as sa

from anchord.adapters.store.database import mapped_errors
from anchord.adapters.store.postgres import SPACE, process_named
from anchord.adapters.store.serving import Owner
from anchord.core.moment import utc
from anchord.errors import StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.adapters.store.connection import Database

_STILL_WAITS_S = 30
_KEY = "CAST(:space AS int), hashtext(current_schema() || CAST(:right AS text))"
_OWNER = sa.text("""
    SELECT application_name, client_addr, extract(epoch FROM backend_start)::bigint AS since
    FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND granted
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND classid = :space
      AND objid = hashtext(current_schema() || CAST(:right AS text))::oid
    ORDER BY backend_start LIMIT 1
""")


class SessionRights:
    """Rights on a PostgreSQL store.

    Args:
        database: of the store; within `passing` it writes through the session with the right.
        url: for messages.
    """

    def __init__(self, database: Database, url: str) -> None:
        self._database, self._url = database, url

    @contextlib.contextmanager
    def passing(self, patience_s: float) -> Iterator[None]:
        """Hold the right to run passes, and write with nothing else."""
        with self._held("pass", "pg_try_advisory_lock", patience_s) as connection:
            if connection is None:
                raise StoreBusyError(
                    f"another anchord works on {self._shown()}{self._who('pass')}: wait for its "
                    "pass to end"
                )
            with self._database.writing_through(connection):
                yield

    @contextlib.contextmanager
    def serving(self, now: int, *, shared: bool) -> Iterator[None]:
        """Be the store's one service, or one of its workers."""
        del now  # the server knows since when
        function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
        with self._held("service", function, 1.0) as connection:
            if connection is None:
                raise StoreBusyError(
                    f"{self._shown()} is served already{self._who('service')}: `anchord run` "
                    "alone, or any number of `anchord worker`; stop the other first"
                )
            yield

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Keep everybody from passes, from serving and from writing at all."""
        with (
            self.passing(0),
            self.serving(0, shared=False),
            # The very lock that a transaction that writes begins with.
            self._held("write", "pg_try_advisory_lock", _STILL_WAITS_S) as connection,
        ):
            if connection is None:
                raise StoreBusyError(f"somebody writes to {self._shown()}: try again")
            yield

    def service(self) -> Owner | None:
        """Return the service, or the oldest worker, that has this store now."""
        with self._database.reading() as connection:
            return _owner(connection, "service")

    def holder(self) -> str | None:
        """Return who serves the store or runs a pass on it now; None: nobody."""
        with self._database.reading() as connection:
            service, at_pass = _owner(connection, "service"), _owner(connection, "pass")
        if service is not None:
            return f"a service ({service})"
        return None if at_pass is None else f"a pass ({at_pass})"

    @contextlib.contextmanager
    def turn(self, name: str) -> Iterator[Callable[[], None]]:
        """Be the only worker that does `name`.

        The server lets go of it with the session, so it is asked before what must not be done by
        two.
        """
        with self._held(f"turn {name}", "pg_try_advisory_lock", 0) as connection:
            if connection is None:
                raise StoreBusyError(
                    f"another worker does {name}: it has its turn{self._who(f'turn {name}')}"
                )
            yield lambda: self._ask(connection)

    def _ask(self, connection: sa.Connection) -> None:
        if connection.invalidated:
            raise StoreBusyError("the turn was lost with its connection; another worker goes on")
        with mapped_errors(self._url), connection.begin():
            connection.exec_driver_sql("SELECT 1")

    @contextlib.contextmanager
    def _held(self, right: str, function: str, patience_s: float) -> Iterator[sa.Connection | None]:
        """Hold an advisory lock on a session of its own; give None when it did not come free."""
        with mapped_errors(self._url):
            connection = self._database.engine.connect()
        try:
            with mapped_errors(self._url):
                taken = _take(connection, right, function, patience_s)
            yield connection if taken else None
        finally:
            _let_go(connection)

    def _who(self, right: str) -> str:
        with self._database.reading() as connection:
            owner = _owner(connection, right)
        return f" ({owner})" if owner else ""

    def _shown(self) -> str:
        return sa.make_url(self._url).render_as_string(hide_password=True)


def _take(connection: sa.Connection, right: str, function: str, patience_s: float) -> bool:
    with connection.begin():
        query = sa.text(f"SELECT {function}({_KEY})")
        if connection.execute(query, {"space": SPACE, "right": right}).scalar():
            return True
    if patience_s <= 0:
        return False
    try:
        with connection.begin():
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {max(int(patience_s * 1000), 1)}")
            query = sa.text(f"SELECT {function.replace('_try', '')}({_KEY})")
            connection.execute(query, {"space": SPACE, "right": right})
    except sa.exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != "55P03":  # lock_not_available
            raise
        return False
    return True


def _let_go(connection: sa.Connection) -> None:
    """Give the session back without any lock, whatever happened in it.

    The server takes a moment to see that a connection is gone, and meanwhile the next pass would
    find the lock taken; so it is told. A session that does not answer is not used again.
    """
    try:
        if open_transaction := connection.get_transaction():
            open_transaction.rollback()
        connection.execution_options(writes=False)
        with connection.begin():
            connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")
    except sa.exc.SQLAlchemyError:
        connection.invalidate()
    finally:
        connection.close()


def _owner(connection: sa.Connection, right: str) -> Owner | None:
    row = connection.execute(_OWNER, {"space": SPACE, "right": right}).first()
    if row is None:
        return None
    pid, host = process_named(row.application_name)
    return Owner(pid or 0, host or str(row.client_addr), utc(row.since))
