"""Taking in: chunks, counts, refusals, and that nothing is lost when it breaks off."""

from __future__ import annotations

import hashlib
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.model import Adoption, Document, Record, Rejection, Scheme
from anchord.engine.scan import CHUNK_BYTES, CHUNK_ITEMS, Taken, take_in
from anchord.errors import StoreBusyError
from anchord.ports import Added

NOW = 1_780_000_000


class MemoryStore:
    """A RecordStore in memory that can be busy."""

    def __init__(self, busy_at: int | None = None) -> None:
        self.records: dict[bytes, Record] = {}
        self.proofs: set[bytes] = set()
        self.documents: list[bytes] = []
        self.chunks: list[int] = []
        self.times: set[int] = set()
        self._busy_at = busy_at

    def add(self, items, now):
        if len(self.chunks) == self._busy_at:
            raise StoreBusyError("busy")
        before, proofs = len(self.records), len(self.proofs)
        for item in items:
            record = item if isinstance(item, Record) else item.record
            self.records.setdefault(record.digest, record)
            if isinstance(item, Adoption):
                self.proofs.add(item.ots)
            if isinstance(item, Document):
                self.documents.append(item.raw)
        self.chunks.append(len(items))
        self.times.add(now)
        new = len(self.records) - before
        return Added(new=new, known=len(items) - new, adopted=len(self.proofs) - proofs)


def record(number: int, size: int = 0) -> Record:
    canonical = b"%d" % number + bytes(size)
    digest = hashlib.sha256(canonical).digest()
    return Record(digest=digest, scheme=Scheme.PITH_JSON_V1, canonical=canonical)


def refusal(number: int) -> Rejection:
    return Rejection(where="a.jsonl", line=number, reason="bad")


def run(source, store):
    refused: list[Rejection] = []
    progress: list[int] = []
    taken = take_in(source, store, NOW, refused.append, progress.append)
    return taken, refused, progress


def test_every_kind_of_item_is_counted():
    items = [
        record(1),
        refusal(2),
        Adoption(record=record(3), ots=b"proof"),
        Document(record=record(4), raw=b"bundle"),
        record(1),
    ]
    store = MemoryStore()
    taken, refused, progress = run(items, store)
    assert taken == Taken(new=3, known=1, adopted=1, rejected=1)
    assert refused == [refusal(2)]
    assert progress == [5]
    assert (store.proofs, store.documents, store.times) == ({b"proof"}, [b"bundle"], {NOW})


def test_adding_twice_changes_nothing():
    items = [record(number) for number in range(60)]
    store = MemoryStore()
    assert run(items, store)[0] == Taken(new=60)
    assert run(items, store)[0] == Taken(known=60)


def test_nothing_to_take_in_writes_nothing():
    store = MemoryStore()
    assert run([], store)[0] == Taken()
    assert run([refusal(1)], store)[0] == Taken(rejected=1)
    assert store.chunks == []


def test_a_chunk_is_full_by_items_or_by_bytes():
    store = MemoryStore()
    _, _, progress = run(map(record, range(2 * CHUNK_ITEMS + 1)), store)
    assert store.chunks == [CHUNK_ITEMS, CHUNK_ITEMS, 1]
    assert progress == [CHUNK_ITEMS, 2 * CHUNK_ITEMS, 2 * CHUNK_ITEMS + 1]
    big = CHUNK_BYTES // 2
    heavy = [
        record(1, big),
        record(2, big),
        Document(record=record(3), raw=bytes(CHUNK_BYTES)),
        Adoption(record=record(4), ots=bytes(big)),
        Adoption(record=record(5), ots=bytes(big)),
        Record(digest=bytes(32), scheme=Scheme.SHA256),
    ]
    store = MemoryStore()
    run(heavy, store)
    assert store.chunks == [2, 1, 2, 1]


def test_a_busy_store_keeps_what_went_in_before_and_the_rest_follows():
    items = [record(number) for number in range(2 * CHUNK_ITEMS + 2_000)]
    store = MemoryStore(busy_at=2)
    with pytest.raises(StoreBusyError):
        run(items, store)
    assert len(store.records) == 2 * CHUNK_ITEMS
    store._busy_at = None
    assert run(items, store)[0] == Taken(new=2_000, known=2 * CHUNK_ITEMS)


def test_the_source_is_read_no_further_than_the_chunk_in_hand():
    seen = count()
    items = (record(next(seen)) for _ in range(4 * CHUNK_ITEMS))
    with pytest.raises(StoreBusyError):
        run(items, MemoryStore(busy_at=0))
    assert next(seen) == CHUNK_ITEMS


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 9) | st.just(None), max_size=60))
def test_refusals_never_cost_a_neighbour(numbers):
    items = [refusal(1) if number is None else record(number) for number in numbers]
    store = MemoryStore()
    taken, refused, _ = run(items, store)
    distinct = {number for number in numbers if number is not None}
    assert len(store.records) == taken.new == len(distinct)
    assert len(refused) == taken.rejected == numbers.count(None)
    assert taken.new + taken.known + taken.rejected == len(numbers)
