"""`anchord show`: captures and items of a record, and when it may be called stored."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from support import stored_place as storing
from support.workplace import Workplace, sample

from anchord.app.cli import storage_record
from anchord.core.storage import CaptureChange, CaptureState, FileState, Intent
from anchord.engine import ledger


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    return place


def word(place: Workplace, number: int = 1) -> str:
    document = place.json("show", f"2507.{number:05d}")
    facet: str = document["strip"].split(" | ")[2]
    assert document["stored"]["word"] == facet
    return facet


def earns(place: Workplace, when: str) -> None:
    storing.configure(place, f'\n[archive]\nstored_when = "{when}"\n')


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("either", ("stored", "stored", "stored")),
        ("capture", ("stored", "not stored", "stored")),
        ("item", ("not stored", "stored", "stored")),
        ("both", ("not stored", "not stored", "stored")),
    ],
)
def test_the_policy_decides_which_receipt_earns_the_word(
    place: Workplace, when: str, words: tuple[str, str, str]
) -> None:
    earns(place, when)
    captured, in_item, both = words
    assert word(place) == "not stored"
    storing.store_capture(place, 1)
    assert word(place) == captured
    storing.store_item(place)
    assert word(place, 2) == in_item
    assert word(place, 1) == both


@pytest.mark.parametrize("state", [one for one in CaptureState if one is not CaptureState.STORED])
def test_no_grade_below_a_replay_is_called_stored(place: Workplace, state: CaptureState) -> None:
    storing.change(place, storing.claim(place), **{**storing.MEMENTO, "state": state})
    idle = state in (CaptureState.WAITING, CaptureState.PARKED)
    assert word(place) == ("not stored" if idle else "capturing")


def test_a_row_without_a_signed_event_is_not_called_stored(place: Workplace) -> None:
    """What the store says of itself is no receipt: only a signed event is."""
    columns = {**storing.MEMENTO, "state": CaptureState.STORED, "stored_at": 1}
    storing.change(place, storing.claim(place), **columns)
    storing.change_file(place, storing.pack(place), state=FileState.STORED, stored_at=1)
    assert word(place) == "not stored"
    assert "to be signed by the next pass" in place.run("show", "2507.00001").stdout


def test_a_capture_of_an_extra_url_does_not_earn_the_word(place: Workplace) -> None:
    extra = storing.claim(place, role="extra-1", version=7)
    with place.app() as app:
        parts, now = storing.parts_of(place, app), place.clock.now()
        columns: dict[str, Any] = {"state": CaptureState.STORED, **storing.MEMENTO}
        intent = ledger.capture_series(parts, replace(extra, **columns), now)
        app.store.storage.captures.change(
            [CaptureChange(capture=extra, columns=columns, intents=(intent,))]
        )
        ledger.append_all(parts, now)
    assert word(place) == "not stored"


def test_a_withdrawn_event_takes_the_word_back(place: Workplace) -> None:
    capture = storing.store_capture(place)
    assert word(place) == "stored"
    with place.app() as app:
        parts, now = storing.parts_of(place, app), place.clock.advance(60)
        found = app.store.ledger.get_series(capture.series_id or 0)
        gone = ledger.withdrawn_series(parts, found, "the memento does not replay", now)
        assert gone is not None
        change = CaptureChange(
            capture=capture,
            columns={"state": CaptureState.WAITING, "lost": 1},
            intents=(Intent(batch_id=capture.batch_id, series=gone),),
        )
        assert app.store.storage.captures.change([change]) == 1
        ledger.append_all(parts, now)
    assert word(place) == "not stored"
    text = place.run("show", "2507.00001").stdout
    assert "WITHDRAWN" in text
    assert "1 memento(s) of it that were stored before" in text


def test_a_capture_is_shown_with_everything_that_can_be_checked(place: Workplace) -> None:
    storing.store_capture(place, confirmations=1, confirmed_at=place.clock.now())
    (one,) = place.json("show", "2507.00001")["stored"]["captures"]
    assert one["capture_url"] == (
        "https://web.archive.org/web/20240726120000/https://arxiv.org/abs/2507.00001v1"
    )
    assert (one["captured_at"], one["http_status"]) == ("2024-07-26T12:00:00Z", 200)
    assert one["event_id"].startswith("sha256:")
    text = place.run("show", "2507.00001").stdout
    for value in (one["capture_url"], one["sha256"], one["x_archive_src"], "seen again once"):
        assert value in text


def test_the_address_of_the_very_bytes_stands_above_their_hash(place: Workplace) -> None:
    """Without `id_` the archive gives a page with its links rewritten, which hashes otherwise."""
    storing.store_capture(place)
    (one,) = place.json("show", "2507.00001")["stored"]["captures"]
    assert one["raw_url"] == one["capture_url"].replace("/20240726120000/", "/20240726120000id_/")
    lines = place.run("show", "2507.00001").stdout.splitlines()
    (above,) = [number for number, line in enumerate(lines) if one["raw_url"] in line]
    assert one["sha256"] in lines[above + 1]


def test_what_is_due_is_not_said_to_come_at_a_moment_that_is_past(place: Workplace) -> None:
    past = place.clock.now() - 600
    storing.change(place, storing.claim(place), next_attempt_at=past)
    (one,) = place.json("show", "2507.00001")["stored"]["captures"]
    text = place.run("show", "2507.00001").stdout
    assert "due; see `anchord status`" in text
    assert f"next {one['next_attempt_at']}" not in text
    assert "tried 0" not in text


def test_an_item_is_shown_with_the_address_of_the_member(place: Workplace) -> None:
    storing.store_item(place)
    document = place.json("show", "2507.00002")
    (one,) = document["stored"]["items"]
    member = document["canonical_sha256"] + ".json"
    assert one["member"] == member
    assert one["member_url"] == (
        f"https://archive.org/download/{storing.ITEM}/{storing.ZIP}/{member}"
    )
    text = place.run("show", "2507.00002").stdout
    for key in ("identifier", "file", "member_url", "sha256", "sha1", "md5", "member_sha256"):
        assert one[key] in text


def test_what_waits_says_why_and_until_when(place: Workplace) -> None:
    at = int(time.time()) + 600
    storing.change(
        place, storing.claim(place), code="not-found", note="The server cannot find it.",
        attempts=2, next_attempt_at=at,
    )  # fmt: skip
    (one,) = place.json("show", "2507.00001")["stored"]["captures"]
    assert (one["code"], one["attempts"]) == ("not-found", 2)
    text = place.run("show", "2507.00001").stdout
    assert "the page answered 404: The server cannot find it." in text
    assert f"tried 2 time(s), next {one['next_attempt_at']}" in text


def test_a_row_that_contradicts_its_signed_event_is_refused(place: Workplace) -> None:
    capture = storing.store_capture(place)
    storing.change(place, capture, sha256=bytes(32))
    ran = place.run("show", "2507.00001")
    assert ran.exit_code == 4
    assert "backup" in str(ran.exception)


CHANGED_BY_HAND = (
    "captures SET sha256 = zeroblob(32)",
    "captures SET timestamp = '20200101000000'",
    "captures SET final_url = 'https://arxiv.org/abs/2507.00002v1'",
    "captures SET size = size + 1",
    "captures SET http_status = 404",
    "captures SET x_archive_src = 'another.warc.gz'",
    "files SET sha256 = zeroblob(32)",
    "files SET sha1 = zeroblob(20)",
    "files SET md5 = zeroblob(16)",
    "files SET size = size + 1",
    "file_members SET sha256s = zeroblob(64)",
    "file_ranges SET start = 1",
    "series SET payload = replace(payload, 'replayed', 'confirmed')",
    "series SET payload = replace(payload, 'bundles-', 'another-')",
    "series SET file_id = file_id + 1 WHERE event_type = 'item_stored'",
)


@pytest.mark.parametrize("statement", CHANGED_BY_HAND)
def test_what_was_changed_by_hand_since_it_was_signed_for_is_refused(
    place: Workplace, statement: str
) -> None:
    storing.store_capture(place, 1)
    storing.store_item(place)
    assert word(place) == "stored"
    with place.app() as app, app.store._engine.begin() as connection:
        assert connection.exec_driver_sql(f"UPDATE {statement}").rowcount >= 1
    result = place.run("show", "2507.00001", "--json")
    assert result.exit_code in (1, 4), result.output
    if not statement.startswith(("captures", "files")):
        assert place.run("export", "2507.00001", "--bundle", "-o", "-").exit_code in (1, 4)


def test_parked_work_comes_with_the_way_back(place: Workplace) -> None:
    storing.change(place, storing.claim(place), state=CaptureState.PARKED, next_attempt_at=None)
    assert "anchord retry --archive" in place.run("show", "2507.00001").stdout


def test_lines_fit_80_columns_where_addresses_and_hashes_allow(place: Workplace) -> None:
    storing.store_capture(place)
    storing.store_item(place)
    for line in storage_record.lines(place.json("show", "2507.00001")["stored"], ""):
        longest = max((len(part) for part in line.split()), default=0)
        assert len(line) <= 80 or longest > 40, line


def test_verify_tells_a_storage_receipt_with_the_hash_to_compare_and_as_not_checked(
    place: Workplace,
) -> None:
    storing.store_capture(place, 1)
    storing.store_item(place)
    receipts = place.json("show", "2507.00001")["stored"]
    found = [
        one for one in place.json("verify", "2507.00001")["checks"] if one["check"] == "stored"
    ]
    assert {one["outcome"] for one in found} == {"not checked"}
    captured, in_item = sorted(found, key=lambda one: "id_" not in one["detail"])
    assert receipts["captures"][0]["sha256"] in captured["detail"]
    assert receipts["items"][0]["member_sha256"] in in_item["detail"]


def test_a_record_that_is_stored_and_not_anchored_is_pending(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.add(sample(1))
    place.step()
    storing.store_capture(place)
    assert word(place) == "stored"
    document = place.json("verify", "2507.00001", code=1)
    assert (document["result"], document["existed_before"]) == ("pending", None)
