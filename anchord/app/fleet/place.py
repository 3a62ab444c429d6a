"""A worker's place among the others: from joining them to leaving, or to losing the server.

Everything that hangs on sessions at the server is here, so a worker whose server went away, or who
was taken for dead while it slept, leaves its place and takes a new one.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from anchord.adapters.store.sql import SqlStore
from anchord.app.fleet.address import connection_arguments
from anchord.app.fleet.duties import LOOK
from anchord.app.fleet.forgotten import Forgotten
from anchord.app.fleet.queue import make_queue
from anchord.app.fleet.tending import WORKERS, Tending, beat_s, silence_s

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from procrastinate import App
    from procrastinate.worker import Worker

    from anchord.app.fleet.work import Work

_LOOK_S = 0.02


class Place:
    """One stay among the workers.

    Args:
        url: of the store.
        work: what is done.
        queues: names of the duties to do; empty: all.
        former: number of the place this process had before; its tasks are given back at once.
    """

    def __init__(self, url: str, work: Work, queues: Sequence[str], former: int | None) -> None:
        self._url, self._work, self._queues = url, work, list(queues)
        self._worker: Worker | None = None
        self.left = False
        """Whether `leave` was called."""
        self.number = former
        """Among the workers; None: never had."""

    def leave(self) -> None:
        """Take nothing new; what is in hand ends by itself. Of the event loop's thread only."""
        self.left = True
        if self._worker is not None:
            _stop(self._worker)

    async def stay(self, joined: Callable[[], None]) -> None:
        """Work until `leave`, or until the server is lost.

        Args:
            joined: called once work may come.

        Raises:
            StoreBusyError: a daemon serves this store, or the server does not answer.
            psycopg.Error, ConnectorException: the server does not answer.
        """
        fleet = self._work.config.fleet
        with ThreadPoolExecutor(fleet.concurrency, thread_name_prefix="duty") as threads:
            queue = make_queue(self._url, self._work, threads)
            async with _serving(self._url), queue.open_async():
                if self.number is not None:
                    await queue.job_manager.unregister_worker(self.number)
                await self._stay(queue, joined)

    async def _stay(self, queue: App, joined: Callable[[], None]) -> None:
        from procrastinate.worker import Worker

        fleet = self._work.config.fleet
        self._worker = worker = Worker(
            app=queue,
            name=None,
            queues=[*self._queues, LOOK] if self._queues else None,
            concurrency=fleet.concurrency,
            install_signal_handlers=False,
            delete_jobs="successful",
            fetch_job_polling_interval=min(5.0, fleet.lease_s / 6),
            update_heartbeat_interval=beat_s(fleet.lease_s),
            stalled_worker_timeout=silence_s(fleet.lease_s),
        )
        running = asyncio.create_task(_run(worker))
        living = asyncio.create_task(self._live(queue, worker, joined))
        try:
            await asyncio.wait([running, living], return_when=asyncio.FIRST_COMPLETED)
            _stop(worker)
            await running  # what is in hand ends first
            if living.done():
                living.result()
        finally:
            living.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await living

    async def _live(self, queue: App, worker: Worker, joined: Callable[[], None]) -> None:
        """Hold the lock that names this process's sessions, and look after the others."""
        import psycopg

        while worker.worker_id is None:  # noqa: ASYNC110 - the library tells nobody
            await asyncio.sleep(_LOOK_S)
        self.number = worker.worker_id
        lease_s = self._work.config.fleet.lease_s
        arguments = connection_arguments(self._url)
        async with await psycopg.AsyncConnection.connect(
            **arguments, autocommit=True
        ) as connection:
            await connection.execute(
                f"SELECT pg_advisory_lock_shared({WORKERS}, %s::int)", (self.number,)
            )
            joined()
            if self.left:
                _stop(worker)
            tend = Tending(queue, connection, lease_s)
            look_for_forgotten = Forgotten(worker, connection, tend.take_back)
            while True:
                await tend()
                await look_for_forgotten()
                await asyncio.sleep(beat_s(lease_s))


async def _run(worker: Any) -> None:
    await worker.run()


def _stop(worker: Any) -> None:
    worker.stop()


@contextlib.asynccontextmanager
async def _serving(url: str) -> AsyncIterator[None]:
    """Be one of the store's workers; entered and left beside the event loop, for it waits."""
    with contextlib.ExitStack() as stack:
        await asyncio.to_thread(_enter, stack, url)
        try:
            yield
        finally:
            await asyncio.to_thread(stack.close)


def _enter(stack: contextlib.ExitStack[Any], url: str) -> None:
    store = SqlStore(url)
    stack.callback(store.close)
    stack.enter_context(store.serving(int(time.time()), shared=True))
