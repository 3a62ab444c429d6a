"""Chunks of records, audited here or by several processes; they come back in their order."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from typing import TYPE_CHECKING

from anchord.engine.audit.tree_records import Chunk, Context, RecordAuditor

if TYPE_CHECKING:
    from anchord.engine.audit.tree_survey import Unit

_AHEAD = 3
"""Chunks per process that wait or are done, so that no process idles and memory stays flat."""
_worker: list[RecordAuditor] = []
"""What this process audits with, once it was told; a list, so that it can be filled in place."""


def chunks_done(context: Context, chunks: Iterable[list[Unit]], jobs: int) -> Iterator[Chunk]:
    """Yield what became of each chunk, in order.

    Args:
        context: what every process is told.
        chunks: records, a chunk at a time; taken only as fast as they are audited.
        jobs: processes; 1: none but this.
    """
    if jobs <= 1:
        auditor = RecordAuditor(context)
        for units in chunks:
            yield auditor.run(units)
        return
    # Not forked: this process may hold threads and open databases.
    start = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, start, _begin, (context,)) as pool:
        waiting: deque[Future[Chunk]] = deque()
        try:
            for units in chunks:
                waiting.append(pool.submit(_run, units))
                if len(waiting) >= jobs * _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _begin(context: Context) -> None:
    _worker[:] = [RecordAuditor(context)]


def _run(units: list[Unit]) -> Chunk:
    return _worker[0].run(units)
