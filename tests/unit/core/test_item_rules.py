"""Each refusal leads to its pause; only the file's own failures count, and they end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.item import Headroom
from anchord.core.item_rules import ItemDecision, decide, over_limit
from anchord.core.storage import Refused

NOW, MINUTE, HOUR = 1_800_000_000, 60, 3_600


def _decide(
    code: str, attempts: int = 0, strikes: int = 0, wait: float | None = None
) -> ItemDecision:
    refused = Refused(code=code, message="words", retry_after_s=wait)
    return decide(refused, NOW, attempts=attempts, strikes=strikes)


@pytest.mark.parametrize(
    ("code", "strikes", "wait_s"),
    [
        ("SlowDown", 0, 5 * MINUTE),
        ("SlowDown", 3, 5 * MINUTE),
        ("SlowDown-global", 0, 15 * MINUTE),
        ("http-429", 0, MINUTE),
        ("http-429", 9, 30 * MINUTE),
        ("http-503", 0, 5 * MINUTE),
        ("offline", 1, 10 * MINUTE),
        ("offline", 9, 30 * MINUTE),
        ("connection-refused", 0, HOUR),
        ("connection-refused", 1, 2 * HOUR),
        ("connection-refused", 99, 24 * HOUR),
        ("certificate", 0, 30 * MINUTE),
        ("elsewhere", 0, 30 * MINUTE),
    ],
)
def test_what_the_service_says_of_itself_pauses_the_lane_and_counts_against_no_file(
    code: str, strikes: int, wait_s: int
) -> None:
    decision = _decide(code, attempts=9, strikes=strikes)
    assert (decision.scope, decision.at - NOW, decision.counted) == ("lane", wait_s, False)
    assert decision.strikes == strikes + 1
    assert (decision.park, decision.stop) == (False, False)
    assert decision.read_first == (code in {"offline", "http-503"})
    alerting = {"connection-refused", "certificate", "elsewhere"}
    assert (decision.alert is not None) == (code in alerting)


def test_what_the_service_asks_for_is_waited_for() -> None:
    assert _decide("SlowDown", wait=4_000).at == NOW + 4_000
    assert _decide("SlowDown", wait=1).at == NOW + 5 * MINUTE
    assert _decide("InternalError", wait=500).at == NOW + 500


@pytest.mark.parametrize(
    "code", ["spam", "AccessDenied", "http-401", "http-403", "SignatureDoesNotMatch"]
)
def test_what_only_a_person_can_settle_stops_the_lane(code: str) -> None:
    decision = _decide(code)
    assert (decision.scope, decision.stop, decision.counted) == ("lane", True, False)
    assert decision.alert is not None
    assert "words" in decision.alert


@pytest.mark.parametrize(
    "code",
    ["InvalidBucketName", "name-taken", "foreign", "dark", "bad-name", "spool-damaged"],
)
def test_what_will_never_succeed_is_parked_at_once(code: str) -> None:
    decision = _decide(code)
    assert (decision.scope, decision.park, decision.stop) == ("file", True, False)
    assert decision.alert is not None
    assert decision.strikes == 0


def test_a_broken_transfer_is_tried_three_times_at_once() -> None:
    first, second, third = (_decide("BadDigest", attempts=tried) for tried in range(3))
    assert [(d.at, d.counted, d.park) for d in (first, second)] == [(NOW, True, False)] * 2
    assert third.park
    assert third.alert is not None


@pytest.mark.parametrize("code", ["OperationAborted", "BucketAlreadyExists"])
def test_a_race_of_first_uploads_waits_minutes_and_looks_whose_item_it_became(code: str) -> None:
    waits = [_decide(code, strikes=strikes) for strikes in range(8)]
    assert [d.at - NOW for d in waits] == [60, 120, 180, 240, 300, 300, 300, 300]
    assert all(d.read_first and not d.counted and d.scope == "file" for d in waits)


@pytest.mark.parametrize("code", ["InternalError", "http-500", "no-answer", "unknown-answer", "Xy"])
def test_after_a_lost_answer_the_item_is_read_before_anything_is_sent_again(code: str) -> None:
    waits = [_decide(code, attempts=tried) for tried in range(7)]
    assert all(d.read_first and d.counted and d.scope == "file" for d in waits)
    assert [d.at - NOW for d in waits[:3]] == [MINUTE, 5 * MINUTE, 30 * MINUTE]
    assert [d.park for d in waits] == [False] * 6 + [True]
    assert waits[-1].alert is not None


def test_failures_in_a_row_are_the_services_and_park_nothing() -> None:
    decision = _decide("http-500", attempts=6, strikes=5)
    assert (decision.scope, decision.counted, decision.park) == ("lane", False, False)
    assert decision.at == NOW + 30 * MINUTE
    assert decision.alert is not None


def test_pending_tasks_are_waited_for_without_counting() -> None:
    decision = _decide("tasks-pending", attempts=99, strikes=2)
    assert (decision.scope, decision.counted, decision.strikes) == ("file", False, 2)
    assert decision.read_first


@given(
    code=st.text(max_size=20),
    attempts=st.integers(0, 50),
    strikes=st.integers(0, 10_000),
    wait=st.none() | st.floats(0, 1e9),
)
def test_every_refusal_leads_to_a_later_moment_or_to_a_person(
    code: str, attempts: int, strikes: int, wait: float | None
) -> None:
    decision = _decide(code, attempts, strikes, wait)
    assert NOW <= decision.at <= NOW + 24 * HOUR
    assert decision.at > NOW or decision.park or decision.stop or code == "BadDigest"
    assert decision.alert is not None or not (decision.park or decision.stop)


@pytest.mark.parametrize(
    ("account", "item", "everybody", "code"),
    [
        (499, 149, 360, "SlowDown-global"),
        (0, 149, 900, "SlowDown"),
        (74, -1, 900, "SlowDown"),
        (None, None, None, "SlowDown"),
    ],
)
def test_check_limit_over_is_the_refusal_that_an_upload_would_get(
    account: int | None, item: int | None, everybody: int | None, code: str
) -> None:
    headroom = Headroom(
        over_limit=True, account_left=account, item_left=item, global_left=everybody
    )
    assert over_limit(headroom).code == code
