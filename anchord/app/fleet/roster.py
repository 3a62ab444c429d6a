"""Who works: the workers of a store, as the queue and the server know them. Only reads."""

from __future__ import annotations

from typing import Any

import msgspec

from anchord.adapters.store.postgres import process_named
from anchord.app.fleet.address import connection_arguments
from anchord.app.fleet.tending import WORKERS
from anchord.core.moment import utc
from anchord.errors import StoreBusyError

_THERE = "SELECT to_regclass('procrastinate_workers') IS NOT NULL"
_WORKERS = f"""
    SELECT worker.id, max(mine.application_name) AS name, max(mine.client_addr::text) AS address,
      extract(epoch FROM min(mine.backend_start))::bigint AS since,
      extract(epoch FROM now() - worker.last_heartbeat)::float AS silent_s,
      coalesce(array_agg(DISTINCT job.queue_name ORDER BY job.queue_name)
        FILTER (WHERE job.id IS NOT NULL), '{{}}') AS duties
    FROM procrastinate_workers AS worker
    LEFT JOIN pg_locks ON pg_locks.locktype = 'advisory' AND pg_locks.granted
      AND pg_locks.classid = {WORKERS}::oid AND pg_locks.objid::bigint = worker.id
      AND pg_locks.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    LEFT JOIN pg_stat_activity AS mine ON mine.pid = pg_locks.pid
    LEFT JOIN procrastinate_jobs AS job ON job.worker_id = worker.id AND job.status = 'doing'
    GROUP BY worker.id ORDER BY worker.id
"""  # noqa: S608 - constants


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """One worker."""

    id: int
    pid: int | None
    """None: it has no session any more, and is gone."""
    host: str | None
    since: str | None
    """When it took its place among the workers."""
    silent_s: float
    """Since its last sign of life."""
    duties: list[str]
    """What it does now."""


def workers(url: str) -> list[Worker]:
    """Return the workers of a PostgreSQL store, in the order they came; none before the first.

    Raises:
        ConfigError: not PostgreSQL, or the driver is not installed.
        StoreBusyError: the server does not answer.
    """
    arguments = connection_arguments(url)
    import psycopg

    try:
        with psycopg.connect(**arguments) as connection:
            row = connection.execute(_THERE).fetchone()
            if row is None or not row[0]:
                return []
            return [_worker(row) for row in connection.execute(_WORKERS)]
    except psycopg.Error as error:
        words = " ".join(str(error).split())
        raise StoreBusyError(f"the workers cannot be asked for: {words}") from error


def _worker(row: tuple[Any, ...]) -> Worker:
    number, name, address, since, silent_s, duties = row
    pid, host = process_named(name)
    return Worker(
        id=number,
        pid=pid,
        host=host or address,
        since=None if since is None else utc(since),
        silent_s=round(max(silent_s, 0.0), 1),
        duties=list(duties),
    )
