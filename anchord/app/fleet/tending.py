"""Looking after the workers: who is gone, what it left, and what the queue needs no more.

Every worker does this now and then, one at a time. A worker that gave no sign of life is taken for
dead, and because it may only sleep, its sessions are ended first: with them go its turns and its
right to write, so when it wakes up it can do no harm. What it had in hand is put into the queue
again. There is nothing to resume: the task looks into the store, as any other does.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from anchord.adapters.store.postgres import SPACE, process_named
from anchord.app.fleet.address import procrastinate
from anchord.app.fleet.auditing import TRIES
from anchord.app.fleet.duties import AUDIT
from anchord.app.fleet.queue import ask_for, task_name
from anchord.app.service.logs import tell

if TYPE_CHECKING:
    from procrastinate import App

WORKERS = "hashtext(current_schema() || 'anchord worker')"
"""First number of the advisory locks that tell which sessions belong to which worker."""
_TENDING = f"{SPACE}, hashtext(current_schema() || 'tending')"
_ENDED = f"""
    SELECT mine.application_name, pg_terminate_backend(other.pid)
    FROM pg_locks JOIN pg_stat_activity AS mine USING (pid)
    JOIN pg_stat_activity AS other ON other.application_name = mine.application_name
      AND other.client_addr IS NOT DISTINCT FROM mine.client_addr
      AND other.datid = mine.datid AND other.usesysid = mine.usesysid
    LEFT JOIN procrastinate_workers AS worker ON worker.id = pg_locks.objid::bigint
    WHERE pg_locks.locktype = 'advisory' AND pg_locks.granted AND pg_locks.database = mine.datid
      AND mine.datname = current_database() AND pg_locks.classid = {WORKERS}::oid
      AND mine.application_name <> current_setting('application_name')
      AND (worker.id IS NULL OR worker.last_heartbeat < now() - make_interval(secs => %s))
"""  # noqa: S608 - constants
_OLD_H = 24
"""How long jobs are kept that did not succeed; the others go at once."""
_CLEAN_EVERY_S = 3_600.0


def beat_s(lease_s: float) -> float:
    """Return how often a worker gives a sign of life, and looks after the others."""
    return lease_s / 6


def silence_s(lease_s: float) -> float:
    """Return after which silence a worker is taken for dead.

    With two beats more to notice it, and to put its work into the queue, the lease is kept.
    """
    return lease_s * 4 / 6


class Tending:
    """Looks after the workers of one store.

    Args:
        queue: opened.
        connection: of psycopg, asynchronous, in autocommit; nobody else uses it meanwhile.
        lease_s: within this time, others have what a worker left.
    """

    def __init__(self, queue: App, connection: Any, lease_s: float) -> None:
        self._queue, self._connection, self._lease_s = queue, connection, lease_s
        self._cleaned = float("-inf")

    async def __call__(self) -> int:
        """Look after them, unless another worker does; return how many tasks were taken back.

        Raises:
            psycopg.Error, ConnectorException: the server does not answer.
        """
        cursor = await self._connection.execute(f"SELECT pg_try_advisory_lock({_TENDING})")
        if not (await cursor.fetchone())[0]:
            return 0
        try:
            return await self._tend()
        finally:
            await self._connection.execute(f"SELECT pg_advisory_unlock({_TENDING})")

    async def _tend(self) -> int:
        silence = silence_s(self._lease_s)
        cursor = await self._connection.execute(_ENDED, (silence,))
        for name in {row[0] for row in await cursor.fetchall()}:
            _tell_silent(name, silence)
        jobs = self._queue.job_manager
        stalled = list(await jobs.get_stalled_jobs(seconds_since_heartbeat=silence))
        for job in stalled:
            await self.take_back(job)
        await jobs.prune_stalled_workers(silence)
        if time.monotonic() > self._cleaned + _CLEAN_EVERY_S:
            self._cleaned = time.monotonic()
            await jobs.delete_old_jobs(
                _OLD_H, include_failed=True, include_cancelled=True, include_aborted=True
            )
        return len(stalled)

    async def take_back(self, job: Any) -> None:
        """Put a job that nobody does into the queue anew.

        Not by the library's retry: another one of its kind may wait there, and two do not. Only a
        shard of an audit is another one each time; who audits sees the one that is given up.
        """
        library = procrastinate()
        try:
            if job.queue == AUDIT:
                await self._again(job)
                return
            await self._queue.job_manager.finish_job_by_id_async(
                job.id, library.jobs.Status.FAILED, delete_job=True
            )
        except library.exceptions.ConnectorException:
            return  # it was finished meanwhile
        if task_name(job.queue) in self._queue.tasks:
            await ask_for(self._queue, job.queue)

    async def _again(self, job: Any) -> None:
        if job.attempts + 1 < TRIES:
            await self._queue.job_manager.retry_job(job)
            return
        await self._queue.job_manager.finish_job_by_id_async(
            job.id, procrastinate().jobs.Status.FAILED, delete_job=False
        )


def _tell_silent(application: str, silence_s: float) -> None:
    pid, host = process_named(application)
    tell(
        logging.WARNING, "silent",
        f"worker {pid} on {host} gave no sign of life for {silence_s:.0f} s, or is just leaving: "
        "its sessions were ended, and others do its work",
        pid=pid, host=host,
    )  # fmt: skip
