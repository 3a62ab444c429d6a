"""Chunks of records, audited here or by several processes; they come back in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from anchord.engine.audit.processes import done_elsewhere
from anchord.engine.audit.tree_records import Chunk, Context, RecordAuditor

if TYPE_CHECKING:
    from anchord.engine.audit.tree_survey import Unit

_worker: list[RecordAuditor] = []
"""What this process audits with, once it was told; a list, so that it can be filled in place."""


def chunks_done(context: Context, chunks: Iterable[list[Unit]], jobs: int) -> Iterator[Chunk]:
    """Yield what became of each chunk, in order.

    Args:
        context: what every process is told.
        chunks: records, a chunk at a time; taken only as fast as they are audited.
        jobs: processes; 1: none but this.

    Raises:
        FatalError: a process died.
    """
    if jobs <= 1:
        auditor = RecordAuditor(context)
        for units in chunks:
            yield auditor.run(units)
        return
    yield from done_elsewhere(jobs, _begin, context, _run, chunks)


def _begin(context: Context) -> None:
    _worker[:] = [RecordAuditor(context)]


def _run(units: list[Unit]) -> Chunk:
    return _worker[0].run(units)
