"""Stored copies fetched again: is what storage events say still true today?

A signature proves that a copy was there when it was signed for. Here a few are asked for, drawn by
the audit's seed: a memento must replay, raw, to the bytes that were signed; an item's metadata must
list the file with its size, MD5 and SHA-1, and the member must download to its SHA-256. A copy that
is gone or changed breaks the claim "is stored"; an archive that does not answer breaks nothing, and
what could not be asked is not called good.

Calls follow each other, with the pauses of whoever gave the readers; after a refusal that says
"less" nothing more is asked of that archive.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from anchord.core.event import CAPTURED, ITEM_STORED
from anchord.core.finding import Part, Severity
from anchord.core.storage import Refused
from anchord.core.wayback import NotThere

if TYPE_CHECKING:
    from anchord.core.item import Fetched, ItemSeen
    from anchord.core.wayback import Memento
    from anchord.engine.audit.outcome import Drawn, Outcome
    from anchord.ports.copies import ItemReader, MementoReader

UNREACHED = "stored copies could not be fetched again, see the warnings"
"""Stands after a number among the reasons why an audit is not sound."""
_OWN_FAULT = frozenset(
    {"excluded", "too-large", "bad-name", "elsewhere", "tasks-pending", "unknown-answer"}
)
"""Codes about one copy; after any other the archive is left alone."""
_AGAIN = (
    "fetch it by hand; if it stays so, whoever signed for it must withdraw the event and store the "
    "record anew (`anchord run-once` does that for its own)"
)
_LATER = "run the audit again later, or with another --seed"

T = TypeVar("T")


class _Capture(msgspec.Struct):
    capture_url: str
    captured_at: str
    final_url: str
    http_status: int
    sha256: str
    size: int


class _Item(msgspec.Struct):
    archive: str
    identifier: str
    file: str
    member: str
    member_sha256: str
    size: int
    md5: str
    sha1: str


class Lost(msgspec.Struct, frozen=True):
    """A copy that is not what was signed for."""

    code: str
    what: str


class OnlineCheck:
    """Fetches drawn copies again, one after another.

    Args:
        outcome: what was drawn; takes the findings.
        captures: replays mementos; None: nobody is asked for them.
        items: reads items; None: nobody is asked for them.
        pause: called before every call with the archive's name (`wayback`, `items`); may wait.
    """

    def __init__(
        self,
        outcome: Outcome,
        captures: MementoReader | None,
        items: ItemReader | None,
        pause: Callable[[str], None],
    ) -> None:
        self._outcome = outcome
        self._captures, self._items = captures, items
        self._pause = pause
        self._shut: dict[str, Refused] = {}
        """Archives that are not asked any more, by what they said."""
        self._seen: dict[str, ItemSeen] = {}
        """The item read last: a listing of thousands of files is not kept longer than needed."""
        self.unreached = 0
        """Copies nobody could be asked for."""

    def run(self, on_progress: Callable[[str, int, int], None]) -> None:
        """Ask for every drawn copy."""
        drawn = self._outcome.drawn
        for done, one in enumerate(drawn):
            on_progress("copies", done, len(drawn))
            self._check(one)
        if drawn:
            on_progress("copies", len(drawn), len(drawn))
        if self.unreached:
            self._outcome.doubt(UNREACHED, self.unreached)

    def _check(self, one: Drawn) -> None:
        if one.event_type not in (CAPTURED, ITEM_STORED):
            return
        part = Part.CAPTURE if one.event_type == CAPTURED else Part.ITEM
        try:
            found = self._memento(one) if part is Part.CAPTURE else self._item(one)
        except msgspec.ValidationError as error:
            found = Refused(code="bad-name", message=f"the event lacks a field: {error}")
        if isinstance(found, Refused):
            self._unreached(one, part, found)
            return
        self._outcome.count("mementos" if part is Part.CAPTURE else "items")
        if found is not None:
            self._outcome.find(found.code, Severity.BROKEN, part, one.event_id, found.what, _AGAIN)

    def _unreached(self, one: Drawn, part: Part, said: Refused) -> None:
        self.unreached += 1
        code = "memento-unreachable" if part is Part.CAPTURE else "item-unreachable"
        what = f"{_where(one)} could not be asked for: {said.code}: {said.message}"
        self._outcome.find(code, Severity.WARNING, part, one.event_id, what, _LATER)

    # ------------------------------------------------------------------ mementos

    def _memento(self, one: Drawn) -> Lost | Refused | None:
        signed = msgspec.convert(dict(one.payload), _Capture)
        reader = self._captures
        stamp = re.sub(r"[-:TZ]", "", signed.captured_at)
        if reader is None or signed.capture_url != f"{reader.where}/web/{stamp}/{signed.final_url}":
            return _elsewhere(signed.capture_url)

        def look() -> Lost | Refused | None:
            said: Memento | NotThere | Refused = self._call(
                "wayback", lambda: reader.replay(stamp, signed.final_url, None)
            )
            return said if isinstance(said, Refused) else _compare_memento(signed, said)

        return _twice(look)

    # ------------------------------------------------------------------ items

    def _item(self, one: Drawn) -> Lost | Refused | None:
        signed = msgspec.convert(dict(one.payload), _Item)
        reader = self._items
        if reader is None or signed.archive != reader.where:
            return _elsewhere(signed.archive)

        def look() -> Lost | Refused | None:
            seen = self._listing(reader, signed.identifier)
            if isinstance(seen, Refused):
                return seen
            if (wrong := _compare_listing(signed, seen)) is not None:
                self._seen.clear()
                return wrong
            said: Fetched | Refused | None = self._call(
                "items", lambda: reader.member(signed.identifier, signed.file, signed.member)
            )
            return said if isinstance(said, Refused) else _compare_member(signed, said)

        return _twice(look)

    def _listing(self, reader: ItemReader, identifier: str) -> ItemSeen | Refused:
        """Read an item's metadata, once for copies of it that follow each other."""
        if identifier in self._seen:
            return self._seen[identifier]
        said: ItemSeen | Refused = self._call("items", lambda: reader.describe(identifier))
        if not isinstance(said, Refused):
            self._seen = {identifier: said}
        return said

    # ------------------------------------------------------------------ calls

    def _call(self, archive: str, ask: Callable[[], T | Refused]) -> T | Refused:
        """Ask once; an archive that wants to be left alone is left alone."""
        if archive in self._shut:
            return self._shut[archive]
        self._pause(archive)
        said = ask()
        if isinstance(said, Refused) and said.code not in _OWN_FAULT:
            self._shut[archive] = said
        return said


def _twice(look: Callable[[], Lost | Refused | None]) -> Lost | Refused | None:
    """Look once more before a copy is called lost: one bad answer is no proof."""
    first = look()
    return look() if isinstance(first, Lost) else first


def _compare_memento(signed: _Capture, said: Memento | NotThere) -> Lost | None:
    if isinstance(said, NotThere):
        what = f"{signed.capture_url} was signed for and does not replay any more: {said.reason}"
        return Lost("memento-lost", what)
    got = (said.http_status, said.size, said.sha256.hex())
    if got == (signed.http_status, signed.size, signed.sha256):
        return None
    return Lost(
        "memento-changed",
        f"{signed.capture_url}: signed for were status {signed.http_status}, {signed.size:,} bytes "
        f"and sha256 {signed.sha256}; now it replays with status {got[0]}, {got[1]:,} bytes and "
        f"sha256 {got[2]}",
    )


def _compare_listing(signed: _Item, seen: ItemSeen) -> Lost | Refused | None:
    name = f"{signed.identifier}/{signed.file}"
    if seen.dark:
        return Lost("item-dark", f"item {signed.identifier} was taken down")
    file = seen.files.get(signed.file)
    if file is not None and (file.size, file.md5, file.sha1) == (
        signed.size, signed.md5, signed.sha1,
    ):  # fmt: skip
        return None
    if seen.pending_tasks:
        # A listing is old, or half done, while tasks of the item wait.
        return Refused(code="tasks-pending", message=f"item {signed.identifier} is being changed")
    if not seen.exists:
        return Lost("item-lost", f"item {signed.identifier} is not there any more")
    if file is None:
        return Lost("item-file-lost", f"{name} is not listed in its item any more")
    return Lost(
        "item-file-changed",
        f"{name}: signed for were {signed.size:,} bytes, md5 {signed.md5}, sha1 {signed.sha1}; "
        f"listed are {file.size} bytes, md5 {file.md5}, sha1 {file.sha1}",
    )


def _compare_member(signed: _Item, said: Fetched | None) -> Lost | None:
    name = f"{signed.identifier}/{signed.file}/{signed.member}"
    if said is None:
        return Lost("item-member-lost", f"{name} is not served any more")
    if said.sha256.hex() == signed.member_sha256:
        return None
    return Lost(
        "item-member-changed",
        f"{name}: signed for was sha256 {signed.member_sha256}, it downloads with sha256 "
        f"{said.sha256.hex()} ({said.size:,} bytes)",
    )


def _elsewhere(where: str) -> Refused:
    return Refused(code="elsewhere", message=f"it is not at the archive that is asked: {where}")


def _where(one: Drawn) -> str:
    payload: dict[str, Any] = dict(one.payload)
    if one.event_type == CAPTURED:
        return str(payload.get("capture_url"))
    return f"{payload.get('identifier')}/{payload.get('file')}/{payload.get('member')}"
