"""`anchord retry --archive`: parked captures and files come back, stopped lanes are open."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support import stored_place as storing
from support.workplace import Workplace, sample

from anchord.core.storage import CaptureState, FileState, Lane
from anchord.engine.capture_fate import CACHED_S


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    return place


def test_parked_captures_wait_again_with_all_their_tries(place: Workplace) -> None:
    parked = storing.change(
        place, storing.claim(place), state=CaptureState.PARKED, attempts=5, next_attempt_at=None
    )
    assert place.json("retry", "--archive")["captures"] == 1
    with place.app() as app:
        found = app.store.storage.captures.get(parked.id)
    assert (found.state, found.attempts) == (CaptureState.WAITING, 0)
    assert found.next_attempt_at is not None


def test_a_capture_is_not_asked_for_while_its_old_outcome_is_remembered(place: Workplace) -> None:
    now = int(time.time())
    parked = storing.change(
        place, storing.claim(place), state=CaptureState.PARKED, submitted_at=now,
        next_attempt_at=None,
    )  # fmt: skip
    place.run("retry", "--archive")
    with place.app() as app:
        found = app.store.storage.captures.get(parked.id)
    assert found.next_attempt_at == now + CACHED_S


def test_parked_files_are_to_be_sent_again(place: Workplace) -> None:
    file = storing.change_file(
        place, storing.pack(place), state=FileState.PARKED, attempts=7, next_attempt_at=None
    )
    assert place.json("retry", "--archive")["files"] == 1
    with place.app() as app:
        found = app.store.storage.items.file(file.id)
    assert (found.state, found.attempts) == (FileState.PACKED, 0)


def test_stopped_lanes_are_open_and_keep_their_alert_until_they_work(place: Workplace) -> None:
    storing.put_lane(place, Lane(name="spn", stopped=True, strikes=4, until=5, alert="look"))
    storing.put_lane(place, Lane(name="index", until=2**40, strikes=1))
    assert place.json("retry", "--archive")["lanes"] == ["spn"]
    with place.app() as app:
        spn, index = (app.store.storage.lanes.get(name) for name in ("spn", "index"))
    assert (spn.stopped, spn.until, spn.strikes, spn.alert) == (False, None, 0, "look")
    assert index.until == 2**40, "a pause that a service asked for is kept"


def test_stored_work_is_left_alone(place: Workplace) -> None:
    capture, file = storing.store_capture(place), storing.store_item(place)
    assert place.json("retry", "--archive") == {
        "retried": [], "not_parked": [], "captures": 0, "files": 0, "lanes": [], "outlets": {},
    }  # fmt: skip
    with place.app() as app:
        assert app.store.storage.captures.get(capture.id) == capture
        assert app.store.storage.items.file(file.id) == file


def test_nothing_named_is_a_misuse(place: Workplace) -> None:
    assert place.run("retry").exit_code == 2
    assert place.run("retry", "1", "--all").exit_code == 2
