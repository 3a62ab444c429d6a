"""Checkpoints: made when the log grew, never over a changed history, and again after a crash."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest
import sqlalchemy as sa
from support.parties import FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare

from anchord.core import checkpoint as texts
from anchord.core import log as rfc6962
from anchord.core.note import make_verifier, parse
from anchord.engine import checkpointing
from anchord.engine.checkpointing import checkpoint_of
from anchord.engine.run import run_pass
from anchord.errors import ConfigError, FatalError

SIGNER = FakeSigner()


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], origin="log.example.org")
    yield Passes(parts, chain, step=50), chain
    parts.store.close()


def damage(store, *statements):
    with store._engine.begin() as connection:
        for statement in statements:
            assert connection.execute(sa.text(statement)).rowcount


def rows(store):
    with store._engine.connect() as connection:
        query = sa.text("SELECT event_id, signature FROM events ORDER BY seq")
        return [bytes(row[0]) + bytes(row[1]) for row in connection.execute(query)]


def law(entries):
    """The root, by hashlib and RFC 6962 alone."""
    if len(entries) == 1:
        return hashlib.sha256(b"\0" + entries[0]).digest()
    k = 1 << (len(entries) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + law(entries[:k]) + law(entries[k:])).digest()


def nodes(store):
    with store._engine.connect() as connection:
        found = connection.execute(sa.text("SELECT level, place, hash FROM log_nodes"))
        return {(row[0], row[1]): bytes(row[2]) for row in found}


def stored(store):
    return list(store.log.checkpoints())


def test_a_pass_that_signs_events_makes_a_checkpoint_of_all_of_them(world):
    go, chain = world
    store = go.parts.store
    go.add(bare(700))
    go()
    (first,) = stored(store)
    entries = rows(store)
    assert (first.size, first.root, first.batch_id) == (700, law(entries), None)
    assert first.created_at == go.clock.now()
    verifier = make_verifier("log.example.org", SIGNER.public_key)
    opened = texts.open_checkpoint(first.note, [verifier])
    assert opened == texts.Checkpoint(origin="log.example.org", size=700, root=first.root)
    assert [line.name for line in parse(first.note).lines] == ["log.example.org"]
    assert nodes(store) == {(1, n): law(entries[256 * n : 256 * n + 256]) for n in (0, 1)}
    go.parts.calendars[0].mine(chain)
    chain.grow(5)
    go(60)
    second = store.log.last()
    assert (second.size, second.root) == (1400, law(rows(store)))


def test_a_pass_without_new_events_makes_none_and_writes_nothing(world):
    go, _ = world
    go.add(bare(3))
    go()
    before = stored(go.parts.store)
    assert checkpoint_of(go.parts, go.clock.now()) is None
    go(60)
    assert stored(go.parts.store) == before


def test_a_store_without_events_has_no_checkpoint(world):
    go, _ = world
    assert checkpoint_of(go.parts, go.clock.now()) is None


def test_the_next_batch_carries_what_waits_and_a_checkpoint_causes_no_batch(world):
    go, _ = world
    store = go.parts.store
    go.add(bare(2, "first"))
    go()
    go(60)
    assert [one.batch_id for one in stored(store)] == [None]
    go.add(bare(1, "second"))
    assert go(60).batch_id == 2
    first, second = stored(store)
    assert (first.batch_id, second.batch_id) == (2, None)
    batch = store.batches.get(2)
    assert batch.trailer == hashlib.sha256(first.note).digest()
    assert store.batches.get(1).trailer is None


# ---------------------------------------------------------------------- crashes


class KilledError(BaseException):
    """Nobody catches it, as nobody catches a signal 9."""


@pytest.mark.parametrize("place", ["before signing", "before writing", "while writing"])
def test_a_pass_killed_anywhere_leaves_a_checkpoint_to_the_next(world, monkeypatch, place):
    go, _ = world
    store = go.parts.store
    go.add(bare(300))

    def die(*_args, **_kwargs):
        raise KilledError

    with monkeypatch.context() as patch:
        if place == "before signing":
            patch.setattr(checkpointing, "sign", die)
        elif place == "before writing":
            patch.setattr(type(store.log), "add", die)
        else:
            patch.setattr("anchord.adapters.store.log.insert_one", die)
        with pytest.raises(KilledError):
            run_pass(go.parts, go.clock.now())
    assert (store.log.sizes(), nodes(store), stored(store)) == ((300, 0), {}, [])
    go.add(bare(1, "next"))
    go(60)
    first, second = stored(store)
    assert (first.size, second.size) == (300, 301)
    assert first.batch_id == 2, "the batch that was sealed after the crash takes it along"
    assert first.root == law(rows(store)[:300])


def test_a_checkpoint_made_again_is_the_same_bytes(world, monkeypatch):
    go, _ = world
    store, notes = go.parts.store, []
    go.add(bare(5))
    write = type(store.log).add

    def keep(self, made, tiles):
        notes.append(made.note)
        if len(notes) < 3:
            raise KilledError
        write(self, made, tiles)

    monkeypatch.setattr(type(store.log), "add", keep)
    for _ in range(2):
        with pytest.raises(KilledError):
            run_pass(go.parts, go.clock.now())
    run_pass(go.parts, go.clock.now())
    assert len(set(notes)) == 1


# ---------------------------------------------------------------------- changed history


CHANGES = [
    "UPDATE events SET signature = zeroblob(64) WHERE seq = 599",
    "UPDATE events SET event_id = zeroblob(32) WHERE seq = 520",
    "UPDATE log_nodes SET hash = zeroblob(32) WHERE level = 1 AND place = 0",
    "UPDATE checkpoints SET root = zeroblob(32)",
    "DELETE FROM log_nodes WHERE level = 1 AND place = 1",
    "DELETE FROM events WHERE seq = 599",
    "DELETE FROM events WHERE seq > 598",
    # Rows that no checkpoint covers yet must chain.
    "UPDATE events SET signature = zeroblob(64) WHERE seq = 601",
    "DELETE FROM events WHERE seq = 601",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_nothing_is_signed_over_a_changed_history(world, monkeypatch, statement):
    go, _ = world
    store = go.parts.store
    go.add(bare(600))
    go()
    go.add(bare(2, "more"))
    with monkeypatch.context() as patch:
        patch.setattr("anchord.engine.run.checkpoint_if_due", lambda *_: None)
        patch.setattr("anchord.engine.anchoring.checkpoint_of", lambda *_: None)
        run_pass(go.parts, go.clock.advance(60))
    assert store.log.sizes() == (602, 600)
    damage(store, statement)
    before = stored(store)
    with pytest.raises(FatalError):
        run_pass(go.parts, go.clock.advance(60))
    assert stored(store) == before


def test_a_changed_row_below_a_tile_is_never_what_a_later_root_is_made_of(world):
    """The tile keeps what was signed; the change itself is for `ledger check` to find."""
    go, _ = world
    store = go.parts.store
    go.add(bare(600))
    go()
    entries = rows(store)
    damage(store, "UPDATE events SET signature = zeroblob(64) WHERE seq = 7")
    go.add(bare(1, "more"))
    run_pass(go.parts, go.clock.advance(60))
    assert store.log.last().root == law([*entries, rows(store)[-1]])


# ---------------------------------------------------------------------- names, keys, size


def test_another_key_signs_the_log_on(tmp_path):
    parts = make_parts(tmp_path, origin="log.example.org")
    go = Passes(parts)
    go.add(bare(2))
    go()
    new = FakeSigner("new-key")
    parts = make_parts(
        tmp_path, store=parts.store, signer=new, signer_for=lambda *_: SIGNER,
        calendars=parts.calendars, origin="log.example.org",
    )  # fmt: skip
    parts.store.add(bare(1, "more"), go.clock.now())
    run_pass(parts, go.clock.advance(60))
    first, second = stored(parts.store)
    assert (first.key_id, second.key_id) == (SIGNER.key_id, "new-key")
    for found, signer in ((first, SIGNER), (second, new)):
        key = make_verifier("log.example.org", signer.public_key)
        assert texts.open_checkpoint(found.note, [key]).size == found.size
    parts.store.close()


@pytest.mark.parametrize("origin", ["a log", "a+log", "", "a\nlog"])
def test_a_name_that_no_note_can_have_is_told_as_one_of_the_configuration(tmp_path, origin):
    parts = make_parts(tmp_path, origin=origin)
    parts.store.add(bare(1), 0)
    with pytest.raises(ConfigError, match=r"ledger\.origin"):
        run_pass(parts, 1_722_513_600)
    parts.store.close()


def test_the_first_checkpoint_of_a_long_ledger_takes_little_memory(tmp_path):
    """A store of before: its whole ledger is taken in at once, a chunk at a time."""
    parts = make_parts(tmp_path)
    count, chain, values = 20_000, bytes(32), []
    for seq in range(1, count + 1):
        digest = hashlib.sha256(b"%d" % seq).digest()
        chain = hashlib.sha256(chain + digest + 2 * digest).digest()
        values.append((seq, seq, 1, 0, digest, 2 * digest, chain))
    with parts.store._engine.begin() as connection:
        connection.exec_driver_sql("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", values)
    leaves = b"".join([rfc6962.leaf_hash(row[4] + row[5]) for row in values])
    del values
    tracemalloc.start()
    made = checkpoint_of(parts, 1_722_513_600)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (made.size, made.root) == (count, rfc6962.root(leaves))
    assert len(nodes(parts.store)) == 78
    assert peak < 12 * 2**20
    parts.store.close()


def test_between_batches_the_log_is_signed_no_oftener_than_asked_for(tmp_path):
    """And what was left is signed by a later pass, though nothing else is signed in it."""
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], checkpoint_every_s=600)
    go = Passes(parts, chain)
    sizes = lambda: [found.size for found in parts.store.log.checkpoints()]  # noqa: E731
    go.add(bare(2))
    go()
    assert sizes() == [2]
    go.add(bare(2, "more"))
    go(60)
    assert (parts.store.ledger.head()[0], sizes()) == (4, [2]), "the next batch found nothing new"
    go.add(bare(1, "last"))
    go(60)
    assert sizes() == [2, 4], "a batch takes along all that was signed before it"
    go(599)
    assert sizes() == [2, 4]
    go(1)
    assert sizes() == [2, 4, 5]
    assert parts.store.log.last().root == law(rows(parts.store))
    parts.store.close()
