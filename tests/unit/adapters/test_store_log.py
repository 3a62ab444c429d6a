"""The tables of the log: leaves from rows, tiles, checkpoints in order, and nothing twice."""

from __future__ import annotations

import hashlib

import msgspec
import pytest
from support.parties import open_store

from anchord.adapters.store.connection import insert_many
from anchord.adapters.store.schema import checkpoints, events
from anchord.errors import FatalError
from anchord.ports.log import StoredCheckpoint

pytestmark = pytest.mark.both_stores
ROWS = 20


def digest(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


@pytest.fixture
def store(tmp_path):
    found = open_store(tmp_path)
    values = [
        (n, n, 1, 0, digest(n), digest(n) + digest(-n), bytes(32)) for n in range(1, ROWS + 1)
    ]
    with found._engine.begin() as connection:
        insert_many(connection, events, events.c.keys(), values)
    yield found
    found.close()


def checkpoint(size: int, **changes) -> StoredCheckpoint:
    values = {
        "size": size, "root": digest(size), "note": b"note %d" % size, "key_id": "key",
        "created_at": 5, "batch_id": None, **changes,
    }  # fmt: skip
    return StoredCheckpoint(**values)


def execute(store, statement):
    with store._engine.begin() as connection:
        connection.exec_driver_sql(statement)


def test_a_leaf_is_the_hash_of_zero_digest_and_signature(store):
    entries = store.log.entries(3, 6)
    assert entries == [digest(n) + digest(n) + digest(-n) for n in (4, 5, 6)]
    law = b"".join(hashlib.sha256(b"\0" + entry).digest() for entry in entries)
    assert store.log.leaf_hashes(3, 6) == law
    assert store.log.leaf_hashes(0, ROWS)[32 * 3 : 32 * 6] == law
    assert (store.log.leaf_hashes(4, 4), store.log.entries(0, 0)) == (b"", [])


def test_rows_that_are_missing_are_told(store):
    with pytest.raises(FatalError, match="rows were removed"):
        store.log.entries(0, ROWS + 1)
    execute(store, "DELETE FROM events WHERE seq = 4")
    with pytest.raises(FatalError, match="rows were removed"):
        store.log.leaf_hashes(2, 6)
    assert len(store.log.entries(4, 6)) == 2


def test_sizes_and_places(store):
    assert store.log.sizes() == (ROWS, 0)
    store.log.add(checkpoint(7), [])
    assert store.log.sizes() == (ROWS, 7)
    assert store.log.place_of(digest(3)) == 2
    assert store.log.place_of(bytes(32)) is None


def test_an_empty_store_has_nothing(tmp_path):
    empty = open_store(tmp_path)
    assert empty.log.sizes() == (0, 0)
    assert empty.log.last() is empty.log.covering(1) is None
    assert list(empty.log.checkpoints()) == empty.log.waiting() == empty.log.carried(1) == []
    empty.close()


def test_tiles_are_read_as_they_were_written(store):
    tiles = [(1, 0, digest(100)), (1, 1, digest(101)), (1, 2, digest(102)), (2, 0, digest(200))]
    store.log.add(checkpoint(7), iter(tiles))
    assert store.log.nodes(1, 0, 3) == digest(100) + digest(101) + digest(102)
    assert store.log.nodes(1, 1, 2) == digest(101)
    assert store.log.nodes(2, 0, 1) == digest(200)
    assert store.log.nodes(1, 3, 3) == b""
    for level, start, stop in ((1, 2, 4), (2, 1, 2), (3, 0, 1)):
        with pytest.raises(FatalError, match="lacks tiles"):
            store.log.nodes(level, start, stop)


def test_checkpoints_come_back_whole_and_in_order(store):
    sizes = [2, 5, 9, 20]
    for size in sizes:
        store.log.add(checkpoint(size), [])
    assert list(store.log.checkpoints()) == [checkpoint(size) for size in sizes]
    assert store.log.last() == checkpoint(20)
    assert store.log.waiting() == [checkpoint(size) for size in sizes]
    asked = {1: 2, 2: 2, 3: 5, 5: 5, 6: 9, 10: 20, 20: 20}
    assert {n: store.log.covering(n).size for n in asked} == asked
    assert store.log.covering(21) is None
    execute(store, "UPDATE checkpoints SET batch_id = 4 WHERE size < 9")
    assert [one.size for one in store.log.carried(4)] == [2, 5]
    assert [one.size for one in store.log.waiting()] == [9, 20]
    assert store.log.carried(5) == []


def test_more_checkpoints_than_one_question_asks_for_all_come(store):
    rows = [(n, bytes(32), b"n", "key", 1) for n in range(1, 2050)]
    with store._engine.begin() as connection:
        names = ("size", "root", "note", "key_id", "created_at")
        insert_many(connection, checkpoints, names, rows)
    assert [one.size for one in store.log.checkpoints()] == [row[0] for row in rows]


@pytest.mark.parametrize("size", [7, 6, ROWS + 1])
def test_a_checkpoint_that_does_not_follow_is_not_written_nor_its_tiles(store, size):
    store.log.add(checkpoint(7), [])
    with pytest.raises(FatalError, match="two passes"):
        store.log.add(checkpoint(size), [(1, 0, digest(1))])
    assert [one.size for one in store.log.checkpoints()] == [7]
    with pytest.raises(FatalError, match="lacks tiles"):
        store.log.nodes(1, 0, 1)


def test_a_tile_is_never_written_twice(store):
    store.log.add(checkpoint(7), [(1, 0, digest(1))])
    with pytest.raises(FatalError):
        store.log.add(checkpoint(8), [(1, 0, digest(2))])
    assert store.log.last() == checkpoint(7)
    assert store.log.nodes(1, 0, 1) == digest(1)


@pytest.mark.both_stores(False)
def test_a_checkpoint_that_is_text_is_told_as_damage(store):
    store.log.add(checkpoint(7), [])
    execute(store, "UPDATE checkpoints SET note = 'text'")
    with pytest.raises(FatalError, match="not stored as bytes"):
        store.log.last()


def test_a_checkpoint_keeps_its_batch(store):
    store.log.add(msgspec.structs.replace(checkpoint(3), batch_id=9), [])
    assert store.log.last().batch_id == 9
