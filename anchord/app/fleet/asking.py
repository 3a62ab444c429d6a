"""Asking the workers for an audit: shards go out a few at a time and come back in their order.

What workers answer is believed. Nothing here could tell a worker's answer from one that somebody
else wrote into the database: a secret both share would have to travel through that database, and
the fleet's key signs events and nothing else. So the report names how many were believed.

If this process is killed, its rows stay until the next such audit a day later, and what is in the
queue fails, because the moment it is about is seen by nobody any more.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

from anchord.adapters.store.audit_shards import AuditShards
from anchord.adapters.store.database import sqlite_path
from anchord.adapters.store.reading import SqlReadingStore
from anchord.app.fleet import roster
from anchord.app.fleet.address import connection_arguments, pool_arguments, procrastinate
from anchord.app.fleet.auditing import PRIORITY, TRIES, asked_bytes
from anchord.app.fleet.duties import AUDIT
from anchord.app.fleet.queue import task_name
from anchord.engine.audit.store_shards import jobs_bytes, note_workers, read_outcome
from anchord.errors import AnchordError, ConfigError, FatalError, StoreBusyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from anchord.adapters.store.audit_shards import Answer
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.store_frame import Frame, Job

STRETCHES = 4
"""In a shard: some 8,000 records, a second or a few."""
PATIENCE_S = 60.0
"""So long, beyond two leases, no worker may have a shard in hand before the audit gives up."""
_A_WORKER = 3
"""Shards out at once for each worker, so that none idles and few rows lie in the table."""
_POLL_S = 0.1
_LOOK_S = 1.0
_DEAD_S = 86_400
_QUEUE = """
    SELECT job.id, job.status::text,
      coalesce(worker.last_heartbeat > now() - make_interval(secs => %s), FALSE)
    FROM procrastinate_jobs AS job
    LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
    WHERE job.id = ANY(%s)
"""


class FleetAudit:
    """One audit by the workers of a PostgreSQL store; a context manager.

    Within it `open_store` and the object itself are what `audit_store` takes. At its end, however
    that comes, its rows are deleted and its tasks cancelled.

    Args:
        url: of the store.
        lease_s: after this silence a worker's shards are another one's.

    Raises:
        ConfigError: a SQLite store, what workers need is not installed, or none is there.
        StoreBusyError: the server does not answer.
    """

    def __init__(self, url: str, lease_s: float) -> None:
        _check_kind(url)
        self._url, self._lease_s = url, lease_s
        self._size = _A_WORKER * _there(url, lease_s)
        self._audit = secrets.token_hex(16)
        self._store: SqlReadingStore | None = None
        self._out: dict[int, int] = {}
        """Shards that are asked for, with their tasks' numbers."""
        self._who: set[str] = set()
        self._heard = time.monotonic()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        import psycopg

        with self._stack, _queue_errors():
            self._rows = self._stack.enter_context(contextlib.closing(AuditShards(self._url)))
            arguments = connection_arguments(self._url)
            self._queue: Any = self._stack.enter_context(
                psycopg.connect(**arguments, autocommit=True)
            )
            library = procrastinate()
            connector = library.SyncPsycopgConnector(**pool_arguments(self._url, 1))
            self._app: Any = self._stack.enter_context(library.App(connector=connector).open())
            self._rows.drop_dead(_now() - _DEAD_S)
            self._stack.callback(self._forget)
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stack.close()

    def open_store(self) -> SqlReadingStore:
        """Open the store, at the moment the workers will see, too."""
        self._store = SqlReadingStore(self._url)
        return self._store

    def __call__(self, frame: Frame, jobs: Iterable[Job]) -> Iterator[Outcome]:
        """Yield what the workers found in each shard, in order.

        Raises:
            FatalError: a shard failed every time, or an answer is none.
            StoreBusyError: the server, or every worker, went away.
        """
        assert self._store is not None  # noqa: S101 - whoever audits has opened the store
        self._rows.put(self._audit, 0, asked_bytes(self._store.share(), frame), _now())
        left, last, shard = _shards(iter(jobs)), 0, 1
        while True:
            for some in islice(left, self._size - len(self._out)):
                last += 1
                self._ask(last, some)
            if shard > last:
                return
            answer = self._wait_for(shard)
            self._who.add(answer.worker)
            del self._out[shard]
            self._rows.drop(self._audit, shard)
            yield read_outcome(answer.result, frame.options)
            shard += 1

    def confess(self, outcome: Outcome) -> None:
        """Note in the report how many workers were believed, if any was asked."""
        if self._who:
            note_workers(outcome, len(self._who))

    def _ask(self, shard: int, jobs: list[Job]) -> None:
        self._rows.put(self._audit, shard, jobs_bytes(jobs), _now())
        task = self._app.configure_task(task_name(AUDIT), queue=AUDIT, priority=PRIORITY)
        with _queue_errors():
            self._out[shard] = task.defer(audit=self._audit, shard=shard)

    def _wait_for(self, shard: int) -> Answer:
        looked = time.monotonic()
        while (answer := self._rows.answered(self._audit, shard)) is None:
            if time.monotonic() > looked + _LOOK_S:
                looked = time.monotonic()
                self._look(shard)
            time.sleep(_POLL_S)
        self._heard = time.monotonic()
        return answer

    def _look(self, shard: int) -> None:
        """Make sure that a shard's task is in the queue, and that somebody works.

        Raises:
            FatalError: it was given up, or taken away.
            StoreBusyError: nobody works.
        """
        with _queue_errors():
            rows = self._queue.execute(_QUEUE, (self._lease_s, list(self._out.values()))).fetchall()
        found = {number: status for number, status, _ in rows}
        status = found.get(self._out[shard])
        if status not in ("todo", "doing") and self._rows.answered(self._audit, shard) is None:
            raise _given_up(shard, status)
        if any(status == "doing" and alive for _, status, alive in rows):
            self._heard = time.monotonic()
        silent_s = time.monotonic() - self._heard
        if silent_s > 2 * self._lease_s + PATIENCE_S:
            raise StoreBusyError(
                f"no worker has worked on this audit for {silent_s:.0f} s: they are gone, have "
                "other things to do, or do only other duties (--queue); look with `anchord "
                "status`, start one with `anchord worker --queue audit`, or audit with --jobs"
            )

    def _forget(self) -> None:
        """Delete what this audit wrote; what cannot be deleted now is, a day later."""
        with contextlib.suppress(AnchordError), _queue_errors():
            self._rows.drop(self._audit)
            for number in self._out.values():
                self._app.job_manager.cancel_job_by_id(number, delete_job=True)


def _check_kind(url: str) -> None:
    if sqlite_path(url) is not None:
        raise ConfigError(
            "--fleet: workers share a PostgreSQL store, and store.url names a SQLite file: audit "
            "with --jobs, which uses the cores of this machine"
        )


def _there(url: str, lease_s: float) -> int:
    """Return how many workers are there."""
    procrastinate()
    found = [one for one in roster.workers(url) if one.pid and one.silent_s < lease_s]
    if not found:
        raise ConfigError(
            "--fleet: no worker is there: start `anchord worker` on one machine or more (`anchord "
            "status` names them), or audit with --jobs, which uses the cores of this machine"
        )
    return len(found)


def _shards(jobs: Iterator[Job]) -> Iterator[list[Job]]:
    while some := list(islice(jobs, STRETCHES)):
        yield some


def _given_up(shard: int, status: str | None) -> FatalError:
    if status is None:
        what = "is in the queue no more and has no answer: somebody deleted it"
    else:
        what = f"was begun {TRIES} times and not done ({status}): the workers' logs say why"
    return FatalError(
        f"shard {shard} of this audit {what}; nothing is known of its records. Audit again, or on "
        "one machine, with --jobs"
    )


@contextlib.contextmanager
def _queue_errors() -> Iterator[None]:
    """Let out only anchord's errors."""
    import psycopg

    library = procrastinate()
    try:
        yield
    except (psycopg.Error, library.exceptions.ConnectorException) as error:
        words = " ".join(str(error.__cause__ or error).split())
        raise StoreBusyError(f"the queue does not answer: {words}; try again") from error


def _now() -> int:
    return int(time.time())
