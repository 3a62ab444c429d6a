"""Each real answer of the Wayback Machine, as it comes over HTTP, leads to the state it stands for.

The samples of archive.org's items are read in test_ias3_samples.py; a kind that neither file knows
fails here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
from support.http_server import ScriptedServer, always, reply
from support.shared import SHARED

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.wayback import Wayback
from anchord.core.capture import read_statuses, read_submit
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    Existing,
    IndexPage,
    Memento,
    NotThere,
    Reported,
    Running,
    SystemStatus,
)

pytestmark = pytest.mark.shared_data

SUBMIT, STATUS, ACCOUNT, SYSTEM, INDEX, REPLAY = (
    "submit", "status", "account", "system", "index", "replay",
)  # fmt: skip

EXPECTED: dict[str, tuple[str, type | str]] = {
    "spn2.submit.accepted.uuid_old": (SUBMIT, Accepted),
    "spn2.submit.accepted": (SUBMIT, Accepted),
    "spn2.submit.duplicate_with_job": (SUBMIT, Accepted),
    "spn2.submit.duplicate_null_job": (SUBMIT, Existing),
    "spn2.submit.duplicate_html": (SUBMIT, Existing),
    "spn2.submit.accepted_html": (SUBMIT, "unknown-answer"),
    "spn2.submit.error.too_many_daily_captures": (SUBMIT, "too-many-daily-captures"),
    "spn2.submit.error.too_many_daily_captures.message": (SUBMIT, "too-many-daily-captures"),
    "spn2.submit.error.invalid_host": (SUBMIT, "invalid-host-resolution"),
    "spn2.submit.error.invalid_url": (SUBMIT, "invalid-url-syntax"),
    "spn2.submit.error.user_session_limit": (SUBMIT, "user-session-limit"),
    "spn2.submit.error.daily_user_limit.message": (SUBMIT, "daily-captures-limit"),
    "spn2.submit.error.daily_anonymous_limit.message": (SUBMIT, "daily-captures-limit"),
    "spn2.submit.error.host_limit.message": (SUBMIT, "too-many-daily-captures-host"),
    "spn2.submit.error.blocked_url.message": (SUBMIT, "blocked-url"),
    "spn2.submit.error.ip_block.message": (SUBMIT, "blocked-client-ip"),
    "spn2.submit.unauthorized": (SUBMIT, "unauthorized-key"),
    "spn2.submit.rate_limited": (SUBMIT, "http-429"),
    "spn2.submit.rate_limited.page_text": (SUBMIT, "http-429"),
    "spn2.submit.bad_gateway": (SUBMIT, "http-502"),
    "spn2.submit.offline": (SUBMIT, "offline"),
    "spn2.status.pending": (STATUS, Running),
    "spn2.status.pending.doc": (STATUS, Running),
    "spn2.status.success": (STATUS, Reported),
    "spn2.status.success.measured": (STATUS, Reported),
    "spn2.status.success.doc": (STATUS, Reported),
    "spn2.status.success.first_archive": (STATUS, Reported),
    "spn2.status.success.outlinks_availability": (STATUS, "unknown-answer"),
    "spn2.status.error.invalid_host": (STATUS, "invalid-host-resolution"),
    "spn2.status.error.not_found": (STATUS, "not-found"),
    "spn2.status.error.bad_gateway.message": (STATUS, "bad-gateway"),
    "spn2.status.error.too_many_requests.message": (STATUS, "too-many-requests"),
    "spn2.status.error.job_failed.message": (STATUS, "job-failed"),
    "spn2.status.batch": (STATUS, dict),
    "spn2.user_status": (ACCOUNT, AccountStatus),
    "spn2.user_status.doc": (ACCOUNT, AccountStatus),
    "spn2.system_status.ok": (SYSTEM, SystemStatus),
    "spn2.system_status.overloaded": (SYSTEM, SystemStatus),
    "cdx.json": (INDEX, IndexPage),
    "cdx.json.resume_key": (INDEX, IndexPage),
    "cdx.text": (INDEX, IndexPage),
    "cdx.empty.json": (INDEX, IndexPage),
    "cdx.timeout": (INDEX, "http-504"),
    "cdx.rate_limited": (INDEX, "http-429"),
    # Nobody asks it: it misses what is there. Read as an index it must not say "no capture".
    "availability.miss": (INDEX, "unknown-answer"),
    "replay.id_.exact": (REPLAY, Memento),
    "replay.id_.spn2_src": (REPLAY, NotThere),
    "replay.id_.redirect_to_other_capture": (REPLAY, NotThere),
    "replay.id_.archived_redirect": (REPLAY, Memento),
    "replay.not_archived": (REPLAY, NotThere),
}
OF_ITEMS = {
    "ias3.check_limit.ok", "ias3.check_limit.global_congestion", "ias3.put.ok",
    "ias3.put.slowdown.simulated", "ias3.put.slowdown.global", "ias3.put.spam",
    "ias3.put.bad_digest", "ias3.put.invalid_bucket", "ias3.put.access_denied",
    "ias3.put.bucket_lock", "ias3.put.internal_error", "ias3.delete.ok", "ias3.check_auth.ok",
    "ias3.check_auth.error", "metadata.item", "metadata.nonexistent", "metadata.dark",
    "tasks.rate_limits", "tasks.jsonl_row",
}  # fmt: skip
REPLAYED = {
    "replay.id_.exact": ("20171124151315", "https://www.fws.gov/birds/"),
    "replay.id_.archived_redirect": ("20180808094144", "https://www.epa.gov/ghgreporting/"),
}
JOBS = ("spn2-bbb", "spn2-ccc", "spn2-aaa")
FRAMING = {"content-length", "transfer-encoding", "connection"}


def _samples() -> list[dict[str, Any]]:
    file = SHARED / "ia-samples.json"
    return json.loads(file.read_text("utf-8")) if file.exists() else []


def _read_here(sample: dict[str, Any]) -> bool:
    return sample["kind"] not in OF_ITEMS


def _fields(sample: dict[str, Any]) -> dict[str, Any]:
    """Return the sample's body as a JSON object, empty when it is none."""
    try:
        value = json.loads(sample["body"])
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _script_of(sample: dict[str, Any]) -> bytes:
    status = sample["http_status"]
    headers = "".join(
        f"{name}: {value}\r\n"
        for name, value in sample.get("headers", {}).items()
        if name.lower() not in FRAMING
    )
    return reply(sample["body"].encode(), f"{status} {HTTPStatus(status).phrase}", headers)


def _url(sample: dict[str, Any]) -> str:
    url = _fields(sample).get("url", "")
    return url if url.startswith("http") else "https://example.com/"


def _job(sample: dict[str, Any]) -> str:
    return _fields(sample).get("job_id", "spn2-the-only-one")


def _statuses(sample: dict[str, Any], archive: Wayback) -> object:
    if sample["kind"].endswith(".batch"):
        return archive.statuses(JOBS)
    found = archive.statuses([_job(sample)])
    return found if isinstance(found, Refused) else found[_job(sample)]


def _replay(sample: dict[str, Any], archive: Wayback) -> object:
    timestamp, url = REPLAYED.get(sample["kind"], ("20171124000000", "https://example.com/"))
    return archive.replay(timestamp, url, None)


CALLS: dict[str, Callable[[dict[str, Any], Wayback], object]] = {
    SUBMIT: lambda sample, archive: archive.submit(_url(sample), within_s=None, plain=False),
    STATUS: _statuses,
    ACCOUNT: lambda _, archive: archive.account(),
    SYSTEM: lambda _, archive: archive.system(),
    INDEX: lambda _, archive: archive.index("https://example.com/", first="1996", last="2026"),
    REPLAY: _replay,
}
"""How to ask for what a sample is the answer to."""


def _answer(sample: dict[str, Any]) -> Any:
    with ScriptedServer(always(_script_of(sample))) as server:
        keys = Keys("accessKEY0123456", "secretKEY9876543")
        archive = Wayback(server.url, keys, contact="https://example.org/", timeout_s=5)
        return CALLS[EXPECTED[sample["kind"]][0]](sample, archive)


def test_every_kind_of_sample_is_expected_somewhere(shared_data: Path) -> None:
    kinds = {sample["kind"] for sample in _samples()}
    assert len(kinds) >= 60
    assert kinds == EXPECTED.keys() | OF_ITEMS


@pytest.mark.parametrize("sample", [*filter(_read_here, _samples())], ids=lambda s: s["kind"])
def test_each_answer_leads_to_its_state(sample: dict[str, Any]) -> None:
    expected = EXPECTED[sample["kind"]][1]
    answer = _answer(sample)
    if isinstance(expected, str):
        assert isinstance(answer, Refused)
        assert answer.code == expected
        assert answer.message
        assert answer.retry_after_s is None
    else:
        assert type(answer) is expected


@pytest.mark.parametrize(
    "sample",
    [sample for sample in _samples() if sample["kind"].endswith(".message")],
    ids=lambda s: s["kind"],
)
def test_a_message_means_the_same_wherever_it_stands(sample: dict[str, Any]) -> None:
    expected, text = EXPECTED[sample["kind"]][1], sample["body"]
    json_type, url = {"Content-Type": "application/json"}, "https://example.com/"
    for fields in ({}, {"status": "error"}, {"url": url, "job_id": None}):
        body = json.dumps({"message": text, **fields}).encode()
        refused = read_submit(200, json_type, body, url)
        assert isinstance(refused, Refused)
        assert refused.code == expected
    job = json.dumps([{"status": "error", "job_id": "a", "message": text}]).encode()
    found = read_statuses(200, json_type, job, ["a"])
    assert isinstance(found, dict)
    assert isinstance(failed := found["a"], Refused)
    assert (failed.code, failed.message) == (expected, text.replace("<url> ", ""))
    page = f"<html><body><p>{text}</p></body></html>".encode()
    shown = read_submit(200, {"Content-Type": "text/html"}, page, url)
    assert isinstance(shown, Refused)
    assert shown.code == expected


def _only(kind: str) -> Any:
    return [_answer(sample) for sample in _samples() if sample["kind"] == kind]


def test_what_the_answers_say_is_kept() -> None:
    (measured,) = _only("spn2.status.success.measured")
    assert (measured.timestamp, measured.http_status) == ("20260827142259", 200)
    assert measured.original_url == "https://dserver.bundestag.de/btp/21/21089.pdf"
    first, second = _only("spn2.user_status")
    assert (first.available, first.processing, first.daily_captures_limit) == (3, 0, 30_000)
    assert (second.daily_captures, second.daily_captures_limit) == (10_199, 10_000)
    (documented,) = _only("spn2.user_status.doc")
    assert (documented.available, documented.daily_captures) == (12, None)
    (well,) = _only("spn2.system_status.ok")
    (slow,) = _only("spn2.system_status.overloaded")
    assert (well.ok, slow.ok) == (True, False)
    assert "overloaded" in slow.message


def test_a_batch_is_told_apart_by_job() -> None:
    (batch,) = _only("spn2.status.batch")
    assert isinstance(batch["spn2-aaa"], Reported)
    assert batch["spn2-bbb"].code == "not-found"
    assert batch["spn2-ccc"] == Running(job_id="spn2-ccc")


def test_rows_of_the_index_are_read_in_both_forms() -> None:
    (rows,) = _only("cdx.json")
    assert [row.timestamp for row in rows.rows] == ["19970126045828", "19971011050034"]
    assert rows.resume is None
    (resumed,) = _only("cdx.json.resume_key")
    assert (len(resumed.rows), resumed.resume) == (1, "org%2Carchive%29%2F+19980109140106%21")
    (text,) = _only("cdx.text")
    assert [row.statuscode for row in text.rows] == ["200", "301"]
    assert _only("cdx.empty.json") == [IndexPage(rows=())]


def test_an_archived_redirect_is_content_and_another_capture_is_not() -> None:
    (redirect,) = _only("replay.id_.archived_redirect")
    assert (redirect.http_status, redirect.size) == (301, 0)
    (other,) = _only("replay.id_.redirect_to_other_capture")
    assert "20171124151315" in other.reason
