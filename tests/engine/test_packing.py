"""Members of batches into ZIPs: each once, in order, in time, and never more than fits."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.evidence import mined
from support.fake_items import DAY
from support.parties import FakeChain
from support.passes import adoption, bare, numbered
from support.storing_items import Workshop

from anchord.adapters.archives.spool import FolderSpool
from anchord.core.event import member_name
from anchord.core.model import BatchChange, BatchState
from anchord.core.storage import FileKind, FileState, Range
from anchord.engine import anchoring, ledger
from anchord.engine.export import record_bundle
from anchord.engine.packing import Stretch, _cut

HOUR = 3_600
Make = Callable[..., Workshop]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Workshop] = []

    def workshop(**policy: Any) -> Workshop:
        work = Workshop(tmp_path, FolderSpool(tmp_path / "spool"), **policy)
        work.archive.left = 0  # nothing is sent: what is packed stays
        made.append(work)
        return work

    yield workshop
    for work in made:
        work.close()


def zips(work: Workshop) -> list[tuple[str, list[str]]]:
    """Return every ZIP in the spool with the names of its members."""
    found = []
    for file in work.files(FileKind.BUNDLES):
        path = work.spool.path(file.name)
        found.append((file.name, zipfile.ZipFile(path).namelist()))
    return found


def names(work: Workshop, batch_id: int) -> list[str]:
    """Return what the members of a batch are called, in its order."""
    batch = work.parts.store.batches.get(batch_id)
    tiles = work.parts.store.batches.tiles(batch, 0, batch.size)
    return [member_name(member.digest) for tile in tiles for member in tile.members]


def test_full_files_are_packed_at_once_in_the_order_of_batches(make: Make) -> None:
    work = make()
    batches = [work.batch(3, "a"), work.batch(6, "b")]
    for _ in range(5):
        work.step()
    order = [name for batch_id in batches for name in names(work, batch_id)]
    assert zips(work) == [
        ("bundles-000000001-000000004.zip", order[:4]),
        ("bundles-000000005-000000008.zip", order[4:8]),
    ]


def test_a_step_packs_one_file(make: Make) -> None:
    work = make()
    work.batch(9)
    assert [work.step().packed for _ in range(3)] == [1, 1, 0]


def test_what_is_not_full_waits_its_time_and_no_longer(make: Make) -> None:
    work = make()
    work.batch(3)
    assert work.step().packed == 0
    at = work.clock.now() + 6 * HOUR
    assert work.lane.next_moment(work.clock.now()) == at
    work.clock.moment = at - 1
    assert work.step().packed == 0
    work.clock.moment = at
    assert work.step().packed == 1


def test_what_waits_when_its_day_ends_is_packed_then(make: Make) -> None:
    work = make()
    work.clock.advance(21 * HOUR)
    work.batch(3)
    midnight = (work.clock.now() // DAY + 1) * DAY
    assert work.step().packed == 0
    assert work.lane.next_moment(work.clock.now()) == midnight
    work.clock.moment = midnight
    assert work.step().packed == 1
    assert work.files()[0].identifier == "anchord-test-2024-08-02"


def test_without_an_anchor_members_wait_so_long_and_then_go_without(make: Make) -> None:
    work = make()
    work.batch(4, anchored=False)
    assert work.step().packed == 0
    work.clock.advance(2 * DAY)
    assert work.step().packed == 0
    work.clock.advance(1)
    assert work.step().packed == 1


def test_each_member_is_the_bundle_as_an_export_writes_it(make: Make) -> None:
    work = make()
    records = [*bare(2), *numbered(2)]
    work.parts.store.add(records, work.clock.now())  # type: ignore[attr-defined]
    work.anchor(_sealed(work))
    work.step()
    (file, _) = work.files()
    archive = zipfile.ZipFile(work.spool.path(file.name))
    store = work.parts.store
    hashes = work.items.member_sha256s(file.id)
    for place, name in enumerate(archive.namelist()):
        record = store.records.get(place + 1)
        expected = record_bundle(store, work.storing.keyring, record)
        assert archive.read(name) == expected
        assert hashes[32 * place : 32 * place + 32] == hashlib.sha256(expected).digest()


def _sealed(work: Workshop) -> int:
    batch = anchoring.seal(work.parts, work.clock.now())
    assert batch is not None
    return batch.id


def test_the_manifest_beside_a_zip_tells_all_of_its_members(make: Make) -> None:
    work = make()
    first = work.batch(4)
    work.step()
    file, beside = work.files()
    assert (beside.beside, beside.kind) == (file.id, FileKind.MANIFEST)
    lines = [json.loads(line) for line in work.spool.path(beside.name).read_text().splitlines()]
    archive = zipfile.ZipFile(work.spool.path(file.name))
    assert [line["path"] for line in lines] == archive.namelist() == names(work, first)
    for line in lines:
        data = archive.read(line["path"])
        assert (line["size"], line["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert line["record"] == "sha256:" + line["path"].removesuffix(".json")


@settings(max_examples=8, deadline=None)
@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4), max_bytes=st.integers(1, 6_000))
def test_a_file_ends_before_what_does_not_fit_and_is_named_by_what_it_holds(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], max_bytes: int
) -> None:
    folder = tmp_path_factory.mktemp("sizes")
    work = Workshop(folder, FolderSpool(folder / "spool"), max_bytes=max_bytes)
    try:
        work.archive.left = 0
        # At most 20 ZIPs wait in the spool, one for each member at the smallest size.
        batches = [work.batch(size, f"b{n}") for n, size in enumerate(sizes)]
        work.clock.advance(DAY)
        for _ in range(sum(sizes) + 1):
            work.step()
        found = zips(work)
        held = [name for _, members in found for name in members]
        assert held == [name for batch_id in batches for name in names(work, batch_id)]
        first = 1
        for name, members in found:
            last = first + len(members) - 1
            assert name == f"bundles-{first:09}-{last:09}.zip"
            assert len(members) <= 4
            first = last + 1
        there = {path.name for path in (folder / "spool").iterdir()}
        assert there == set(work.states())
    finally:
        work.close()


def test_a_record_that_moved_on_is_packed_where_it_stands(make: Make) -> None:
    work = make()
    old = work.batch(5, anchored=False)
    work.parts.store.batches.change([BatchChange(batch_id=old, release=True)])
    new = _sealed(work)
    work.anchor(new)
    work.clock.advance(3 * DAY)
    for _ in range(4):
        work.step()
    assert work.holders().keys() == {(new, place) for place in range(5)}
    assert work.items.packable(work.clock.now()) == []


def _adopted(work: Workshop, record: int) -> int:
    """Bring a record's own proof; return its batch, where the record does not stand yet."""
    digest = bare(record + 1)[record].digest
    ots = mined(digest, FakeChain(height=3))
    work.parts.store.add([adoption(ots, digest)], work.clock.now())  # type: ignore[attr-defined]
    return max(batch_id for batch_id, _ in work.parts.store.lookup.adopted())


def _lead(work: Workshop, batch_id: int) -> None:
    columns = {"state": BatchState.ANCHORED.value, "anchored_at": work.clock.now()}
    change = BatchChange(batch_id=batch_id, columns=columns, lead=True)
    work.parts.store.batches.change([change])


def test_a_record_led_away_leaves_a_gap_that_closes(make: Make) -> None:
    work = make(max_members=10)
    sealed = work.batch(5, anchored=False)
    adopted = _adopted(work, 2)
    _lead(work, adopted)
    work.anchor(sealed)
    work.clock.advance(DAY)
    for _ in range(3):
        work.step()
    expected = {(sealed, place) for place in (0, 1, 3, 4)} | {(adopted, 0)}
    assert work.holders().keys() == expected
    assert work.items.packable(work.clock.now()) == []
    (file, _) = work.files()
    assert work.items.ranges(file.id)[:2] == [Range(sealed, 0, 2, 0), Range(sealed, 3, 5, 2)]


def test_a_record_led_away_after_the_turn_of_its_new_batch_is_still_packed(make: Make) -> None:
    work = make(max_members=10)
    sealed = work.batch(3, anchored=False)
    adopted = _adopted(work, 1)
    work.items.pass_over(adopted, 1)
    _lead(work, adopted)
    work.anchor(sealed)
    work.clock.advance(DAY)
    work.step()
    assert work.holders().keys() == {(sealed, place) for place in range(3)}


def test_packing_stops_while_nothing_is_taken(make: Make) -> None:
    work = make(max_members=1)
    work.batch(30)
    for _ in range(30):
        work.step()
    assert len(work.files(FileKind.BUNDLES)) == 20


def test_an_item_takes_so_many_files_and_the_next_part_the_rest(make: Make) -> None:
    work = make(item_max_files=5)
    work.batch(12)
    for _ in range(3):
        work.step()
    parts = [file.identifier for file in work.files(FileKind.BUNDLES)]
    assert parts == ["anchord-test-2024-08-01"] * 2 + ["anchord-test-2024-08-01-02"]


def test_an_item_takes_so_many_bytes_and_the_next_part_the_rest(make: Make) -> None:
    work = make(item_max_bytes=1)
    work.batch(8)
    for _ in range(2):
        work.step()
    parts = [file.identifier for file in work.files(FileKind.BUNDLES)]
    assert parts == ["anchord-test-2024-08-01", "anchord-test-2024-08-01-02"]


def test_a_lost_file_is_packed_again_whole_in_as_many_files_as_it_takes(make: Make) -> None:
    work = make()
    batch_id = work.batch(4)
    work.archive.left = 400
    work.run(work.clock.now() + HOUR)
    (file, _) = work.files()
    assert file.state is FileState.STORED
    work.archive.lose(file.identifier, file.name)
    work.storing = replace(
        work.storing, item_policy=replace(work.storing.item_policy, max_members=3)
    )
    work.begin()
    work.run(work.clock.now() + 5 * DAY)
    again = [f for f in work.files(FileKind.BUNDLES) if f.state is FileState.STORED]
    assert [f.name for f in again] == [
        "bundles-000000005-000000007.zip",
        "bundles-000000008-000000008.zip",
    ]
    work.judge_done([batch_id])


def test_events_of_a_lost_file_that_were_not_signed_are_never_signed(make: Make) -> None:
    work = make(confirm_after_s=60)
    work.batch(4)
    work.archive.left = 400
    (file, *_rest) = _stored_without_signing(work)
    work.archive.lose(file.identifier, file.name)
    now = work.clock.now()
    for _ in range(200):
        work.calls.collect(now)
        work.lane.step(now, work.calls)
        if work.items.file(file.id).state is FileState.GONE:
            break
        at = work.lane.next_moment(now)
        now = now + 1 if at is None else max(at, now + 1)
    assert work.items.file(file.id).state is FileState.GONE
    assert ledger.append_all(work.parts, now) == 0


def _stored_without_signing(work: Workshop) -> list[Any]:
    now = work.clock.now()
    for _ in range(50):
        work.calls.collect(now)
        work.lane.step(now, work.calls)
        if any(file.state is FileState.STORED for file in work.files(FileKind.BUNDLES)):
            break
        now += 30
        work.clock.moment = now
    return work.files(FileKind.BUNDLES)


@given(
    stretches=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 20)), min_size=1, max_size=6),
    data=st.data(),
)
def test_cutting_stretches_neither_loses_nor_doubles_a_member(
    stretches: list[tuple[int, int]], data: st.DataObject
) -> None:
    given_ = [Stretch(n, start, start + length) for n, (start, length) in enumerate(stretches)]
    flat = [(part.batch_id, place) for part in given_ for place in range(part.start, part.stop)]
    members = data.draw(st.integers(1, len(flat)))
    ranges, left = _cut(given_, members)
    for found, expected in ((ranges, flat[:members]), (left, flat[members:])):
        assert [(p.batch_id, n) for p in found for n in range(p.start, p.stop)] == expected
    places = [part.place for part in ranges]
    lengths = [part.stop - part.start for part in ranges]
    assert places == [sum(lengths[:n]) for n in range(len(lengths))]
