"""Copies fetched again: what is gone or changed breaks the claim, what is silent breaks nothing."""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from support import audits
from support.evidence import CAPTURE

from anchord.core.event import CAPTURED, ITEM_STORED
from anchord.core.finding import Severity
from anchord.core.item import Fetched, FileSeen, ItemSeen
from anchord.core.storage import Refused
from anchord.core.wayback import Memento, NotThere
from anchord.engine.audit.online import UNREACHED, OnlineCheck
from anchord.engine.audit.outcome import Outcome

ITEM: dict[str, Any] = {
    "archive": "archive.org", "identifier": "example-2024-08-01", "file": "bundles-1-2.zip",
    "member": "ab.json", "member_sha256": "cd" * 32, "size": 1_234, "md5": "01" * 16,
    "sha1": "02" * 20, "sha256": "03" * 32,
}  # fmt: skip
MEMENTO = Memento(
    timestamp="20240801110000", http_status=200, sha256=bytes.fromhex(CAPTURE["sha256"]),
    size=4_321, x_archive_src="x.warc.gz", contains=True,
)  # fmt: skip
LISTED = FileSeen(size=1_234, md5="01" * 16, sha1="02" * 20)
SEEN = ItemSeen(
    exists=True, dark=False, files={ITEM["file"]: LISTED}, pending_tasks=False, failed_tasks=False
)
FETCHED = Fetched(size=99, sha256=bytes.fromhex("cd" * 32))
THROTTLED = Refused(code="http-429", message="less, please")


class Said:
    """Answers in order; the last one is repeated."""

    def __init__(self, *answers: Any) -> None:
        self._answers = deque(answers)
        self.asked: list[tuple[Any, ...]] = []

    def __call__(self, *about: Any) -> Any:
        self.asked.append(about)
        return self._answers.popleft() if len(self._answers) > 1 else self._answers[0]


class Mementos:
    where = "https://web.archive.org"

    def __init__(self, *answers: Any) -> None:
        self.replay = Said(*answers)


class Items:
    where = "archive.org"

    def __init__(self, *listings: Any, members: tuple[Any, ...] = (FETCHED,)) -> None:
        self.describe = Said(*listings)
        self.member = Said(*members)


def drawn(*events: tuple[str, dict[str, Any]]) -> Outcome:
    found = audits.outcome(online=max(len(events), 1))
    found.count("records_counted")
    for number, (kind, payload) in enumerate(events):
        found.offer(f"sha256:{number:064x}", kind, payload)
    return found


def check(
    found: Outcome, captures: Any = None, items: Any = None
) -> tuple[OnlineCheck, audits.AuditReport]:
    checking = OnlineCheck(found, captures, items, lambda _archive: None)
    told: list[tuple[str, int, int]] = []
    checking.run(lambda *one: told.append(one))
    assert not found.drawn or told[-1][1:] == (len(found.drawn), len(found.drawn))
    return checking, audits.report_of(found)


def codes(report: audits.AuditReport) -> list[tuple[str, str]]:
    return [(one.severity.value, one.code) for one in report.findings]


# ---------------------------------------------------------------------- mementos


def test_a_memento_that_replays_as_signed_is_counted_and_finds_nothing() -> None:
    captures = Mementos(MEMENTO)
    _, report = check(drawn((CAPTURED, CAPTURE)), captures)
    assert (report.findings, report.coverage.mementos, report.result) == ((), 1, "sound")
    assert captures.replay.asked == [("20240801110000", CAPTURE["final_url"], None)]


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (NotThere(reason="404"), "memento-lost"),
        (replace(MEMENTO, sha256=bytes(32)), "memento-changed"),
        (replace(MEMENTO, size=4_320), "memento-changed"),
        (replace(MEMENTO, http_status=404), "memento-changed"),
    ],
)
def test_a_memento_that_is_not_what_was_signed_breaks_the_claim(answer: Any, code: str) -> None:
    captures = Mementos(answer)
    _, report = check(drawn((CAPTURED, CAPTURE)), captures)
    assert codes(report) == [("broken", code)]
    assert report.coverage.mementos == 1
    assert len(captures.replay.asked) == 2
    assert CAPTURE["capture_url"] in report.findings[0].what


def test_one_bad_answer_is_no_proof_of_a_loss() -> None:
    _, report = check(drawn((CAPTURED, CAPTURE)), Mementos(NotThere(reason="a bad day"), MEMENTO))
    assert report.findings == ()


def test_a_silent_archive_breaks_nothing_and_is_not_called_good() -> None:
    checking, report = check(drawn((CAPTURED, CAPTURE)), Mementos(THROTTLED))
    assert codes(report) == [("warning", "memento-unreachable")]
    assert report.result == "not proved"
    assert report.reasons == (f"1 {UNREACHED}",)
    assert (checking.unreached, report.coverage.mementos) == (1, 0)


def test_an_archive_that_asks_for_less_is_asked_for_nothing_more() -> None:
    captures = Mementos(THROTTLED)
    checking, _ = check(drawn(*[(CAPTURED, CAPTURE)] * 5), captures)
    assert (len(captures.replay.asked), checking.unreached) == (1, 5)


def test_trouble_with_one_copy_is_no_reason_to_stop() -> None:
    captures = Mementos(Refused(code="too-large", message="too large"), MEMENTO)
    checking, report = check(drawn(*[(CAPTURED, CAPTURE)] * 3), captures)
    assert (checking.unreached, report.coverage.mementos) == (1, 2)


@pytest.mark.parametrize(
    "changes",
    [
        {"capture_url": "http://127.0.0.1:9/web/20240801110000/https://arxiv.org/abs/1"},
        {"capture_url": "https://web.archive.org/web/20240801110001/" + CAPTURE["final_url"]},
        {"final_url": "https://evil.example.org/"},
    ],
)
def test_only_the_archive_that_was_signed_for_is_asked(changes: dict[str, str]) -> None:
    captures = Mementos(MEMENTO)
    checking, _ = check(drawn((CAPTURED, {**CAPTURE, **changes})), captures)
    assert (checking.unreached, captures.replay.asked) == (1, [])


def test_an_event_that_lacks_a_field_is_not_called_good() -> None:
    payload = {key: value for key, value in CAPTURE.items() if key != "sha256"}
    checking, report = check(drawn((CAPTURED, payload)), Mementos(MEMENTO))
    assert checking.unreached == 1
    assert "lacks a field" in report.findings[0].what


# ---------------------------------------------------------------------- items


def test_a_file_that_is_listed_and_downloads_as_signed_finds_nothing() -> None:
    items = Items(SEEN)
    _, report = check(drawn((ITEM_STORED, ITEM)), items=items)
    assert (report.findings, report.coverage.items) == ((), 1)
    assert items.member.asked == [(ITEM["identifier"], ITEM["file"], ITEM["member"])]


def other(**changes: Any) -> ItemSeen:
    return replace(SEEN, files={ITEM["file"]: replace(LISTED, **changes)})


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        (replace(SEEN, dark=True, files={}), "item-dark"),
        (replace(SEEN, exists=False, files={}), "item-lost"),
        (replace(SEEN, files={}), "item-file-lost"),
        (other(size=1), "item-file-changed"),
        (other(md5="00" * 16), "item-file-changed"),
        (other(sha1=None), "item-file-changed"),
    ],
)
def test_a_file_that_is_not_listed_as_signed_breaks_the_claim(seen: ItemSeen, code: str) -> None:
    items = Items(seen)
    _, report = check(drawn((ITEM_STORED, ITEM)), items=items)
    assert codes(report) == [("broken", code)]
    assert (len(items.describe.asked), items.member.asked) == (2, [])


@pytest.mark.parametrize(
    ("said", "code"),
    [(None, "item-member-lost"), (replace(FETCHED, sha256=bytes(32)), "item-member-changed")],
)
def test_a_member_that_is_not_what_was_signed_breaks_the_claim(said: Any, code: str) -> None:
    _, report = check(drawn((ITEM_STORED, ITEM)), items=Items(SEEN, members=(said,)))
    assert codes(report) == [("broken", code)]


def test_a_listing_that_tasks_may_change_proves_no_loss() -> None:
    seen = replace(SEEN, files={}, pending_tasks=True)
    _, report = check(drawn((ITEM_STORED, ITEM)), items=Items(seen))
    assert codes(report) == [("warning", "item-unreachable")]


def test_an_item_is_read_once_for_files_that_follow_each_other() -> None:
    items = Items(SEEN)
    _, report = check(drawn(*[(ITEM_STORED, ITEM)] * 4), items=items)
    assert (len(items.describe.asked), len(items.member.asked)) == (1, 4)
    assert report.coverage.items == 4


def test_one_silent_archive_does_not_keep_the_other_from_being_asked() -> None:
    found = drawn((CAPTURED, CAPTURE), (ITEM_STORED, ITEM))
    checking, report = check(found, Mementos(THROTTLED), Items(SEEN))
    assert (checking.unreached, report.coverage.items) == (1, 1)


def test_every_finding_says_what_to_do() -> None:
    _, report = check(
        drawn((CAPTURED, CAPTURE), (ITEM_STORED, ITEM)), Mementos(NotThere(reason="x")),
        Items(THROTTLED),
    )  # fmt: skip
    assert {one.severity for one in report.findings} == {Severity.BROKEN, Severity.WARNING}
    assert all(one.todo and one.subject.startswith("sha256:") for one in report.findings)


def test_pauses_are_asked_for_before_every_call() -> None:
    paused: list[str] = []
    found = drawn((CAPTURED, CAPTURE), (ITEM_STORED, ITEM))
    OnlineCheck(found, Mementos(MEMENTO), Items(SEEN), paused.append).run(lambda *_: None)
    assert sorted(paused) == ["items", "items", "wayback"]


def test_what_was_drawn_is_json_as_events_have_it() -> None:
    found = drawn((CAPTURED, msgspec.json.decode(msgspec.json.encode(CAPTURE))))
    _, report = check(found, Mementos(MEMENTO))
    assert report.coverage.mementos == 1
