"""Index, replay, confirm, lose: only what replays is signed for, and only as long as it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace
from support.fake_wayback import refusal
from support.parties import FakeSigner
from support.storing_captures import DAY, CaptureShop, papers

from anchord.adapters.store.schema import captures
from anchord.core.capture import moment_of, stamp_of
from anchord.core.storage import CaptureState
from anchord.core.wayback import Existing, IndexPage, IndexRow
from anchord.engine import ledger
from anchord.errors import ConfigError, FatalError

Make = Callable[..., CaptureShop]


def reported(shop: CaptureShop, count: int = 1) -> CaptureShop:
    """Bring captures to where the service has reported success."""
    shop.add(papers(count))
    shop.run_for(60 * count)
    assert set(shop.states()) == {"reported"}
    return shop


def stored(shop: CaptureShop) -> CaptureShop:
    """Bring a capture to where it is stored and signed for."""
    shop.add(papers(1))
    shop.run_for(1_000)
    assert shop.one().state is CaptureState.STORED
    return shop


# ---------------------------------------------------------------------- index


def test_a_success_without_a_snapshot_is_never_signed_for(shop: CaptureShop) -> None:
    reported(shop)
    first = shop.one()
    shop.archive.held.clear()
    shop.run_for(259_000)
    assert (shop.one().state, shop.one().attempts) == (CaptureState.REPORTED, 0)
    looks = [at - (first.reported_at or 0) for at, _ in shop.archive.calls("index")]
    for look, planned in zip(looks, (300, 1_800, 10_800, 43_200, 86_400), strict=True):
        assert planned <= look <= planned * 1.5 + 600
    shop.run_for(DAY)
    assert shop.events() == ["capture_stored"]  # of the second capture
    assert shop.one().timestamp != first.timestamp


def test_the_submit_after_a_memento_that_never_came_asks_for_a_new_one(shop: CaptureShop) -> None:
    reported(shop)
    first = moment_of(shop.one().timestamp or "")
    shop.archive.held.clear()
    shop.run_for(5 * DAY)
    at, (_, within_s, _) = shop.archive.calls("submit")[1]
    assert within_s == at - first - 1


def test_a_late_index_is_waited_for(shop: CaptureShop) -> None:
    shop.archive.lag_s = 20 * 3_600
    shop.add(papers(1))
    shop.run_for(30 * 3_600)
    assert shop.one().state is CaptureState.STORED
    assert len(shop.archive.calls("submit")) == 1


def test_another_captures_row_is_not_taken_for_this_one(shop: CaptureShop) -> None:
    reported(shop)
    one = shop.one()
    (held,) = shop.archive.held
    held.moment += 1
    shop.run_for(1_000)
    assert shop.one().state is CaptureState.REPORTED
    assert shop.archive.calls("replay") == []
    held.moment -= 1
    held.url = one.url.replace("v1", "v2")
    shop.run_for(10_000)
    assert shop.one().state is CaptureState.REPORTED


@pytest.mark.parametrize("moment_s", [-31 * DAY - 120, 30 * DAY, 365 * DAY])
def test_a_row_outside_of_the_time_that_was_asked_for_is_not_adopted(
    shop: CaptureShop, moment_s: int
) -> None:
    url = "https://arxiv.example.org/abs/2507.00000v1"
    strange = IndexRow("", stamp_of(shop.clock.now() + moment_s), url, "text/html", "200", "", "")
    shop.archive.lie("submit", Existing(message="The same snapshot had been made"))
    shop.archive.lie("index", IndexPage(rows=(strange,)))
    shop.add(papers(1))
    shop.run_for(60)
    assert shop.archive.calls("index")
    assert shop.one().state is CaptureState.LOOKING
    shop.run_for(3 * 3_600)
    assert shop.one().state is CaptureState.STORED
    assert shop.one().timestamp != strange.timestamp


@pytest.mark.parametrize(
    "final_url",
    [
        "https://arxiv.example.org/abs/2507.00009v1",
        "https://arxiv.example.org/abs/2507.00000v2",
        "https://arxiv.example.org/login?next=/abs/2507.00000",
        "https://other.example.org/abs/2507.00000v1",
    ],
)
def test_a_row_that_leads_to_another_page_since_is_not_signed_for(
    shop: CaptureShop, final_url: str
) -> None:
    reported(shop)
    shop.put(state=CaptureState.INDEXED, final_url=final_url, next_attempt_at=shop.clock.now())
    shop.archive.hold(final_url, moment_of(shop.one().timestamp or ""), body=b"names 2507.00000")
    shop.run_for(60)
    assert shop.archive.calls("replay")
    assert (shop.one().state, shop.one().code) == (CaptureState.WAITING, "unexpected-url")
    assert shop.events() == []


def test_a_row_that_names_the_leaf_of_another_record_is_not_signed_for(shop: CaptureShop) -> None:
    reported(shop, 2)
    with shop.parts.store._engine.begin() as connection:  # type: ignore[attr-defined]
        connection.exec_driver_sql("UPDATE captures SET place = 1 - place")
    with pytest.raises(FatalError, match="names leaf"):
        shop.run_for(3_600)
    assert shop.events() == []


def test_a_row_brought_back_by_hand_is_not_signed_for_twice(shop: CaptureShop) -> None:
    stored(shop)
    shop.put(state=CaptureState.INDEXED, next_attempt_at=shop.clock.now())
    shop.judge = lambda: None  # type: ignore[method-assign]
    with pytest.raises(FatalError, match="signed for already"):
        shop.run_for(600)
    assert shop.events() == ["capture_stored"]


@pytest.mark.parametrize("other", [1, 2])
def test_a_loss_withdraws_the_captures_own_event_and_no_other(
    shop: CaptureShop, other: int
) -> None:
    shop.add(papers(2))
    shop.run_for(3_600)
    one, two = shop.all()
    assert (one.state, two.state) == (CaptureState.STORED, CaptureState.STORED)
    with shop.parts.store._engine.begin() as connection:  # type: ignore[attr-defined]
        named = two.series_id if other == 1 else one.series_id
        connection.execute(sa.update(captures).values(series_id=named))
    shop.archive.held.clear()
    with pytest.raises(FatalError, match="about something else"):
        shop.run_for(5 * DAY)
    store = shop.parts.store
    for row in store.ledger.of_record(one.record_id if other == 1 else two.record_id):  # type: ignore[attr-defined]
        assert store.ledger.get_series(row.series_id).event_type == "capture_stored"


def test_neighbours_are_asked_for_with_one_question(shop: CaptureShop) -> None:
    shop.archive.slots, shop.archive.per_minute = 3, 7
    shop.add(papers(12))
    shop.run_for(1_500)
    assert shop.states() == {"stored": 12}
    questions = [about for _, about in shop.archive.calls("index")]
    assert any(prefix for *_, prefix in questions)
    assert len(questions) <= 6


def test_pages_a_big_answer_does_not_reach_are_asked_for_alone(shop: CaptureShop) -> None:
    shop.archive.page_rows = 1
    shop.add(papers(12))
    shop.run_for(3_600)
    assert shop.states() == {"stored": 12}
    assert {one.checks for one in shop.all()} == {0}


def test_a_listed_error_page_is_no_capture(shop: CaptureShop) -> None:
    reported(shop)
    shop.archive.held[0].status = 404
    shop.run_for(600)
    assert (shop.one().state.value, shop.one().code) == ("waiting", "unexpected-status")
    assert shop.lanes.get("host:arxiv.example.org").alert
    assert shop.events() == []


# ---------------------------------------------------------------------- replay


def test_a_listed_capture_that_does_not_replay_is_looked_for_again(shop: CaptureShop) -> None:
    reported(shop)
    shop.archive.held[0].replays_at += 5_000
    shop.run_for(900)
    assert (shop.one().state, shop.one().checks) == (CaptureState.INDEXED, 1)
    assert shop.events() == []
    shop.run_for(6 * 3_600)
    assert shop.one().state is CaptureState.STORED


def test_bytes_without_the_records_name_are_an_error_page(shop: CaptureShop) -> None:
    shop.archive.page = lambda _: (200, b"Attention required! Are you a robot?")
    shop.add(papers(1))
    shop.run_for(1_000)
    assert (shop.one().state.value, shop.one().code) == ("waiting", "unexpected-content")
    assert shop.one().attempts == 1
    assert shop.events() == []
    assert "unexpected-content" in (shop.lanes.get("host:arxiv.example.org").alert or "")


def test_a_replayed_answer_of_another_moment_or_of_no_source_is_not_there(
    shop: CaptureShop,
) -> None:
    reported(shop)
    one = shop.one()
    for change in ({"timestamp": "20200101000000"}, {"x_archive_src": ""}):
        truth = shop.archive._replay

        def told(change: Any = change, truth: Any = truth) -> Any:
            return replace(truth(one.timestamp, one.final_url, None), **change)

        shop.archive.lie("replay", told)
    shop.run_for(3_000)
    assert (shop.one().state, shop.one().checks) == (CaptureState.INDEXED, 2)
    shop.run_for(DAY)
    assert shop.one().state is CaptureState.STORED


@pytest.mark.parametrize("code", ["excluded", "too-large"])
def test_a_page_the_archive_will_not_show_is_left_to_a_person(shop: CaptureShop, code: str) -> None:
    shop.archive.weather["replay"] = code
    shop.add(papers(1))
    shop.run_for(1_000)
    assert (shop.one().state.value, shop.one().code) == ("parked", code)


# ---------------------------------------------------------------------- readers that refuse


@pytest.mark.parametrize(("method", "lane"), [("index", "index"), ("replay", "replay")])
@pytest.mark.parametrize("code", ["http-429", "http-503", "offline", "no-answer"])
def test_a_reader_that_is_refused_waits_and_no_capture_is_blamed(
    shop: CaptureShop, method: str, lane: str, code: str
) -> None:
    shop.archive.lie(method, refusal(code))
    reported(shop)
    before = shop.one()
    while not shop.archive.calls(method):
        shop.run_for(60)
    refused_at = shop.archive.calls(method)[0][0]
    shop.run_for(4_000)
    assert shop.one().state is CaptureState.STORED
    assert (shop.one().attempts, shop.one().lost) == (0, 0)
    assert shop.one().timestamp == before.timestamp
    again = [at for at, _ in shop.archive.calls(method)][1]
    assert again - refused_at >= 60
    assert shop.lanes.get(lane).strikes == 0


def test_a_firewall_keeps_every_lane_away_for_an_hour(shop: CaptureShop) -> None:
    shop.archive.lie("index", refusal("connection-refused"))
    shop.add(papers(20))
    shop.run_for(3_000)
    refused_at = shop.archive.calls("index")[0][0]
    assert not [name for at, name, _ in shop.archive.log if at > refused_at]
    assert shop.lanes.get("spn").alert
    shop.run_for(3_600)
    assert shop.totals["stored"] >= 10
    assert shop.lanes.get("index").alert is None


def test_a_reader_that_is_throttled_for_hours_rests_and_goes_on_by_itself(
    shop: CaptureShop,
) -> None:
    shop.archive.weather["index"] = "http-429"
    shop.add(papers(1))
    shop.run_for(2 * DAY)
    assert 8 < len(shop.archive.calls("index")) <= 8 + 2 * 4
    assert "too many requests" in (shop.lanes.get("index").alert or "")
    assert shop.one().attempts == 0
    shop.archive.weather.clear()
    shop.run_for(DAY)
    assert shop.one().state is CaptureState.STORED
    assert shop.lanes.get("index").alert is None


def test_a_page_that_breaks_the_index_does_not_hold_up_the_others(shop: CaptureShop) -> None:
    index = shop.archive._index

    def breaks(url: str, *rest: Any) -> Any:
        return refusal("http-504") if url.endswith("00000v1") else index(url, *rest)

    shop.archive._index = breaks  # type: ignore[method-assign]
    shop.add(papers(3))
    shop.run_for(3_600)
    assert shop.states() == {"reported": 1, "stored": 2}


# ---------------------------------------------------------------------- confirm and lose


def test_confirmations_come_after_a_day_and_a_month(shop: CaptureShop) -> None:
    stored(shop)
    at = shop.one().stored_at or 0
    shop.run_for(25 * 3_600)
    assert shop.one().confirmations == 1
    assert (shop.one().confirmed_at or 0) - at >= DAY
    shop.run_for(31 * DAY)
    assert (shop.one().confirmations, shop.one().next_attempt_at) == (2, None)
    assert shop.totals["confirmed"] == 2


@pytest.mark.parametrize("other_bytes", [True, False])
def test_a_lost_memento_is_withdrawn_and_the_page_captured_again(
    shop: CaptureShop, other_bytes: bool
) -> None:
    stored(shop)
    first = shop.one()
    if other_bytes:
        shop.archive.held[0].body = b"2507.00000, and something else"
    else:
        shop.archive.held.clear()
    shop.run_for(DAY + 20 * 3_600)
    assert shop.events() == ["capture_stored"]
    shop.run_for(10 * 3_600)
    assert shop.events() == ["capture_stored", "facet_withdrawn", "capture_stored"]
    again = shop.one()
    assert (again.lost, again.attempts, again.state) == (1, 0, CaptureState.STORED)
    assert (again.timestamp or "") > (first.timestamp or "")
    assert not again.adopted
    assert shop.totals["lost"] == 1


def test_the_same_bytes_with_another_status_confirm_nothing(shop: CaptureShop) -> None:
    one = (stored(shop)).one()
    told = shop.archive.replay(one.timestamp or "", one.url, None)
    shop.archive.lie("replay", replace(told, http_status=404))
    shop.run_for(DAY + 600)
    assert (shop.one().confirmations, shop.one().code) == (0, "memento-missing")
    assert "status 404" in (shop.one().note or "")
    shop.run_for(DAY)
    assert (shop.one().confirmations, shop.one().lost) == (1, 0)


def test_a_memento_that_is_away_for_a_day_is_not_lost(shop: CaptureShop) -> None:
    stored(shop)
    (held,) = shop.archive.held
    held.listed_at = held.replays_at = shop.clock.now() + DAY + 8 * 3_600
    shop.run_for(4 * DAY)
    assert (shop.one().confirmations, shop.one().checks, shop.one().lost) == (1, 0, 0)
    assert shop.events() == ["capture_stored"]


def test_a_memento_lost_before_its_event_was_signed_leaves_no_event(shop: CaptureShop) -> None:
    shop.add(papers(1))
    for _ in range(200):  # steps without the ledger
        now = shop.clock.now()
        shop.calls.collect(now)
        shop.lane.step(now, shop.calls)
        if not shop.calls.busy():
            shop.clock.moment = max(shop.lane.next_moment(now) or now, now + 1)
        if shop.one().state is CaptureState.STORED:
            shop.archive.held.clear()
        if shop.one().lost:
            break
    assert shop.one().lost == 1
    shop.judge()
    shop.run_for(2 * 3_600)
    assert shop.events() == ["capture_stored"]
    assert shop.one().state is CaptureState.STORED


def test_an_event_a_new_key_signed_is_withdrawn_like_any_other(shop: CaptureShop) -> None:
    """The key went between the replay and its event; what the new one signed is the capture's."""
    reported(shop)
    with pytest.MonkeyPatch.context() as before_signing:
        before_signing.setattr(ledger, "append_all", lambda _parts, _now: 0)
        shop.run_for(1_000)
    assert shop.one().state is CaptureState.STORED
    begun_with = shop.one().series_id

    def gone(key_id: str, _at: int) -> Any:
        raise ConfigError(f"{key_id} is revoked")

    shop.parts = replace(shop.parts, signer=FakeSigner(key_id="new-key"), signer_for=gone)
    shop.step()
    assert shop.events() == ["capture_stored"]
    assert shop.one().series_id not in (None, begun_with)
    shop.archive.held.clear()
    shop.run_for(5 * DAY)
    assert shop.events()[:2] == ["capture_stored", "facet_withdrawn"]
    assert shop.events().count("capture_stored") - shop.events().count("facet_withdrawn") <= 1


def test_a_site_that_becomes_excluded_is_treated_as_lost_and_then_parked(
    shop: CaptureShop,
) -> None:
    stored(shop)
    shop.archive.weather["replay"] = "excluded"
    shop.run_for(4 * DAY)
    assert shop.events() == ["capture_stored", "facet_withdrawn"]
    assert shop.one().state is CaptureState.PARKED


def test_first_replays_go_before_confirmations(make_shop: Make) -> None:
    shop = make_shop(replays_per_minute=1, index_per_minute=60)
    shop.add(papers(6))
    shop.run_for(1_500)
    assert shop.states() == {"stored": 6}
    shop.clock.advance(DAY - 800)
    shop.add(papers(3, first=100))
    shop.run_for(2 * 3_600)
    new = {url for _, (_, url) in shop.archive.calls("replay")[6:] if "2507.001" in url}
    assert len(new) == 3
    assert shop.states() == {"stored": 9}
    assert shop.totals["confirmed"] == 6
