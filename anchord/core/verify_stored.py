"""What `capture_stored` and `item_stored` events must say to be believed (obligations 17 and 18).

A signature proves who said it, not that a copy can still be fetched: that is for whoever follows
the address and compares the hash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from anchord.core.capture_url import WAYBACK, same_host
from anchord.core.event import CAPTURED, member_name
from anchord.core.moment import seconds
from anchord.errors import MementoMismatchError, VerificationError

_ITEM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{2,100}")
_FILE = re.compile(r"[^/\x00-\x1f\x7f]{1,200}")
_BASE = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:/(?!web(?:/|\Z))[A-Za-z0-9._~-]+)*")
"""Where an archive is. A `/web/` in its path would make the address one of another memento, whose
page only ends like ours."""
_ITEMS = "archive.org"
_DATED_AHEAD_S = 7_200
"""How much a memento may be younger than the event about it: clocks differ."""
GRADES = ("replayed", "confirmed")
"""Grades that may be signed for; less than a replay is no storage."""


class StoredClaim(msgspec.Struct, frozen=True, kw_only=True):
    """Where a copy is said to be, and what it must hash to."""

    where: str
    """Capture URL, or item, file and member; and whether that is not the Internet Archive, as in
    trials against a stand-in."""
    at: str
    """When it was captured, or signed for."""
    sha256: str
    facts: tuple[tuple[str, str], ...] = ()
    """(about, content): a memento, a file and a member of a file have one content each."""


class _Capture(msgspec.Struct):
    archive: str
    original_url: str
    final_url: str
    capture_url: str
    captured_at: str
    http_status: int
    grade: str
    sha256: str
    size: int
    x_archive_src: str


class _Item(msgspec.Struct):
    archive: str
    identifier: str
    file: str
    member: str
    member_sha256: str
    size: int
    md5: str
    sha1: str
    sha256: str


def read_stored(
    event_type: str, event_id: str, payload: Mapping[str, Any], digest: bytes, created_at: str
) -> StoredClaim:
    """Return what a storage event claims, its fields held against each other.

    Raises:
        VerificationError: a field is missing or impossible.
        MementoMismatchError: the fields contradict each other.
    """
    try:
        if event_type == CAPTURED:
            capture = msgspec.convert(dict(payload), _Capture)
            return _capture(event_id, capture, seconds(created_at))
        return _item(event_id, msgspec.convert(dict(payload), _Item), digest, created_at)
    except msgspec.ValidationError as error:
        raise VerificationError(f"event {event_id} lacks a field: {error}") from None


def _capture(event_id: str, stated: _Capture, signed_at: int) -> StoredClaim:
    captured_at = seconds(stated.captured_at)
    stamp = re.sub(r"[-:TZ]", "", stated.captured_at)
    tail = f"/web/{stamp}/{stated.final_url}"
    base = stated.capture_url.removesuffix(tail)
    problems = (
        (stated.archive != "wayback", f"archive {stated.archive!r:.40}, expected 'wayback'"),
        (stated.grade not in GRADES, f"grade {stated.grade!r:.40}: only a replay may be signed"),
        (stated.http_status != 200, f"status {stated.http_status}: the page was not there"),
        (not _hex(stated.sha256, 64), "a sha256 that is none"),
        (stated.size < 1, "an empty replay"),
        (not stated.x_archive_src, "no X-Archive-Src: it was not an exact memento"),
        (
            base == stated.capture_url or not _BASE.fullmatch(base),
            f"capture_url {stated.capture_url!r:.100}, expected one that ends in {tail!r:.100}",
        ),
        (
            not same_host(stated.original_url, stated.final_url),
            f"final_url {stated.final_url!r:.90}, not on the host of its original_url",
        ),
        (
            captured_at > signed_at + _DATED_AHEAD_S,
            f"captured_at {stated.captured_at}, after it was signed",
        ),
    )
    _refuse(event_id, problems)
    where = stated.capture_url + _stand_in(base, WAYBACK)
    facts = ((f"memento {stated.capture_url}", f"{stated.sha256}, {stated.size} bytes"),)
    return StoredClaim(where=where, at=stated.captured_at, sha256=stated.sha256, facts=facts)


def _item(event_id: str, stated: _Item, digest: bytes, created_at: str) -> StoredClaim:
    hashes = ((stated.md5, 32), (stated.sha1, 40), (stated.sha256, 64), (stated.member_sha256, 64))
    problems = (
        (not stated.archive, "no archive"),
        (not _ITEM.fullmatch(stated.identifier), f"identifier {stated.identifier!r:.110}"),
        (not _FILE.fullmatch(stated.file), f"file {stated.file!r:.110}"),
        (
            stated.member != member_name(digest),
            f"member {stated.member!r:.100}, which is not this record's",
        ),
        (stated.size < 1, "an empty file"),
        (not all(_hex(text, length) for text, length in hashes), "a hash that is none"),
    )
    _refuse(event_id, problems)
    file = f"{stated.archive}: {stated.identifier}/{stated.file}"
    member = f"{file}/{stated.member}"
    hashes_of = f"{stated.size} bytes, {stated.md5} {stated.sha1} {stated.sha256}"
    return StoredClaim(
        where=member + _stand_in(stated.archive, _ITEMS),
        at=created_at,
        sha256=stated.member_sha256,
        facts=((f"file {file}", hashes_of), (f"member {member}", stated.member_sha256)),
    )


def _stand_in(stated: str, real: str) -> str:
    return "" if stated == real else f" (a stand-in: not {real})"


def _refuse(event_id: str, problems: tuple[tuple[bool, str], ...]) -> None:
    for wrong, what in problems:
        if wrong:
            raise MementoMismatchError(f"event {event_id} states {what}")


def _hex(text: str, length: int) -> bool:
    return re.fullmatch(f"[0-9a-f]{{{length}}}", text) is not None
