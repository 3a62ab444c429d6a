"""Receiving: what configured sources have that the store has not, taken in at the start of a pass.

What is true if we crash: the records of a step are in the store before its cursor says so. So a
source that is read again from its cursor gives at most one step twice, and taking records in twice
changes nothing. A source that fails is left alone for a while, and never stops the rest of a pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, cast

import msgspec

from anchord.core.retry import next_attempt
from anchord.engine.scan import Taken, take_in, without_forgeries
from anchord.errors import (
    AnchordError,
    ConfigError,
    ProtocolError,
    RefusedError,
    TransientError,
    VerificationError,
)

if TYPE_CHECKING:
    from anchord.core.model import Rejection
    from anchord.engine.parts import Parts
    from anchord.ports.source import Source, SourceRow, Step

_FIRST_WAIT_S = 60
_LONGEST_WAIT_S = 3_600
_THEIRS = (TransientError, ProtocolError, ConfigError, RefusedError, VerificationError)
"""What a look may raise: all but what makes our own state unsafe."""

Telling = Callable[["Rejection"], None]


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """What came from sources."""

    new: int = 0
    known: int = 0
    """Already there: nothing was changed."""
    adopted: int = 0
    """New proofs taken over."""
    refused: int = 0
    failed: int = 0
    """Sources that could not be read; they are looked at again later."""
    looked: tuple[str, ...] = ()
    """Names of the sources that were looked at."""
    problems: dict[str, str] = {}
    """What could not be read or was refused, in words, by the source's name."""

    def __add__(self, other: Received) -> Received:
        return Received(
            new=self.new + other.new,
            known=self.known + other.known,
            adopted=self.adopted + other.adopted,
            refused=self.refused + other.refused,
            failed=self.failed + other.failed,
            looked=tuple(dict.fromkeys((*self.looked, *other.looked))),
            problems={**self.problems, **other.problems},
        )


class Looked(msgspec.Struct, frozen=True):
    """What one look at one source gave."""

    received: Received
    paused: bool = False
    """There is more; the next look goes on there."""
    error: AnchordError | None = None
    """Why it could not go on."""


def receive(parts: Parts, now: int) -> Received:
    """Look at each source that is due. Nothing is written when none is.

    Raises:
        StoreBusyError: another process held the store too long; steps before are in.
    """
    total = Received()
    for source in parts.sources:
        row = parts.store.sources.get(source.name)
        if row is None or row.kind != source.kind or (row.next_at or 0) <= now:
            total += look(parts, source, now).received
    return total


def next_moment(parts: Parts, now: int) -> int | None:
    """Return when the next source is due; None: there are no sources."""
    rows = [(source, parts.store.sources.get(source.name)) for source in parts.sources]
    moments = [
        now if row is None or row.kind != source.kind else row.next_at or now
        for source, row in rows
    ]
    return min(moments, default=None)


def look(parts: Parts, source: Source, now: int, tell: Telling | None = None) -> Looked:
    """Look at one source, whether it is due or not, up to its end or its next pause.

    Args:
        parts: what a pass works with.
        source: where to look.
        now: Unix seconds.
        tell: told each refusal.

    Raises:
        StoreBusyError: another process held the store too long; steps before are in.
    """
    row = parts.store.sources.begin(source.name, source.kind, now)
    return _Look(parts, source, row, now, tell).run()


class _Look:
    """One look at one source."""

    def __init__(
        self, parts: Parts, source: Source, row: SourceRow, now: int, tell: Telling | None
    ) -> None:
        self._parts, self._source, self._row, self._now = parts, source, row, now
        self._tell = tell
        self._taken = Received()
        self._first: Rejection | None = None

    def run(self) -> Looked:
        """Take in one step after another."""
        # Closed at the end, whatever it is: the source's own connection goes with it.
        steps = cast("Generator[Step, None, None]", self._source.look(self._row.cursor, self._now))
        with contextlib.closing(steps):
            while True:
                try:
                    step = next(steps, None)
                except _THEIRS as error:
                    return Looked(self._failed(error), error=error)
                if step is None:
                    return self._ended(paused=False)
                if not self._take(step):
                    return Looked(self._report("another process reads it, and goes on with it"))
                self._parts.on_progress("receive", self._taken.new + self._taken.known, 0)
                if step.pause:
                    return self._ended(paused=True)

    def _take(self, step: Step) -> bool:
        """Make a step durable, then its cursor; tell whether the source is still ours to read."""
        store = self._parts.store
        items = without_forgeries(step.items, self._parts.keyring)
        taken = take_in(items, store, self._now, self._refuse, lambda _count: None)
        new = taken.new + step.new
        self._taken += _received(taken, step.new)
        if step.cursor is None and not new and not taken.rejected:
            return True
        if not store.sources.advance(self._row, step.cursor, new, taken.rejected):
            return False
        if step.cursor is not None:
            self._row = msgspec.structs.replace(self._row, cursor=step.cursor)
        return True

    def _refuse(self, rejection: Rejection) -> None:
        self._first = self._first or rejection
        if self._tell is not None:
            self._tell(rejection)

    def _ended(self, *, paused: bool) -> Looked:
        again = self._now if paused else self._now + self._source.every_s
        self._parts.store.sources.ended(self._source.name, self._now, again)
        return Looked(self._report(None), paused)

    def _failed(self, error: AnchordError) -> Received:
        every = self._source.every_s
        again = next_attempt(
            self._now,
            self._row.failures + 1,
            shortest_s=min(every, _FIRST_WAIT_S),
            longest_s=max(every, _LONGEST_WAIT_S),
            retry_after_s=getattr(error, "retry_after", None),
        )
        self._parts.store.sources.failed(
            self._source.name, self._now, again, _printable(str(error))
        )
        return msgspec.structs.replace(self._report(str(error)), failed=1)

    def _report(self, trouble: str | None) -> Received:
        words = [] if trouble is None else [trouble]
        if self._first is not None:
            line = "" if self._first.line is None else f"{self._first.line}:"
            first = f"{self._first.where}:{line} {self._first.reason}"
            words.append(f"{self._taken.refused:,} refused, first {first}")
        problems = {self._source.name: _printable("; ".join(words))} if words else {}
        looked = (self._source.name,)
        return msgspec.structs.replace(self._taken, looked=looked, problems=problems)


def _received(taken: Taken, beside: int) -> Received:
    return Received(
        new=taken.new + beside,
        known=taken.known,
        adopted=taken.adopted,
        refused=taken.rejected,
    )


def _printable(text: str) -> str:
    """Return words that end up in logs and on screens: names of files may hold anything."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
