"""PostgreSQL as the store: how a session is set up, and what its errors mean.

Transactions that write follow each other, as SQLite's do: each first takes one lock of the store.
So a rule that holds on one database holds on the other, and nothing that was read can have changed
before what follows from it is written.
"""

from __future__ import annotations

import os
import platform
import secrets
import select
import time
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from anchord.errors import (
    AnchordError,
    ConfigError,
    DiskError,
    FatalError,
    StoreBusyError,
)

REPLACED = "\N{REPLACEMENT CHARACTER}"
"""Stands for NUL in texts, which PostgreSQL does not take."""
SPACE = 0x616E6368
"""First number of anchord's advisory locks; the second is made of the schema and the right."""
_TOKEN = secrets.token_hex(4)
_WRITING_WAITS_S = 30
_WRITING_IDLES_S = 60
"""A writer that stops in the middle, as a machine that sleeps does, holds up others this long."""
_BEGIN_WRITING = (
    f"SET LOCAL lock_timeout = '{_WRITING_WAITS_S}s';"
    f"SET LOCAL idle_in_transaction_session_timeout = '{_WRITING_IDLES_S}s';"
    # A receipt that was confirmed survives a power cut, however the server is set up.
    "SELECT set_config('synchronous_commit', 'on', true) "
    "WHERE current_setting('synchronous_commit') IN ('off', 'local');"
    f"SELECT pg_advisory_xact_lock({SPACE}, hashtext(current_schema() || 'write'))"
)
_DEAD_AFTER = {
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
    "connect_timeout": 10,
}
"""How soon a machine that is gone is noticed; rights are held by sessions, so both sides look."""
_SERVER_LOOKS = (
    "-c tcp_keepalives_idle=15 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3 "
    # Who holds a right or reads one moment for hours is idle for long, whatever the server's rule.
    "-c idle_in_transaction_session_timeout=0 -c statement_timeout=0 -c timezone=UTC"
)
_TRUSTED_IDLE_S = 30
"""An idle session is asked whether it still lives after this long, or when the server said
something meanwhile: a server that ends says so, a machine that is gone does not."""
_LEAST_VERSION = 13
"""Of the server: the first with pg_current_snapshot()."""
_AWAY = ("08", "57P", "40", "53300", "55P03", "57014", "25P03", "25P04")
"""SQLSTATEs, or their beginnings, after which the same may succeed: no connection, shutdown,
deadlock, too many clients, lock not available, cancelled, idle too long
(https://www.postgresql.org/docs/current/errcodes-appendix.html)."""
_PERSON = ("28", "3D", "42501", "3F", "25006")
"""SQLSTATEs, or their beginnings, that a person must act on: who may connect, where, to do what; a
standby takes no writes."""
_PERSON_WORDS = ("authentication failed", "does not exist", "no pg_hba.conf entry", "password")


def engine(url: sa.URL) -> sa.Engine:
    """Return an engine whose sessions keep anchord's rules.

    Raises:
        ImportError: the driver is not installed.
    """
    arguments = session_arguments(url)
    found = sa.create_engine(url, connect_args=arguments)
    event.listen(found, "connect", _connected)
    event.listen(found, "checkin", _idle)
    event.listen(found, "checkout", _awake)
    event.listen(found, "begin", _begin)
    return found


def check_server(connection: sa.Connection) -> None:
    """Refuse a server or database that cannot keep what a store keeps.

    Raises:
        ConfigError: it is too old, or its texts are not UTF-8.
    """
    asked = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')"
    number, encoding = connection.exec_driver_sql(asked).one()
    if number < _LEAST_VERSION * 10_000:
        raise ConfigError(
            f"expected PostgreSQL {_LEAST_VERSION} or newer, got {number // 10_000}: upgrade the "
            "server"
        )
    if encoding != "UTF8":
        raise ConfigError(
            f"expected a database with the encoding UTF8, got {encoding}: make one with "
            "CREATE DATABASE anchord ENCODING 'UTF8' TEMPLATE template0"
        )


def session_arguments(url: sa.URL) -> dict[str, int | str]:
    """Return what a session is opened with beside the address; what the address says is kept."""
    given = set(url.query)
    arguments: dict[str, int | str] = {
        name: value for name, value in _DEAD_AFTER.items() if name not in given
    }
    arguments["application_name"] = application_name()
    if "options" not in given:
        arguments["options"] = _SERVER_LOOKS
    return arguments


def application_name() -> str:
    """Return how this process names itself to the server, which keeps 63 bytes of it.

    Containers on one machine may share its name, and each have a process 1: a few random digits
    keep their sessions apart.
    """
    return f"anchord {os.getpid()} {_TOKEN} {platform.node() or '?'}"


def process_named(application: str | None) -> tuple[int | None, str | None]:
    """Return process number and machine that `application_name` said; None where it did not."""
    words = (application or "").split(" ", 3)
    if len(words) < 4 or words[0] != "anchord" or not words[1].isdigit():
        return None, None
    return int(words[1]), words[3]


def _connected(driver: Any, _record: Any) -> None:
    for dumper in _text_dumpers():
        driver.adapters.register_dumper(str, dumper)


def _idle(_driver: Any, record: Any) -> None:
    record.info["idle_since"] = time.monotonic()


def _awake(driver: Any, record: Any, _proxy: Any) -> None:
    """Let the pool open another session when one that idled is gone; mostly at no round trip.

    Raises:
        InvalidatePoolError: the pool's own sign; it tries again with new sessions.
    """
    import psycopg

    since = record.info.pop("idle_since", None)
    if since is None or (time.monotonic() - since < _TRUSTED_IDLE_S and not _heard(driver)):
        return
    try:
        driver.execute("")
        driver.rollback()
    except psycopg.Error:
        raise exc.InvalidatePoolError("the session ended while it idled") from None


def _heard(driver: Any) -> bool:
    """Tell whether the server sent something, or closed the connection, without being asked."""
    if driver.closed:
        return True
    waiting = select.poll()
    waiting.register(driver.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


@cache
def _text_dumpers() -> tuple[type, ...]:
    """Return what sends texts: the one character PostgreSQL has not becomes a visible one.

    Names and addresses have no NUL. What a stranger's answer said may have, and must not be able to
    keep a store from writing down that it came.
    """
    from psycopg.types.string import StrBinaryDumper, StrDumperUnknown

    class Binary(StrBinaryDumper):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", REPLACED))

    class Plain(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(obj.replace("\0", REPLACED))

    return Binary, Plain  # the last one is the driver's choice where it has one


def _begin(connection: sa.Connection) -> None:
    if connection.get_execution_options().get("writes"):
        connection.exec_driver_sql(_BEGIN_WRITING)


def mapped(error: exc.DBAPIError, shown: str) -> AnchordError:
    """Return what an error of the driver means, by consequence.

    Args:
        error: as SQLAlchemy raises it.
        shown: the store's address without its password.
    """
    text = " ".join(str(error.orig).split())
    state = getattr(error.orig, "sqlstate", None)
    if state is None and isinstance(error, exc.OperationalError):
        told = any(word in text for word in _PERSON_WORDS)
        state = _PERSON[0] if told else _AWAY[0]
    state = state or "no SQLSTATE"
    if error.connection_invalidated or state.startswith(_AWAY):
        return StoreBusyError(
            f"the store {shown} does not answer, or let go of us: {text}; what was committed is "
            "kept, tried again"
        )
    if state.startswith(_PERSON):
        return ConfigError(
            f"the store {shown} cannot be opened: {text}; check store.url, the password file and "
            "the rights of its user"
        )
    if state.startswith("53"):  # insufficient resources
        return DiskError(
            f"the store {shown} has no room: {text}; nothing more is written. Make room on the "
            "server, then run again: what was confirmed before is kept"
        )
    return FatalError(
        f"the store {shown} failed ({state}): {text}; nothing of this was kept. See the server's "
        "log, and restore from a backup if the store is damaged"
    )
