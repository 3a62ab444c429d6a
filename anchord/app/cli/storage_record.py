"""The facet `stored` of one record, for `anchord show`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anchord.app.cli.output import utc
from anchord.app.cli.storage_words import RUNNING, code_words, file_grade, grade
from anchord.core import event
from anchord.core.storage import CaptureState, FileState, StoredWhen
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anchord.app.wiring import App
    from anchord.core.model import Batch, StoredRecord
    from anchord.core.storage import Capture, ItemFile

_SOURCE = "source"
"""Role of the capture that earns the facet."""


def describe(
    app: App, record: StoredRecord, batches: Sequence[Batch], live: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return captures and items of a record, with stable keys.

    Args:
        app: whose store is read.
        record: which.
        batches: all batches it is in.
        live: its signed events that are not withdrawn. The word "stored" comes from these alone:
            what was not signed for is not stored.
    """
    captures = app.store.storage.captures.of_record(record.id)
    files = _files(app, record, batches)
    return {
        "word": _word(app.config.archive.stored_when, captures, files, live),
        "captures": [_capture(app, one, live) for one in captures],
        "items": [_item(app, record, one, live) for one in files],
    }


def _files(app: App, record: StoredRecord, batches: Sequence[Batch]) -> list[ItemFile]:
    found = [
        app.store.storage.items.file_of(batch.id, app.store.batches.index_of(batch, record.id))
        for batch in batches
    ]
    return list({one.id: one for one in found if one is not None}.values())


def _word(
    when: StoredWhen,
    captures: Sequence[Capture],
    files: Sequence[ItemFile],
    live: Sequence[Mapping[str, Any]],
) -> str:
    sources = [one for one in captures if one.role == _SOURCE]
    captured = any(_event_of(one, live) for one in sources)
    in_item = any(one["event_type"] == event.ITEM_STORED for one in live)
    earned = {
        StoredWhen.CAPTURE: captured,
        StoredWhen.ITEM: in_item,
        StoredWhen.BOTH: captured and in_item,
        StoredWhen.EITHER: captured or in_item,
    }
    if earned[when]:
        return "stored"
    running = any(one.state in RUNNING for one in sources)
    sent = any(one.state in (FileState.SENDING, FileState.SENT) for one in files)
    return "capturing" if running or (sent and when is not StoredWhen.CAPTURE) else "not stored"


def _event_of(capture: Capture, live: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the live event that a capture earned, the newest if there are several.

    Raises:
        FatalError: the row says something else of the memento than was signed.
    """
    found = [
        one
        for one in live
        if one["event_type"] == event.CAPTURED and one["payload"]["original_url"] == capture.url
    ]
    same = [one for one in found if _signed_as(capture, one["payload"])]
    if found and not same and capture.state is CaptureState.STORED:
        raise _damaged(f"capture of {capture.url}", found[-1]["payload"]["sha256"], capture.sha256)
    return next(reversed(same or found), None)


def _signed_as(capture: Capture, signed: Mapping[str, Any]) -> bool:
    """Tell whether a row says of its memento all that was signed of it."""
    names = ("final_url", "http_status", "size", "x_archive_src")
    return (
        all(getattr(capture, name) == signed[name] for name in names)
        and signed["sha256"] == (capture.sha256 or b"").hex()
        and signed["capture_url"].endswith(f"/web/{capture.timestamp}/{capture.final_url}")
    )


def _damaged(what: str, signed: str, found: bytes | None) -> FatalError:
    return FatalError(
        f"the {what} was signed for as another one (sha256 {signed}) than the store has now "
        f"(sha256 {'none' if found is None else found.hex()}), or its other fields differ: "
        "the store was changed; restore it from a backup"
    )


def _capture(app: App, one: Capture, live: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    signed = _event_of(one, live)
    return {
        "role": one.role,
        "url": one.url,
        "state": one.state.value,
        "words": grade(one.state, one.confirmations),
        "capture_url": _capture_url(app, one),
        "raw_url": _capture_url(app, one, "id_"),
        "captured_at": _captured_at(one),
        "final_url": one.final_url,
        "http_status": one.http_status,
        "adopted": one.adopted,
        "sha256": None if one.sha256 is None else one.sha256.hex(),
        "size": one.size,
        "x_archive_src": one.x_archive_src,
        "stored_at": utc(one.stored_at),
        "confirmed_at": utc(one.confirmed_at),
        "confirmations": one.confirmations,
        "lost": one.lost,
        "attempts": one.attempts,
        "code": one.code,
        "why": code_words(one.code, one.note) or None,
        "next_attempt_at": utc(one.next_attempt_at),
        "event_id": None if signed is None else signed["event_id"],
    }


def _capture_url(app: App, one: Capture, flag: str = "") -> str | None:
    """Return the memento's address at the archive that was asked, as events name it.

    With the flag `id_` the archive gives the bytes as they were captured, which the hash is of;
    without it, a page made for people, with its links rewritten.
    """
    if one.timestamp is None:
        return None
    base = app.config.archive.captures.web_url.rstrip("/")
    return f"{base}/web/{one.timestamp}{flag}/{one.final_url or one.url}"


def _captured_at(one: Capture) -> str | None:
    from anchord.core.capture import moment_of

    return None if one.timestamp is None else utc(moment_of(one.timestamp))


def _item(
    app: App, record: StoredRecord, file: ItemFile, live: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    base = app.config.archive.items.api_url.rstrip("/")
    member = event.member_name(record.digest)
    signed = next(
        (
            one
            for one in reversed(live)
            if one["event_type"] == event.ITEM_STORED
            and (one["payload"]["identifier"], one["payload"]["file"])
            == (file.identifier, file.name)
        ),
        None,
    )
    hashes = {name: getattr(file, name).hex() for name in ("md5", "sha1", "sha256")}
    ours: dict[str, Any] = {**hashes, "size": file.size}
    if signed is not None and any(signed["payload"][name] != ours[name] for name in ours):
        what = f"file {file.identifier}/{file.name}"
        raise _damaged(what, signed["payload"]["sha256"], file.sha256)
    return {
        "identifier": file.identifier,
        "file": file.name,
        "member": member,
        "member_url": f"{base}/download/{file.identifier}/{file.name}/{member}",
        "state": file.state.value,
        "words": file_grade(file.state, file.confirmations),
        "size": file.size,
        "md5": file.md5.hex(),
        "sha1": file.sha1.hex(),
        "sha256": file.sha256.hex(),
        "member_sha256": None if signed is None else signed["payload"]["member_sha256"],
        "sent_at": utc(file.sent_at),
        "stored_at": utc(file.stored_at),
        "confirmed_at": utc(file.confirmed_at),
        "confirmations": file.confirmations,
        "attempts": file.attempts,
        "code": file.code,
        "why": code_words(file.code, file.note) or None,
        "next_attempt_at": utc(file.next_attempt_at),
        "event_id": None if signed is None else signed["event_id"],
    }


# ---------------------------------------------------------------------- for people


def lines(document: dict[str, Any], now: str) -> Iterator[str]:
    """Yield captures and items for people; what is due at `now` waits for its lane."""
    for one in document["captures"]:
        yield ""
        yield from _capture_lines(one, now)
    for one in document["items"]:
        yield ""
        yield from _item_lines(one, now)


def _capture_lines(one: dict[str, Any], now: str) -> Iterator[str]:
    what = "capture" if one["role"] == _SOURCE else f"capture ({one['role']})"
    yield f"{what}: {one['words']}"
    yield f"  of          {one['url']}"
    if one["capture_url"]:
        yield f"  memento     {one['capture_url']}"
        kind = ", made by others" if one["adopted"] else ""
        yield f"  captured    {one['captured_at']}{kind}"
    if one["final_url"] and one["final_url"] != one["url"]:
        yield f"  led to      {one['final_url']}"
    if one["sha256"]:
        yield f"  its bytes   {one['raw_url']}"
        yield f"  sha256      {one['sha256']}"
        yield f"  from        {one['x_archive_src']} ({one['size']:,} bytes)"
    if one["lost"]:
        yield f"  lost        {one['lost']} memento(s) of it that were stored before"
    yield from _wait_lines(one, now)


def _item_lines(one: dict[str, Any], now: str) -> Iterator[str]:
    yield f"item {one['identifier']}: {one['words']}"
    yield f"  file        {one['file']} ({one['size']:,} bytes)"
    yield f"  sha256      {one['sha256']}"
    yield f"  sha1        {one['sha1']}"
    yield f"  md5         {one['md5']}"
    yield f"  member      {one['member_url']}"
    if one["member_sha256"]:
        yield f"  its sha256  {one['member_sha256']}"
    yield from _wait_lines(one, now)


def _wait_lines(one: dict[str, Any], now: str) -> Iterator[str]:
    if one["why"]:
        yield f"  why         {one['why']}"
    if one["state"] in ("stored", "gone"):
        if one["event_id"] is None and one["state"] == "stored":
            yield "  to be signed by the next pass"
        if one["next_attempt_at"]:
            yield f"  seen again  from {one['next_attempt_at']} on"
    elif one["state"] == "parked":
        yield "  bring it back with `anchord retry --archive`"
    elif one["next_attempt_at"]:
        tried = f"tried {one['attempts']} time(s), " if one["attempts"] else ""
        due = one["next_attempt_at"] <= now
        when = "due; see `anchord status`" if due else f"next {one['next_attempt_at']}"
        yield f"  {tried}{when}"
