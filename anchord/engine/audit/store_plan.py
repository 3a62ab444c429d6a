"""Which stretches of records are audited together, and which records are drawn."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from anchord.engine.audit.store_frame import Job

if TYPE_CHECKING:
    from anchord.ports.reading import Span

LONGEST = 2_048
"""Row ids in a stretch: two tiles of records and events are a few MiB."""


def jobs(spans: Sequence[Span], last: int, wanted: Sequence[int] | None = None) -> Iterator[Job]:
    """Yield stretches that cover all row ids up to `last`, cut where tiles begin if possible.

    Args:
        spans: of all tiles, by first record.
        last: highest row id of a record.
        wanted: records to verify, ascending; None: all.
    """
    end = last
    open_spans: list[Span] = []
    at = 0
    for low, high in _stretches(spans, end):
        while at < len(spans) and spans[at].first <= high:
            open_spans.append(spans[at])
            at += 1
        open_spans = [span for span in open_spans if span.last >= low]
        tiles = tuple((span.batch_id, span.tile) for span in open_spans if span.first <= high)
        if wanted is None or bisect_left(wanted, low) < bisect_right(wanted, high):
            yield Job(low, high, tiles)
        else:
            yield Job(low, high, (), verified=False)


def _stretches(spans: Sequence[Span], end: int) -> Iterator[tuple[int, int]]:
    """Yield neighbouring [low, high] from 1 to `end`; a tile of neighbours is cut nowhere."""
    low = 1
    cuts = [span.first - 1 for span in spans if span.first <= end] + [end]
    best = 0
    for cut in cuts:
        while cut - low + 1 > LONGEST:
            high = best if best >= low else low + LONGEST - 1
            yield low, high
            low = high + 1
        best = max(best, cut)
    if low <= end:
        yield low, end


def draw(digests: Iterable[tuple[int, bytes]], count: int, seed: int) -> frozenset[int]:
    """Return `count` records, the same ones of the same records whatever their row ids are."""
    prefix = f"{seed} ".encode()
    ranked = ((sha256(prefix + digest).digest(), record_id) for record_id, digest in digests)
    return frozenset(record_id for _, record_id in heapq.nsmallest(count, ranked))


def impossible(spans: Iterable[Span], last: int) -> Iterator[Span]:
    """Yield tiles that name records that cannot be."""
    for span in spans:
        if not 1 <= span.first <= span.last <= last:
            yield span
