"""The row "Internet Archive": captures of the paper's page, and files of bundles in items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anchord.app.face.addresses import web_address
from anchord.app.face.rows import (
    MOST,
    Entry,
    Fact,
    Fates,
    Row,
    doubted_note,
    entry,
    fallen_name,
    hashed,
    of_type,
    split,
)
from anchord.app.face.words import moment, plural, shown
from anchord.core.event import CAPTURED, ITEM_STORED

if TYPE_CHECKING:
    from anchord.core.merge import Merged, MergedEvent

_ARCHIVE = "archive.org"
_WAYBACK = "https://web.archive.org/web/"


def storage_row(merged: Merged) -> Row:
    """Return the row."""
    fates = Fates(merged)
    events = (*of_type(merged, CAPTURED), *of_type(merged, ITEM_STORED))
    standing, fallen = split(_entry(one, fates) for one in events)
    return Row(
        name="Internet Archive",
        state=plural(len(standing), "copy", "copies") if standing else "open",
        done=bool(standing),
        note=doubted_note(merged, CAPTURED, ITEM_STORED),
        entries=tuple(standing[:MOST]),
        folded=tuple(fallen[:MOST]),
        folded_name=fallen_name(fallen),
        more=max(len(standing) - MOST, 0) + max(len(fallen) - MOST, 0),
    )


def _entry(one: MergedEvent, fates: Fates) -> Entry:
    payload = one.event["payload"]
    if one.proved.event_type == CAPTURED:
        return entry(one, fates, f"Capture of {moment(payload['captured_at'])}", _capture(payload))
    head = f"Item {shown(payload['identifier'])}"
    return entry(one, fates, head, _item(payload), href=_item_address(payload, "details"))


def _capture(payload: dict[str, Any]) -> Iterator[Fact]:
    address = payload["capture_url"]
    yield Fact(name="Capture", text=shown(address), href=web_address(address))
    if not address.startswith(_WAYBACK):
        yield Fact(name="Archive", text="a stand-in for trials, not the Internet Archive")
    page = payload["final_url"]
    yield Fact(name="Page", text=shown(page), href=web_address(page))
    status = f"{payload['http_status']}, {shown(payload['grade'], 40)} byte for byte"
    yield Fact(name="HTTP status", text=status)
    yield Fact(name="Size", text=plural(payload["size"], "byte"), fine=True)
    yield from hashed(payload, "sha256", "SHA-256 of the page")


def _item(payload: dict[str, Any]) -> Iterator[Fact]:
    if payload["archive"] != _ARCHIVE:
        text = f"{shown(payload['archive'], 80)}, a stand-in for trials"
        yield Fact(name="Archive", text=text)
    file, member = payload["file"], payload["member"]
    yield Fact(name="File", text=shown(file), href=_item_address(payload, "download", file))
    yield Fact(name="Member", text=shown(member), code=True,
               href=_item_address(payload, "download", file, member))  # fmt: skip
    yield Fact(name="Size of the file", text=plural(payload["size"], "byte"), fine=True)
    yield from hashed(payload, "sha256", "SHA-256 of the file")
    yield from hashed(payload, "member_sha256", "SHA-256 of the member")


def _item_address(payload: dict[str, Any], kind: str, *path: str) -> str | None:
    """Return where an item or what is in it is served (archive.org/developers/items.html)."""
    if payload["archive"] != _ARCHIVE:
        return None
    parts = [quote(part, safe="") for part in (payload["identifier"], *path)]
    return f"https://{_ARCHIVE}/{kind}/" + "/".join(parts)
