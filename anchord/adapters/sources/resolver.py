"""Records by their names from a resolver, such as a registry: `Accept: application/ld+json`.

Each name is asked for once, and then again now and then with the validators of its last answer
(RFC 9110, 13), since a bundle grows. An answer must be of the record that was asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice

import msgspec

from anchord.adapters.sources.pith import OBJECT_CAP, read_object
from anchord.core.model import Document, Incoming, Record, Rejection, Scheme
from anchord.core.number import pith_suffix
from anchord.core.reference import Reference, parse_reference
from anchord.errors import ProtocolError, RefusedError, TransientError
from anchord.ports.log import Pull, PullTable
from anchord.ports.mirror import Absent, Fetched, MirrorSource, NotModified
from anchord.ports.source import Step

ACCEPT = "application/ld+json"
PATIENCE = 3
"""Failures in a row after which the rest is left for the next look."""
LOOK_S = 20.0
"""Seconds after which a pass goes on; the next one asks further."""
_STEP_NAMES = 25
_LOOK_UP = 500
_WHOLE = 26
_FETCHED, _REFUSED, _FAILED = "fetched", "refused", "failed"


class Place(msgspec.Struct, frozen=True):
    """How many names of the list this look is through with; this, as JSON, is the cursor."""

    names: int = 0


class Wanted(msgspec.Struct, frozen=True):
    """One name, and where its record is asked for."""

    name: str
    url: str
    reference: Reference | str
    """What it means; text: why it means nothing."""


class Resolver:
    """One resolver and the names it is asked for.

    Args:
        name: the source's.
        every_s: seconds between two looks at the list of names.
        pattern: address of a record, with {id} in it.
        names: gives the names: Pith Numbers or their suffixes, digests, arXiv ids.
        web: asks, at its own pace.
        pulls: what was asked for, and when.
        scheme: how JSON records are made canonical.
        again_every_s: a name is asked for again after this long, seconds; 0: never.
        at_once: answers that are taken in together; fewer where each takes long.
        monotonic: seconds that never go back.
    """

    kind = "pith"

    def __init__(
        self,
        name: str,
        every_s: int,
        pattern: str,
        names: Callable[[], Iterable[str]],
        web: MirrorSource,
        pulls: Callable[[], PullTable],
        *,
        scheme: Scheme = Scheme.PITH_JSON_V1,
        again_every_s: int = 86_400,
        at_once: int = _STEP_NAMES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.every_s = name, every_s
        self._pattern, self._names, self._web, self._pulls = pattern, names, web, pulls
        self._scheme, self._again_s, self._monotonic = scheme, again_every_s, monotonic
        self._mirror, self._at_once = f"source {name}", min(max(at_once, 1), _STEP_NAMES)

    def place(self, cursor: bytes | None) -> str:
        """Return what a cursor means, in words for people."""
        names = _read(cursor).names
        return f"{names:,} names of the list done" if names else "at the start of the list"

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        """Yield the records of names that are due, in the order of the list."""
        done, ends_at = _read(cursor).names, self._monotonic() + LOOK_S
        failures = _Failures()
        kept, names = done, islice(self._names(), done, None)
        while chunk := list(islice(names, _LOOK_UP)):
            due = self._due([self._wanted(one) for one in chunk], now)
            fresh = [one for one in due if not _failed(one)]
            yield from self._ask_all(fresh, now, failures)
            done += len(chunk)
            # Names that could not be asked for before come last, and hold up nobody behind them:
            # should they fail again, the next look goes on after this part of the list.
            failures.on_fail = Step(cursor=msgspec.json.encode(Place(done)))
            yield from self._ask_all([one for one in due if _failed(one)], now, failures)
            failures.on_fail = None
            if due:  # where nothing was asked, nothing need be written
                kept = done
                late = self._monotonic() > ends_at
                yield Step(cursor=msgspec.json.encode(Place(done)), pause=late)
        if kept:
            yield Step(cursor=msgspec.json.encode(Place()))
        failures.tell()

    def _ask_all(
        self, due: list[tuple[Wanted, Pull | None]], now: int, failures: _Failures
    ) -> Iterator[Step]:
        for start in range(0, len(due), self._at_once):
            yield from self._ask_some(due[start : start + self._at_once], now, failures)

    def _wanted(self, name: str) -> Wanted:
        try:
            reference = parse_reference(name)
        except RefusedError as error:
            return Wanted(_shown(name), f"name {_shown(name)}", str(error))
        if reference.prefix is not None and len(reference.prefix) < _WHOLE:
            short = "a short Pith Number may mean several records: give it whole"
            return Wanted(_shown(name), f"name {_shown(name)}", short)
        digest = reference.digest.hex() if reference.digest is not None else None
        version = "" if reference.source_version is None else f"v{reference.source_version}"
        text = digest or reference.prefix or f"{reference.source_id}{version}"
        return Wanted(_shown(name), self._pattern.replace("{id}", text), reference)

    def _due(self, wanted: list[Wanted], now: int) -> list[tuple[Wanted, Pull | None]]:
        """Return what is asked for now, with what is known of it."""
        by_url = {one.url: one for one in wanted}
        known = self._pulls().get(self._mirror, list(by_url))
        found = [(one, known.get(url)) for url, one in by_url.items()]
        return [(one, before) for one, before in found if self._is_due(before, now)]

    def _is_due(self, pull: Pull | None, now: int) -> bool:
        if pull is None or pull.state == _FAILED or pull.fetched_at is None:
            return True
        return bool(self._again_s) and pull.fetched_at + self._again_s <= now

    def _ask_some(
        self, due: list[tuple[Wanted, Pull | None]], now: int, failures: _Failures
    ) -> Iterator[Step]:
        """Ask for some names; what came is remembered when it is durable."""
        items: list[Incoming] = []
        pulls: list[Pull] = []
        for wanted, before in due:
            try:
                pulls.append(self._ask(wanted, before, now, items))
                failures.in_a_row = 0
            except TransientError as error:
                pulls.append(self._pull(wanted, _FAILED, now))
                if failures.add(error):
                    break
        yield Step(items=items)
        self._pulls().put(pulls)
        if failures.enough and failures.on_fail is not None:
            yield failures.on_fail
        failures.check()

    def _ask(self, wanted: Wanted, before: Pull | None, now: int, items: list[Incoming]) -> Pull:
        etag, modified = (before.etag, before.last_modified) if before else (None, None)
        try:
            if isinstance(wanted.reference, str):
                return self._refused(wanted, wanted.reference, now, items)
            got = self._web.get(wanted.url, etag, modified, OBJECT_CAP)
            if isinstance(got, NotModified):
                return self._pull(wanted, _FETCHED, now, etag, modified)
            if isinstance(got, Absent):
                return self._refused(wanted, "the resolver has no such record", now, items)
            items.append(self._record(wanted.reference, got))
        except (RefusedError, ProtocolError) as error:
            return self._refused(wanted, str(error), now, items)
        return self._pull(wanted, _FETCHED, now, got.etag, got.last_modified)

    def _refused(self, wanted: Wanted, why: str, now: int, items: list[Incoming]) -> Pull:
        where = f"{self.name}, {wanted.name}"
        items.append(Rejection(where=where, line=None, reason=why))
        return self._pull(wanted, _REFUSED, now)

    def _record(self, reference: Reference, got: Fetched) -> Record | Document:
        found = read_object(got.data, self._scheme)
        record = found.record if isinstance(found, Document) else found
        if not _is_meant(reference, record):
            raise RefusedError(f"the resolver gave another record, {record.digest.hex()}")
        return found

    def _pull(
        self, wanted: Wanted, state: str, now: int, etag: str | None = None,
        modified: str | None = None,
    ) -> Pull:  # fmt: skip
        return Pull(
            mirror=self._mirror, name=wanted.url, state=state, etag=etag, last_modified=modified,
            fetched_at=now,
        )  # fmt: skip


class _Failures:
    """Names that could not be asked for now; a few never stop the rest."""

    def __init__(self) -> None:
        self._count = 0
        self._last: TransientError | None = None
        self.in_a_row = 0
        self.on_fail: Step | None = None
        """What is written down before the look ends for them."""

    def add(self, error: TransientError) -> bool:
        """Count one; tell whether that is enough."""
        self._count, self.in_a_row = self._count + 1, self.in_a_row + 1
        self._last = error
        return self.enough

    @property
    def enough(self) -> bool:
        """Whether the resolver does not answer, or asked for patience."""
        patience = self._last is not None and self._last.retry_after is not None
        return self.in_a_row >= PATIENCE or patience

    def check(self) -> None:
        """Stop the look when that is enough."""
        if self._last and self.enough:
            raise self._last

    def tell(self) -> None:
        """Say at the end what is left for the next look."""
        if self._last is not None:
            raise TransientError(
                f"{self._count:,} name(s) could not be asked for, the last one because {self._last}"
            )


def _failed(one: tuple[Wanted, Pull | None]) -> bool:
    return one[1] is not None and one[1].state == _FAILED


def _read(cursor: bytes | None) -> Place:
    try:
        return msgspec.json.decode(cursor or b"{}", type=Place)
    except msgspec.MsgspecError:
        return Place()


def _is_meant(reference: Reference, record: Record) -> bool:
    """Tell whether a record has the name it was asked for by."""
    if reference.digest is not None:
        return record.digest == reference.digest
    if reference.prefix is not None:
        same_year = reference.year in (None, record.year)
        return same_year and pith_suffix(record.digest) == reference.prefix
    version = reference.source_version
    return record.source_id == reference.source_id and version in (None, record.source_version)


def _shown(name: str) -> str:
    name = name[:100]
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
