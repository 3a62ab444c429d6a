"""Items in the store: every member in one file, each file changed whole or not at all."""

from __future__ import annotations

import msgspec
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace
from support.stored_rows import (
    NOW,
    Stores,
    anchor,
    bundles,
    intent,
    new_capture,
    new_file,
    new_series,
    plans,
    rows,
)

from anchord.adapters.store import schema
from anchord.core.model import BatchChange, BatchState
from anchord.core.storage import (
    CaptureChange,
    CaptureState,
    FileChange,
    FileKind,
    FileState,
    ItemFile,
    Lane,
    Range,
    StoredCounts,
)
from anchord.errors import FatalError

PACKED, STORED, GONE = FileState.PACKED, FileState.STORED, FileState.GONE

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("items"))


@pytest.fixture
def store(stores):
    with stores.fresh(5, 3) as opened:
        yield opened


def open_item(store, part=1):
    return store.storage.items.add_item(f"demo-2026-01-01-{part:02d}", 20454, part, NOW)


def pack(store, *files, item=None, **more):
    """Note files in the item of the day."""
    item = item or store.storage.items.open_item(20454) or open_item(store)
    return store.storage.items.add_files(item, files, NOW, **more)


def become(store, file, *intents, **columns):
    change = FileChange(file=file, columns=columns, intents=intents)
    return store.storage.items.change([change])


def lose(store, file):
    """Let a file be gone, to be packed again now."""
    become(store, file, state=GONE, next_attempt_at=NOW)
    return store.storage.items.file(file.id)


# ---------------------------------------------------------------------- packable


def test_a_batch_is_packable_once_anchored_with_its_timestamps_signed(store):
    items = store.storage.items
    assert items.packable(0) == []
    anchor(store, 1, NOW + 7)
    assert items.packable(0) == [(1, 0, 5, NOW + 7)]
    unsigned = new_series("timestamp_anchored", stop=5)
    store.batches.change([BatchChange(batch_id=1, series=(unsigned,))])
    assert items.packable(0) == []
    with store._engine.begin() as connection:
        connection.execute(sa.update(schema.series).values(next=5))
    assert items.packable(0) == [(1, 0, 5, NOW + 7)]


def test_captures_that_keep_coming_hold_up_no_packing(store):
    anchor(store, 1)
    captured = new_series("capture_stored")
    store.batches.change([BatchChange(batch_id=1, series=(captured,))])
    assert [found[0] for found in store.storage.items.packable(0)] == [1]


def test_an_old_batch_is_packed_without_a_block_unless_it_is_parked(store):
    items = store.storage.items
    assert items.packable(NOW) == []
    assert items.packable(NOW + 1) == [(1, 0, 5, NOW), (2, 0, 3, NOW)]
    assert items.packable(NOW + 1, limit=1) == [(1, 0, 5, NOW)]
    parked = {"state": BatchState.PARKED.value}
    store.batches.change([BatchChange(batch_id=1, columns=parked)])
    assert items.packable(NOW + 1) == [(2, 0, 3, NOW)]


@pytest.mark.both_stores(False)
def test_looking_for_packable_batches_reads_only_those_with_members_left(store):
    found = plans(store, lambda: store.storage.items.packable(NOW))
    assert any("ix_batches_unpacked" in step for step in found), found
    assert any("ix_series_open" in step for step in found), found
    assert not any("TEMP B-TREE FOR ORDER" in step for step in found), found


def test_members_of_other_batches_are_passed_over_and_never_backwards(store):
    items = store.storage.items
    items.pass_over(1, 2)
    items.pass_over(1, 1)
    assert items.packable(NOW + 1)[0] == (1, 2, 5, NOW)
    pack(store, bundles("a.zip", (1, 3, 5)))
    assert [found[0] for found in items.packable(NOW + 1)] == [2]
    assert items.file_of(1, 1) is None
    assert items.file_of(1, 2) is None


# ---------------------------------------------------------------------- packing


def test_files_are_noted_with_everything_they_hold(store):
    a, a_list = bundles("a.zip", (1, 0, 5), (2, 0, 1)), new_file("a.jsonl")
    b, b_list = bundles("b.zip", (2, 1, 3)), new_file("b.jsonl")
    day = new_file("day.json", FileKind.DAY)
    made = pack(store, a, a_list, b, b_list, day)
    items, item = store.storage.items, store.storage.items.open_item(20454)
    assert made == items.files(item.id)
    assert [file.beside for file in made] == [None, 1, None, 3, None]
    assert made[0] == ItemFile(
        id=1, version=0, item_id=item.id, identifier=item.identifier, name="a.zip",
        kind=FileKind.BUNDLES, beside=None, size=a.size, md5=a.md5, sha1=a.sha1, sha256=a.sha256,
        members=6, state=PACKED, attempts=0, next_attempt_at=NOW, created_at=NOW,
    )  # fmt: skip
    assert items.ranges(1) == [Range(1, 0, 5, 0), Range(2, 0, 1, 5)]
    assert items.member_sha256s(1) == a.member_sha256s
    assert (items.ranges(2), items.member_sha256s(2)) == ([], b"")
    assert items.members_packed() == 8
    assert items.packable(NOW + 1) == []


def test_members_are_packed_once_and_all_that_a_transaction_notes_or_nothing(store):
    pack(store, bundles("a.zip", (1, 0, 2)))
    for bad in [(1, 1, 3), (1, 0, 2), (1, 4, 6), (2, 0, 4), (9, 0, 1), (1, 3, 3)]:
        with pytest.raises(FatalError, match="nothing was noted"):
            pack(store, bundles("b.zip", (1, 2, 3)), bundles("c.zip", bad))
        assert store.storage.items.packable(NOW + 1)[0] == (1, 2, 5, NOW)
        assert len(rows(store, schema.files)) == len(rows(store, schema.file_ranges)) == 1


def test_a_name_is_used_once_in_an_item(store):
    pack(store, bundles("a.zip", (1, 0, 2)))
    with pytest.raises(FatalError):
        pack(store, bundles("a.zip", (1, 2, 3)))
    assert store.storage.items.packable(NOW + 1)[0] == (1, 2, 5, NOW)


def test_a_file_whose_numbers_contradict_each_other_is_refused(store):
    good = bundles("a.zip", (1, 0, 2))
    for bad in (
        [replace(good, members=3)],
        [replace(good, member_sha256s=good.member_sha256s[:-1])],
        [replace(good, ranges=(Range(1, 0, 2, 1),))],
        [replace(good, kind=FileKind.DAY)],
        [new_file("none.zip", FileKind.BUNDLES)],
        [new_file("a.jsonl"), good],
        [good, new_file("day.json", FileKind.DAY), new_file("a.jsonl")],
    ):
        with pytest.raises(FatalError, match="please report"):
            pack(store, *bad)
    assert rows(store, schema.files) == []


def test_a_gone_file_is_replaced_once_and_whole(store):
    items = store.storage.items
    lost = pack(store, bundles("a.zip", (1, 0, 4), (2, 0, 3)))[0]
    again = [bundles("b.zip", (2, 0, 3), (1, 0, 2)), bundles("c.zip", (1, 2, 4))]
    with pytest.raises(FatalError, match="expected a gone file"):
        pack(store, *again, repack_of=lost.id)
    lost = lose(store, lost)
    assert items.due({GONE}, NOW) == [lost]
    for short in (again[:1], [*again, bundles("d.zip", (1, 4, 5))]):
        with pytest.raises(FatalError, match="all of its members"):
            pack(store, *short, repack_of=lost.id)
    pack(store, *again, repack_of=lost.id)
    assert items.due({GONE}, NOW) == []
    assert items.file(lost.id) == replace(lost, version=lost.version + 1, next_attempt_at=None)
    with pytest.raises(FatalError, match="for the first time"):
        pack(store, bundles("e.zip", (1, 0, 4), (2, 0, 3)), repack_of=lost.id)
    assert items.packable(NOW + 1) == [(1, 4, 5, NOW)], "no batch moved"
    assert items.members_packed() == 14, "gone ones included"


def test_the_newest_file_of_a_member_is_one_that_is_there(store):
    items = store.storage.items
    assert items.file_of(1, 0) is None
    first = pack(store, bundles("a.zip", (1, 0, 4)))[0]
    assert items.file_of(1, 3) == first
    assert items.file_of(1, 4) is None
    assert items.file_of(7, 0) is None
    first = lose(store, first)
    assert items.file_of(1, 3) == first
    second = pack(store, bundles("b.zip", (1, 0, 4)), repack_of=first.id)[0]
    assert items.file_of(1, 3) == second
    second = lose(store, second)
    assert items.file_of(1, 3) == second, "the newest of those that are gone"


@pytest.mark.both_stores(False)
def test_a_members_file_is_found_without_reading_all_stretches(store):
    pack(store, bundles("a.zip", (1, 0, 4)))
    found = plans(store, lambda: store.storage.items.file_of(1, 3))
    assert any("ix_file_ranges_batch_id (batch_id=? AND start<?)" in step for step in found)
    assert not any("TEMP B-TREE" in step or "SCAN" in step for step in found), found


class Packing(RuleBasedStateMachine):
    """Packs three batches in stretches of any length, loses files, and packs those again."""

    stores: Stores
    SIZES = (7, 1, 4)

    @initialize()
    def begin(self):
        self._block = self.stores.fresh(*self.SIZES)
        self.store = self._block.__enter__()
        self.items = self.store.storage.items
        self.item = open_item(self.store)
        self.names = iter(f"{n}.zip" for n in range(1000))

    def teardown(self):
        if hasattr(self, "_block"):
            self._block.__exit__(None, None, None)

    def cut(self, stretches, data):
        """Return files that hold stretches, cut anywhere."""
        files, held = [], []
        for batch_id, start, stop in stretches:
            at = start
            while at < stop:
                end = data.draw(st.integers(at + 1, stop))
                held.append((batch_id, at, end))
                at = end
                if data.draw(st.booleans()):
                    files.append(bundles(next(self.names), *held))
                    held = []
        return [*files, bundles(next(self.names), *held)] if held else files

    @rule(data=st.data(), limit=st.integers(1, 3))
    def pack(self, data, limit):
        stretches = [
            (batch_id, packed, data.draw(st.integers(packed, size)))
            for batch_id, packed, size, _ in self.items.packable(NOW + 1, limit)
        ]
        self.items.add_files(self.item, self.cut(stretches, data), NOW)

    @rule(data=st.data())
    def lose(self, data):
        there = self.items.in_state({PACKED, STORED})
        if there:
            lose(self.store, data.draw(st.sampled_from(there)))

    @rule(data=st.data())
    def pack_again(self, data):
        for gone in self.items.due({GONE}, NOW, limit=1):
            held = [(r.batch_id, r.start, r.stop) for r in self.items.ranges(gone.id)]
            files = self.cut(data.draw(st.permutations(held)), data)
            self.items.add_files(self.item, files, NOW, repack_of=gone.id)

    @invariant()
    def every_packed_member_is_in_one_file_that_is_there_or_will_be_packed_again(self):
        if not hasattr(self, "items"):
            return
        holders = {}
        for file in self.items.files(self.item.id):
            if file.state is not GONE or file.next_attempt_at is not None:
                for part in self.items.ranges(file.id):
                    for place in range(part.start, part.stop):
                        holders.setdefault((part.batch_id, place), []).append(file)
        left = {found[0]: found[1] for found in self.items.packable(NOW + 1)}
        members = {
            (batch_id, place)
            for batch_id, size in enumerate(self.SIZES, 1)
            for place in range(left.get(batch_id, size))
        }
        assert set(holders) == members
        assert all(len(files) == 1 for files in holders.values())
        assert all(self.items.file_of(*key) == files[0] for key, files in holders.items())


@pytest.mark.both_stores(False)
def test_every_member_is_in_one_file_however_packing_is_cut(stores):
    Packing.stores = stores
    run_state_machine_as_test(
        Packing, settings=settings(max_examples=25, stateful_step_count=12, deadline=None)
    )


# ---------------------------------------------------------------------- items and files


def test_the_item_of_a_day_is_its_last_open_part(store):
    items = store.storage.items
    assert items.open_item(20454) is None
    one = open_item(store)
    assert (one.state, one.part, one.seen_at, one.created_at) == ("open", 1, None, NOW)
    two = open_item(store, part=2)
    assert items.open_item(20454) == two
    items.change_item(two, state="closed", seen_at=5, note="full")
    assert items.item(two.id) == replace(two, state="closed", seen_at=5, note="full")
    assert items.open_item(20454) == one
    assert items.open_item(20455) is None
    assert items.items(["open", "closed"]) == [one, items.item(two.id)]
    assert items.items(["dark"]) == []


def test_every_field_of_a_file_is_read_as_it_was_written(store):
    (before,) = pack(store, bundles("a.zip", (1, 0, 1)))
    columns = {
        "state": STORED, "attempts": 1, "next_attempt_at": 2, "checks": 3, "sent_at": 4,
        "stored_at": 5, "confirmed_at": 6, "confirmations": 7, "code": "c", "note": "n",
    }  # fmt: skip
    given_once = {"id", "version", "item_id", "identifier", "beside", "created_at"}
    told = set(msgspec.structs.asdict(new_file("x"))) - {"ranges", "member_sha256s"}
    assert set(columns) | given_once | told == set(ItemFile.__struct_fields__)
    assert become(store, before, **columns) == 1
    assert store.storage.items.file(before.id) == replace(before, version=1, **columns)


def test_a_file_that_has_moved_on_is_left_out_with_its_events_while_lanes_are_kept(store):
    (file,) = pack(store, bundles("a.zip", (1, 0, 2)))
    events = [intent("item_stored", file_id=file.id, stop=2)]
    assert become(store, file, *events, state=STORED) == 1
    late = FileChange(file=file, columns={"note": "late"}, intents=tuple(events))
    assert store.storage.items.change([late], [Lane(name="items", used=1)]) == 0
    assert store.storage.items.file(file.id).note is None
    assert store.storage.lanes.get("items").used == 1
    (series,) = store.ledger.series_of(1)
    assert (series.file_id, series.stop, series.next) == (file.id, 2, 0)


def test_a_file_changes_with_all_of_its_events_or_not_at_all(store):
    (file,) = pack(store, bundles("a.zip", (1, 0, 2)))
    with pytest.raises(FatalError):
        become(store, file, intent("item_stored"), intent(stop=None), state=STORED)
    assert store.storage.items.file(file.id) == file
    assert store.ledger.series_of(1) == []


def test_what_is_left_of_a_files_series_keeps_its_file_under_another_key(store):
    (file,) = pack(store, bundles("a.zip", (1, 0, 2)))
    become(store, file, intent("item_stored", file_id=file.id, stop=2), state=STORED)
    (found,) = store.ledger.open_series()
    key = new_series("item_stored", file_id=found.file_id, key_id="next", stop=2)
    store.ledger.split(found, key)
    (rest,) = store.ledger.open_series()
    assert (rest.file_id, rest.key_id) == (file.id, "next")


@settings(deadline=None, max_examples=25)
@given(
    found=st.lists(
        st.tuples(st.sampled_from(list(FileState)), st.none() | st.integers(NOW - 3, NOW + 3)),
        max_size=5,
    ),
    states=st.sets(st.sampled_from(list(FileState))),
    limit=st.integers(1, 6),
)
def test_questions_are_answered_as_by_looking_at_every_file(stores, found, states, limit):
    with stores.fresh(5) as store:
        items = store.storage.items
        for n, (state, moment) in enumerate(found):
            (file,) = pack(store, bundles(f"{n}.zip", (1, n, n + 1)))
            become(store, file, state=state, next_attempt_at=moment)
        mine = [file for n in range(len(found)) if (file := items.file(n + 1)).state in states]
        timed = sorted(
            (file for file in mine if file.next_attempt_at is not None),
            key=lambda file: (file.next_attempt_at, file.id),
        )
        due = [file for file in timed if file.next_attempt_at <= NOW]
        assert items.due(states, NOW, limit) == due[:limit]
        assert items.in_state(states, limit) == mine[:limit]
        assert items.next_moment(states) == (timed[0].next_attempt_at if timed else None)


def test_what_is_named_but_not_there_or_unknown_is_damage(store):
    for ask in (store.storage.items.item, store.storage.items.file):
        with pytest.raises(FatalError, match="damaged"):
            ask(7)
    pack(store, bundles("a.zip", (1, 0, 1)))
    with store._engine.begin() as connection:
        connection.execute(sa.update(schema.files).values(state="lost in space"))
    with pytest.raises(FatalError, match=r"lost in space.*damaged"):
        store.storage.items.file(1)


# ---------------------------------------------------------------------- counts


def test_a_store_without_captures_and_files_counts_what_is_to_do(store):
    assert store.storage.counts() == StoredCounts(
        captures={}, extras={}, unclaimed=8, files={}, unpacked=8, by_capture=0, by_item=0,
        by_both=0,
    )  # fmt: skip


CAPTURES = st.dictionaries(
    st.tuples(st.integers(0, 7), st.sampled_from(["source", "extra-1"])),
    st.sampled_from([CaptureState.STORED, CaptureState.WAITING, CaptureState.PARKED]),
)


def put_captures(store, states):
    """Put captures of (place, role) in batch 1 into their states."""
    table = store.storage.captures
    found = [new_capture(place + 1, place=place, role=role) for place, role in states]
    table.claim(1, 3, found, NOW)
    for capture in table.in_state({CaptureState.WAITING}):
        columns = {"state": states[capture.place, capture.role]}
        table.change([CaptureChange(capture=capture, columns=columns)])


def put_files(store, cuts, data):
    """Pack batch 1 up to the last cut; return the places whose file is stored."""
    stored = set()
    for start, stop in zip([0, *sorted(cuts)], sorted(cuts), strict=False):
        (file,) = pack(store, bundles(f"{start}.zip", (1, start, stop)))
        state = data.draw(st.sampled_from([PACKED, STORED, GONE]))
        become(store, file, state=state, next_attempt_at=NOW)
        if state is GONE and data.draw(st.booleans()):
            (file,) = pack(store, bundles(f"{start}-2.zip", (1, start, stop)), repack_of=file.id)
            state = STORED
            become(store, file, state=state)
        if state is STORED:
            stored |= set(range(start, stop))
    return stored


@settings(deadline=None, max_examples=40)
@given(data=st.data(), states=CAPTURES, cuts=st.sets(st.integers(1, 7)))
def test_counts_are_those_of_looking_at_every_record(stores, data, states, cuts):
    with stores.fresh(8) as store:
        put_captures(store, states)
        by_item = put_files(store, cuts, data)
        stored = [key for key, state in states.items() if state is CaptureState.STORED]
        by_capture = {place for place, role in stored if role == "source"}
        counts = store.storage.counts()
        assert counts.by_capture == len(by_capture)
        assert counts.by_item == len(by_item) == counts.files.get("stored", 0)
        assert counts.by_both == len(by_capture & by_item)
        assert (counts.unclaimed, counts.unpacked) == (5, 8 - max(cuts, default=0))
        for held, own in ((counts.captures, True), (counts.extras, False)):
            expected = [s for (_, role), s in states.items() if (role == "source") is own]
            assert held == {state: expected.count(state) for state in set(expected)}
        assert sum(counts.files.values()) == store.storage.items.members_packed()


def test_a_capture_just_behind_a_stored_stretch_is_not_counted_as_in_it(store):
    store.storage.captures.claim(1, 5, [new_capture(n) for n in (2, 3)], NOW)
    for found in store.storage.captures.in_state({CaptureState.WAITING}):
        change = CaptureChange(capture=found, columns={"state": CaptureState.STORED})
        store.storage.captures.change([change])
    first, _ = pack(store, bundles("a.zip", (1, 0, 2)), bundles("b.zip", (1, 2, 5)))
    become(store, first, state=STORED)
    counts = store.storage.counts()
    assert (counts.by_capture, counts.by_item, counts.by_both) == (2, 2, 1)


@pytest.mark.both_stores(False)
def test_counting_both_goes_from_each_capture_straight_to_its_stretch(store):
    store.storage.captures.claim(1, 5, [new_capture(1)], NOW)
    found = store.storage.captures.get(1)
    change = CaptureChange(capture=found, columns={"state": CaptureState.STORED})
    store.storage.captures.change([change])
    (file,) = pack(store, bundles("a.zip", (1, 0, 5)))
    become(store, file, state=STORED)
    steps = plans(store, store.storage.counts)
    assert any("ix_file_ranges_batch_id (batch_id=? AND start<?)" in step for step in steps)
    assert not any("TEMP B-TREE FOR ORDER" in step for step in steps), steps
