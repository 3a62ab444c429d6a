"""What was read under no right is looked at again under it: nothing newer is written over."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from support.check_ledger import check_all_anchored, live_anchored
from support.parties import FakeCalendar, FakeChain, FakeSigner, Stopping, make_parts
from support.passes import Passes, adoption, bare
from support.stores import address, keep_in, made

from anchord.adapters.store.sql import SqlStore
from anchord.core import event
from anchord.core.model import BatchState
from anchord.core.proof import DETACHED_HEADER
from anchord.engine import ledger, stages
from anchord.errors import (
    ConfigError,
    NetworkError,
    StoreBusyError,
    TransientError,
    UnknownKeyError,
)
from anchord.ports import NotYet

pytestmark = pytest.mark.both_stores


@pytest.fixture
def world(tmp_path):
    chain, calendar, signer = FakeChain(), FakeCalendar(), Stopping("old-key")
    parts = make_parts(tmp_path, calendars=[calendar], headers=[chain], signer=signer)
    beside = SqlStore(address(tmp_path))
    signers = [signer, FakeSigner("new-key")]
    yield Passes(parts, chain, signers=signers), calendar, chain, signer, beside
    beside.close()
    parts.store.close()


def on_the_chain(go, calendar, chain):
    """Let waiting records come as far as an open series of anchored events."""
    for stage in (stages.seal, stages.submit, stages.sign):
        stage(go.parts, go.clock.now())
    calendar.mine(chain)
    chain.grow(5)
    now = go.clock.advance(60)
    for stage in (stages.upgrade, stages.check):
        stage(go.parts, now)


def gone(key_id, _at):
    raise ConfigError(f"{key_id} is revoked")


def test_what_a_reorg_cut_does_not_come_back_when_another_key_takes_over(world, monkeypatch):
    """The worst of all: events that say anchored, for a block that is on no chain any more."""
    go, calendar, chain, _signer, beside = world
    go.add(bare(3))
    on_the_chain(go, calendar, chain)
    parts = msgspec.structs.replace(go.parts, signer=FakeSigner("new-key"), signer_for=gone)
    real = ledger._hand_over

    def after_a_reorg(parts, series, now):
        chain.reorg(7)
        stages.check(msgspec.structs.replace(parts, store=beside), now + 6 * 3600)
        return real(parts, series, now)

    monkeypatch.setattr(ledger, "_hand_over", after_a_reorg)
    with pytest.raises(TransientError, match="run again"):
        stages.sign(parts, go.clock.now())
    monkeypatch.undo()
    stages.sign(parts, go.clock.advance(6 * 3600))
    assert not any(live_anchored(go.parts.store).values())
    assert go.types(1).count(event.ANCHORED) == 0
    go.judge()


def test_a_machine_that_lacks_a_newer_key_leaves_its_events_alone(world):
    """Its own may have ended when the newer one began: nothing it signs then would ever count."""
    go, calendar, chain, _signer, _beside = world
    go.add(bare(3))
    on_the_chain(go, calendar, chain)

    def unknown(key_id, _at):
        raise UnknownKeyError(f"{key_id} is not here")

    behind = msgspec.structs.replace(go.parts, signer=FakeSigner("older"), signer_for=unknown)
    before = go.parts.store.ledger.head()
    with pytest.raises(UnknownKeyError):
        stages.sign(behind, go.clock.now())
    assert go.parts.store.ledger.head() == before
    stages.sign(go.parts, go.clock.now())
    check_all_anchored(go.parts.store)


@pytest.mark.parametrize("late", ["answer", "failure"])
def test_an_old_answer_to_a_submission_is_not_written_over_a_newer_one(world, late):
    go, calendar, _chain, _signer, beside = world
    go.add(bare(2))
    now = go.clock.now()
    stages.seal(go.parts, now)
    real, raw = calendar.submit, []

    def overtaken(root):
        calendar.submit = real
        stages.submit(msgspec.structs.replace(go.parts, store=beside), now)
        raw.append(go.parts.store.batches.get(1).proof)
        if late == "failure":
            raise NetworkError("cut off")
        return real(root)

    calendar.submit = overtaken
    stages.submit(go.parts, now)
    store = go.parts.store
    assert store.batches.get(1).proof == raw[0]
    assert store.calls.due_submissions(now + 10**6) == [], "it is not handed in once more"
    go.judge()


def test_an_old_not_yet_does_not_undo_a_path_that_came(world):
    go, calendar, chain, _signer, beside = world
    go.add(bare(2))
    for stage in (stages.seal, stages.submit, stages.sign):
        stage(go.parts, go.clock.now())
    real, now = calendar.upgrade, go.clock.advance(60)

    def overtaken(uri, commitment):
        calendar.upgrade = real
        calendar.mine(chain)
        chain.grow(5)
        stages.upgrade(msgspec.structs.replace(go.parts, store=beside), now)
        return NotYet("unknown", "")

    calendar.upgrade = overtaken
    stages.upgrade(go.parts, now)
    store = go.parts.store
    assert [wait.status for wait in store.counts.waits() if wait.where == calendar.uris[0]] in (
        [], ["attested"],
    )  # fmt: skip
    assert store.calls.due_pendings(now + 10**6, calendar.uris, 10) == []
    stages.check(go.parts, now)
    stages.sign(go.parts, now)
    check_all_anchored(store)
    go.judge()


def test_a_proof_that_is_taken_over_while_its_path_comes_in_is_asked_for(world, monkeypatch):
    go, calendar, chain, _signer, beside = world
    go.add(bare(1))
    for stage in (stages.seal, stages.submit, stages.sign):
        stage(go.parts, go.clock.now())
    calendar.mine(chain)
    chain.grow(5)
    now, ours = go.clock.advance(60), go.parts.store.batches.get(1)
    # A record that is our root: its proof waits for the very commitment that ours waits for.
    theirs = adoption(DETACHED_HEADER + ours.root + ours.proof, ours.root)
    calls = go.parts.store.calls
    real = calls.store_upgrade

    def joined(*given):
        monkeypatch.setattr(calls, "store_upgrade", real)
        assert beside.add([theirs], now).adopted == 1
        return real(*given)

    monkeypatch.setattr(calls, "store_upgrade", joined)
    for stage in (stages.upgrade, stages.check):
        stage(go.parts, now)
    assert [go.parts.store.batches.get(n).state for n in (1, 2)] == [BatchState.ANCHORED] * 2


def test_what_is_brought_forward_was_not_answered_meanwhile(world, monkeypatch):
    go, calendar, _chain, _signer, beside = world
    go.add(bare(1))
    now = go.clock.now()
    stages.seal(go.parts, now)
    year = 365 * 86_400
    with beside.ledger._database.writing() as connection:
        connection.exec_driver_sql(f"UPDATE submissions SET next_attempt_at = {now + year}")  # noqa: S608
    database = go.parts.store.calls._database
    real = database.writing

    def answered_first():
        monkeypatch.setattr(database, "writing", real)
        with beside.ledger._database.writing() as connection:
            connection.exec_driver_sql("UPDATE submissions SET next_attempt_at = NULL")
        return real()

    monkeypatch.setattr(database, "writing", answered_first)
    assert go.parts.store.calls.bring_forward(now, now + 86_400) == 0
    assert go.parts.store.calls.due_submissions(now) == []
    assert calendar.log == []


def test_a_token_that_is_there_is_never_replaced(world):
    go, *_ = world
    go.add(bare(1))
    stages.seal(go.parts, go.clock.now())
    tokens, url = go.parts.store.tokens, "https://tsa.example.org"
    tokens.intend(1, [url], 1)
    tokens.store(1, url, b"first", 2)
    tokens.store(1, url, b"second", 3)
    tokens.postpone(1, url, 4, "late")
    [kept] = tokens.of_batch(1)
    assert (kept.raw, kept.next_attempt_at, kept.last_error) == (b"first", None, None)


@pytest.mark.both_stores(False)
@pytest.mark.parametrize("blocks", [1, 4, 5, 6, 7, 12])
def test_check_and_sign_side_by_side_through_a_reorg_withdraw_what_was_appended(
    world, monkeypatch, blocks
):
    """One worker signs tile by tile while another one checks: whatever depth the reorg has."""
    go, calendar, chain, _signer, beside = world
    monkeypatch.setattr(ledger, "_TILES_PER_TRANSACTION", 1)
    go._judge["step"] = 200
    go.add(bare(1024 + 3))
    on_the_chain(go, calendar, chain)
    other = msgspec.structs.replace(go.parts, store=beside)
    real, turns = ledger._write, []

    def beside_a_check(parts, draft):
        if len(turns) == 1:
            chain.reorg(blocks)
            stages.check(other, go.clock.advance(6 * 3600))
        turns.append(len(draft.calls))
        return real(parts, draft)

    monkeypatch.setattr(ledger, "_write", beside_a_check)
    lost = False
    try:
        stages.sign(go.parts, go.clock.now())
    except StoreBusyError:
        lost = True
    monkeypatch.setattr(ledger, "_write", real)
    stages.sign(go.parts, go.clock.advance(1))
    go.judge()
    live = sum(live_anchored(go.parts.store).values())
    state = go.parts.store.batches.get(1).state
    assert live == (1027 if state is BatchState.ANCHORED else 0)
    assert lost == (state is not BatchState.ANCHORED)
    if lost:
        counted = Counter(go.types(1))
        assert counted[event.ANCHORED] == counted[event.WITHDRAWN] == 1
        assert event.ANCHORED not in go.types(1027), "the rest was never signed for"


def test_who_lost_its_turn_gets_no_right_to_write(tmp_path, kept_in):
    if kept_in != "postgres":
        keep_in("postgres")
    url = made(tmp_path)
    store, beside = SqlStore(url), SqlStore(url)
    try:
        with store.turn("submit"):
            with store.exclusive():
                pass
            with beside.ledger._database.reading() as connection:
                connection.exec_driver_sql(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks JOIN pg_stat_activity "
                    "USING (pid) WHERE locktype = 'advisory' AND datname = current_database()"
                )
            with pytest.raises(StoreBusyError), store.exclusive():
                raise AssertionError("it writes although another worker has its turn")
            with beside.turn("submit"), beside.exclusive():
                pass
        with store.exclusive():
            pass
    finally:
        keep_in(kept_in)
        store.close()
        beside.close()
