"""Captures, items and lanes in words: what each state means, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.core.storage import CaptureState, FileState

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURE_WORDS = {
    CaptureState.WAITING: "waits to be captured",
    CaptureState.SENDING: "is being handed in",
    CaptureState.SUBMITTED: "handed in, the capture runs",
    CaptureState.LOOKING: "looked for in the index before it is tried again",
    CaptureState.REPORTED: "reported as captured, not seen in the index yet",
    CaptureState.INDEXED: "in the index, not replayed yet",
    CaptureState.STORED: "replayed",
    CaptureState.PARKED: "parked",
}
"""What is known of a capture; only the last grade before "parked" is signed."""

FILE_WORDS = {
    FileState.PACKED: "packed, not uploaded yet",
    FileState.SENDING: "is being uploaded",
    FileState.SENT: "uploaded, not seen in the item yet",
    FileState.STORED: "in the item with our checksums",
    FileState.PARKED: "parked",
    FileState.GONE: "lost after it was stored; its bundles are packed again",
}

RUNNING = (
    CaptureState.SENDING, CaptureState.SUBMITTED, CaptureState.LOOKING, CaptureState.REPORTED,
    CaptureState.INDEXED,
)  # fmt: skip
"""A capture was asked for, and its end is not known."""

_LANES = {
    "spn": "Save Page Now",
    "status": "status of captures",
    "index": "the Wayback index",
    "replay": "Wayback replay",
    "items": "archive.org uploads",
    "metadata": "archive.org metadata",
}

_CODES = {
    "http-429": "too many requests",
    "http-403": "access is refused",
    "unauthorized-key": "the keys are not known to the archive",
    "forbidden-key": "the account may not do this",
    "user-session-limit": "all of the account's slots are in use",
    "daily-captures-limit": "the account's captures of the day are used up",
    "daily-share": "our share of the day's captures is used up",
    "offline": "the service is offline",
    "connection-refused": "the connection is refused",
    "no-answer": "no answer came",
    "unknown-answer": "the answer was not understood",
    "too-large": "the answer is too long",
    "excluded": "the archive does not show this site",
    "too-many-daily-captures": "captured too often today already",
    "blocked-url": "the archive does not take this URL",
    "blocked-client-ip": "the archive blocks this machine's address",
    "not-found": "the page answered 404",
    "no-access": "the page answered 403",
    "spam": "uploads are taken for spam",
    "SlowDown": "the upload service asks for a slower pace",
    "SlowDown-global": "the upload service takes nothing from anybody now",
    "tasks-pending": "the item has tasks to do first",
    "AccessDenied": "the account may not do this",
    "OperationAborted": "another upload to the item is under way",
    "BucketAlreadyExists": "the item is being made",
    "BadDigest": "the upload arrived broken",
    "dark": "the item was taken down",
    "foreign": "the item belongs to somebody else",
    "name-taken": "the item holds another file of this name",
    "set-aside": "set aside by hand",
}
"""What codes mean where the service gave no words; see `anchord.core.capture_words`."""


def lane_words(name: str) -> str:
    """Return what a lane is called for people."""
    if name.startswith("host:"):
        return f"captures of {name.removeprefix('host:')}"
    return _LANES.get(name, name)


def code_words(code: str | None, note: str | None) -> str:
    """Return why something waits: the service's own words, or what its code means."""
    known = _CODES.get(code or "")
    words = note or known or code or ""
    if known and note and known.lower() not in note.lower():
        return f"{known}: {note}"
    return words


def grade(state: CaptureState, confirmations: int) -> str:
    """Return how well a capture is known."""
    if state is not CaptureState.STORED:
        return CAPTURE_WORDS[state]
    return confirmed(CAPTURE_WORDS[state], confirmations)


def file_grade(state: FileState, confirmations: int) -> str:
    """Return how well a file of an item is known."""
    words = FILE_WORDS[state]
    return confirmed(words, confirmations) if state is FileState.STORED else words


def confirmed(words: str, times: int) -> str:
    """Return words with how often that was seen again."""
    if not times:
        return words
    return f"{words}, and seen again {'once' if times == 1 else f'{times} times'} later"


def lane_lines(lane: dict[str, Any]) -> Iterator[str]:
    """Yield how a lane of the `status` document is doing, and below it why it waits."""
    name = lane["where"][:1].upper() + lane["where"][1:]
    if lane["stopped"]:
        yield f"{name}: STOPPED"
    elif lane["paused_until"] is not None:
        yield f"{name}: pauses until {lane['paused_until']}"
    else:
        used = f", {lane['used_today']:,} call(s) today" if lane["used_today"] else ""
        yield f"{name}: open{used}"
    why = code_words(lane["code"], lane["note"])
    if why:
        yield f"      {why}"


_CAPTURES_DONE = {
    "claimed": "page(s) found to be captured",
    "submitted": "capture(s) asked for",
    "adopted": "capture(s) found that were there already",
    "stored": "capture(s) replayed, and so stored",
    "confirmed": "capture(s) seen again",
    "lost": "capture(s) lost; withdrawn, and captured again",
    "parked": "capture(s) parked: see `anchord status`",
    "protocol_errors": "answer(s) of the archive that were not understood",
}
_ITEMS_DONE = {
    "packed": "file(s) of bundles packed",
    "uploaded": "file(s) uploaded",
    "skipped": "file(s) found that were uploaded already",
    "stored": "file(s) seen in their items, and so stored",
    "confirmed": "file(s) seen again",
    "lost": "file(s) lost; withdrawn, and packed again",
    "parked": "file(s) parked: see `anchord status`",
}


def report_lines(stored: dict[str, Any] | None) -> list[str]:
    """Return what a pass did at the archive, a line for each thing that happened."""
    if stored is None:
        return []
    lines = [
        f"{stored[part][key]:>9,} {text}"
        for part, words in (("captures", _CAPTURES_DONE), ("items", _ITEMS_DONE))
        for key, text in words.items()
        if stored[part].get(key)
    ]
    refused = {**stored["captures"]["refused"]}
    for code, count in stored["items"].get("refused", {}).items():
        refused[code] = refused.get(code, 0) + count
    lines += [
        f"{count:>9,} refusal(s): {_CODES.get(code, code)}" for code, count in refused.items()
    ]
    return lines
