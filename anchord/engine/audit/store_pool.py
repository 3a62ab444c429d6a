"""Chunks in other processes: each opens the store for itself, and sends back what it found."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.processes import done_elsewhere
from anchord.engine.audit.store_chunk import ChunkAudit
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from anchord.engine.audit.store_frame import Frame, Job
    from anchord.ports.reading import ReadingStore

    OpenStore = Callable[[], ReadingStore]

_AT_ONCE = 4
"""Stretches a call takes along."""
_audit: ChunkAudit | None = None
"""In a process that works: what audits there."""


def outcomes(
    store: ReadingStore, open_store: OpenStore, frame: Frame, jobs: Iterable[Job]
) -> Iterator[Outcome]:
    """Yield what was found in every stretch, in this process or in others.

    Args:
        store: what this process reads.
        open_store: opens it anew, in another process.
        frame: what is the same for all.
        jobs: the stretches.

    Raises:
        FatalError: a process died.
    """
    if frame.options.jobs <= 1:
        audit = ChunkAudit(store, frame)
        for job in jobs:
            yield audit.run(job)
        return
    told = (open_store, frame)
    yield from done_elsewhere(frame.options.jobs, _begin, told, _run, _some(iter(jobs)))


def _some(jobs: Iterator[Job]) -> Iterator[list[Job]]:
    while some := list(islice(jobs, _AT_ONCE)):
        yield some


def _begin(told: tuple[OpenStore, Frame]) -> None:
    global _audit  # noqa: PLW0603 -- what a process of a pool is told once
    open_store, frame = told
    _audit = ChunkAudit(open_store(), frame)


def _run(jobs: list[Job]) -> Outcome:
    if _audit is None:
        raise FatalError("a process of this audit was told nothing: please report it")
    found = _audit.run(jobs[0])
    for job in jobs[1:]:
        found.merge(_audit.run(job))
    return found
