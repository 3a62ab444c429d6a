"""`anchord run-once` with a clock that went back: nothing is sent or signed with a moment over."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.workplace import Workplace, sample

from anchord.app.service.clock import TOLERANCE_S


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """Return a store whose newest event is of a day to come; nothing is due in it."""
    place = Workplace(tmp_path)
    place.clock.moment = int(time.time()) + 86_400
    place.add(sample(1))
    place.step(0)
    assert place.run("park", "1", "--reason", "nobody is asked in this test").exit_code == 0
    return place


def test_a_pass_is_refused_while_the_clock_is_behind_the_newest_event(place: Workplace) -> None:
    refused = place.run("run-once")
    assert refused.exit_code == 2
    assert "the clock went back" in refused.stderr
    assert "anchord run-once --accept-clock" in refused.stderr
    assert place.run("run-once", "--wait", "--deadline", "1").exit_code == 2


def test_a_person_may_say_that_the_clock_is_right_now(place: Workplace) -> None:
    told = place.run("run-once", "--accept-clock")
    assert told.exit_code == 0, told.output
    assert "taken for right" in told.stderr


def test_it_is_said_for_one_pass(place: Workplace) -> None:
    place.run("run-once", "--accept-clock")
    assert place.run("run-once").exit_code == 2


def test_what_time_services_do_is_no_going_back(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.clock.moment = int(time.time()) + TOLERANCE_S - 20
    place.add(sample(1))
    place.step(0)
    place.run("park", "1", "--reason", "nobody is asked in this test")
    assert place.run("run-once").exit_code == 0
