"""Opening a store: durability settings, the schema check, and creation on request only."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from anchord.adapters.store import postgres
from anchord.adapters.store.schema import REVISION
from anchord.errors import AnchordError, ConfigError, FatalError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_TIMEOUT_S = 30
"""How long one SQLite statement waits for another process's transaction."""


def sqlite_path(url: str) -> Path | None:
    """Return the file of a SQLite URL, or None for another database."""
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return None
    return Path(parsed.database or "")


def connect(url: str) -> sa.Engine:
    """Return an engine with the store's durability settings; touches nothing yet.

    Raises:
        ConfigError: the URL cannot be understood or its driver is not installed.
    """
    try:
        engine = _engine(url)
    except (exc.ArgumentError, ImportError, ValueError) as error:
        # The address may hold a password; what it begins with does not.
        begins = url.partition(":")[0]
        raise ConfigError(
            f"store.url, which begins with {begins!r:.40}, cannot be used: {error}"
        ) from None
    # Errors are raised; what the pool says beside them (Ctrl-C while it closes) helps nobody.
    logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _configure_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _engine(url: str) -> sa.Engine:
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "postgresql":
        return sa.create_engine(url, pool_pre_ping=False)
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    return postgres.engine(parsed)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    """WAL with synchronous FULL: a committed receipt survives a power cut."""
    # The driver must not begin transactions by itself: `_begin_sqlite` does, so that a
    # writer takes its lock at once instead of failing in the middle.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout={BUSY_TIMEOUT_S * 1000}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        # Room for the index of a million digests, and checkpoints rare enough that its pages
        # are written once for many transactions: a quarter less is written on large input.
        "cache_size=-64000",
        "wal_autocheckpoint=16384",
        "journal_size_limit=67108864",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    mode = "IMMEDIATE" if connection.get_execution_options().get("writes") else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {mode}")


@contextlib.contextmanager
def mapped_errors(url: str) -> Iterator[None]:
    """Let out only anchord's errors, by consequence."""
    shown = sa.make_url(url).render_as_string(hide_password=True)
    try:
        yield
    except exc.DBAPIError as error:
        if sa.make_url(url).get_backend_name() == "postgresql":
            raise postgres.mapped(error, shown) from error
        raise _mapped_sqlite(error, shown) from error
    except (exc.PendingRollbackError, exc.TimeoutError) as error:
        # A transaction whose connection was lost was used on; or all connections are in use.
        raise StoreBusyError(
            f"the store {shown} does not answer, or let go of us: {error}; what was committed is "
            "kept, tried again"
        ) from error


def _mapped_sqlite(error: exc.DBAPIError, shown: str) -> AnchordError:
    text = str(error.orig)
    if not isinstance(error, exc.OperationalError):
        return FatalError(
            f"the store {shown} failed: {text}; restore it from a backup if it is damaged"
        )
    if "locked" in text or "busy" in text:
        return StoreBusyError(f"the store {shown} is locked by another process")
    if "unable to open" in text or "readonly" in text or "permission" in text.lower():
        return ConfigError(
            f"the store {shown} cannot be opened: {text}; check folder and permissions"
        )
    return FatalError(
        f"the store {shown} failed: {text}; nothing more is written. Check free space and the "
        "disk, then run again: what was confirmed before is kept"
    )


def check_revision(engine: sa.Engine, url: str) -> None:
    """Refuse a store that is absent, foreign, older or newer than this code.

    Raises:
        ConfigError: with what to do.
    """
    shown = sa.make_url(url).render_as_string(hide_password=True)
    path = sqlite_path(url)
    if path is not None and not path.is_file():
        raise ConfigError(f"no store at {path}: make one with `anchord init`")
    found = current_revision(engine, url)
    if found is None:
        raise ConfigError(f"{shown} is no anchord store: make one with `anchord init`")
    if found == REVISION:
        return
    if found < REVISION:
        raise ConfigError(
            f"the store {shown} has schema {found}, this anchord needs {REVISION}: "
            "make a backup, then run `anchord db upgrade` to migrate it"
        )
    raise ConfigError(
        f"the store {shown} has schema {found}, newer than {REVISION} of this anchord: "
        "install the newer anchord; this one will not touch it"
    )


def current_revision(engine: sa.Engine, url: str) -> str | None:
    """Return the schema revision a store states, or None."""
    with mapped_errors(url), engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        row = connection.execute(sa.text("SELECT version_num FROM alembic_version")).first()
        return None if row is None else str(row[0])


def revision_at(url: str) -> str | None:
    """Return the schema revision of the store at an address; None where there is no store yet.

    Raises:
        AnchordError: by consequence, when the database does not say.
    """
    path = sqlite_path(url)
    if path is not None and not path.is_file():
        return None
    engine = connect(url)
    try:
        return current_revision(engine, url)
    finally:
        engine.dispose()


def shown_url(url: str) -> str:
    """Return an address as people may see it: without a password."""
    return sa.make_url(url).render_as_string(hide_password=True)


def _touch(path: Path) -> None:
    """Make the file before SQLite does, so that nobody else may read it."""
    try:
        path.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"the store {path} cannot be made: {error.strerror}; check store.url, the folder and "
            "its permissions"
        ) from None


def create(url: str) -> bool:
    """Create or migrate the store; return whether anything changed.

    Raises:
        ConfigError: the database holds a schema this code does not know.
    """
    from alembic import command
    from alembic.config import Config as AlembicConfig

    engine = connect(url)
    path = sqlite_path(url)
    try:
        found = None
        if path is None or path.is_file():
            found = current_revision(engine, url)
        if found == REVISION:
            return False
        if found is not None and found > REVISION:
            check_revision(engine, url)
        if path is not None:
            _touch(path)
        config = AlembicConfig()
        config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
        with mapped_errors(url), engine.execution_options(writes=True).begin() as connection:
            if engine.dialect.name == "postgresql":
                postgres.check_server(connection)
            config.attributes["connection"] = connection
            command.upgrade(config, REVISION)
        return True
    finally:
        engine.dispose()
