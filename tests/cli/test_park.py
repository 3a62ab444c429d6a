"""`anchord park` and `anchord retry`: set aside by hand, and back where it stood."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import stored_place as storing
from support.check_ledger import check_all_anchored
from support.workplace import Workplace, sample

from anchord.core.model import Adoption, BatchState
from anchord.core.storage import CaptureState, FileState
from anchord.engine.parking import SET_ASIDE
from anchord.errors import NetworkError

PAGE = "https://arxiv.org/abs/2507.00001v1"
REASON = ("--reason", "the calendar is being moved")


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def state_of(place: Workplace, number: int = 1) -> BatchState:
    with place.app() as app:
        return app.store.batches.get(number).state


def calls(place: Workplace) -> int:
    return sum(len(calendar.log) for calendar in place.calendars)


def begin(place: Workplace) -> None:
    """Let two records stand in one batch that is handed in."""
    place.add(sample(1), sample(2))
    place.step()
    assert state_of(place) is BatchState.SUBMITTED


def test_a_parked_batch_is_asked_for_by_nobody_and_wakes_nobody(place: Workplace) -> None:
    begin(place)
    assert place.json("park", "1", *REASON)["batches"] == [1]
    place.mine()
    before = calls(place)
    report = place.step(100_000)
    assert (calls(place), report.upgraded, report.anchored) == (before, 0, 0)
    with place.app() as app:
        assert app.store.counts.next_moment() is None
        assert app.store.counts.waits() == []
        assert app.store.counts.oldest_unfinished() is None
    assert state_of(place) is BatchState.PARKED


def test_a_parked_batch_that_was_never_handed_in_is_not_handed_in(place: Workplace) -> None:
    for calendar in place.calendars:
        calendar.fail_submit = NetworkError("the calendar is down")
    place.add(sample(1))
    place.step()
    assert state_of(place) is BatchState.SEALED
    place.run("park", "1", *REASON)
    for calendar in place.calendars:
        calendar.fail_submit = None
    assert place.step(100_000).submitted == 0
    place.run("retry", "1")
    assert place.step(1).submitted == 2
    assert state_of(place) is BatchState.SUBMITTED


def test_what_was_parked_comes_all_the_way_after_a_retry(place: Workplace) -> None:
    begin(place)
    place.run("park", "1", *REASON)
    place.mine()
    place.step(1_000)
    assert place.json("retry", "1")["retried"] == [1]
    assert place.step(1_000).anchored == 1
    with place.app() as app:
        check_all_anchored(app.store)


def test_a_parked_batch_with_its_path_is_not_checked(place: Workplace) -> None:
    begin(place)
    place.mine(more=0)
    place.step(1_000)
    assert state_of(place) is BatchState.ATTESTED
    place.run("park", "1", *REASON)
    place.chain.grow(10)
    place.write_headers()
    assert place.step(100_000).anchored == 0
    place.run("retry", "1")
    assert place.step(1).anchored == 1


def test_a_path_that_others_wait_for_wakes_no_parked_batch(place: Workplace) -> None:
    """The same commitment stands in a proof that was brought: it is asked for, for that one."""
    place.add(sample(1), sample(2))
    place.step()
    out = place.folder / "one.ots"
    assert place.run("export", sample(1).digest.hex(), "-o", str(out)).exit_code == 0
    place.add(Adoption(record=sample(1), ots=out.read_bytes()))
    place.run("park", "1", *REASON)
    place.mine()
    assert place.step(100_000).anchored == 1
    assert (state_of(place), state_of(place, 2)) == (BatchState.PARKED, BatchState.ANCHORED)
    with place.app() as app:
        moment, parked = app.store.counts.next_moment(), app.store.batches.get(1)
    assert parked.next_check_at is not None, "its path has come, and is kept"
    assert moment != parked.next_check_at
    place.run("retry", "1")
    assert place.step(1).anchored == 1
    assert state_of(place) is BatchState.ANCHORED


def test_wait_does_not_wait_for_parked_work_and_doctor_does_not_mind_it(place: Workplace) -> None:
    begin(place)
    place.run("park", "1", *REASON)
    document = place.json("run-once", "--wait", "--deadline", "30")
    assert (document["left"], document["passes"]) == (0, 1)
    found = {one["name"]: one for one in place.json("doctor", "--offline")["checks"]}
    assert found["store: set aside"]["state"] == "ok"
    assert "store: parked" not in found
    assert "the calendar is being moved" in place.run("status").stdout


def test_anchored_and_stored_work_is_refused_with_words(place: Workplace) -> None:
    place.anchor(sample(1), sample(2))
    storing.store_capture(place)
    file = storing.store_item(place)
    names = ("1", PAGE, f"{file.identifier}/{file.name}", "7", "2507.00001v1", "2507.99999")
    refused = place.json("park", *names, *REASON, code=1)["refused"]
    said = {one["what"]: one["reason"] for one in refused}
    assert list(said) == list(names)
    assert "anchored" in said["1"]
    assert "stored" in said[PAGE]
    assert "no batch 7" in said["7"]
    assert state_of(place) is BatchState.ANCHORED


def test_a_record_means_its_captures_and_never_the_batch_of_others(place: Workplace) -> None:
    begin(place)
    capture = storing.claim(place)
    storing.claim(place, 2)
    document = place.json("park", "2507.00001v1", *REASON)
    assert (document["batches"], document["captures"]) == ([], [capture.url])
    refused = place.json("park", "2507.00001v1", *REASON, code=1)["refused"]
    assert "`anchord park 1` sets all of them aside" in refused[0]["reason"]
    assert place.json("retry", "2507.00001v1")["captures"] == 1
    assert place.json("retry", "2507.00001v1", code=1)["not_parked"] == ["2507.00001v1"]


def test_a_record_alone_in_its_batch_is_parked_whole(place: Workplace) -> None:
    place.add(sample(1))
    place.step()
    storing.claim(place)
    document = place.json("park", "2507.00001v1", *REASON)
    assert (document["batches"], len(document["captures"])) == ([1], 1)
    back = place.json("retry", "2507.00001v1")
    assert (back["retried"], back["captures"]) == ([1], 1)


@pytest.mark.parametrize(
    "state", [CaptureState.SENDING, CaptureState.SUBMITTED, CaptureState.LOOKING]
)
def test_a_capture_set_aside_in_the_middle_is_looked_for_before_it_is_made_again(
    place: Workplace, state: CaptureState
) -> None:
    place.anchor(sample(1), sample(2))
    now = place.clock.now()
    before = storing.change(
        place, storing.claim(place), state=state, submitted_at=now, since_at=now, job_id="job"
    )
    place.run("park", PAGE, *REASON)
    with place.app() as app:
        parked = app.store.storage.captures.get(before.id)
    assert (parked.state, parked.code) == (CaptureState.PARKED, SET_ASIDE)
    assert (parked.next_attempt_at, parked.submitted_at) == (None, now)
    place.run("retry", PAGE)
    with place.app() as app:
        back = app.store.storage.captures.get(before.id)
    assert (back.state, back.since_at) == (CaptureState.LOOKING, now)
    assert back.deadline_at is not None, "it is submitted again when nothing is found"


def test_a_memento_that_was_found_is_found_again(place: Workplace) -> None:
    place.anchor(sample(1), sample(2))
    now = place.clock.now()
    found = {"timestamp": "20240801120100", "submitted_at": now, "since_at": now}
    storing.change(place, storing.claim(place), state=CaptureState.INDEXED, **found)
    place.run("park", PAGE, *REASON)
    with place.app() as app:
        (parked,) = app.store.storage.captures.of_record(1)
    assert parked.timestamp is None, "one that stays is taken for no good"


def test_a_zip_takes_its_unsent_manifest_along_and_back(place: Workplace) -> None:
    place.anchor(sample(1), sample(2))
    file = storing.pack(place)
    name = f"{file.identifier}/{file.name}"
    assert place.json("park", name, *REASON)["files"] == [name]
    with place.app() as app:
        tables = app.store.storage.items
        states = {one.state for one in tables.files(file.item_id)}
        assert states == {FileState.PARKED}
        assert tables.next_moment(list(FileState)) is None
    assert place.json("retry", "--archive")["files"] >= 1


def test_a_reason_is_one_line(place: Workplace) -> None:
    assert place.run("park", "1", "--reason", "two\nlines").exit_code == 2
    assert place.run("park", "1", "--reason", " ").exit_code == 2
    assert place.run("park", "1").exit_code == 2
