"""`anchord status`: the facet `stored`, alerts first, and what is missing."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import stored_place as storing
from support.workplace import Workplace, sample

from anchord.core.storage import CaptureState, FileState, Lane
from anchord.core.wayback import AccountStatus
from anchord.engine.capture_lanes import SpnSeen


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2), sample(3))
    return place


def stored(place: Workplace) -> dict[str, Any]:
    found: dict[str, Any] = place.json("status")["stored"]
    return found


def text(place: Workplace) -> str:
    return place.run("status").stdout


def keys(place: Workplace, mode: int = 0o600) -> None:
    file = place.folder / "archive-keys"
    file.write_text("AbCdEfGh12345678\nZyXwVuTs87654321\n", "utf-8")
    file.chmod(mode)


def test_a_fresh_configuration_tells_all_that_is_missing(place: Workplace) -> None:
    missing = "\n".join(stored(place)["missing"])
    for key in ("credentials_file", "contact", "prefix"):
        assert f"archive.{'items.' if key == 'prefix' else ''}{key}" in missing
        assert key in text(place)


def test_what_is_set_is_not_missing(place: Workplace) -> None:
    keys(place)
    storing.configure(
        place,
        '\n[archive]\ncredentials_file = "archive-keys"\ncontact = "a@example.org"\n'
        '[archive.items]\nprefix = "example"\n',
    )
    assert stored(place)["missing"] == []


def test_keys_that_others_can_read_are_missing_with_what_to_do(place: Workplace) -> None:
    keys(place, 0o644)
    storing.configure(place, '\n[archive]\ncredentials_file = "archive-keys"\n')
    missing = "\n".join(stored(place)["missing"])
    assert "chmod 600" in missing
    assert "AbCdEfGh" not in missing


@pytest.mark.parametrize(
    ("when", "off"), [("item", "items"), ("capture", "captures"), ("both", "items")]
)
def test_a_policy_that_nothing_can_fulfil_is_said(place: Workplace, when: str, off: str) -> None:
    storing.configure(
        place, f'\n[archive]\nstored_when = "{when}"\n[archive.{off}]\nenabled = false\n'
    )
    assert any("no record can become stored" in one for one in stored(place)["missing"])


@pytest.mark.parametrize(
    ("when", "count"), [("either", 3), ("capture", 2), ("item", 2), ("both", 1)]
)
def test_records_are_counted_by_the_policy(place: Workplace, when: str, count: int) -> None:
    storing.configure(place, f'\n[archive]\nstored_when = "{when}"\n')
    storing.store_item(place, members=2)
    storing.store_capture(place, 2)
    storing.store_capture(place, 3)
    found = stored(place)["records"]
    assert found == {"stored": count, "by_capture": 2, "by_item": 2, "by_both": 1}
    assert f"{count:>12,} stored" in text(place)


def test_captures_and_bundles_are_counted_by_state(place: Workplace) -> None:
    storing.claim(place, 1)
    storing.change(place, storing.claim(place, 2), state=CaptureState.REPORTED)
    storing.change_file(place, storing.pack(place), state=FileState.SENT)
    found = stored(place)
    assert (found["captures"]["waiting"], found["captures"]["reported"]) == (1, 1)
    assert (found["bundles"]["sent"], found["unpacked"]) == (2, 1)
    shown = text(place)
    assert "1 capture(s) reported, not in the index yet" in shown
    assert "2 bundle(s) uploaded, not seen in the item yet" in shown


def test_alerts_come_first_and_say_how_to_go_on(place: Workplace) -> None:
    alert = "the keys are refused: make new ones"
    storing.put_lane(place, Lane(name="spn", stopped=True, code="unauthorized-key", alert=alert))
    assert stored(place)["alerts"] == [alert]
    first, second, *_ = text(place).splitlines()
    assert first == f"ALERT {alert}"
    assert "anchord retry --archive" in second


def test_one_alert_of_several_lanes_is_told_once(place: Workplace) -> None:
    alert = "the archive refuses connections from this address"
    for name in ("spn", "status", "index", "replay"):
        storing.put_lane(place, Lane(name=name, alert=alert))
    assert stored(place)["alerts"] == [alert]


def test_a_pause_is_told_with_its_end_and_reason_while_it_lasts(place: Workplace) -> None:
    now = int(time.time())
    storing.put_lane(place, Lane(name="index", until=now + 3_600, code="http-429", note=""))
    storing.put_lane(place, Lane(name="replay", until=now - 60, code="http-429", note=""))
    lanes = {lane["lane"]: lane for lane in stored(place)["lanes"]}
    assert lanes["index"]["paused_until"] is not None
    assert (lanes["replay"]["paused_until"], lanes["replay"]["code"]) == (None, None)
    shown = text(place)
    assert f"The Wayback index: pauses until {lanes['index']['paused_until']}" in shown
    assert "too many requests" in shown
    assert "Wayback replay: pauses" not in shown


def test_parked_work_comes_with_its_reason_and_the_way_back(place: Workplace) -> None:
    storing.change(
        place, storing.claim(place), state=CaptureState.PARKED, code="blocked-url",
        note="not taken", next_attempt_at=None,
    )  # fmt: skip
    (one,) = stored(place)["parked"]
    assert (one["what"], one["code"]) == ("capture", "blocked-url")
    assert one["name"] in text(place)
    assert "anchord retry --archive" in text(place)


def test_the_day_rate_follows_what_the_account_said(place: Workplace) -> None:
    seen = SpnSeen(account=AccountStatus(available=3, processing=0, daily_captures_limit=1_000))
    storing.put_lane(place, Lane(name="spn", seen=msgspec.json.encode(seen)))
    rate = stored(place)["rate"]
    assert (rate["captures_per_day"], rate["bound_by"]) == (900, "daily limit")
    assert rate["backlog"] == 3


def test_control_characters_of_a_service_do_not_reach_the_terminal(place: Workplace) -> None:
    storing.put_lane(
        place, Lane(name="spn", stopped=True, alert="a\x1b[2Jb", code="x", note="\x07")
    )
    assert "\x1b" not in text(place)
    assert "\x07" not in text(place)


@pytest.mark.parametrize(
    ("state", "lane"),
    [
        (CaptureState.WAITING, "spn"), (CaptureState.WAITING, "status"),
        (CaptureState.SUBMITTED, "status"), (CaptureState.REPORTED, "index"),
        (CaptureState.LOOKING, "index"), (CaptureState.INDEXED, "replay"),
    ],
)  # fmt: skip
def test_nothing_is_next_before_its_lane_is_open(
    place: Workplace, state: CaptureState, lane: str
) -> None:
    now = int(time.time())
    storing.change(place, storing.claim(place), state=state, next_attempt_at=now - 60)
    storing.put_lane(place, Lane(name=lane, until=now + 3_600, code="offline"))
    paused = {one["lane"]: one["paused_until"] for one in stored(place)["lanes"]}
    assert stored(place)["next_attempt_at"] == paused[lane]
    storing.put_lane(place, Lane(name=lane, stopped=True))
    assert stored(place)["next_attempt_at"] is None


def test_a_file_is_not_next_before_the_archive_is_read_again(place: Workplace) -> None:
    now = int(time.time())
    storing.change_file(place, storing.pack(place), state=FileState.SENT, next_attempt_at=now - 60)
    storing.put_lane(place, Lane(name="metadata", until=now + 3_600))
    (lane,) = stored(place)["lanes"]
    assert stored(place)["next_attempt_at"] == lane["paused_until"]
    assert "next pass" not in text(place).rpartition("Internet Archive")[2]


def test_records_in_no_batch_yet_are_part_of_the_backlog(place: Workplace) -> None:
    before = stored(place)["rate"]["backlog"]
    place.add(sample(4), sample(5))
    assert stored(place)["rate"]["backlog"] == before + 2


def test_records_without_a_page_are_told_where_they_cannot_become_stored(place: Workplace) -> None:
    assert stored(place)["without_page"] is None
    storing.claim(place, 3)
    assert stored(place)["without_page"] == 2
    assert "2 without a page to capture" not in text(place)
    storing.configure(place, '\n[archive]\nstored_when = "both"\n')
    assert "2 without a page to capture, so never stored" in text(place)
