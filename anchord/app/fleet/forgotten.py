"""Tasks that the queue believes to be done here, and nobody does: their end was not heard of.

The library writes down that a task is over once, and goes on when that fails, as it does when the
connection breaks at that moment. The task would keep others from its duty as long as this worker
lives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from procrastinate.jobs import Job
    from procrastinate.worker import Worker

_MINE = "SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND worker_id = %s"


class Forgotten:
    """Looks after the tasks of one worker.

    Args:
        worker: of the library.
        connection: of psycopg, asynchronous, in autocommit; nobody else uses it meanwhile.
        take_back: puts a task into the queue anew.
    """

    def __init__(
        self, worker: Worker, connection: Any, take_back: Callable[[Job], Awaitable[None]]
    ) -> None:
        self._worker, self._connection, self._take_back = worker, connection, take_back
        self._seen: set[int] = set()

    async def __call__(self) -> None:
        """Take back what was nobody's already at the last look: one may be on its way here."""
        cursor = await self._connection.execute(_MINE, (self._worker.worker_id,))
        told = {row[0] for row in await cursor.fetchall()}
        running = self._worker._running_jobs.values()  # noqa: SLF001 - the library tells nobody
        lost = told - {context.job.id for context in running}
        for number in lost & self._seen:
            jobs = await self._worker.app.job_manager.list_jobs_async(id=number)
            for job in jobs:
                await self._take_back(job)
        self._seen = lost
