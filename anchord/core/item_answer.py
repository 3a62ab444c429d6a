"""What archive.org answers about items, read into values. Nothing of unknown shape passes.

Sources: IAS3 (https://archive.org/developers/ias3.html), the metadata read API
(https://archive.org/developers/md-read.html), the tasks API
(https://archive.org/developers/tasks.html) and their client (https://github.com/jjjake/internetarchive).
Texts that no document lists are named with the issue that quotes them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from xml.sax.saxutils import unescape

import msgspec

from anchord.core import strictjson
from anchord.core.item import FileSeen, Headroom, ItemSeen
from anchord.core.storage import Refused
from anchord.errors import RefusedError

MAX_WORDS = 300
MAX_ERROR_BYTES = 64 * 1024
MAX_METADATA_BYTES = 16 << 20
"""A listing of 10,000 files has about 4 MB."""
OWNER_FIELD = "external-identifier"
"""The metadata field that tells our items from other people's."""

_OK = 200
_CLIENT_RULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,99}")
"""`validate_s3_identifier` of internetarchive/utils.py, without "@": that is for user items."""
_SERVICE_RULE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{4,100}")
"""As the service's InvalidBucketName quotes it (jjjake/internetarchive issues 574, 641)."""
_XML_ERROR = re.compile(r"\s*(?:<\?xml[^<>?]*\?>)?\s*<Error>(?P<inside>.*)</Error>\s*", re.DOTALL)
_FIELD = re.compile(r"<(Code|Message|Resource)>([^<]*)</\1>")
_CODE = re.compile(r"[A-Za-z0-9]{1,64}")
_HEX = {"md5": re.compile(r"[0-9a-f]{32}"), "sha1": re.compile(r"[0-9a-f]{40}")}
_FAILED_TASK = {2, 9}
"""`wait_admin` of a task in error or paused (https://archive.org/developers/tasks.html)."""


class Tasks(msgspec.Struct, frozen=True, kw_only=True):
    """An item's tasks, as the tasks API sums them up."""

    pending: bool
    failed: bool


class Username(msgspec.Struct, frozen=True):
    """Whose keys they are."""

    name: str


def is_identifier(text: str) -> bool:
    """Tell whether both the service and its client take `text` for an item's identifier."""
    return bool(_CLIENT_RULE.fullmatch(text) and _SERVICE_RULE.fullmatch(text))


def clean_words(text: str) -> str:
    """Return foreign words on one line, without control characters, at most 300 characters."""
    shown = "".join(one if one.isprintable() else " " for one in text[:MAX_ERROR_BYTES])
    return " ".join(shown.split())[:MAX_WORDS]


def read_refusal(status: int, body: bytes, retry_after_s: float | None = None) -> Refused:
    """Return what an answer refuses, by its body first and by its status where that says nothing.

    Codes: those of IAS3, but "spam" and "SlowDown-global" for the two that only the text tells
    apart; "offline"; "http-<status>"; "unknown-answer" for a success that is none.
    """
    text = body[:MAX_ERROR_BYTES].decode("utf-8", "replace")
    code, words = _xml_error(text)
    lower = words.lower()
    if "appears to be spam" in lower:  # jjjake/internetarchive issues 298, 427, 578
        code = "spam"
    elif code == "SlowDown" and "global_limit" in lower:  # jjjake/internetarchive issue 392
        code = "SlowDown-global"
    elif code is None and "temporarily offline" in text.lower():
        code = "offline"
    elif code is None:
        code = "unknown-answer" if 200 <= status < 300 else f"http-{status}"
    message = words or clean_words(re.sub(r"<[^<>]*>", " ", text))
    return Refused(
        code=code, message=message or f"HTTP {status}, no words", retry_after_s=retry_after_s
    )


def _xml_error(text: str) -> tuple[str | None, str]:
    """Return code and words of an IAS3 error.

    Its three fields hold plain text, so three patterns read it: no parser expands anything. A
    document with a DTD, CDATA or comments ("<!") is none of theirs.
    """
    found = None if "<!" in text else _XML_ERROR.fullmatch(text)
    if found is None:
        return None, ""
    fields = {
        name: clean_words(unescape(value, {"&quot;": '"', "&apos;": "'"}))
        for name, value in _FIELD.findall(found["inside"])
    }
    code = fields.get("Code", "")
    parts = [fields.get("Message", ""), fields.get("Resource", "")]
    words = clean_words(" - ".join(part for part in parts if part))
    return (code if _CODE.fullmatch(code) else None), words


def read_upload(
    status: int, body: bytes, *, framed: bool, retry_after_s: float | None = None
) -> Refused | None:
    """Return None for an accepted upload: 200, no body, and said to be so.

    Args:
        status: of the answer to the PUT.
        body: its body.
        framed: the answer told its length; one that broke off after the first line did not.
        retry_after_s: what the service asked for.
    """
    if status == _OK and not body:
        if framed:
            return None
        return Refused(code="no-answer", message="the connection ended within the answer's head")
    return read_refusal(status, body, retry_after_s)


def read_headroom(
    status: int, body: bytes, retry_after_s: float | None = None
) -> Headroom | Refused:
    """Read check_limit. What is not JSON means "over", as the client has it (session.py)."""
    answer = _object(body) if status == _OK else None
    if answer is None:
        refused = read_refusal(status, body, retry_after_s)
        if status not in {_OK, 503} or refused.code == "offline":
            return refused
        return Headroom(
            over_limit=True,
            account_left=None,
            item_left=None,
            global_left=None,
            message=refused.message,
        )
    found = answer.get("detail")
    detail: Mapping[str, Any] = found if isinstance(found, dict) else {}
    reason = detail.get("limit_reason")
    return Headroom(
        # A missing or odd value is no leave to go on.
        over_limit=_count(answer.get("over_limit")) != 0,
        account_left=_left(detail, "accesskey_ration", "accesskey_tasks_queued"),
        item_left=_left(detail, "bucket_ration", "bucket_tasks_queued"),
        global_left=_left(detail, "total_global_limit", "total_tasks_queued"),
        message=clean_words(reason) if isinstance(reason, str) else "",
    )


def _left(detail: Mapping[str, Any], limit: str, used: str) -> int | None:
    allowed, taken = _count(detail.get(limit)), _count(detail.get(used))
    return None if allowed is None or taken is None else allowed - taken


def read_item(
    status: int,
    body: bytes,
    identifier: str,
    marks: Collection[str],
    retry_after_s: float | None = None,
) -> ItemSeen | Refused:
    """Read the metadata of the item that was asked for.

    Args:
        status: of the answer.
        body: its body.
        identifier: what was asked for; an answer about another item is not used.
        marks: values of external-identifier that say an item is ours.
        retry_after_s: what the service asked for.
    """
    if status != _OK:
        return read_refusal(status, body, retry_after_s)
    answer = _object(body, MAX_METADATA_BYTES)
    if answer == {}:
        return ItemSeen(exists=False, dark=False, files={}, pending_tasks=False, failed_tasks=False)
    if answer is not None and answer.get("servers_unavailable"):
        # Its listing may be an old one (md-read, "servers_unavailable"): it proves no absence.
        return Refused(code="offline", message="the servers that hold the item are unavailable")
    if answer is None or "error" in answer:
        return _unknown("the item's metadata is not an object of JSON, or is an error")
    return _seen(answer, identifier, marks)


def _seen(answer: Mapping[str, Any], identifier: str, marks: Collection[str]) -> ItemSeen | Refused:
    metadata, files = answer.get("metadata"), answer.get("files")
    dark = answer.get("is_dark", False)
    if not isinstance(dark, bool):
        return _unknown("the item's metadata neither says nor denies that it was taken down")
    if not (dark or (isinstance(metadata, dict) and isinstance(files, list))):
        return _unknown("the item's metadata has neither files nor is_dark")
    fields: Mapping[str, Any] = metadata if isinstance(metadata, dict) else {}
    named = fields.get("identifier", str(answer.get("dir", "")).rpartition("/")[2])
    if (fields or not dark) and (named != identifier or not fields):
        return _unknown("the metadata is that of another item, or does not say of which")
    uploader = fields.get("uploader")
    return ItemSeen(
        exists=True,
        dark=dark,
        files={} if dark else _files(files if isinstance(files, list) else []),
        pending_tasks=bool(answer.get("pending_tasks")) or bool(answer.get("tasks")),
        failed_tasks=_failed_tasks(answer.get("tasks")),
        uploader=clean_words(uploader) if isinstance(uploader, str) else None,
        owned=_owned(fields, marks) if fields else None,
    )


def _files(listed: list[Any]) -> dict[str, FileSeen]:
    """Return the files by name; what is listed twice, or for nobody to fetch, is nothing known."""
    found: dict[str, FileSeen] = {}
    for file in listed:
        name = file.get("name") if isinstance(file, dict) else None
        if not isinstance(name, str):
            continue
        seen = FileSeen(
            size=_count(file.get("size")), md5=_hex("md5", file), sha1=_hex("sha1", file)
        )
        unsure = name in found or file.get("private") not in (None, False, "false")
        found[name] = FileSeen(size=None, md5=None, sha1=None) if unsure else seen
    return found


def _hex(name: str, file: Mapping[str, Any]) -> str | None:
    value = file.get(name)
    text = value.lower() if isinstance(value, str) else ""
    return text if _HEX[name].fullmatch(text) else None


def _owned(fields: Mapping[str, Any], marks: Collection[str]) -> bool:
    """Compare with white space normalised, as the service stores it."""
    value = fields.get(OWNER_FIELD)
    values = value if isinstance(value, list) else [value]
    return any(isinstance(one, str) and " ".join(one.split()) in marks for one in values)


def _failed_tasks(tasks: Any) -> bool:
    listed = tasks if isinstance(tasks, list) else []
    return any(
        isinstance(task, dict)
        and (
            _count(task.get("wait_admin")) in _FAILED_TASK
            or task.get("status") in {"error", "paused"}
        )
        for task in listed
    )


def read_tasks(status: int, body: bytes) -> Tasks | None:
    """Read the summary of an item's tasks; None when the answer is no summary."""
    answer = _object(body) if status == _OK else None
    value = answer.get("value") if answer and answer.get("success") is True else None
    summary = value.get("summary") if isinstance(value, dict) else None
    if not isinstance(summary, dict):
        return None
    counts = {name: _count(summary.get(name, 0)) for name in ("queued", "running")}
    failed = {name: _count(summary.get(name, 0)) for name in ("error", "paused")}
    if None in {*counts.values(), *failed.values()}:
        return None
    return Tasks(pending=any(counts.values()) or any(failed.values()), failed=any(failed.values()))


def read_account(
    status: int, body: bytes, retry_after_s: float | None = None
) -> Username | Refused:
    """Read check_auth (`get_user_info` of internetarchive/api.py): an error comes with a 200."""
    answer = _object(body) if status == _OK else None
    if answer is None:
        return read_refusal(status, body, retry_after_s)
    name, error = answer.get("username"), answer.get("error")
    if error:
        return Refused(code="AccessDenied", message=clean_words(str(error)))
    if isinstance(name, str) and name:
        return Username(clean_words(name))
    return _unknown("the answer to check_auth names no user")


def _unknown(message: str) -> Refused:
    return Refused(code="unknown-answer", message=message)


def _object(body: bytes, max_bytes: int = MAX_ERROR_BYTES) -> dict[str, Any] | None:
    try:
        value = strictjson.parse(body, max_bytes=max_bytes)
    except RefusedError:
        return None
    return value if isinstance(value, dict) else None


def _count(value: Any) -> int | None:
    """Return a whole number that may come as text, as sizes do; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
