"""Questions to the index (CDX): one page, or with one question many pages of a directory.

The index tells what was captured, late and slowly
(https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server). A row counts when it
is of the very page, dated as expected, and of a success.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from anchord.core.capture import moment_of, same_page, stamp_of
from anchord.core.capture_page import directory_of, shared_start
from anchord.core.storage import Capture, CaptureState, Refused
from anchord.core.wayback import IndexPage, IndexRow
from anchord.engine.capture_lanes import INDEX
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from anchord.engine.calls import Calls
    from anchord.engine.mementos import Mementos
    from anchord.engine.storing import StoringParts

SKEW_S = 60
"""The service's clock and ours may differ by this much."""
_AT_ONCE = 5
"""So many due captures of one directory are worth a question of their own."""
_WINDOW_S = 3_600
_PAGES = 4
_DUE = 200
_ASKED_FOR = (CaptureState.LOOKING, CaptureState.REPORTED, CaptureState.STORED)
_LISTED = 50
"""Confirmations whose replay waits: no more are looked up until these were replayed."""
_POSTPONED_S = 600
_OK = frozenset({"200", "-"})
"""Statuses that count; "-" is a revisit: the same content as a capture before."""


class Question(msgspec.Struct, frozen=True):
    """What is asked, and about which captures."""

    captures: tuple[Capture, ...]
    url: str
    first: str
    last: str
    prefix: bool = False
    resume: str | None = None
    pages: int = 0


class Indexing:
    """Asks the index about captures that are due."""

    def __init__(self, parts: StoringParts, mementos: Mementos) -> None:
        self._archive = parts.captures
        self._captures = mementos.lanes.captures
        self._mementos = mementos
        self._lanes = mementos.lanes
        self._next: Question | None = None
        self._alone: set[int] = set()
        """Captures that a question about their directory did not reach."""

    def start(self, now: int, calls: Calls) -> None:
        """Ask what is due and allowed now. What is asked stays due until the answer is kept."""
        if self._archive is None or calls.room(INDEX) < 1 or self._lanes.free_at(INDEX, now) != now:
            return
        question, self._next = self._next or self._due(now), None
        if question is None:
            return
        self._lanes.take(INDEX, now)
        self._lanes.flush()
        ask = partial(
            self._archive.index,
            question.url,
            first=question.first,
            last=question.last,
            prefix=question.prefix,
            resume=question.resume,
        )
        calls.start(INDEX, question, ask, partial(self._answered, question))

    def moment(self, now: int) -> int | None:
        """Return when the next question can be asked."""
        free = self._lanes.free_at(INDEX, now)
        states = {CaptureState.LOOKING, CaptureState.REPORTED}
        # While confirmations wait for their replays, those make the next moment.
        if not self._mementos.listed:
            states.add(CaptureState.STORED)
        due = now if self._next is not None else self._captures.next_moment(states)
        return None if free is None or due is None else max(free, due, now)

    # ------------------------------------------------------------------ asking

    def _due(self, now: int) -> Question | None:
        """Return the next question: what may have been made, what was reported, what is stored."""
        first = self._captures.next_moment(_ASKED_FOR)
        if first is None or first > now:
            return None
        looking = self._captures.due({CaptureState.LOOKING}, now, 1)
        if looking:
            return _look(looking[0], now)
        for state in (CaptureState.REPORTED, CaptureState.STORED):
            if state is CaptureState.STORED and len(self._mementos.listed) >= _LISTED:
                continue
            due = [
                capture
                for capture in self._captures.due({state}, now, _DUE)
                if capture.id not in self._mementos.listed
            ]
            if due:
                return self._together(due) or _exact(due[0])
        return None

    def _together(self, due: list[Capture]) -> Question | None:
        """Return one question about neighbours of the capture that is longest due."""
        if due[0].id in self._alone:
            return None
        directory, moment = _directory(due[0]), _moment(due[0])
        near = [
            capture
            for capture in due
            if capture.id not in self._alone
            and _directory(capture) == directory
            and abs(_moment(capture) - moment) <= _WINDOW_S
        ]
        if len(near) < _AT_ONCE:
            return None
        stamps = sorted(capture.timestamp or "" for capture in near)
        url = shared_start([_page(capture) for capture in near])
        return Question(tuple(near), url, stamps[0], stamps[-1], prefix=True)

    # ------------------------------------------------------------------ answers

    def _answered(
        self, question: Question, now: int, result: IndexPage | Refused | AnchordError
    ) -> None:
        if isinstance(result, AnchordError):
            raise result
        if isinstance(result, Refused):
            self._refused(question, result, now)
            return
        self._lanes.works(INDEX, now)
        if not question.prefix:
            self._alone -= {capture.id for capture in question.captures}
        left = []
        for capture in question.captures:
            row = _row_of(question, capture, result.rows)
            if row is None:
                left.append(capture)
            else:
                self._mementos.listed_as(capture, row, now)
        if left:
            self._not_on_page(question, tuple(left), result.resume, now)

    def _not_on_page(
        self, question: Question, left: tuple[Capture, ...], resume: str | None, now: int
    ) -> None:
        """Some captures are not on this page of the answer; a few more pages are read for them."""
        pages = question.pages + 1
        if resume is not None and pages < _PAGES:
            self._next = msgspec.structs.replace(
                question, captures=left, resume=resume, pages=pages
            )
        elif resume is not None and question.prefix:
            self._alone |= {capture.id for capture in left}
        else:
            for capture in left:
                self._mementos.unlisted(capture, now)

    def _refused(self, question: Question, refused: Refused, now: int) -> None:
        """Nothing is known of the captures; the lane pauses, and a page that does it goes last."""
        self._mementos.refused(refused.code)
        if question.prefix:
            self._alone |= {capture.id for capture in question.captures}
        if refused.code in ABOUT_THE_PAGE:
            if not question.prefix:
                self._mementos.unreadable(question.captures[0], refused, now)
            return
        self._lanes.refuse_reading(INDEX, refused, now)
        if refused.code not in ABOUT_THE_SERVICE and not question.prefix:
            self._mementos.postpone(question.captures[0], now + _POSTPONED_S, now)


ABOUT_THE_PAGE = frozenset({"excluded", "too-large"})
"""Refusals by a reader that say something of one page and nothing of the service."""
ABOUT_THE_SERVICE = frozenset({"http-429", "connection-refused", "offline"})
"""Refusals that surely have nothing to do with what was asked."""


def _look(capture: Capture, now: int) -> Question:
    since = (capture.since_at if capture.since_at is not None else capture.created_at) - SKEW_S
    return Question((capture,), capture.url, stamp_of(max(since, 0)), stamp_of(now + SKEW_S))


def _exact(capture: Capture) -> Question:
    stamp = capture.timestamp or ""
    return Question((capture,), _page(capture), stamp, stamp)


def _row_of(question: Question, capture: Capture, rows: Iterable[IndexRow]) -> IndexRow | None:
    """Return the row that is this capture's; of several that may be adopted, the newest.

    What lies outside of the time that was asked for is not believed: it is too old to be adopted,
    or dated in the future.
    """
    if capture.state is not CaptureState.LOOKING:
        found = [
            row
            for row in rows
            if row.timestamp == capture.timestamp and same_page(_page(capture), row.original)
        ]
        return max(found, key=lambda row: row.statuscode in _OK, default=None)
    found = [
        row
        for row in rows
        if row.statuscode in _OK
        and same_page(capture.url, row.original)
        and question.first <= row.timestamp <= question.last
        and (capture.timestamp is None or row.timestamp > capture.timestamp)
    ]
    return max(found, key=lambda row: row.timestamp, default=None)


def listed_well(row: IndexRow) -> bool:
    """Tell whether a row is of a success."""
    return row.statuscode in _OK


def _page(capture: Capture) -> str:
    return capture.final_url or capture.url


def _directory(capture: Capture) -> str:
    return directory_of(_page(capture))


def _moment(capture: Capture) -> int:
    return moment_of(capture.timestamp or "")
