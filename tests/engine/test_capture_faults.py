"""Whatever the Wayback Machine says, and whenever we die: nothing false, lost or doubled."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from support.fake_wayback import refusal
from support.killing import Fuse, Killed, die_by_exception
from support.storing_captures import DAY, CaptureShop, papers

from anchord.core.capture import stamp_of
from anchord.core.capture_table import ROWS
from anchord.core.storage import CaptureState
from anchord.core.wayback import Accepted, AccountStatus, Existing, IndexPage, NotThere

CODES = sorted({code for row in ROWS for code in row.codes.split()} | {"http-502", "nobody-knows"})
METHODS = ("submit", "statuses", "account", "system", "index", "replay")
ANSWERS: dict[str, list[Any]] = {
    "submit": [
        Accepted(job_id="spn2-nobody"),
        Accepted(job_id="spn2-slow", delay_s=4_000),
        Existing(message="The same snapshot had been made"),
    ],
    "statuses": [{}],
    "account": [AccountStatus(available=0, processing=3), AccountStatus(available=9, processing=0)],
    "system": [],
    "index": [IndexPage(rows=())],
    "replay": [NotThere(reason="has not archived that URL")],
}


def _lies() -> st.SearchStrategy[tuple[str, Any, bool]]:
    refusals = st.builds(refusal, st.sampled_from(CODES), st.sampled_from([None, 1, 7_200]))
    return st.one_of(
        *[
            st.tuples(
                st.just(method),
                st.one_of(refusals, *[st.just(answer) for answer in ANSWERS[method]]),
                st.booleans(),
            )
            for method in METHODS
        ]
    )


BENT = st.sampled_from(
    ["not", "pending", "favicon", "status", "old", "ancient", "future", "older-job", "refused"]
)
EVENTS = st.sampled_from(
    ["wait", "hours", "days", "lose", "change", "lag", "kill", "retry", "more", "drop-jobs"]
)
WEATHER = st.lists(
    st.tuples(EVENTS, st.integers(0, 60), BENT, st.lists(_lies(), max_size=6)),
    min_size=1,
    max_size=5,
)


def bend(shop: CaptureShop, how: str, which: int) -> None:
    """Let jobs report something else than what happened."""
    now = shop.clock.now()
    changes: dict[str, dict[str, Any]] = {
        "favicon": {"original_url": "https://arxiv.example.org/favicon.ico"},
        "status": {"http_status": 404},
        "old": {"timestamp": stamp_of(now - 5 * DAY)},
        "ancient": {"timestamp": "20010101000000"},
        "future": {"timestamp": stamp_of(now + 10 * DAY)},
        "older-job": {"original_job_id": "spn2-older"},
    }
    if how == "not":
        shop.archive.bend = None
    elif how == "pending":
        shop.archive.bend = lambda _: None
    elif how == "refused":
        shop.archive.bend = lambda _: refusal(CODES[which % len(CODES)])
    else:
        shop.archive.bend = lambda reported: replace(reported, **changes[how])


def happen(shop: CaptureShop, event: str, which: int) -> None:
    """Let one thing happen, then let time pass."""
    archive = shop.archive
    if event == "lose" and archive.held:
        archive.held.pop(which % len(archive.held))
    elif event == "change" and archive.held:
        archive.held[which % len(archive.held)].body += b"!"
    elif event == "lag":
        archive.lag_s = which * 600
    elif event == "drop-jobs":
        archive.jobs.clear()
    elif event == "more":
        shop.add(papers(1, first=1_000 + len(shop.all()) + which * 100))
    elif event == "retry":
        shop.retry()
    if event == "kill":
        live(shop, Fuse(which + 1, die_by_exception), 4 * 3_600)
    else:
        shop.run_for({"hours": 6 * 3_600, "days": 2 * DAY}.get(event, 900), most=20_000)


def live(shop: CaptureShop, fuse: Fuse, seconds: int) -> bool:
    """Run a process until it dies or time is over; tell whether it died. The next one begins."""
    shop.begin(fuse)
    try:
        shop.run_for(seconds)
    except Killed:
        return True
    finally:
        shop.begin()
    return False


def judge_done(shop: CaptureShop, records: int | None = None) -> None:
    """When the weather is clear and everything was waited for, every capture is stored."""
    captures = shop.all()
    assert records is None or len(captures) == records
    for one in captures:
        assert one.state is CaptureState.STORED, one
        assert one.sha256 is not None
        assert shop.archive.replays(one.timestamp or "", one.final_url or "", one.sha256)
        types = [
            shop.parts.store.ledger.get_series(row.series_id).event_type
            for row in shop.parts.store.ledger.of_record(one.record_id)
        ]
        assert types == ["capture_stored", *["facet_withdrawn", "capture_stored"] * one.lost]


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(weather=WEATHER)
def test_in_any_weather_nothing_is_false_lost_or_doubled(
    weather: list[tuple[str, int, str, list[tuple[str, Any, bool]]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = CaptureShop(Path(folder))
        try:
            shop.add(papers(2))
            for event, which, how, lies in weather:
                bend(shop, how, which)
                for method, answer, after in lies:
                    shop.archive.lie(method, answer, after=after)
                happen(shop, event, which)
            shop.archive.lag_s = 60
            shop.settle()
            judge_done(shop)
        finally:
            shop.close()


LIFE_S = 28 * 3_600
"""Long enough for everything up to the first confirmation."""


def _effects(folder: Path) -> int:
    shop = CaptureShop(folder)
    shop.add(papers(1))
    fuse = Fuse(10**9, die_by_exception)
    assert not live(shop, fuse, LIFE_S)
    shop.close()
    return fuse.burnt


def test_a_process_killed_at_any_effect_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / "whole").mkdir()
    effects = _effects(tmp_path / "whole")
    assert effects > 40
    for left in range(1, effects + 1):
        folder = tmp_path / f"killed-{left}"
        folder.mkdir()
        shop = CaptureShop(folder)
        shop.add(papers(1))
        assert live(shop, Fuse(left, die_by_exception), LIFE_S)
        shop.run_for(2 * DAY)
        judge_done(shop, 1)
        assert shop.archive.daily_used.total() == 1
        assert shop.one().confirmations == 1
        shop.close()


def test_a_memento_lost_while_processes_die_is_withdrawn_once(
    tmp_path: Path,
) -> None:
    for left in range(1, 60, 6):
        folder = tmp_path / f"killed-{left}"
        folder.mkdir()
        shop = CaptureShop(folder)
        shop.add(papers(1))
        shop.run_for(3_600)
        shop.archive.held.clear()
        shop.clock.advance(DAY)
        live(shop, Fuse(left, die_by_exception), 3 * DAY)
        shop.run_for(3 * DAY)
        judge_done(shop, 1)
        assert shop.one().lost == 1
        assert shop.archive.daily_used.total() == 2
        shop.close()


@pytest.mark.parametrize("code", [*(row.codes.split()[0] for row in ROWS), "nobody-knows"])
def test_whatever_every_submit_is_refused_with_the_work_is_done_when_it_is_over(
    tmp_path: Path, code: str
) -> None:
    shop = CaptureShop(tmp_path)
    shop.archive.weather["submit"] = code
    shop.add(papers(1))
    shop.run_for(6 * 3_600 if code != "user-session-limit" else 600)
    assert shop.events() == []
    assert len(shop.archive.calls("submit")) < 50
    shop.settle(3)
    judge_done(shop, 1)
    shop.close()


def test_an_account_that_refuses_every_slot_is_asked_more_and_more_rarely(
    shop: CaptureShop,
) -> None:
    shop.archive.weather["submit"] = "user-session-limit"
    shop.add(papers(3))
    shop.run_for(3_600)
    assert len(shop.archive.log) < 60
    assert {one.attempts for one in shop.all()} == {0}
    shop.archive.weather.clear()
    shop.run_for(3_600)
    assert shop.states() == {"stored": 3}


def test_an_account_whose_slots_others_hold_is_asked_once_a_minute(shop: CaptureShop) -> None:
    shop.archive.slots = 0
    shop.add(papers(3))
    shop.run_for(3_600)
    assert len(shop.archive.log) <= 62
    shop.archive.slots = 3
    shop.run_for(3_600)
    assert shop.states() == {"stored": 3}


def test_a_job_that_was_forgotten_is_not_asked_for_every_few_seconds(shop: CaptureShop) -> None:
    shop.archive.bend = lambda _: None
    shop.add(papers(6))
    shop.run_for(800)
    assert len(shop.archive.calls("submit")) == 3
    assert len(shop.archive.calls("statuses")) < 60
