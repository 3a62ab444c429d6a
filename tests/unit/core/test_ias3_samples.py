"""Each real answer about items, sent by a server, leads to the state that its source names."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.http_server import reply
from support.item_service import ItemService, json_reply
from support.shared import SHARED

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.item import ArchiveOrg
from anchord.core.item import FileSeen, Headroom, ItemSeen, Sent
from anchord.core.item_answer import Username
from anchord.core.item_rules import decide, over_limit
from anchord.core.storage import Refused

pytestmark = pytest.mark.shared_data

NOW, MINUTE = 1_800_000_000, 60
PREFIXES = ("ias3.", "metadata.", "tasks.")
BODY = b"a file"


def _samples() -> list[dict[str, Any]]:
    path = SHARED / "ia-samples.json"
    found = json.loads(path.read_text("utf-8")) if path.is_file() else []
    return [sample for sample in found if sample["kind"].startswith(PREFIXES)]


class Put(NamedTuple):
    """What is expected of an upload that was answered so, when it is the file's first failure."""

    code: str
    scope: str
    wait_s: int
    counted: bool
    park: bool = False
    stop: bool = False
    read_first: bool = False


class Seen(NamedTuple):
    """What is expected of an item that was described so."""

    exists: bool
    dark: bool = False


class Pending(NamedTuple):
    """What is expected of an item with pending tasks, when its tasks were described so."""

    failed: bool


class Over(NamedTuple):
    """What is expected of check_limit."""

    over: bool
    left: tuple[int, int, int]
    wait_s: int = 0


NAMED = {"metadata": {"identifier": "xfetch"}, "files": []}
EXPECTED: dict[str, Any] = {
    "ias3.check_limit.ok": Over(over=False, left=(74, 24, 782)),
    "ias3.check_limit.global_congestion": Over(over=True, left=(499, 149, 360), wait_s=15 * MINUTE),
    "ias3.put.ok": Sent(),
    "ias3.put.slowdown.simulated": Put("SlowDown", "lane", 5 * MINUTE, counted=False),
    "ias3.put.slowdown.global": Put("SlowDown-global", "lane", 15 * MINUTE, counted=False),
    "ias3.put.spam": Put("spam", "lane", 0, counted=False, stop=True),
    "ias3.put.bad_digest": Put("BadDigest", "file", 0, counted=True),
    "ias3.put.invalid_bucket": Put("InvalidBucketName", "file", 0, counted=True, park=True),
    "ias3.put.access_denied": Put("AccessDenied", "lane", 0, counted=False, stop=True),
    "ias3.put.bucket_lock": Put("OperationAborted", "file", MINUTE, counted=False, read_first=True),
    "ias3.put.internal_error": Put("InternalError", "file", MINUTE, counted=True, read_first=True),
    # Nothing is ever deleted: the answer to a DELETE is no yes to an upload.
    "ias3.delete.ok": Put("unknown-answer", "file", MINUTE, counted=True, read_first=True),
    "ias3.check_auth.ok": Username("USER"),
    "ias3.check_auth.error": Refused(code="AccessDenied", message="..."),
    "metadata.item": Seen(exists=True),
    "metadata.nonexistent": Seen(exists=False),
    "metadata.dark": Seen(exists=True, dark=True),
    # Neither is a summary of an item's tasks: what the metadata said of them stands.
    "tasks.rate_limits": Pending(failed=False),
    "tasks.jsonl_row": Pending(failed=False),
}


@pytest.fixture(scope="module")
def service_and_archive() -> Iterator[tuple[ItemService, ArchiveOrg]]:
    with ItemService() as service:
        archive = ArchiveOrg(
            Keys("ACCESS-test", "SECRET-test"),
            contact="+https://example.org",
            api_url=service.url,
            s3_url=service.url,
        )
        with contextlib.closing(archive):
            yield service, archive


def test_every_kind_has_an_expectation_and_every_expectation_a_kind() -> None:
    assert {sample["kind"] for sample in _samples()} == EXPECTED.keys()


@pytest.mark.parametrize("sample", _samples(), ids=lambda sample: sample["kind"])
def test_a_real_answer_leads_to_the_state_that_is_known_of_it(
    service_and_archive: tuple[ItemService, ArchiveOrg], tmp_path: Path, sample: dict[str, Any]
) -> None:
    service, archive = service_and_archive
    status = HTTPStatus(sample["http_status"])
    headers = "".join(
        f"{name}: {value}\r\n"
        for name, value in sample.get("headers", {}).items()
        if name != "Content-Length"
    )
    answer = reply(sample["body"].encode(), f"{status.value} {status.phrase}", headers)
    kind, expected = sample["kind"], EXPECTED[sample["kind"]]
    family = next(name for name in CHECKS if kind.startswith(name))
    CHECKS[family](service, archive, answer, expected, tmp_path)


def _put(
    service: ItemService, archive: ArchiveOrg, answer: bytes, expected: Any, folder: Path
) -> None:
    path = folder / "f.zip"
    path.write_bytes(BODY)
    md5 = hashlib.md5(BODY, usedforsecurity=False).digest()
    service.say("put", answer)
    got = archive.upload("anchord-test-0001", path.name, path, md5, {"mediatype": "data"})
    if not isinstance(expected, Put):
        assert got == expected
        return
    assert isinstance(got, Refused)
    then = decide(got, NOW, attempts=0, strikes=0)
    assert expected == Put(
        got.code,
        then.scope,
        then.at - NOW,
        then.counted,
        park=then.park,
        stop=then.stop,
        read_first=then.read_first,
    )
    assert (then.alert is not None) == (then.park or then.stop)


def _limit(
    service: ItemService, archive: ArchiveOrg, answer: bytes, expected: Over, _folder: Path
) -> None:
    service.say("limit", answer)
    got = archive.headroom("anchord-test-0001")
    assert isinstance(got, Headroom)
    assert got.over_limit is expected.over
    assert (got.account_left, got.item_left, got.global_left) == expected.left
    if got.over_limit:
        then = decide(over_limit(got), NOW, attempts=0, strikes=0)
        assert (then.scope, then.at - NOW, then.counted) == ("lane", expected.wait_s, False)


def _auth(
    service: ItemService, archive: ArchiveOrg, answer: bytes, expected: Any, _folder: Path
) -> None:
    service.say("auth", answer)
    assert archive.account() == expected


def _metadata(
    service: ItemService, archive: ArchiveOrg, answer: bytes, expected: Seen, _folder: Path
) -> None:
    service.say("metadata", answer)
    if not expected.exists:
        none = dict.fromkeys(("queued", "running", "error", "paused"), 0)
        service.say("tasks", json_reply({"success": True, "value": {"summary": none}}))
    got = archive.describe("xfetch")
    assert isinstance(got, ItemSeen)
    assert (got.exists, got.dark) == expected
    assert (got.pending_tasks, got.failed_tasks) == (False, False)
    if expected.exists and not expected.dark:
        # A real item, and somebody else's.
        assert got.owned is False
        assert got.files["xfetch.pdf"] == FileSeen(
            size=419_170,
            md5="ee68c235c2cfc1007a5ab998d21d643c",
            sha1="abceccfc74a577ed06a5aeb7bebe365e9ff8946d",
        )
        assert got.files["xfetch_files.xml"].size is None
    else:
        assert got.owned is None
        assert got.files == {}


def _tasks(
    service: ItemService, archive: ArchiveOrg, answer: bytes, expected: Pending, _folder: Path
) -> None:
    service.say("metadata", json_reply({**NAMED, "pending_tasks": True}))
    service.say("tasks", answer)
    got = archive.describe("xfetch")
    assert isinstance(got, ItemSeen)
    assert (got.pending_tasks, got.failed_tasks) == (True, expected.failed)
    assert not service.said["tasks"]


CHECKS: dict[str, Callable[..., None]] = {
    "ias3.put.": _put,
    "ias3.delete.": _put,
    "ias3.check_limit.": _limit,
    "ias3.check_auth.": _auth,
    "metadata.": _metadata,
    "tasks.": _tasks,
}
