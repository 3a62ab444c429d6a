"""Processes of an audit: they do their work in order, and never outlive who started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, TypeVar

from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_AHEAD = 3
"""Tasks per process that wait or are done, so that no process idles and memory stays flat."""
_ORPHANED = 1

Told = TypeVar("Told")
Task = TypeVar("Task")
Done = TypeVar("Done")


def done_elsewhere(
    count: int,
    begin: Callable[[Told], None],
    told: Told,
    work: Callable[[Task], Done],
    tasks: Iterable[Task],
) -> Iterator[Done]:
    """Yield what became of each task, in order.

    Args:
        count: how many processes.
        begin: called once in each of them; it and `work` are functions of modules.
        told: what `begin` is given.
        work: does one task.
        tasks: taken only as fast as they are done.

    Raises:
        FatalError: a process was killed.
    """
    # Not forked: this process may hold threads and open databases.
    context = multiprocessing.get_context("spawn")
    # It starts here because its start would end the deafness of the first process.
    resource_tracker.ensure_running()
    with ProcessPoolExecutor(count, context, _begin, (begin, told)) as pool:
        waiting: deque[Future[Done]] = deque()
        try:
            for task in tasks:
                with _deaf():
                    waiting.append(pool.submit(work, task))
                if len(waiting) >= _AHEAD * count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise FatalError(
                "a process of this audit was killed, so nothing is known of what it looked at: "
                "give more memory, or a smaller --jobs, and audit again"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


@contextlib.contextmanager
def _deaf() -> Iterator[None]:
    """Put off Ctrl-C, and start processes that never hear it.

    A terminal sends it to all of them. This process ends them; one that is just starting would
    print a traceback instead.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(begin: Callable[[Told], None], told: Told) -> None:
    threading.Thread(target=_end_with_parent, name="anchord-orphan", daemon=True).start()
    begin(told)


def _end_with_parent() -> None:
    """End this process with the one that started it.

    A pool tells its processes to end; one that is killed tells them nothing, and they hold the
    pipe they wait at open themselves.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(_ORPHANED)
