"""The sandbox's Wayback Machine keeps to the real limits, and counts whoever does not."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.wayback_calls import NOON, PAGE, STEADY, Archive, header

from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.service import RefusedError
from anchord.sandbox.wayback.site import Page

MIDNIGHT = NOON + 43_200
WIDE = msgspec.structs.replace(STEADY, slots=1000, submits_per_minute=1000, host_queue_after=None)
"""No pace: for the limits of a day."""


def url(number: int) -> str:
    return f"https://arxiv.org/abs/2402.{number:05d}v1"


def submit(archive, number, **form):
    return archive.ask("POST", "/save", {"url": url(number)} | form)


# ------------------------------------------------------------------ the minute


def test_the_eighth_submit_of_a_minute_is_answered_by_a_page_without_retry_after():
    archive = Archive(msgspec.structs.replace(STEADY, slots=99))
    answers = [submit(archive, number) for number in range(8)]
    assert [answer.status for answer in answers] == [200] * 7 + [429]
    assert answers[7].content_type.startswith("text/html")
    assert b"429 Too Many Requests" in answers[7].body
    assert header(answers[7], "Retry-After") is None
    report = archive.service.report()
    assert (report.rate_429, report.rate_429_by, report.refused) == (
        1,
        {"save": 1},
        {"http-429": 1},
    )
    assert report.max_submits_in_a_minute == 8


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 40), min_size=1, max_size=60))
def test_no_sixty_seconds_hold_more_than_seven_accepted_submits(pauses):
    archive = Archive(msgspec.structs.replace(STEADY, slots=99, ignored_429=10**6))
    accepted = []
    for number, pause in enumerate(pauses):
        archive.clock.advance(pause)
        if submit(archive, number).status == 200:
            accepted.append(archive.clock.now())
    for start in accepted:
        assert sum(start <= moment < start + 59.999 for moment in accepted) <= 7
    report = archive.service.report()
    assert report.accepted + report.rate_429 == len(pauses)


def test_who_waits_a_minute_may_go_on():
    archive = Archive(msgspec.structs.replace(STEADY, slots=99))
    for number in range(7):
        submit(archive, number)
    archive.clock.advance(59.9)
    assert submit(archive, 7).status == 429
    archive.clock.advance(0.2)
    assert submit(archive, 7).status == 200


@pytest.mark.parametrize(
    ("path", "limit", "family"),
    [
        (f"/cdx/search/cdx?url={PAGE}", 30, "cdx"),
        (f"/web/20270115120000id_/{PAGE}", 600, "replay"),
        (f"/web/timemap/link/{PAGE}", 600, "replay"),
    ],
)
def test_readers_have_a_pace_too(path, limit, family):
    archive = Archive()
    assert {archive.ask("GET", path).status for _ in range(limit)} <= {200, 404}
    answer = archive.ask("GET", path)
    assert (answer.status, header(answer, "Retry-After")) == (429, None)
    assert archive.service.report().rate_429_by == {family: 1}
    archive.clock.advance(60)
    assert archive.ask("GET", path).status in {200, 404}


# ------------------------------------------------------------------ slots


def test_a_fourth_capture_at_a_time_is_refused_with_status_200():
    archive = Archive()
    for number in range(3):
        assert "job_id" in json.loads(submit(archive, number).body)
    refused = json.loads(submit(archive, 3).body)
    assert refused["status_ext"] == "error:user-session-limit"
    assert archive.service.report().session_limit_refusals == 1
    archive.clock.advance(20)
    assert "job_id" in json.loads(submit(archive, 3).body)


def test_a_slot_counts_as_taken_for_a_while_after_its_job_ended():
    archive = Archive(msgspec.structs.replace(STEADY, slots=1, slot_lag_s=(2, 2)))
    job = archive.save()["job_id"]
    archive.clock.advance(21)
    assert archive.status(job)["status"] == "success"
    assert archive.user()["available"] == 0
    assert archive.save(url(1))["status_ext"] == "error:user-session-limit"
    archive.clock.advance(1)
    assert archive.user()["available"] == 1
    assert "job_id" in archive.save(url(1))


def test_durations_are_those_of_the_rules():
    archive = Archive(Rules())
    for number in range(40):
        submit(archive, number)
        archive.clock.advance(60)
    durations = archive.service.report().durations
    assert len(durations) == 40
    assert all(16 <= one <= 50 for one in durations)
    assert max(durations) - min(durations) > 15


def test_idle_seconds_are_those_in_which_a_slot_and_a_submit_were_free():
    archive = Archive(msgspec.structs.replace(STEADY, submits_per_minute=2))
    submit(archive, 0)
    archive.clock.advance(5)  # free until here: 5 s
    submit(archive, 1)  # now the minute is full until NOON + 60
    archive.clock.advance(75)  # free from NOON + 60 on: 20 s
    submit(archive, 2)
    archive.clock.advance(10)  # one of two is left: 10 s
    archive.user()
    assert archive.service.report().idle_slot_seconds == pytest.approx(35)
    slots = Archive(msgspec.structs.replace(STEADY, slots=1))
    submit(slots, 0)
    slots.clock.advance(50)  # taken for 20 s, free for 30
    slots.user()
    assert slots.service.report().idle_slot_seconds == pytest.approx(30)
    assert slots.service.report().slot_seconds_used == pytest.approx(20)


# ------------------------------------------------------------------ the day


def test_the_accounts_captures_of_a_day_end_and_begin_again_at_utc_midnight():
    rules = msgspec.structs.replace(WIDE, daily_captures=5)
    archive = Archive(rules, start=MIDNIGHT - 100)
    for number in range(5):
        submit(archive, number)
    refused = archive.save(url(5))
    assert refused["message"].startswith("You cannot make more than 5 captures per day")
    assert archive.user()["daily_captures"] == 5
    archive.clock.advance(99)
    assert "job_id" not in archive.save(url(5))
    archive.clock.advance(1)
    assert archive.user()["daily_captures"] == 0
    assert "job_id" in archive.save(url(5))


def test_a_job_that_fails_counts_for_the_day():
    archive = Archive()
    archive.site.put(PAGE, Page(status=404))
    archive.done()
    assert archive.user()["daily_captures"] == 1


def test_the_same_url_is_captured_five_times_a_day():
    archive = Archive(msgspec.structs.replace(WIDE, outcome_cache_s=0), start=MIDNIGHT - 80_000)
    seen = set()
    for _ in range(5):
        archive.captured(if_not_archived_within="10m")
        archive.clock.advance(4000)
    for _ in range(20):
        refused = archive.save(if_not_archived_within="10m")
        assert refused["status_ext"] == "error:too-many-daily-captures"
        assert "5 times today" in refused["message"]
        assert "job_id" not in refused
        seen.add("status" in refused)
    assert seen == {True, False}
    archive.clock.advance(80_000)
    assert "job_id" in archive.save(if_not_archived_within="10m")


def test_a_host_may_have_a_limit_of_its_own():
    archive = Archive(msgspec.structs.replace(WIDE, per_host_per_day=2))
    submit(archive, 0)
    submit(archive, 1)
    assert archive.save(url(2))["status_ext"] == "error:too-many-daily-captures-host"
    assert "job_id" in archive.save("https://example.org/")


def test_the_bytes_of_a_day_have_a_limit():
    archive = Archive(msgspec.structs.replace(WIDE, bytes_per_day=1000))
    archive.site.put(PAGE, Page(body=b"x" * 1000))
    archive.captured()
    assert archive.save(url(9))["status_ext"] == "error:max-daily-bandwidth"


def test_status_reads_of_a_day_have_a_limit_per_request_not_per_job():
    archive = Archive(msgspec.structs.replace(STEADY, status_reads_per_day=2))
    jobs = [f"spn2-{number}" for number in range(50)]
    assert len(archive.statuses(jobs)) == 50
    archive.status("spn2-0")
    assert archive.ask("GET", "/save/status/spn2-0").status == 429
    report = archive.service.report()
    assert (report.status_reads, report.status_ids) == (3, 52)
    assert archive.user()["daily_status"] == 2


# ------------------------------------------------------------------ the target's host


def test_a_busy_host_makes_captures_begin_later_and_says_so():
    archive = Archive(msgspec.structs.replace(WIDE, host_queue_after=3))
    answers = [archive.save(url(number)) for number in range(5)]
    assert ["message" in answer for answer in answers] == [False] * 3 + [True] * 2
    assert answers[4]["message"] == "Your capture will begin in 1s."


def test_a_host_that_said_429_is_left_alone_for_ten_minutes():
    archive = Archive(msgspec.structs.replace(WIDE))
    archive.site.put(PAGE, Page(status=429))
    archive.done()
    archive.site.clear()
    paused = archive.done(url(1))
    assert paused["status_ext"] == "error:too-many-requests"
    assert "Crawling this host is paused" in paused["message"]
    archive.clock.advance(600)
    assert archive.done(url(2))["status"] == "success"


# ------------------------------------------------------------------ the firewall


def ignored(archive):
    """Run into a 429 and go on asking at once."""
    for _ in range(40):
        archive.ask("GET", f"/cdx/search/cdx?url={PAGE}")


def test_who_ignores_429_is_shut_out_for_an_hour_then_for_two():
    archive = Archive()
    for hours in (1, 2, 4):
        with pytest.raises(RefusedError):
            ignored(archive)
        archive.clock.advance(hours * 3600 - 1)
        with pytest.raises(RefusedError):
            archive.user()
        archive.clock.advance(1)
        assert archive.user()["available"] == 3
    report = archive.service.report()
    assert report.firewall_events == 3
    assert report.closed_on >= 6


def test_who_waits_after_429_is_not_shut_out():
    archive = Archive()
    for _ in range(31):
        archive.ask("GET", f"/cdx/search/cdx?url={PAGE}")
    for wait in (20, 90, 180):
        archive.clock.advance(wait)
        archive.ask("GET", f"/cdx/search/cdx?url={PAGE}")
    for _ in range(50):
        archive.status("spn2-0")  # another family: nobody was told to slow down
    assert archive.service.report().firewall_events == 0


def test_who_waits_twenty_seconds_and_is_served_again_may_go_on_at_its_pace():
    archive = Archive(msgspec.structs.replace(STEADY, slots=99))
    for number in range(8):
        submit(archive, number)
        archive.clock.advance(6)
    assert archive.service.report().rate_429 == 1
    for number in range(8, 30):
        archive.clock.advance(20 if number == 8 else 9)
        assert submit(archive, number).status == 200
    assert archive.service.report().firewall_events == 0


# ------------------------------------------------------------------ doubles


def test_a_capture_made_although_a_young_one_lives_is_counted():
    archive = Archive(msgspec.structs.replace(WIDE, outcome_cache_s=0))
    archive.captured()
    archive.captured(if_not_archived_within="1m")
    report = archive.service.report()
    assert (report.captured_twice, report.live_twice) == (1, 1)


def test_a_capture_made_anew_when_it_was_time_is_no_double_but_lives_twice():
    archive = Archive()
    archive.captured()
    archive.clock.advance(5000)
    archive.captured()
    report = archive.service.report()
    assert (report.captured_twice, report.live_twice, report.captures_made) == (0, 1, 2)
