"""Captures in the store: found once, due in order, changed whole or not at all."""

from __future__ import annotations

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.passes import adoption, bare, numbered
from support.stored_rows import NOW, Stores, fill, intent, new_capture, plans, rows

from anchord.adapters.store.schema import captures, lanes, series
from anchord.core.model import Record, Scheme
from anchord.core.proof import DETACHED_HEADER
from anchord.core.storage import Capture, CaptureChange, CaptureState, Lane
from anchord.errors import FatalError

WAITING, SENDING, STORED = CaptureState.WAITING, CaptureState.SENDING, CaptureState.STORED
STATES = list(CaptureState)

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("captures"))


@pytest.fixture
def store(stores):
    with stores.fresh(5) as opened:
        yield opened


def claim(store, *found, stop=5, **more):
    return store.storage.captures.claim(1, stop, found, NOW, **more)


def change(capture, *intents, cut=(), **columns):
    return CaptureChange(capture=capture, columns=columns, intents=intents, cut_series=cut)


# ---------------------------------------------------------------------- claiming


def test_what_is_found_waits_and_is_due_at_once(store):
    assert claim(store, new_capture(1, contains="2001.1"), new_capture(2, role="extra-1")) == 2
    one, two = store.storage.captures.due({WAITING}, NOW, 9)
    assert one == Capture(
        id=1, version=0, record_id=1, batch_id=1, place=0, role="source", url=one.url,
        host="papers.example.org", contains="2001.1", state=WAITING, attempts=0,
        next_attempt_at=NOW, created_at=NOW,
    )  # fmt: skip
    assert (two.role, two.contains) == ("extra-1", None)


def test_batches_are_looked_at_in_turn_until_none_is_left(stores):
    with stores.fresh(3, 2) as store:
        table, seen = store.storage.captures, []
        for _ in range(9):
            found = table.unclaimed()
            if found is None:
                break
            batch_id, start, _size = found
            seen.append(found)
            table.claim(batch_id, start + 1, [], NOW, start=start)
        assert seen == [(1, 0, 3), (1, 1, 3), (1, 2, 3), (2, 0, 2), (2, 1, 2)]
        table.claim_again()
        assert table.unclaimed() == (1, 0, 3)


KEYS = st.tuples(st.integers(1, 5), st.sampled_from(["source", "extra-1"]))


@settings(deadline=None, max_examples=40)
@given(turns=st.lists(st.lists(KEYS, max_size=6), max_size=5))
def test_a_record_is_never_captured_twice_in_one_role(stores, turns):
    with stores.fresh(5) as store:
        first: dict[tuple[int, str], str] = {}
        for turn, keys in enumerate(turns):
            found = [
                new_capture(record_id, role=role, url=f"https://example.org/{turn}/{place}")
                for place, (record_id, role) in enumerate(keys)
            ]
            new = {key for key in keys if key not in first}
            assert claim(store, *found) == len(new)
            for capture in found:
                first.setdefault((capture.record_id, capture.role), capture.url)
        kept = store.storage.captures.in_state({WAITING})
        assert {(c.record_id, c.role): c.url for c in kept} == first
        assert len(kept) == len(first)


def test_a_claim_is_made_whole_or_not_at_all(store):
    with pytest.raises(FatalError):
        claim(store, new_capture(1), new_capture(2, url=None))
    assert rows(store, captures) == []
    assert store.storage.captures.unclaimed() == (1, 0, 5)


@pytest.mark.both_stores(False)
def test_looking_for_unclaimed_members_reads_only_batches_that_have_some(store):
    found = plans(store, store.storage.captures.unclaimed)
    assert any("ix_batches_unclaimed" in step for step in found)


@pytest.mark.parametrize("adopted", [False, True])
def test_a_record_that_gets_its_text_later_is_looked_at_again(stores, adopted):
    with stores.fresh() as store:
        (text,) = numbered(1)
        hash_only = Record(digest=text.digest, scheme=Scheme.SHA256)
        if adopted:
            uri = b"https://a.example.org"
            mark = bytes.fromhex("0083dfe30d2ef90c8e") + bytes([len(uri) + 1, len(uri)]) + uri
            ots = DETACHED_HEADER + text.digest + mark
            store.records._known_uris = frozenset({uri.decode()})
            store.add([adoption(ots, text.digest)], NOW)
        else:
            store.add([hash_only], NOW)
            fill(store, 2)
        size = store.batches.get(1).size
        store.storage.captures.claim(1, size, [], NOW)
        store.add([hash_only], NOW)
        assert store.storage.captures.unclaimed() is None, "nothing came"
        store.add([text], NOW)
        assert store.storage.captures.unclaimed() == (1, 0, size)


def test_a_text_that_comes_while_members_are_looked_at_is_not_passed_by(stores):
    with stores.fresh() as store:
        (text,) = numbered(1)
        store.add([Record(digest=text.digest, scheme=Scheme.SHA256), *bare(4)], NOW)
        fill(store, 0)
        store.storage.captures.claim(1, 2, [], NOW, start=0)
        _, start, _ = store.storage.captures.unclaimed()
        store.add([text], NOW)
        store.storage.captures.claim(1, 4, [new_capture(3)], NOW, start=start)
        assert store.storage.captures.unclaimed() == (1, 0, 5)
        assert [c.record_id for c in store.storage.captures.in_state({WAITING})] == [3]


def test_a_text_for_a_record_in_no_batch_moves_no_batch(store):
    (text,) = numbered(1)
    claim(store)
    store.add([Record(digest=text.digest, scheme=Scheme.SHA256)], NOW)
    store.add([text], NOW)
    assert store.storage.captures.unclaimed() is None


# ---------------------------------------------------------------------- finding


ROWS = st.lists(
    st.tuples(
        st.sampled_from(STATES),
        st.none() | st.integers(NOW - 3, NOW + 3),
        st.sampled_from(["a.example.org", "b.example.org", "c.example.org"]),
    ),
    max_size=25,
)


def put(store, found):
    """Put captures with (state, next attempt, host) and return them as the store has them."""
    table = store.storage.captures
    claim(store, *(new_capture(n + 1, host=host) for n, (_, _, host) in enumerate(found)))
    changes = [
        change(capture, state=state, next_attempt_at=moment)
        for capture, (state, moment, _) in zip(table.in_state({WAITING}), found, strict=True)
    ]
    assert table.change(changes) == len(found)
    return [table.get(n + 1) for n in range(len(found))]


@settings(deadline=None, max_examples=40)
@given(
    found=ROWS,
    states=st.sets(st.sampled_from(STATES)),
    skip=st.sets(st.sampled_from(["a.example.org", "b.example.org"])),
    limit=st.integers(1, 9),
)
def test_questions_are_answered_as_by_looking_at_every_row(stores, found, states, skip, limit):
    with stores.fresh() as store:
        table, all_rows = store.storage.captures, put(store, found)
        mine = [c for c in all_rows if c.state in states]
        timed = sorted(
            (c for c in mine if c.next_attempt_at is not None),
            key=lambda c: (c.next_attempt_at, c.id),
        )
        due = [c for c in timed if c.next_attempt_at <= NOW and c.host not in skip]
        assert table.due(states, NOW, limit, skip) == due[:limit]
        assert table.in_state(states, limit) == mine[:limit]
        assert table.next_moment(states) == (timed[0].next_attempt_at if timed else None)
        for state in states:
            count = sum(c.state is state for c in all_rows)
            assert table.count(state) == count
            assert table.count(state, limit) == min(count, limit)


@pytest.mark.both_stores(False)
def test_what_is_due_is_read_in_order_however_much_waits(store):
    table = store.storage.captures
    claim(store, *(new_capture(n) for n in range(1, 2001)))
    for ask in (
        lambda: table.due({WAITING, SENDING}, NOW, 3),
        lambda: table.due({WAITING, SENDING}, NOW, 3, ["b.example.org"]),
        lambda: table.next_moment({WAITING, SENDING}),
        lambda: table.count(WAITING, 10),
    ):
        found = plans(store, ask)
        read = [step for step in found if "captures" in step]
        assert read, found
        assert all("SEARCH captures USING" in step and "ix_captures_due" in step for step in read)
        assert not any("TEMP B-TREE" in step for step in found), found


@pytest.mark.both_stores(False)
def test_the_oldest_in_a_state_are_found_by_index_alone(store):
    claim(store, *(new_capture(n) for n in range(1, 2001)))
    found = plans(store, lambda: store.storage.captures.in_state({WAITING}, 3))
    assert any("USING COVERING INDEX ix_captures_due" in step for step in found), found
    assert not any(step.startswith("SCAN captures") for step in found), found


def test_a_records_own_url_comes_first(store):
    claim(store, new_capture(1, role="extra-1"), new_capture(2), new_capture(1))
    assert [c.role for c in store.storage.captures.of_record(1)] == ["source", "extra-1"]
    assert store.storage.captures.of_record(3) == []


def test_what_is_named_but_not_there_or_unknown_is_damage(store):
    with pytest.raises(FatalError, match="damaged"):
        store.storage.captures.get(1)
    claim(store, new_capture(1))
    with store._engine.begin() as connection:
        connection.execute(sa.update(captures).values(state="lost in space"))
    with pytest.raises(FatalError, match=r"'lost in space'.*damaged"):
        store.storage.captures.get(1)


# ---------------------------------------------------------------------- changing


def test_every_field_is_read_as_it_was_written(store):
    claim(store, new_capture(1))
    before = store.storage.captures.get(1)
    columns = {
        "state": STORED, "attempts": 1, "next_attempt_at": 2, "job_id": "spn2-3",
        "submitted_at": 4, "deadline_at": 5, "since_at": 6, "timestamp": "20260101000000",
        "final_url": "https://papers.example.org/final", "http_status": 200, "adopted": True,
        "checks": 7, "reported_at": 8, "sha256": bytes(range(32)), "size": 9,
        "x_archive_src": "spn2.warc.gz", "series_id": 10, "stored_at": 11, "confirmed_at": 12,
        "confirmations": 13, "lost": 14, "code": "http-429", "note": "why",
    }  # fmt: skip
    given_once = {"id", "version", "created_at", *msgspec.structs.asdict(new_capture(1))}
    assert set(columns) | given_once == set(Capture.__struct_fields__)
    assert store.storage.captures.change([change(before, **columns)]) == 1
    assert store.storage.captures.get(1) == replace(before, version=1, **columns)


def test_a_row_that_has_moved_on_is_left_out_with_its_events_while_lanes_are_kept(store):
    claim(store, new_capture(1), new_capture(2))
    table = store.storage.captures
    one, two = table.in_state({WAITING})
    assert table.change([change(one, note="first")]) == 1
    late = [change(one, intent(), note="late"), change(two, intent(), note="too")]
    assert table.change(late, [Lane(name="spn", used=3)]) == 1
    assert (table.get(1).note, table.get(1).series_id) == ("first", None)
    assert (table.get(2).note, table.get(2).series_id) == ("too", 1)
    assert len(rows(store, series)) == 1
    assert store.storage.lanes.get("spn").used == 3


KINDS = st.sampled_from(["plain", "stale", "event", "broken"])
STEPS = st.lists(st.lists(st.tuples(st.integers(1, 3), KINDS), max_size=4), max_size=6)


def outcome(versions, step):
    """Return the versions after a step and its events; None when the database refuses it."""
    after, events = dict(versions), 0
    for number, kind in step:
        if kind == "stale" or after[number] != versions[number]:
            continue
        if kind == "broken":
            return None
        after[number] += 1
        events += kind == "event"
    return after, events


def asked(read, kind, turn):
    if kind == "stale":
        read = replace(read, version=read.version + 7)
    intents = [intent()] if kind == "event" else []
    return change(read, *intents, attempts=None if kind == "broken" else turn)


@settings(deadline=None, max_examples=40)
@given(steps=STEPS)
def test_a_change_is_made_whole_or_not_at_all_and_only_of_the_row_that_was_read(stores, steps):
    with stores.fresh(3) as store:
        table = store.storage.captures
        claim(store, *(new_capture(n) for n in (1, 2, 3)))
        versions = dict.fromkeys((1, 2, 3), 0)
        for turn, step in enumerate(steps, 1):
            read = {n: table.get(n) for n in versions}
            changes = [asked(read[number], kind, turn) for number, kind in step]
            lane, expected = Lane(name="spn", used=turn), outcome(versions, step)
            before = [rows(store, each) for each in (captures, series, lanes)]
            if expected is None:
                with pytest.raises(FatalError):
                    table.change(changes, [lane])
                assert [rows(store, each) for each in (captures, series, lanes)] == before
                continue
            after, events = expected
            made = {n for n in versions if after[n] != versions[n]}
            assert table.change(changes, [lane]) == len(made)
            assert {n: table.get(n).version for n in versions} == after
            assert {n for n in versions if table.get(n).attempts == turn} == made
            assert len(rows(store, series)) == len(before[1]) + events
            assert store.storage.lanes.get("spn") == lane
            versions = after


# ---------------------------------------------------------------------- events


def test_a_stored_event_becomes_the_live_one_and_its_withdrawal_clears_it(store):
    claim(store, new_capture(1))
    table = store.storage.captures
    table.change([change(table.get(1), intent(start=2, stop=3), state=STORED)])
    assert table.get(1).series_id == 1
    assert store.ledger.get_series(1).next == 2
    table.change([change(table.get(1), intent("facet_withdrawn", withdraws=1), state=WAITING)])
    assert table.get(1).series_id is None
    both = [intent("facet_withdrawn", withdraws=1), intent()]
    table.change([change(table.get(1), *both, state=STORED)])
    assert store.ledger.get_series(table.get(1).series_id).event_type == "capture_stored"


def test_an_event_that_was_never_appended_is_cut_and_is_live_no_more(store):
    claim(store, new_capture(1))
    table = store.storage.captures
    table.change([change(table.get(1), intent(), state=STORED)])
    table.change([change(table.get(1), cut=(1,), state=WAITING)])
    assert table.get(1).series_id is None
    assert store.ledger.open_series() == []


def test_an_event_that_was_appended_cannot_be_cut_away(store):
    claim(store, new_capture(1))
    table = store.storage.captures
    table.change([change(table.get(1), intent(), state=STORED)])
    with store._engine.begin() as connection:
        connection.execute(sa.update(series).values(next=1))
    table.change([change(table.get(1), cut=(1,))])
    found = store.ledger.get_series(1)
    assert (found.start, found.next, found.stop) == (0, 1, 1)
    assert table.get(1).series_id == 1, "it is live until it is withdrawn"


@pytest.mark.both_stores(False)
def test_the_series_of_a_big_batch_are_read_by_type(store):
    claim(store, *(new_capture(n) for n in (1, 2, 3)))
    table = store.storage.captures
    table.change([change(table.get(n), intent()) for n in (1, 2)])
    table.change([change(table.get(3), intent("facet_withdrawn", withdraws=1))])
    ledger = store.ledger
    assert [s.id for s in ledger.series_of(1)] == [1, 2, 3]
    assert [s.id for s in ledger.series_of(1, {"facet_withdrawn"})] == [3]
    assert ledger.series_of(1, []) == []
    found = plans(store, lambda: ledger.series_of(1, {"facet_withdrawn", "timestamp_anchored"}))
    assert any("ix_series_batch_type (batch_id=? AND event_type=?)" in step for step in found)
