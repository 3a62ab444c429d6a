"""Claim, submit, poll: what each answer makes of a capture, and what is never sent."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace
from support.fake_wayback import refusal
from support.passes import bare
from support.storing_captures import ARXIV, DAY, CaptureShop, papers

from anchord.core.capture import stamp_of
from anchord.core.storage import CaptureState
from anchord.core.wayback import Accepted, AccountStatus, Existing, Running
from anchord.engine.storing import UrlTemplate

Make = Callable[..., CaptureShop]

# ---------------------------------------------------------------------- claim


def test_a_record_with_a_page_gets_a_capture_and_one_without_gets_none(shop: CaptureShop) -> None:
    shop.add([*bare(3), *papers(2)])
    shop.step()
    assert [(one.role, one.url, one.contains) for one in shop.all()] == [
        ("source", "https://arxiv.example.org/abs/2507.00000v1", "2507.00000"),
        ("source", "https://arxiv.example.org/abs/2507.00001v1", "2507.00001"),
    ]
    assert shop.captures.unclaimed() is None


def test_extra_urls_are_captured_for_every_record_that_has_them(make_shop: Make) -> None:
    extra = UrlTemplate(url="https://pages.example.org/{digest}.json", plain=True)
    shop = make_shop(extra_urls=(extra,), submits_per_minute=20, parallel=9)
    shop.archive.slots, shop.archive.per_minute = 9, 20
    shop.add([*bare(1), *papers(1)])
    shop.step()
    shop.step()
    assert sorted(one.role for one in shop.all()) == ["extra-1", "extra-1", "source"]
    plain = {about[0]: about[2] for _, about in shop.archive.calls("submit")}
    assert {url.endswith(".json") for url, is_plain in plain.items() if is_plain} == {True}
    assert {url.endswith(".json") for url, is_plain in plain.items() if not is_plain} == {False}


def test_a_page_of_its_own_is_what_is_captured_also_when_it_is_named_later(
    shop: CaptureShop,
) -> None:
    """The first page that is named stays; one that is named after the look has its look, too."""
    url = "https://registry.example.org/p?id="
    named = [replace(record, url=f"{url}{n}") for n, record in enumerate([*bare(2), *papers(1)])]
    shop.add([named[0], bare(2)[1], named[2]])
    shop.step()
    assert [one.url for one in shop.all()] == [f"{url}0", f"{url}2"]
    assert {one.host for one in shop.all()} == {"registry.example.org"}
    later = [named[1], replace(named[0], url="https://elsewhere.example.org/")]
    shop.parts.store.add(later, shop.clock.now())
    shop.run_for(3_600)
    assert sorted(one.url for one in shop.all()) == [f"{url}{n}" for n in range(3)]


def test_templates_that_change_have_every_record_looked_at_again(shop: CaptureShop) -> None:
    shop.add(papers(1))
    shop.step()
    extra = UrlTemplate(url="https://pages.example.org/{number}")
    shop.configure(extra_urls=(extra,))
    shop.step()
    assert [one.role for one in shop.all()] == ["source", "extra-1"]
    shop.configure()
    shop.step()
    assert len(shop.all()) == 2


def test_records_become_rows_only_as_the_queue_needs_them(shop: CaptureShop) -> None:
    shop.add(papers(1500))
    shop.step()
    assert len(shop.all()) == 1024
    assert shop.captures.unclaimed() is not None


# ---------------------------------------------------------------------- the whole way


def test_a_record_goes_all_the_way_and_is_signed_for_once(shop: CaptureShop) -> None:
    shop.add(papers(1))
    shop.run_for(3_600)
    one = shop.one()
    assert one.state is CaptureState.STORED
    assert (one.attempts, one.adopted, one.x_archive_src) == (0, False, "spn2-test.warc.gz")
    assert shop.events() == ["capture_stored"]
    shop.run_for(40 * DAY)
    assert (shop.one().confirmations, shop.one().next_attempt_at) == (2, None)
    assert shop.events() == ["capture_stored"]
    assert shop.archive.violations == []
    assert len(shop.archive.calls("submit")) == 1
    assert shop.lane.next_moment(shop.clock.now()) is None
    assert shop.lane.unfinished() == 0


def test_no_slot_idles_while_work_waits_and_no_limit_is_met(shop: CaptureShop) -> None:
    shop.archive.took_s = 24
    shop.add(papers(28))
    begun = shop.clock.now()
    shop.run_for(1_200)
    moments = [at for at, _ in shop.archive.calls("submit")]
    # Three slots of 24 s allow 7.5 a minute, the pace 7: four rounds of seven.
    assert len(moments) == 28
    assert moments[-1] - begun <= 4 * 61 + 10
    assert shop.archive.violations == []
    assert shop.totals["stored"] == 28


def test_without_an_archive_nothing_happens(shop: CaptureShop) -> None:
    shop.add(papers(1))
    shop.storing = replace(shop.storing, captures=None)
    shop.begin()
    shop.step()
    assert (shop.all(), shop.lane.next_moment(shop.clock.now())) == ([], None)


# ---------------------------------------------------------------------- answers to a submit

SENT = [
    (Accepted(job_id="spn2-a"), "submitted", 0, None),
    (Existing(message="The same snapshot had been made"), "looking", 1, None),
    (refusal("job-failed"), "looking", 1, None),
    (refusal("no-answer"), "looking", 1, None),
    (refusal("http-520"), "looking", 1, None),
    (refusal("never-heard-of"), "looking", 1, None),
    (refusal("not-found"), "waiting", 1, None),
    (refusal("redis-error"), "waiting", 1, None),
    (refusal("invalid-url-syntax"), "parked", 1, None),
    (refusal("blocked-url"), "parked", 1, None),
    (refusal("too-many-daily-captures"), "looking", 0, None),
    (refusal("user-session-limit"), "waiting", 0, "spn"),
    (refusal("http-429"), "waiting", 0, "spn"),
    (refusal("daily-captures-limit"), "waiting", 0, "spn"),
    (refusal("offline"), "waiting", 0, "spn"),
    (refusal("connection-refused"), "waiting", 0, "spn"),
    (refusal("unauthorized-key"), "waiting", 0, "spn"),
    (refusal("blocked-client-ip"), "waiting", 0, "spn"),
    (refusal("too-many-requests"), "waiting", 0, "host:arxiv.example.org"),
    (refusal("too-many-daily-captures-host"), "waiting", 0, "host:arxiv.example.org"),
]


@pytest.mark.parametrize(("answer", "state", "attempts", "lane"), SENT)
def test_each_answer_to_a_submit_has_its_state(
    shop: CaptureShop, answer: Any, state: str, attempts: int, lane: str | None
) -> None:
    shop.add(papers(1))
    shop.archive.lie("submit", answer)
    shop.archive.weather["index"] = "offline"
    for _ in range(3):
        shop.step()
    one = shop.one()
    assert (one.state.value, one.attempts) == (state, attempts)
    paused = {
        each.name
        for each in shop.lanes.all()
        if each.stopped or (each.until is not None and each.until > shop.clock.now())
    }
    assert (lane in paused) if lane else not paused & {"spn", "host:arxiv.example.org"}
    assert len(shop.archive.calls("submit")) == 1
    assert shop.events() == []


def test_a_key_that_is_refused_stops_the_lane_and_is_tried_again_more_and_more_rarely(
    shop: CaptureShop,
) -> None:
    shop.archive.weather["submit"] = "unauthorized-key"
    shop.add(papers(2))
    shop.run_for(3_000)
    assert shop.lanes.get("spn").stopped
    shop.run_for(4 * DAY)
    submits = [moment for moment, _ in shop.archive.calls("submit")]
    assert 5 <= len(submits) <= 12
    waits = [after - before for before, after in pairwise(submits)]
    assert max(waits[-3:]) >= 12 * 3_600
    assert shop.lanes.get("spn").alert
    assert {one.attempts for one in shop.all()} == {0}


def test_a_burst_of_refused_keys_is_over_by_itself(shop: CaptureShop) -> None:
    shop.archive.weather.update(
        dict.fromkeys(("submit", "statuses", "account"), "unauthorized-key")
    )
    shop.add(papers(2))
    shop.run_for(1_800)
    assert shop.lanes.get("spn").stopped
    shop.archive.weather.clear()
    shop.run_for(3 * 3_600)
    assert shop.states() == {"stored": 2}
    lane = shop.lanes.get("spn")
    assert not lane.stopped
    assert lane.alert is None


def test_a_blocked_address_stops_the_lane_until_a_person_acts(shop: CaptureShop) -> None:
    shop.archive.weather["submit"] = "blocked-client-ip"
    shop.add(papers(2))
    shop.run_for(3 * DAY)
    assert len(shop.archive.calls("submit")) <= 5
    lane = shop.lanes.get("spn")
    assert lane.stopped
    assert lane.alert
    assert {one.attempts for one in shop.all()} == {0}
    assert shop.lane.next_moment(shop.clock.now()) is None
    shop.settle(2)
    assert shop.states() == {"stored": 2}


def test_a_paused_host_holds_up_no_other(make_shop: Make) -> None:
    other = UrlTemplate(url="https://other.example.org/{digest}")
    shop = make_shop(extra_urls=(other,))
    shop.archive.lie("submit", refusal("too-many-daily-captures-host"))
    shop.add(papers(1))
    shop.run_for(1_000)
    states = {one.role: one.state.value for one in shop.all()}
    assert states == {"source": "waiting", "extra-1": "stored"}
    shop.run_for(DAY + 3_600)
    assert shop.states() == {"stored": 2}


def test_busy_workers_in_half_of_ten_outcomes_are_the_services_trouble(shop: CaptureShop) -> None:
    shop.add(papers(20))
    ended: list[Any] = []

    def every_second(reported: Any) -> Any:
        ended.append(reported)
        return reported if len(ended) % 2 else refusal("redis-error")

    shop.archive.bend = every_second
    shop.run_for(200)
    until = shop.lanes.get("spn").until
    assert until is not None
    assert until > shop.clock.now()
    assert shop.refused["redis-error"] >= 5
    assert sum(one.attempts for one in shop.all()) == 4


def test_pages_that_are_not_there_put_up_an_alert_for_their_host(shop: CaptureShop) -> None:
    shop.archive.bend = lambda _: refusal("not-found")
    shop.add(papers(3))
    shop.run_for(300)
    alert = shop.lanes.get("host:arxiv.example.org").alert
    assert alert is not None
    assert "not-found" in alert


def test_what_never_works_is_parked_after_five_tries(shop: CaptureShop) -> None:
    shop.archive.bend = lambda _: refusal("cannot-fetch")
    shop.add(papers(1))
    shop.run_for(20 * DAY)
    assert (shop.one().state, shop.one().attempts) == (CaptureState.PARKED, 5)
    moments = [at for at, _ in shop.archive.calls("submit")]
    assert all(b - a >= 4_800 for a, b in pairwise(moments))


# ---------------------------------------------------------------------- the day


def test_the_days_share_is_used_and_nothing_beyond_it(shop: CaptureShop) -> None:
    shop.archive.daily_limit = 20
    shop.add(papers(25))
    shop.run_for(DAY - 7_200)
    assert len(shop.archive.calls("submit")) == 18
    assert {one.attempts for one in shop.all()} == {0}
    shop.run_for(9_000)
    assert len(shop.archive.calls("submit")) == 25
    assert shop.archive.violations == []


def test_a_day_that_people_used_up_is_left_to_them(shop: CaptureShop) -> None:
    shop.archive.daily_used[shop.clock.now() // DAY] = 29_000
    shop.add(papers(1))
    shop.run_for(12 * 3_600)
    assert shop.archive.calls("submit") == []
    assert 12 <= len(shop.archive.calls("account")) <= 14


def test_statuses_are_read_slower_when_the_days_reads_run_short(make_shop: Make) -> None:
    shop = make_shop(status_per_day=288)
    shop.add(papers(60))
    shop.run_for(7_200)
    reads = len(shop.archive.calls("statuses")) + len(shop.archive.calls("account"))
    assert reads <= 7_200 // 300 + 3
    assert shop.totals["submitted"] > 10


# ---------------------------------------------------------------------- jobs

REPORTS = [
    ("as asked", {}, "reported", 0, False),
    ("other scheme", {"original_url": "http://www.arxiv.example.org/abs/2507.00000v1"},
     "reported", 0, False),
    ("path only", {"original_url": "/abs/2507.00000v1"}, "reported", 0, False),
    ("favicon", {"original_url": "https://arxiv.example.org/favicon.ico"}, "waiting", 1, None),
    ("login page", {"original_url": "https://login.example.org/"}, "waiting", 1, None),
    ("404", {"http_status": 404}, "waiting", 1, None),
    ("status left out", {"http_status": None}, "reported", 0, False),
    ("a week old", {"age": 7 * DAY}, "reported", 0, True),
    ("older than may be adopted", {"age": 31 * DAY}, "waiting", 1, None),
    ("of an older job", {"original_job_id": "spn2-old"}, "reported", 0, True),
    ("yet to come", {"age": -DAY}, "waiting", 1, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "state", "attempts", "adopted"),
    [case[1:] for case in REPORTS],
    ids=[case[0] for case in REPORTS],
)
def test_a_reported_capture_is_checked_before_it_is_looked_for(
    shop: CaptureShop, change: dict[str, Any], state: str, attempts: int, adopted: bool | None
) -> None:
    changes = dict(change)
    age = changes.pop("age", None)
    if age is not None:
        changes["timestamp"] = stamp_of(shop.clock.now() - age)
    shop.archive.bend = lambda reported: replace(reported, **changes)
    shop.add(papers(1))
    shop.run_for(60)
    one = shop.one()
    assert (one.state.value, one.attempts) == (state, attempts)
    assert adopted is None or one.adopted == adopted
    if state == "waiting":
        assert one.next_attempt_at is not None
        assert one.next_attempt_at >= (one.submitted_at or 0) + 4_800


def test_an_older_capture_that_was_barred_is_not_adopted_again(shop: CaptureShop) -> None:
    old = stamp_of(shop.clock.now() - DAY)
    shop.archive.bend = lambda reported: replace(reported, timestamp=old)
    shop.add(papers(1))
    shop.step()
    shop.put(timestamp=old)
    shop.begin()
    shop.run_for(60)
    assert (shop.one().state.value, shop.one().code) == ("submitted", None) or (
        shop.one().code == "too-old"
    )


@pytest.mark.parametrize("gone", [True, False])
def test_a_job_without_an_end_is_given_up_and_the_index_asked(
    shop: CaptureShop, gone: bool
) -> None:
    shop.archive.bend = lambda _: None
    shop.add(papers(1))
    shop.run_for(850)
    assert shop.one().state is CaptureState.SUBMITTED
    if gone:
        shop.archive.held.clear()
    shop.run_for(400)
    assert shop.one().state is (CaptureState.LOOKING if gone else CaptureState.STORED)
    assert len(shop.archive.calls("submit")) == 1
    if gone:
        shop.archive.bend = None
        shop.run_for(3 * 3_600)
        assert shop.one().state is CaptureState.STORED
        assert len(shop.archive.calls("submit")) == 2


def test_a_job_is_given_up_even_while_no_status_can_be_read(shop: CaptureShop) -> None:
    shop.add(papers(1))
    shop.run_for(5)
    assert shop.one().state is CaptureState.SUBMITTED
    shop.archive.weather["statuses"] = "http-503"
    shop.run_for(1_800)
    assert shop.one().state is CaptureState.STORED


def test_an_announced_delay_lengthens_the_deadline_up_to_55_minutes(shop: CaptureShop) -> None:
    for delay_s, deadline_s in ((600, 1_500), (7_200, 3_300)):
        shop.archive.lie("submit", Accepted(job_id="spn2-q", delay_s=delay_s))
        shop.add(papers(1, first=delay_s))
        for _ in range(4):
            shop.step()
        one = shop.all()[-1]
        assert one.deadline_at == shop.clock.now() + deadline_s


def test_a_job_the_answer_leaves_out_is_asked_for_again(shop: CaptureShop) -> None:
    shop.archive.lie("statuses", {})
    shop.archive.lie("statuses", {"spn2-other": Running(job_id="spn2-other")})
    shop.add(papers(1))
    shop.run_for(1_000)
    assert shop.one().state is CaptureState.STORED


# ---------------------------------------------------------------------- adopting


def test_a_young_capture_is_adopted_instead_of_made_again(shop: CaptureShop) -> None:
    held = shop.archive.hold(
        "https://arxiv.example.org/abs/2507.00000v1", shop.clock.now() - 5 * DAY
    )
    shop.add(papers(1))
    shop.run_for(600)
    one = shop.one()
    assert (one.state, one.adopted) == (CaptureState.STORED, True)
    assert one.timestamp == held.timestamp
    assert shop.archive.daily_used.total() == 0
    assert shop.totals["adopted"] == 1


def test_two_records_of_one_page_share_its_capture(shop: CaptureShop) -> None:
    one, two = papers(2)
    shop.add([one, replace(two, source_id=one.source_id)])
    shop.run_for(2 * 3_600)
    assert shop.states() == {"stored": 2}
    assert shop.archive.daily_used.total() == 1
    assert len({capture.timestamp for capture in shop.all()}) == 1
    assert shop.events() == ["capture_stored"] * 2


def test_an_adopted_capture_that_is_no_good_is_not_adopted_twice(shop: CaptureShop) -> None:
    shop.archive.hold(
        "https://arxiv.example.org/abs/2507.00000v1", shop.clock.now() - DAY, body=b"sorry"
    )
    shop.add(papers(1))
    shop.run_for(600)
    assert (shop.one().state.value, shop.one().code) == ("waiting", "unexpected-content")
    shop.run_for(3 * 3_600)
    assert (shop.one().state, shop.one().adopted) == (CaptureState.STORED, False)


def test_a_capture_behind_a_failed_answer_is_found_and_not_made_twice(shop: CaptureShop) -> None:
    shop.archive.lie("submit", refusal("http-523"), after=True)
    shop.add(papers(1))
    shop.run_for(3_600)
    assert shop.one().state is CaptureState.STORED
    assert not shop.one().adopted
    assert len(shop.archive.calls("submit")) == 1


# ---------------------------------------------------------------------- dying


@pytest.mark.parametrize("happened", [True, False])
def test_what_a_killed_process_was_sending_is_looked_up_first(
    shop: CaptureShop, happened: bool
) -> None:
    shop.add(papers(1))
    shop.archive.lie("submit", refusal("no-answer"), after=happened)
    shop.step()
    shop.step()
    one = shop.put(state=CaptureState.SENDING, next_attempt_at=None, attempts=0, code=None)
    shop.begin()
    shop.step()
    assert shop.one().state is CaptureState.LOOKING
    shop.run_for(4 * 3_600)
    assert (shop.one().state, shop.one().attempts) == (CaptureState.STORED, 0)
    moments = [at for at, _ in shop.archive.calls("submit")]
    assert len(moments) == (1 if happened else 2)
    assert all(at >= (one.submitted_at or 0) + 4_800 for at in moments[1:])


def test_a_new_process_remembers_the_pace_of_the_old_one(shop: CaptureShop) -> None:
    shop.add(papers(40))
    shop.archive.took_s = 1
    for _ in range(30):
        for _ in range(3):
            shop.step()
        shop.begin()
        shop.clock.advance(3)
    assert len(shop.archive.calls("submit")) > 7  # judged after each step


def test_an_account_that_says_nothing_of_its_day_is_held_to_the_documented_limit(
    shop: CaptureShop,
) -> None:
    shop.archive.daily_limit = None
    shop.archive.lie("account", AccountStatus(available=3, processing=0))
    shop.add(papers(1))
    shop.run_for(1_000)
    assert shop.one().state is CaptureState.STORED


def test_an_outage_ends_when_the_system_says_so(shop: CaptureShop) -> None:
    shop.archive.weather["submit"] = "offline"
    shop.add(papers(1))
    shop.run_for(1_000)
    assert {one.attempts for one in shop.all()} == {0}
    shop.archive.weather.clear()
    shop.run_for(5_000)
    assert shop.one().state is CaptureState.STORED
    assert len(shop.archive.calls("system")) >= 1


def test_the_templates_of_a_role_that_is_configured_no_more_are_not_needed(
    make_shop: Make,
) -> None:
    shop = make_shop(extra_urls=(UrlTemplate(url="https://pages.example.org/{digest}"),), urls={})
    shop.add(papers(1))
    shop.lane._claiming.claim(shop.clock.now())
    shop.configure(extra_urls=(), urls=ARXIV)
    shop.run_for(2_000)
    assert shop.states() == {"stored": 2}
