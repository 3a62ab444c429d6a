"""What is sent when, what each refusal leads to, and what is believed of the metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_items import DAY, LAG_S
from support.storing_items import Workshop

from anchord.core.item_name import read_day_manifest
from anchord.core.storage import FileKind, FileState, ItemFile
from anchord.core.trust import Keys

HOUR = 3_600
Make = Callable[..., Workshop]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Workshop] = []

    def workshop(**policy: Any) -> Workshop:
        made.append(Workshop(tmp_path, **policy))
        return made[-1]

    yield workshop
    for work in made:
        work.close()


def hours(work: Workshop, number: float) -> None:
    work.run(work.clock.now() + int(number * HOUR))


def zip_of(work: Workshop) -> ItemFile:
    return work.files(FileKind.BUNDLES)[0]


def alerts(work: Workshop) -> list[str]:
    return [lane.alert for lane in work.parts.store.storage.lanes.all() if lane.alert]


# ---------------------------------------------------------------------- order and pace


def test_the_first_file_of_an_item_goes_alone_until_the_item_is_shown(make: Make) -> None:
    work = make()
    work.batch(8)
    while not work.archive.shown.get("anchord-test-2024-08-01"):
        work.tick()
        assert len(work.archive.puts) <= 1
    hours(work, 1)
    assert len(work.archive.puts) == 4


def test_a_zip_goes_before_its_manifest(make: Make) -> None:
    work = make()
    work.batch(12)
    work.archive.lies = ["ok", "500-lost", "slow", "500-stored", "bad-digest"]
    hours(work, 3)
    sent = [name for _, name in work.archive.puts]
    for file in work.files(FileKind.MANIFEST):
        assert sent.index(work.items.file(file.beside).name) < sent.index(file.name)


def test_metadata_of_a_new_item_names_its_day(make: Make) -> None:
    work = make()
    work.batch(4)
    hours(work, 1)
    assert work.archive.metadata["anchord-test-2024-08-01"] == {
        "title": "Records, 2024-08-01",
        "collection": "test",
        "date": "2024-08-01",
    }


def test_limits_are_asked_for_before_an_upload_and_believed_for_five_minutes(make: Make) -> None:
    work = make()
    work.batch(8)
    hours(work, 0.1)
    assert work.archive.calls[:2] == ["headroom", "upload"]
    asked = work.archive.calls.count("headroom")
    assert asked < len(work.archive.puts)


@pytest.mark.parametrize("left", [0, 4, 9, "http-500", "unknown-answer", "offline"])
def test_nothing_is_sent_while_the_service_has_no_room(make: Make, left: int | str) -> None:
    work = make()
    work.archive.left = left
    work.batch(4)
    hours(work, 10)
    assert work.archive.puts == []
    assert work.archive.calls.count("headroom") < 10 * 12 + 2
    work.archive.left = 400
    hours(work, 1)
    assert zip_of(work).state is FileState.STORED


@pytest.mark.parametrize(("lie", "pause_s"), [("slow", 300), ("slow-global", 900)])
def test_a_slow_down_pauses_every_upload_and_counts_against_no_file(
    make: Make, lie: str, pause_s: int
) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = [lie]
    work.step()
    work.step()
    refused_at = work.clock.now()
    work.step()
    assert zip_of(work).attempts == 0
    work.run(refused_at + pause_s - 1)
    assert len(work.archive.puts) == 1
    asked = work.archive.calls.count("headroom")
    hours(work, 1)
    assert zip_of(work).state is FileState.STORED
    assert work.archive.calls.count("headroom") > asked, "asked anew after a slow-down"


def test_spam_stops_the_lane_with_an_alert_until_a_person_acts(make: Make) -> None:
    work = make()
    work.batch(8)
    work.archive.lies = ["spam"]
    hours(work, 100)
    assert len(work.archive.puts) == 1
    (alert,) = alerts(work)
    assert "info@archive.org" in alert
    work.retry()
    hours(work, 1)
    assert {file.state for file in work.files()} == {FileState.STORED}
    assert alerts(work) == []


def test_our_pace_is_bounded(make: Make) -> None:
    work = make(max_members=1)
    work.batch(15)
    moments: list[int] = []
    for _ in range(200):
        before, now = len(work.archive.puts), work.clock.now()
        work.tick(now + 4 * HOUR)
        moments += [now] * (len(work.archive.puts) - before)
    assert len(moments) >= 30
    for moment in moments:
        assert sum(moment <= other < moment + 60 for other in moments) <= 10


# ---------------------------------------------------------------------- unclear outcomes


@pytest.mark.parametrize("lie", ["500-stored", "cut-stored"])
def test_what_arrived_in_spite_of_an_error_is_not_sent_again(make: Make, lie: str) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = [lie]
    hours(work, 1)
    assert zip_of(work).state is FileState.STORED
    assert len(work.archive.puts) == len(set(work.archive.puts))


def test_what_is_not_listed_is_sent_again_only_after_three_looks(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["500-lost"]
    start = work.clock.now()
    while len(work.archive.puts) < 2:
        work.tick()
    assert work.archive.calls.count("describe") == 3
    assert 1_800 <= work.clock.now() - start <= 2 * 1_800
    hours(work, 1)
    assert zip_of(work).state is FileState.STORED


def test_while_tasks_are_pending_nothing_is_sent_again(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["never"]
    work.archive.pending.add("anchord-test-2024-08-01")
    hours(work, 30 * 24)
    assert len(work.archive.puts) == 1
    work.archive.pending.clear()
    hours(work, 4 * 24)
    assert zip_of(work).state is FileState.STORED


def test_a_failed_task_is_told_and_waited_for(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["never"]
    work.archive.failed.add("anchord-test-2024-08-01")
    hours(work, 48)
    assert len(work.archive.puts) == 1
    assert any("task in error" in alert for alert in alerts(work))


def test_a_file_listed_beside_a_failed_task_is_stored_only_when_that_is_over(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.failed.add("anchord-test-2024-08-01")
    hours(work, 48)
    assert zip_of(work).state is FileState.SENT
    assert work.parts.store.ledger.head()[0] == 0
    work.archive.failed.clear()
    hours(work, 4 * 24)
    assert zip_of(work).state is FileState.STORED
    assert work.archive.puts.count(work.archive.puts[0]) == 1


def test_what_is_never_shown_is_sent_again_and_at_last_a_person_looks(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["never"] * 20
    hours(work, 24 * 60)
    assert zip_of(work).state is FileState.PARKED
    assert len(work.archive.puts) == 6
    assert work.live_events() == {}


def test_an_upload_that_a_killed_process_began_is_looked_for_before_anything_is_sent(
    make: Make,
) -> None:
    work = make()
    work.batch(4)
    while not work.archive.puts:
        work.step()
    work.begin()
    work.clock.advance(LAG_S)
    before = len(work.archive.calls)
    hours(work, 1)
    assert work.archive.calls[before] == "describe"
    assert len(work.archive.puts) == len(set(work.archive.puts)) == 2


def test_a_file_the_spool_lost_before_it_was_sent_is_packed_again_under_a_new_name(
    make: Make,
) -> None:
    work = make()
    batch_id = work.batch(4)
    work.archive.left = 0
    work.step()
    work.spool.remove(zip_of(work).name)
    work.archive.left = 400
    hours(work, 10)
    old, new = work.files(FileKind.BUNDLES)
    assert (old.state, new.state) == (FileState.GONE, FileState.STORED)
    assert [name for _, name in work.archive.puts] == [
        new.name,
        new.name.replace(".zip", ".manifest.jsonl"),
    ]
    work.judge_done([batch_id])


def test_a_clock_that_ran_ahead_parks_nothing_for_years(make: Make) -> None:
    work = make()
    work.batch(4)
    right = work.clock.now()
    work.clock.moment += 400 * DAY
    work.archive.lies = ["cut-stored", "never"]
    hours(work, 30)
    work.clock.moment = right
    work.begin()
    hours(work, 24 * 8)
    assert {file.state for file in work.files(FileKind.BUNDLES)} == {FileState.STORED}
    assert zip_of(work).confirmed_at is not None


# ---------------------------------------------------------------------- what is believed


def test_other_bytes_in_the_listing_are_never_stored(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["wrong-md5"]
    hours(work, 24 * 20)
    assert zip_of(work).state is FileState.PARKED
    assert {file.state for file in work.files()} == {FileState.PARKED}
    assert work.live_events() == {}


def test_a_listing_without_a_hash_proves_nothing_yet(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.lies = ["half-listed"]
    hours(work, 20)
    assert zip_of(work).state is FileState.SENT
    work.archive.clear()
    hours(work, 24)
    assert zip_of(work).state is FileState.STORED


@pytest.mark.parametrize(
    "statement",
    [
        "files SET sha256 = zeroblob(32) WHERE kind = 'bundles'",
        "file_members SET sha256s = zeroblob(length(sha256s))",
        "file_members SET sha256s = substr(sha256s, 33)",
        "file_ranges SET start = start + 1",
        "file_ranges SET stop = stop - 1",
    ],
)
def test_what_the_store_says_of_a_zip_is_signed_only_if_the_zip_says_it_too(
    make: Make, statement: str
) -> None:
    work = make(max_members=4)
    work.batch(5)
    work.run(work.clock.now())
    with work.parts.store._engine.begin() as connection:  # type: ignore[attr-defined]
        assert connection.exec_driver_sql(f"UPDATE {statement}").rowcount == 1
    hours(work, 24)
    assert (zip_of(work).state, zip_of(work).code) == (FileState.PARKED, "spool-damaged")
    assert "restore the store" in (zip_of(work).note or "")


def test_a_dark_item_is_told_and_what_was_signed_is_withdrawn_after_a_day(make: Make) -> None:
    work = make()
    batch_id = work.batch(4)
    hours(work, 1)
    assert set(work.live_events().values()) == {1}
    work.archive.dark.add("anchord-test-2024-08-01")
    hours(work, 25)
    assert any("taken down" in alert for alert in alerts(work))
    assert set(work.live_events().values()) == {1}, "one look that missed proves nothing"
    hours(work, 27)
    assert zip_of(work).state is FileState.GONE
    hours(work, 24 * 3)
    new = work.files(FileKind.BUNDLES)[1]
    assert (new.state, new.identifier > zip_of(work).identifier) == (FileState.STORED, True)
    work.judge_done([batch_id])


def test_files_that_nobody_looks_for_any_more_are_lost_with_their_item(make: Make) -> None:
    """The read that finds the item dark is another file's: theirs were over."""
    work = make()
    batch_id = work.batch(4)
    hours(work, 26)
    first = zip_of(work)
    assert (first.next_attempt_at, first.confirmed_at is not None) == (None, True)
    assert any(file.next_attempt_at is not None for file in work.files()), "nothing reads the item"
    work.archive.dark.add("anchord-test-2024-08-01")
    hours(work, 24 * 4)
    assert zip_of(work).state is FileState.GONE
    assert work.files(FileKind.BUNDLES)[1].identifier > first.identifier
    work.judge_done([batch_id])


def test_an_item_of_somebody_else_is_left_alone(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.foreign.add("anchord-test-2024-08-01")
    hours(work, 24 * 9)
    assert work.archive.puts == []
    assert {file.state for file in work.files()} == {FileState.PARKED}
    assert any("somebody else" in (file.note or "") for file in work.files())
    assert work.lane.unfinished() == 0


def test_an_item_that_was_nobodys_after_all_is_used_once_a_person_asks(make: Make) -> None:
    work = make()
    batch_id = work.batch(4)
    work.archive.foreign.add("anchord-test-2024-08-01")
    hours(work, 24 * 2)
    work.archive.foreign.clear()
    work.retry()
    hours(work, 24 * 2)
    work.judge_done([batch_id])


def test_a_file_is_confirmed_a_day_later_and_then_leaves_the_spool(make: Make) -> None:
    work = make()
    work.batch(4)
    hours(work, 23)
    assert zip_of(work).confirmed_at is None
    assert zip_of(work).name in work.spool.names()
    hours(work, 2)
    assert zip_of(work).confirmed_at is not None
    assert zip_of(work).name not in work.spool.names()
    assert "fetch" in work.archive.calls


def test_a_download_with_other_bytes_loses_the_file_after_three_more(make: Make) -> None:
    work = make()
    batch_id = work.batch(4)
    hours(work, 1)
    work.archive.broken_downloads.add(zip_of(work).name)
    hours(work, 24 + 26)
    assert work.archive.calls.count("fetch") == 4
    assert zip_of(work).state is FileState.GONE
    hours(work, 24 * 4)
    work.judge_done([batch_id])


def test_one_listing_that_misses_a_file_takes_nothing_back(make: Make) -> None:
    work = make()
    work.batch(4)
    hours(work, 1)
    identifier = zip_of(work).identifier
    kept = dict(work.archive.kept[identifier])
    work.archive.kept[identifier].clear()
    hours(work, 30)
    assert zip_of(work).code == "missed"
    work.archive.kept[identifier].update(kept)
    hours(work, 48)
    assert zip_of(work).confirmed_at is not None
    assert zip_of(work).code is None
    assert len(work.files(FileKind.BUNDLES)) == 1


def test_one_read_serves_all_files_of_an_item(make: Make) -> None:
    work = make(max_members=1)
    work.batch(9)
    hours(work, 2)
    assert {file.state for file in work.files()} == {FileState.STORED}
    assert work.archive.calls.count("describe") < len(work.files())


def test_reads_that_fail_cost_no_file_and_are_repeated_with_patience(make: Make) -> None:
    work = make()
    work.batch(4)
    work.archive.reads = ["http-503", "http-500", "no-answer", "unknown-answer", "http-404"]
    hours(work, 48)
    assert {file.state for file in work.files()} == {FileState.STORED}
    assert len(work.archive.puts) == len(set(work.archive.puts))


# ---------------------------------------------------------------------- the end of a day


def test_a_day_ends_with_a_manifest_of_what_is_stored(make: Make) -> None:
    work = make(confirm_after_s=DAY)
    work.batch(6)
    hours(work, 48)
    (day,) = work.files(FileKind.DAY)
    assert (day.name, day.state) == ("manifest-2024-08-01.json", FileState.STORED)
    assert [item.state for item in work.items.items(("open", "closed"))] == ["closed"]


def test_a_day_manifest_lists_what_is_stored_and_nothing_else(make: Make) -> None:
    work = make()
    work.batch(8)
    work.archive.lies = ["ok", "wrong-md5"]
    hours(work, 60)
    (day,) = work.files(FileKind.DAY)
    raw = work.archive.holds(day.identifier, day.name)
    assert raw is not None
    listed = read_day_manifest(raw, Keys(work.signer.keyring())).files
    others = [file for file in work.files() if file.kind is not FileKind.DAY]
    stored = {f.name: f.sha256.hex() for f in others if f.state is FileState.STORED}
    assert {file.name: file.sha256 for file in listed} == stored
    assert 0 < len(stored) < len(others)


def test_a_day_is_not_closed_while_a_file_of_it_is_on_its_way(make: Make) -> None:
    work = make()
    work.batch(8)
    work.archive.lies = ["ok", "ok", "late"]
    hours(work, 60)
    assert work.files(FileKind.DAY) == []
    hours(work, 24 * 6)
    assert len(work.files(FileKind.DAY)) == 1


def test_a_day_manifest_the_spool_lost_is_made_again_as_it_was(make: Make) -> None:
    work = make()
    work.batch(4)
    hours(work, 2)
    work.archive.left = 0
    hours(work, 22)
    (day,) = work.files(FileKind.DAY)
    work.spool.remove(day.name)
    work.archive.left = 400
    hours(work, 48)
    assert work.items.file(day.id).state is FileState.STORED


def test_an_idle_step_calls_nobody_and_says_when_to_come_back(make: Make) -> None:
    work = make()
    assert work.step().packed == 0
    assert work.lane.next_moment(work.clock.now()) is None
    assert work.archive.calls == []
    assert work.lane.unfinished() == 0
