"""Chunks in other processes: each opens the store for itself, and sends back what it found."""

from __future__ import annotations

import multiprocessing
from collections import deque
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import TYPE_CHECKING

from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.store_chunk import ChunkAudit
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from anchord.engine.audit.store_frame import Frame, Job
    from anchord.ports.reading import ReadingStore

    OpenStore = Callable[[], ReadingStore]

_AT_ONCE = 4
"""Stretches a call takes along."""
_AHEAD = 3
"""Calls that wait for each process."""
_audit: ChunkAudit | None = None
"""In a process that works: what audits there."""


def outcomes(open_store: OpenStore, frame: Frame, jobs: Iterable[Job]) -> Iterator[Outcome]:
    """Yield what was found in every stretch, in this process or in others.

    Raises:
        FatalError: a process died.
    """
    if frame.options.jobs <= 1:
        store = open_store()
        try:
            audit = ChunkAudit(store, frame)
            for job in jobs:
                yield audit.run(job)
        finally:
            store.close()
        return
    yield from _elsewhere(open_store, frame, iter(jobs))


def _elsewhere(open_store: OpenStore, frame: Frame, jobs: Iterator[Job]) -> Iterator[Outcome]:
    # Forking would take this process's connections and threads along.
    context = multiprocessing.get_context("spawn")
    count = frame.options.jobs
    with ProcessPoolExecutor(count, context, _begin, (open_store, frame)) as pool:
        waiting: deque[Future[Outcome]] = deque()
        try:
            while True:
                while len(waiting) < _AHEAD * count and (some := list(islice(jobs, _AT_ONCE))):
                    waiting.append(pool.submit(_run, some))
                if not waiting:
                    return
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise FatalError(
                "a process of this audit was killed, so nothing is known of what it looked at: "
                "give more memory, or a smaller --jobs, and audit again"
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(open_store: OpenStore, frame: Frame) -> None:
    global _audit  # noqa: PLW0603 -- what a process of a pool is told once
    _audit = ChunkAudit(open_store(), frame)


def _run(jobs: list[Job]) -> Outcome:
    if _audit is None:
        raise FatalError("a process of this audit was told nothing: please report it")
    found = _audit.run(jobs[0])
    for job in jobs[1:]:
        found.merge(_audit.run(job))
    return found
