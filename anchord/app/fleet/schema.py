"""The tables of the queue, beside the store's: made, and brought up to the library's version.

Procrastinate keeps no note of which of its migrations were run, so a comment on its main table
does: the name of the last one. What is in the queue is worth nothing: all of it can be dropped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchord.adapters.store.postgres import SPACE
from anchord.app.fleet.address import connection_arguments, procrastinate
from anchord.errors import ConfigError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = "anchord: "
_TABLE = "procrastinate_jobs"
_ALONE = f"SELECT pg_advisory_xact_lock({SPACE}, hashtext(current_schema() || 'queue'))"
_READ = f"""
    SELECT obj_description(found, 'pg_class') AS note
    FROM to_regclass(quote_ident(current_schema()) || '.{_TABLE}') AS found WHERE found IS NOT NULL
"""  # noqa: S608 - constants
_SWEEP = """
    DO $$ DECLARE one record; BEGIN
      FOR one IN SELECT format('DROP TABLE IF EXISTS %I CASCADE', relname) AS words FROM pg_class
        WHERE relkind IN ('r', 'p') AND relname LIKE 'procrastinate\\_%'
          AND relnamespace = current_schema()::regnamespace LOOP EXECUTE one.words; END LOOP;
      FOR one IN SELECT format('DROP FUNCTION IF EXISTS %s CASCADE', oid::regprocedure) AS words
        FROM pg_proc WHERE proname LIKE 'procrastinate\\_%'
          AND pronamespace = current_schema()::regnamespace LOOP EXECUTE one.words; END LOOP;
      FOR one IN SELECT format('DROP TYPE IF EXISTS %I CASCADE', typname) AS words FROM pg_type
        WHERE typname LIKE 'procrastinate\\_%' AND typtype IN ('e', 'c')
          AND typnamespace = current_schema()::regnamespace LOOP EXECUTE one.words; END LOOP;
    END $$
"""
"""Whoever dropped the tables left types and functions, which cannot be made twice."""


def install(url: str) -> bool:
    """Make the queue's tables, or bring them up; return whether anything changed.

    Several may call it at once; one does it. If we crash, all of it or nothing was done.

    Raises:
        ConfigError: not PostgreSQL, no right to make tables, or tables that are not anchord's.
        StoreBusyError: the server does not answer.
    """
    procrastinate()
    import psycopg

    try:
        with psycopg.connect(**connection_arguments(url)) as connection:
            connection.execute(_ALONE)
            return _bring_up(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            f"the queue's tables cannot be made: {_text(error)}; let the database's owner run "
            "`anchord db upgrade` once"
        ) from None
    except psycopg.OperationalError as error:
        raise StoreBusyError(f"the queue cannot be reached: {_text(error)}") from error


def _bring_up(connection: Any) -> bool:
    from procrastinate.schema import SchemaManager

    steps = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    row = connection.execute(_READ).fetchone()
    if row is None:
        connection.execute(_SWEEP)
        connection.execute(SchemaManager.get_schema())
        _note(connection, steps)
        return True
    note = row[0] or ""
    if not note.startswith(_MARK):
        raise ConfigError(
            "this database has a Procrastinate queue that anchord did not make: give anchord a "
            "database, or a schema, of its own"
        )
    if note > _MARK + steps[-1].name:
        raise ConfigError(
            f"the queue's tables are of a newer Procrastinate ({note.removeprefix(_MARK)}) than is "
            "installed here: bring this machine's anchord up to the others'; or, to go back, stop "
            f"all workers and drop the table {_TABLE}: what it holds is worth nothing"
        )
    missing = [step for step in steps if step.name > note.removeprefix(_MARK)]
    for step in missing:
        connection.execute(step.read_text("utf-8"))
    if missing:
        _note(connection, missing)
    return bool(missing)


def _note(connection: Any, steps: Sequence[Path]) -> None:
    from psycopg import sql

    words = sql.Literal(_MARK + steps[-1].name)
    connection.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(_TABLE), words))


def _text(error: Exception) -> str:
    return " ".join(str(error).split())
