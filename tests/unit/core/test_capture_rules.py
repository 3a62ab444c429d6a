"""Every refusal has its wait, its scope and its end; throttling is never a failure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.capture_rules import (
    Decision,
    Scope,
    decide,
    decide_reading,
    host_alert,
    lane_of,
    rule_of,
)
from anchord.core.capture_table import ROWS
from anchord.core.capture_words import OWN_CODES
from anchord.core.storage import Refused

NOW = 1_788_000_000 + 12_345
MIDNIGHT = (NOW // 86_400 + 1) * 86_400
MINUTE, HOUR = 60, 3_600
JOB, HOST, ACCOUNT = Scope.JOB, Scope.HOST, Scope.ACCOUNT

SERIES = [80 * MINUTE, 6 * HOUR, 24 * HOUR, 72 * HOUR]
SOON = [5 * MINUTE, 80 * MINUTE, 6 * HOUR, 24 * HOUR]
OUTAGE = [5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE, 30 * MINUTE]
DOUBLING_HOURS = [1 * HOUR, 2 * HOUR, 4 * HOUR, 8 * HOUR, 16 * HOUR, 24 * HOUR, 24 * HOUR]


def _decide(
    code: str, *, attempts: int = 0, strikes: int = 0, wait: float | None = None
) -> Decision:
    refused = Refused(code=code, message="said", retry_after_s=wait)
    return decide(refused, NOW, attempts=attempts, strikes=strikes)


# One row per line of the table the service's limits and codes were gathered in: written out here
# once more, so that a slip in one of the two shows.
LANE_ROWS = [
    ("user-session-limit", ACCOUNT, [20, 20, 40, 80, 160, 300, 300]),
    ("http-429", ACCOUNT, [20, 90, 180, 360, 30 * MINUTE, 30 * MINUTE]),
    ("connection-refused", ACCOUNT, DOUBLING_HOURS),
    ("http-403", ACCOUNT, DOUBLING_HOURS),
    ("offline", ACCOUNT, OUTAGE),
    (
        "too-many-requests",
        HOST,
        [*(minutes * MINUTE for minutes in (10, 20, 40, 80, 160, 320)), 6 * HOUR, 6 * HOUR],
    ),
    ("bandwidth-limit-exceeded", HOST, DOUBLING_HOURS),
]


@pytest.mark.parametrize(("code", "scope", "waits"), LANE_ROWS)
def test_a_lane_waits_longer_with_each_refusal_and_blames_no_capture(
    code: str, scope: Scope, waits: list[int]
) -> None:
    for strikes, wait in enumerate(waits):
        decision = _decide(code, attempts=4, strikes=strikes)
        assert (decision.scope, decision.at) == (scope, NOW + wait)
        assert not any((decision.counted, decision.park, decision.stop, decision.look))
        assert decision.lane == scope
        assert decision.strikes == strikes + 1


DAY_ROWS = [
    ("daily-captures-limit", ACCOUNT, False),
    ("max-daily-bandwidth", ACCOUNT, False),
    ("max-daily-bandwidth-from-ip", ACCOUNT, False),
    ("too-many-daily-captures-host", HOST, False),
    ("max-daily-bandwidth-host", HOST, False),
    ("too-many-daily-captures", JOB, True),
]


@pytest.mark.parametrize(("code", "scope", "look"), DAY_ROWS)
def test_a_limit_of_the_day_waits_for_the_next_utc_day(code: str, scope: Scope, look: bool) -> None:
    decision = _decide(code, attempts=4, strikes=7)
    assert (decision.scope, decision.at, decision.look) == (scope, MIDNIGHT, look)
    assert not any((decision.counted, decision.park, decision.stop))
    at_midnight = decide(Refused(code=code, message=""), MIDNIGHT, attempts=0, strikes=0)
    assert at_midnight.at == MIDNIGHT + 86_400


JOB_ROWS = [
    *(
        (code, SERIES, True)
        for code in (
            "job-failed", "cannot-fetch", "browsing-timeout", "soft-time-limit-exceeded",
            "read-timeout", "protocol-error", "proxy-error", "internal-server-error",
            "capture-location-error", "gateway-timeout", "bad-gateway", "service-unavailable",
            "invalid-server-response", "no-captures", "recursion", "unknown-error",
            "a-code-that-nobody-knows", "http-404", "",
        )
    ),
    *(
        (code, SERIES, False)
        for code in (
            "not-found", "no-access", "unauthorized", "invalid-host-resolution",
            "too-many-redirects", "blocked",
        )
    ),
    *((code, SOON, False) for code in ("redis-error", "no-browsers-available", "celery")),
    *(
        (code, SOON, True)
        for code in (
            "http-500", "http-502", "http-503", "http-504", "http-520", "http-523", "http-599",
            "no-answer", "unknown-answer", "too-large",
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("code", "waits", "look"), JOB_ROWS)
def test_a_failed_job_is_tried_five_times_and_then_parked(
    code: str, waits: list[int], look: bool
) -> None:
    for attempts, wait in enumerate(waits):
        decision = _decide(code, attempts=attempts)
        assert (decision.scope, decision.at) == (JOB, NOW + wait)
        assert (decision.counted, decision.look, decision.park) == (True, look, False)
    for attempts in (4, 5, 99):
        last = _decide(code, attempts=attempts)
        assert (last.at, last.park, last.counted, last.stop) == (None, True, True, False)


@pytest.mark.parametrize(
    "code",
    [
        "invalid-url-syntax", "invalid-url", "bad-request", "filesize-limit", "ftp-access-denied",
        "method-not-allowed", "not-implemented", "http-version-not-supported",
        "network-authentication-required", "forbidden", "blocked-url", "excluded",
    ],
)  # fmt: skip
def test_what_will_never_work_is_parked_at_once(code: str) -> None:
    decision = _decide(code)
    assert (decision.scope, decision.at, decision.park) == (JOB, None, True)
    assert (decision.alert is not None) == (code in ("blocked-url", "excluded"))


@pytest.mark.parametrize("code", ["unauthorized-key", "forbidden-key"])
def test_a_key_is_tried_twice_more_and_then_a_person_must_act(code: str) -> None:
    first, second, third = (_decide(code, strikes=strikes) for strikes in range(3))
    assert [first.at, second.at, third.at] == [NOW + 60, NOW + 120, None]
    assert [first.stop, second.stop, third.stop] == [False, False, True]
    assert [first.alert, second.alert] == [None, None]
    assert third.alert is not None
    assert "retry" in third.alert
    assert not any(each.counted or each.park for each in (first, second, third))


def test_a_listed_address_stops_the_account_at_once() -> None:
    decision = _decide("blocked-client-ip")
    assert (decision.scope, decision.at, decision.stop) == (ACCOUNT, None, True)
    assert decision.alert is not None
    assert "info@archive.org" in decision.alert


@pytest.mark.parametrize("code", ["connection-refused", "too-many-requests"])
def test_a_person_is_told_of_what_only_a_person_can_change(code: str) -> None:
    assert _decide(code).alert


@pytest.mark.parametrize("code", ["http-502", "no-answer", "unknown-answer"])
def test_three_broken_answers_in_a_row_are_an_outage_that_costs_no_capture(code: str) -> None:
    alone = _decide(code, strikes=1)
    assert (alone.scope, alone.counted, alone.lane, alone.strikes) == (JOB, True, ACCOUNT, 2)
    for more, wait in ((2, 20), (3, 30), (9, 30)):
        outage = _decide(code, attempts=4, strikes=more)
        assert (outage.scope, outage.at) == (ACCOUNT, NOW + wait * MINUTE)
        assert (outage.counted, outage.park, outage.look) == (False, False, True)
        assert outage.strikes == more + 1


def test_five_reports_of_busy_workers_are_the_services_trouble() -> None:
    assert _decide("celery", strikes=3).scope is JOB
    busy = _decide("celery", attempts=4, strikes=4)
    assert (busy.scope, busy.counted, busy.park) == (ACCOUNT, False, False)


def test_several_blocked_urls_are_a_blocked_host() -> None:
    assert _decide("blocked-url", strikes=1).scope is JOB
    host = _decide("blocked-url", strikes=2)
    assert (host.scope, host.at, host.park) == (HOST, MIDNIGHT, True)


def test_a_wait_that_was_asked_for_is_followed_up_to_an_hour() -> None:
    assert _decide("http-429", wait=45).at == NOW + 45
    assert _decide("http-429", wait=5).at == NOW + 5
    assert _decide("http-429", wait=0).at == NOW + 1
    assert _decide("http-429", wait=90_000).at == NOW + HOUR
    # After five in a row the lane rests, however little was asked for.
    assert _decide("http-429", strikes=4, wait=5).at == NOW + 30 * MINUTE
    assert _decide("http-429", strikes=4, wait=3_000).at == NOW + 3_000


@pytest.mark.parametrize("code", ["offline", "http-503", "celery", "connection-refused"])
def test_elsewhere_it_only_lengthens_the_wait(code: str) -> None:
    own = _decide(code).at
    assert own is not None
    assert _decide(code, wait=2).at == own
    assert _decide(code, wait=50_000).at == max(own, NOW + HOUR)


def test_refusals_of_another_kind_do_not_count_on() -> None:
    refused = Refused(code="unauthorized-key", message="")
    after_throttling = decide(refused, NOW, attempts=0, strikes=4, last_code="http-429")
    assert (after_throttling.at, after_throttling.stop) == (NOW + 60, False)
    assert after_throttling.strikes == 1
    goes_on = decide(refused, NOW, attempts=0, strikes=2, last_code="forbidden-key")
    assert goes_on.stop


def test_every_row_and_every_code_of_ours_has_a_rule() -> None:
    listed = [code for rule in ROWS for code in rule.codes.split()]
    assert len(listed) == len(set(listed))
    for rule in ROWS:
        assert rule.waits or rule.next_day or rule.permanent or rule.stops_after == 0
    ours = {code for code in OWN_CODES if code != "http-NNN"}
    assert ours <= set(listed)
    assert rule_of("http-404") is rule_of("job-failed")


@pytest.mark.parametrize(
    ("code", "wait"),
    [("http-429", 60), ("http-504", 60), ("no-answer", 60), ("unknown-answer", 60),
     ("http-404", 60), ("offline", 5 * MINUTE), ("connection-refused", HOUR), ("http-403", HOUR)],
)  # fmt: skip
def test_a_look_that_was_refused_costs_no_capture(code: str, wait: int) -> None:
    refused = Refused(code=code, message="")
    first = decide_reading(refused, NOW, strikes=0)
    assert first.at == NOW + wait
    later = decide_reading(refused, NOW, strikes=20)
    assert later.at is not None
    assert later.at >= NOW + 15 * MINUTE
    for decision in (first, later):
        assert not any((decision.counted, decision.park, decision.stop))
        assert decision.lane is ACCOUNT


def test_looks_of_every_trouble_count_on_and_an_excluded_site_is_parked() -> None:
    refused = Refused(code="http-503", message="")
    third = decide_reading(refused, NOW, strikes=2, last_code="http-429")
    assert (third.at, third.strikes) == (NOW + 240, 3)
    assert decide_reading(refused, NOW, strikes=2, last_code="offline").strikes == 1
    assert decide_reading(Refused(code="excluded", message=""), NOW, strikes=0).park
    asked = Refused(code="http-429", message="", retry_after_s=300)
    assert decide_reading(asked, NOW, strikes=0).at == NOW + 300


def test_many_lost_pages_of_a_host_are_an_alert() -> None:
    assert host_alert("not-found", 10, 1_000) is None
    assert host_alert("not-found", 11, 1_000) is not None
    assert host_alert("job-failed", 900, 1_000) is None


@given(
    code=st.sampled_from([code for rule in ROWS for code in rule.codes.split()])
    | st.text(max_size=20),
    now=st.integers(0, 2**33),
    attempts=st.integers(0, 100),
    strikes=st.integers(0, 100),
    wait=st.none() | st.floats(0, 86_400),
)
def test_every_decision_is_one_that_can_be_followed(
    code: str, now: int, attempts: int, strikes: int, wait: float | None
) -> None:
    refused = Refused(code=code, message="", retry_after_s=wait)
    decision = decide(refused, now, attempts=attempts, strikes=strikes)
    reading = decide_reading(refused, now, strikes=strikes)
    for each in (decision, reading):
        if each.at is None:
            assert each.park or each.stop
        else:
            assert now < each.at <= now + 86_400 * 3
        assert each.strikes in (strikes, strikes + 1)
        if each.scope is not JOB:
            assert not each.counted or each.park
            assert each.lane in (None, each.scope)
        if each.stop:
            assert each.alert
    if decision.lane is not None:
        assert decision.lane is lane_of(code)
    if wait is not None and decision.at is not None:
        without = decide(Refused(code=code, message=""), now, attempts=attempts, strikes=strikes)
        assert without.at is not None
        assert decision.at <= max(without.at, now + HOUR)
