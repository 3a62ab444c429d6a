"""What is in the way is logged: once, however many ask, and from the start."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from starlette.requests import Request
from support.face_places import Serving
from support.workplace import Workplace, sample

from anchord.app.web.problems import TOLD_AGAIN_S, Problems
from anchord.errors import AnchordError, FatalError, TransientError


def request() -> Request:
    return Request(
        {"type": "http", "method": "GET", "path": "/x", "headers": [], "query_string": b""}
    )


@pytest.mark.parametrize(
    ("error", "status", "event"),
    [(FatalError("row 7 does not hold"), 500, "damaged"), (TransientError("locked"), 503, "busy")],
)
def test_the_same_trouble_is_logged_once_a_minute_and_answered_each_time(
    caplog: pytest.LogCaptureFixture, error: AnchordError, status: int, event: str
) -> None:
    caplog.set_level(logging.INFO, "anchord")
    now = [0.0]
    answer = Problems(None, lambda: now[0]).handlers()[AnchordError]

    def told() -> list[str]:
        return [record.__dict__["event"] for record in caplog.records]

    for _ in range(50):
        assert answer(request(), error).status_code == status
    assert told() == [event]
    answer(request(), type(error)("something else"))
    assert told() == [event, event]
    now[0] += TOLD_AGAIN_S
    answer(request(), error)
    assert told() == [event, event, event]


def test_ever_new_trouble_is_logged_each_and_remembered_within_bounds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "anchord")
    problems = Problems(None, lambda: 0.0)
    answer = problems.handlers()[AnchordError]
    for number in range(1_000):
        answer(request(), FatalError(f"row {number}"))
    assert len(caplog.records) == 1_000
    assert len(problems._told) <= 100


def test_a_tree_that_is_not_there_is_told_at_the_start(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    with Serving(place.config, "--tree", str(tmp_path / "nothing")) as running:
        assert "not ready" in running.said
        assert "nothing is no folder: anchord mirror publish makes it" in running.said
