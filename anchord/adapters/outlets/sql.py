"""Write-back: statements of the operator's own, run in the operator's own database.

Only the operator writes SQL; what comes from events goes in as bound values. A statement is run
after its event is durable, at least once, and again after a crash, so it must come to the same
however often it runs: `UPDATE ... SET anchored_at = :anchored_at WHERE id = :id` does.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from anchord.adapters.hangup import Line
from anchord.adapters.outlets.secret import read_lines
from anchord.core.moment import utc
from anchord.errors import ConfigError, TransientError
from anchord.ports.outlet import CALL_S, Partly, Wants

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from anchord.errors import AnchordError
    from anchord.ports.outlet import Delivery

BINDS = (
    "id", "kind", "version", "number", "digest", "event_id", "event_type", "facet", "seq",
    "created_at", "anchored_at", "block_height", "captured_at", "original_url", "capture_url",
    "item", "reason",
)  # fmt: skip
"""What a statement may name; what an event does not have is NULL."""
_NOT_THE_ROW = ("08", "57", "40", "53", "55", "25", "28", "42", "3D", "3F", "0A", "F0", "XX", "58")
"""Classes of SQLSTATE that say nothing about the values of one event (SQL standard, and
https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_LATER = ("08", "57", "40", "53", "55", "58")
_PSYCOPG = "postgresql+psycopg"
_LATE_S = 2.0
"""The database's own limit comes first, and says more."""


class SqlOutlet:
    """Runs a statement for each event.

    Args:
        name: of the outlet.
        url: SQLAlchemy URL, without its password.
        statements: SQL by event type; events without one are passed over.
        password_file: its first line is the password.
        timeout_s: longest time for a connection, and for a statement where the database has such a
            limit.
        from_now: what was before is not written.

    Raises:
        ConfigError: the URL cannot be used, its driver is not installed, or a statement names what
            there is not.
    """

    kind = "sql"
    wants: Wants = "event"
    at_once = 256

    def __init__(
        self,
        name: str,
        url: str,
        statements: Mapping[str, str],
        *,
        password_file: Path | None = None,
        timeout_s: float = 10.0,
        from_now: bool = False,
    ) -> None:
        self.name, self.from_now = name, from_now
        self.events: Collection[str] = tuple(statements)
        self._where = f"outlets ({name})"
        self._statements = {kind: self._statement(kind, sql) for kind, sql in statements.items()}
        self._password_file, self._timeout_s = password_file, timeout_s
        self._engine = self._open(url)
        self._line = Line(self._engine)
        self._shown = self._engine.url.render_as_string(hide_password=True)

    def hand_over(self, deliveries: Sequence[Delivery]) -> Mapping[int, str] | Partly:
        """Run the statements of all events in one transaction, or, when one fails, in one each.

        Raises:
            TransientError: no connection, locked, too slow, no room.
            ConfigError: the statement, the rights or the address are wrong.
        """
        rows = [(one.seq, self._statements[one.event_type], values_of(one)) for one in deliveries]
        try:
            self._run(rows)
        except _RowError as error:
            if len(rows) == 1:
                return {rows[0][0]: str(error)}
        else:
            return {}
        return self._one_by_one(rows)

    def close(self) -> None:
        """Close the connections; may be called twice."""
        self._engine.dispose()

    def _one_by_one(
        self, rows: Sequence[tuple[int, sa.TextClause, dict[str, Any]]]
    ) -> Mapping[int, str] | Partly:
        ends, refused = time.monotonic() + CALL_S, dict[int, str]()
        for row in rows:
            if row is not rows[0] and time.monotonic() > ends:
                return Partly(refused, row[0])
            try:
                self._run([row])
            except _RowError as error:
                refused[row[0]] = str(error)
        return refused

    def _run(self, rows: Sequence[tuple[int, sa.TextClause, dict[str, Any]]]) -> None:
        """Run statements in one transaction of their own."""
        try:
            with self._line.watched():
                self._line.answer_within(2 * self._timeout_s)  # connecting has a limit, too
                with self._engine.begin() as connection:
                    for _seq, statement, values in rows:
                        self._line.answer_within(self._timeout_s + _LATE_S)
                        connection.execute(statement, values)
                    self._line.answer_within(self._timeout_s + _LATE_S)
        except exc.DBAPIError as error:
            raise self._mapped(error) from None
        except (exc.SQLAlchemyError, ValueError, ArithmeticError) as error:
            # A number or a text that the driver cannot send is about the row, too.
            raise _RowError(f"the statement could not be run: {_first_line(error)}") from None

    def _mapped(self, error: exc.DBAPIError) -> AnchordError | _RowError:
        """Return what an error means: this row, the outlet for a while, or a person must act."""
        words, state = _first_line(error.orig), getattr(error.orig, "sqlstate", None)
        if isinstance(error, exc.IntegrityError | exc.DataError):
            return _RowError(f"the database refused it: {words}")
        if state is not None:
            later = error.connection_invalidated or state.startswith(_LATER)
            row = not later and not state.startswith(_NOT_THE_ROW)
        else:
            later = error.connection_invalidated or isinstance(error, exc.OperationalError)
            later = later and not any(word in words for word in _PERSON_WORDS)
            row = False
        if row:
            return _RowError(f"the database refused it: {words}")
        if later:
            return TransientError(
                f"{self._shown} does not take the write-back now: {words}; it is tried again later"
            )
        return ConfigError(
            f"{self._where}: {self._shown} does not run the statement: {words}; correct url, "
            "statement, password file or rights"
        )

    def _statement(self, kind: str, sql: str) -> sa.TextClause:
        statement = sa.text(sql)
        unknown = sorted(set(statement.compile().params) - set(BINDS))
        if unknown:
            raise ConfigError(
                f"{self._where}: the statement for {kind} names :{unknown[0]}; what there is: "
                + ", ".join(f":{name}" for name in BINDS)
            )
        return statement

    def _open(self, url: str) -> sa.Engine:
        try:
            parsed = sa.make_url(url)
            if parsed.password is not None:
                raise ConfigError(
                    f"{self._where}: url holds a password: put it into a file, and name that in "
                    "password_file"
                )
            if parsed.drivername == "postgresql":
                parsed = parsed.set(drivername=_PSYCOPG)
            engine = sa.create_engine(
                parsed,
                pool_pre_ping=True,
                pool_size=1,
                max_overflow=0,
                hide_parameters=True,
                connect_args=_limits(parsed, self._timeout_s),
            )
        except ImportError as error:
            hint = "run: pip install 'anchord[fleet]'" if _PSYCOPG in url else "install it"
            raise ConfigError(f"{self._where}: its driver is missing ({error}); {hint}") from None
        except (exc.ArgumentError, ValueError):
            raise ConfigError(
                f"{self._where}: url is no SQLAlchemy URL: expected e.g. "
                "postgresql://user@host/database or sqlite:////path/file.db"
            ) from None
        event.listen(engine, "do_connect", self._with_password)
        return engine

    def _with_password(self, _dialect: Any, _record: Any, _arguments: Any, given: Any) -> None:
        """Read the password at each connection, so that a new one holds at once."""
        if self._password_file is not None:
            what = f"the password_file of {self._where}"
            given["password"] = read_lines(self._password_file, what)[0]


class _RowError(Exception):
    """The database has something against this event's values."""


_PERSON_WORDS = (
    "no such table", "no such column", "syntax error", "authentication failed", "Access denied",
    "does not exist", "unable to open", "readonly", "no pg_hba.conf entry",
)  # fmt: skip
"""What drivers without SQLSTATE say when waiting will not help."""


def _limits(url: sa.URL, timeout_s: float) -> dict[str, Any]:
    """Return what the driver is told, so that a call ends where the database has such a limit."""
    seconds = max(int(timeout_s), 1)
    if url.drivername == _PSYCOPG:
        limit = f"-c statement_timeout={seconds}s -c lock_timeout={seconds}s"
        idle = f" -c idle_in_transaction_session_timeout={2 * seconds}s"
        found: dict[str, Any] = {
            "connect_timeout": seconds,
            "tcp_user_timeout": 2_000 * seconds,  # milliseconds
        }
        found |= {"options": limit + idle, "application_name": "anchord outlet"}
        return {name: value for name, value in found.items() if name not in url.query}
    if url.get_backend_name() == "sqlite":
        return {"timeout": timeout_s}
    if url.drivername in ("mysql+pymysql", "mariadb+pymysql"):
        return dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), seconds)
    return {}


def values_of(delivery: Delivery) -> dict[str, Any]:
    """Return the bound values of an event, all of `BINDS`."""
    payload = json.loads(delivery.document)["payload"]
    record = delivery.record
    return {
        "id": record.source_id,
        "kind": record.source_kind,
        "version": record.source_version,
        "number": delivery.number,
        "digest": record.digest.hex(),
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "facet": delivery.facet,
        "seq": delivery.seq,
        "created_at": utc(delivery.created_at),
        "anchored_at": payload.get("block_time"),
        "block_height": payload.get("block_height"),
        "captured_at": payload.get("captured_at"),
        "original_url": payload.get("original_url"),
        "capture_url": payload.get("capture_url"),
        "item": payload.get("identifier"),
        "reason": payload.get("reason"),
    }


def _first_line(error: Any) -> str:
    """Return a driver's words without its statement and without line breaks."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return "".join(one if one.isprintable() else "_" for one in lines[0][:300])
