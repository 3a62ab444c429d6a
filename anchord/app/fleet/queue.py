"""The queue: Procrastinate's tasks, one for each duty, and when they come by themselves.

Shards of audits come from whoever audits, have no lock, and are tried again.

Each duty has one lock, so one worker in the whole fleet does it at a time, and one place to wait
in, so what is asked for twice is done once. Every `service.pass_every_s` one worker looks which
duties are due and puts these into the queue, and only these; what a duty leaves for others is put
there at once. The look itself, and the next shift of storing, are put there by whichever worker is
first.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from anchord.app.fleet.address import pool_arguments, procrastinate
from anchord.app.fleet.auditing import TRIES, TRY_AGAIN_S
from anchord.app.fleet.duties import AUDIT, LOOK, STORING, Duty, duties
from anchord.app.fleet.looking import Looking

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from procrastinate import App

    from anchord.app.fleet.work import Work

_PREFIX = "anchord."
_LATEST_S = 86_400.0
"""A look that was due while nobody worked is made by who starts within this time."""
_SESSIONS = 2
"""At the server, for the queue alone; what it does takes milliseconds."""
_LADDER = (
    (1, (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30), "* * * * * */{}"),
    (60, (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30), "*/{} * * * *"),
    (3_600, (1, 2, 3, 4, 6, 8, 12), "0 */{} * * *"),
    (86_400, (1,), "0 0 */{} * *"),
)
"""Seconds, how many of them divide the next unit, and how cron says so."""


def cron(every_s: float) -> str:
    """Return the longest interval that cron can say and that is not longer; at least a second."""
    best = _LADDER[0][2].format(1)
    for unit_s, counts, text in _LADDER:
        for count in counts:
            if unit_s * count <= every_s:
                best = text.format(count)
    return best


def task_name(duty: str) -> str:
    """Return what the queue calls a duty."""
    return _PREFIX + duty


def make_queue(url: str, work: Work, threads: Executor) -> App:
    """Return the queue with all tasks; nothing is connected yet.

    Args:
        url: of the store.
        work: does the duties.
        threads: where they are done.

    Raises:
        ConfigError: not PostgreSQL, or the library is not installed.
    """
    library = procrastinate()
    pool = pool_arguments(url, _SESSIONS)
    app: App = library.App(
        connector=library.PsycopgConnector(**pool), periodic_defaults={"max_delay": _LATEST_S}
    )
    for duty in duties():
        _add(app, duty.name, _on(app, threads, _doing(work, duty)))
    _add(app, LOOK, _on(app, threads, _looking(work)))
    _add(app, STORING, _on(app, threads, _storing(work)))
    every = cron(work.config.service.pass_every_s)
    for name in (LOOK, STORING):
        app.periodic(cron=every)(app.tasks[task_name(name)])
    _add_audits(app, work, threads)
    return app


def _doing(work: Work, duty: Duty) -> Callable[[], tuple[str, ...]]:
    return lambda: work.do(duty)


def _looking(work: Work) -> Callable[[], tuple[str, ...]]:
    looking = Looking()
    return lambda: work.look(looking)


def _storing(work: Work) -> Callable[[], tuple[str, ...]]:
    def shift() -> tuple[str, ...]:
        work.store()
        return ()

    return shift


def _on(app: App, threads: Executor, work: Callable[[], tuple[str, ...]]) -> Callable[..., Any]:
    async def run(timestamp: int = 0) -> None:
        del timestamp  # when it was due; what is due stands in the store
        for name in await asyncio.get_running_loop().run_in_executor(threads, work):
            await ask_for(app, name)

    return run


def _add(app: App, name: str, run: Callable[..., Any]) -> None:
    app.task(name=task_name(name), queue=name, lock=name, queueing_lock=name)(run)


def _add_audits(app: App, work: Work, threads: Executor) -> None:
    again = procrastinate().RetryStrategy(max_attempts=TRIES - 1, wait=TRY_AGAIN_S)

    async def run(audit: str, shard: int) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(threads, work.audit, audit, shard)

    app.task(name=task_name(AUDIT), queue=AUDIT, retry=again)(run)


async def ask_for(app: App, name: str) -> None:
    """Put a duty into the queue, unless it waits there already."""
    library = procrastinate()
    with contextlib.suppress(library.exceptions.AlreadyEnqueued):
        await app.tasks[task_name(name)].defer_async()
