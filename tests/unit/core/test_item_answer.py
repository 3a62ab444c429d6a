"""Answers about items are read strictly: nothing of unknown shape becomes a statement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.item import FileSeen, Headroom, ItemSeen
from anchord.core.item_answer import (
    MAX_WORDS,
    Tasks,
    Username,
    is_identifier,
    read_account,
    read_headroom,
    read_item,
    read_refusal,
    read_tasks,
    read_upload,
)
from anchord.core.storage import Refused

ID, MARK = "anchord-2026-11-30", "urn:anchord:0123456789abcdef"
MD5, SHA1 = "d41d8cd98f00b204e9800998ecf8427e", "da39a3ee5e6b4b0d3255bfef95601890afd80709"
FILE = {"name": "a.zip", "size": "22", "md5": MD5, "sha1": SHA1}
ITEM = {"metadata": {"identifier": ID, "external-identifier": MARK}, "files": [FILE]}


def _error(code: str, message: str = "m", resource: str = "r") -> bytes:
    return (
        f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}"
        f"</Message><Resource>{resource}</Resource><RequestId>1</RequestId></Error>"
    ).encode()


def _item(value: Any, status: int = 200) -> ItemSeen | Refused:
    return read_item(status, json.dumps(value).encode(), ID, {MARK})


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (503, _error("SlowDown"), "SlowDown"),
        (503, _error("SlowDown", resource="exceeds global_limit"), "SlowDown-global"),
        (503, _error("SlowDown", resource="X appears to be spam. Y"), "spam"),
        (403, _error("AccessDenied"), "AccessDenied"),
        (200, _error("InternalError"), "InternalError"),
        (503, b"<html><h1>Temporarily Offline</h1></html>", "offline"),
        (500, b"", "http-500"),
        (502, b"<html>bad gateway</html>", "http-502"),
        (200, b"<html>login</html>", "unknown-answer"),
        (204, b"", "unknown-answer"),
        (400, b"<Error><Code>no such code!</Code></Error>", "http-400"),
        (503, b"<!DOCTYPE x [<!ENTITY a 'SlowDown'>]>" + _error("&a;"), "http-503"),
        (503, b"<Error><Code><![CDATA[SlowDown]]></Code></Error>", "http-503"),
    ],
)
def test_the_body_says_what_is_refused_and_the_status_only_where_it_says_nothing(
    status: int, body: bytes, code: str
) -> None:
    refused = read_refusal(status, body, 7.0)
    assert (refused.code, refused.retry_after_s) == (code, 7.0)
    assert refused.message


def test_words_are_unescaped_once_and_stay_on_one_line() -> None:
    refused = read_refusal(400, _error("BadDigest", "a &lt;b&gt;\r\n\x1b[31m c", "&amp;lt; d"))
    assert refused.message == "a <b> [31m c - &lt; d"


@given(status=st.integers(100, 599), body=st.binary() | st.text().map(str.encode))
def test_no_bytes_break_the_reader_or_pass_for_success(status: int, body: bytes) -> None:
    refused = read_refusal(status, body)
    assert refused.code
    assert 0 < len(refused.message) <= MAX_WORDS
    assert refused.message.isprintable()
    accepted = read_upload(status, body, framed=True) is None
    assert accepted == (status == 200 and not body)


def test_an_upload_is_accepted_by_one_answer_only() -> None:
    assert read_upload(200, b"", framed=True) is None
    cut = read_upload(200, b"", framed=False)
    assert cut is not None
    assert cut.code == "no-answer"
    for status in (201, 204, 307, 500):
        assert read_upload(status, b"", framed=True) is not None


# ---------------------------------------------------------------------- metadata


def test_an_item_is_what_its_metadata_says() -> None:
    assert _item({}) == ItemSeen(
        exists=False, dark=False, files={}, pending_tasks=False, failed_tasks=False
    )
    assert _item(ITEM) == ItemSeen(
        exists=True,
        dark=False,
        files={"a.zip": FileSeen(size=22, md5=MD5, sha1=SHA1)},
        pending_tasks=False,
        failed_tasks=False,
        owned=True,
    )
    dark = _item({"is_dark": True, "metadata": {}, "files": [FILE]})
    assert isinstance(dark, ItemSeen)
    assert (dark.exists, dark.dark, dark.files, dark.owned) == (True, True, {}, None)


@pytest.mark.parametrize(
    ("external", "owned"),
    [
        (MARK, True),
        (["urn:isbn:1", f" {MARK}\n"], True),
        ("urn:anchord:other", False),
        (None, False),
        (7, False),
        ([], False),
    ],
)
def test_an_item_is_ours_when_it_bears_our_mark(external: Any, owned: bool) -> None:
    metadata = {"identifier": ID, "external-identifier": external, "uploader": "a@example.org"}
    seen = _item({"metadata": metadata, "files": []})
    assert isinstance(seen, ItemSeen)
    assert (seen.owned, seen.uploader) == (owned, "a@example.org")


@pytest.mark.parametrize(
    "answer",
    [
        [],
        None,
        "x",
        {"error": "Couldn't locate item"},
        {**ITEM, "error": "internal"},
        {"files": [FILE]},
        {"metadata": {}, "files": {}},
        {"metadata": [], "files": []},
        {"is_dark": "true"},
        {**ITEM, "is_dark": "true"},
        {**ITEM, "is_dark": 1},
        {**ITEM, "is_dark": None},
        {"metadata": {}, "files": [FILE], "dir": f"/1/items/{ID}"},
        {"metadata": {"external-identifier": MARK}, "files": [FILE], "dir": "/1/items/other"},
        {"metadata": {"external-identifier": MARK}, "files": [FILE]},
        {"metadata": {"identifier": [ID], "external-identifier": MARK}, "files": [FILE]},
        {"metadata": {"identifier": ID.upper(), "external-identifier": MARK}, "files": [FILE]},
        {"metadata": {"identifier": "another-item"}, "files": [FILE]},
        {**ITEM, "servers_unavailable": True},
    ],
)
def test_an_odd_answer_states_neither_presence_nor_absence(answer: Any) -> None:
    assert isinstance(_item(answer), Refused)


@pytest.mark.parametrize("status", [206, 301, 404, 429, 500, 503])
def test_only_a_200_is_read_as_metadata(status: int) -> None:
    assert isinstance(_item({}, status), Refused)
    assert isinstance(_item(ITEM, status), Refused)


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b'{"a":1,"a":2}', b"[" * 100_000])
def test_what_is_no_json_is_no_metadata(body: bytes) -> None:
    assert isinstance(read_item(200, body, ID, {MARK}), Refused)


@pytest.mark.parametrize(
    "change",
    [
        {"md5": MD5[:-1]},
        {"md5": None},
        {"md5": 7},
        {"size": "22 "},
        {"size": -1},
        {"size": True},
        {"size": "22.0"},
        {"sha1": MD5},
        {"sha1": None},
        {"private": "true"},
        {"private": True},
    ],
)
def test_a_listing_with_an_odd_value_matches_no_file(change: dict[str, Any]) -> None:
    seen = _item({**ITEM, "files": [{**FILE, **change}, 7, {"name": 3}, {}]})
    assert isinstance(seen, ItemSeen)
    assert list(seen.files) == ["a.zip"]
    assert seen.files["a.zip"] != FileSeen(size=22, md5=MD5, sha1=SHA1)


def test_a_hash_in_capitals_is_the_same_hash() -> None:
    listed = {**FILE, "md5": MD5.upper(), "sha1": SHA1.upper(), "private": "false"}
    seen = _item({**ITEM, "files": [listed]})
    assert isinstance(seen, ItemSeen)
    assert seen.files == {"a.zip": FileSeen(size=22, md5=MD5, sha1=SHA1)}


def test_a_name_listed_twice_is_not_known_to_be_ours() -> None:
    seen = _item({**ITEM, "files": [FILE, FILE]})
    assert isinstance(seen, ItemSeen)
    assert seen.files == {"a.zip": FileSeen(size=None, md5=None, sha1=None)}


@pytest.mark.parametrize(
    ("fields", "pending", "failed"),
    [
        ({"pending_tasks": True}, True, False),
        ({"tasks": [{"wait_admin": 0}]}, True, False),
        ({"tasks": [{"wait_admin": "2"}]}, True, True),
        ({"tasks": [{"wait_admin": 1}, {"wait_admin": 9}]}, True, True),
        ({"tasks": [{"status": "error"}]}, True, True),
        ({"tasks": [], "pending_tasks": False}, False, False),
    ],
)
def test_tasks_of_an_item_are_seen(fields: dict[str, Any], pending: bool, failed: bool) -> None:
    seen = _item({**ITEM, **fields})
    assert isinstance(seen, ItemSeen)
    assert (seen.pending_tasks, seen.failed_tasks) == (pending, failed)


# ---------------------------------------------------------------------- limits, tasks, account


def _headroom(value: Any) -> Headroom | Refused:
    return read_headroom(200, json.dumps(value).encode())


def test_headroom_is_what_is_left_and_leave_is_given_by_a_zero_only() -> None:
    detail = {"accesskey_ration": 74, "accesskey_tasks_queued": 80, "bucket_ration": "24"}
    assert _headroom({"over_limit": 0, "detail": detail}) == Headroom(
        over_limit=False, account_left=-6, item_left=None, global_left=None
    )
    for value in (1, None, "x", False, True, [], {}):
        answer = _headroom({"over_limit": value})
        assert isinstance(answer, Headroom)
        assert answer.over_limit
    for body in (b"", b"<html>busy</html>", b"[]", b"{"):
        over = read_headroom(200, body)
        assert isinstance(over, Headroom)
        assert over.over_limit


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502])
def test_an_error_is_no_statement_about_limits(status: int) -> None:
    answer = read_headroom(status, b'{"over_limit": 0}')
    assert isinstance(answer, Refused)
    assert answer.code == f"http-{status}"


def test_a_summary_of_tasks_is_read_and_anything_else_is_none() -> None:
    def read(summary: Any, success: Any = True) -> Tasks | None:
        answer = {"success": success, "value": {"summary": summary}}
        return read_tasks(200, json.dumps(answer).encode())

    assert read({"queued": 0, "running": 0, "error": 0}) == Tasks(pending=False, failed=False)
    assert read({"queued": 2}) == Tasks(pending=True, failed=False)
    assert read({"paused": 1}) == Tasks(pending=True, failed=True)
    assert read({"error": "x"}) is None
    assert read({"queued": 2}, success=False) is None
    assert read([]) is None
    assert read_tasks(500, b"{}") is None


def test_an_account_has_a_name_or_its_keys_are_refused() -> None:
    assert read_account(200, b'{"username":"a@example.org"}') == Username("a@example.org")
    assert read_account(200, b'{"error":"no such key"}') == Refused(
        code="AccessDenied", message="no such key"
    )
    for status, body in ((200, b"{}"), (200, b"<html>"), (500, b'{"username":"a"}')):
        assert isinstance(read_account(status, body), Refused)


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("text", "lawful"),
    [
        ("anchord-2026-11-30", True),
        ("a" * 100, True),
        ("abcde", True),
        ("abcd", False),
        ("a" * 101, False),
        ("_abcde", False),
        (".abcde", False),
        ("@abcde", False),
        ("ab/cde", False),
        ("abcdé", False),
        ("abcde\n", False),
        ("", False),
    ],
)
def test_an_identifier_satisfies_service_and_client(text: str, lawful: bool) -> None:
    assert is_identifier(text) is lawful
