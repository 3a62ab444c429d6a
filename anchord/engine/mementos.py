"""From a reported capture to one that is stored, and whether it stays: index, replay, confirm.

A success that the service reports proves nothing
(https://github.com/internetarchive/wayback-machine-webextension/issues/945): only a memento that
replays, raw and exactly this one (RFC 7089), is signed for. Later it is replayed again; when it is
gone or has become another, what was signed is withdrawn and the page is captured anew.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.capture import moment_of
from anchord.core.storage import Capture, CaptureState, Intent, Refused
from anchord.core.wayback import IndexRow, Memento, NotThere
from anchord.engine import ledger
from anchord.engine.capture_bond import check_unsigned, of_its_page, signed_series
from anchord.engine.capture_fate import UNSEEN
from anchord.engine.capture_index import (
    ABOUT_THE_PAGE,
    ABOUT_THE_SERVICE,
    SKEW_S,
    Indexing,
    listed_well,
)
from anchord.engine.capture_lanes import REPLAY
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from anchord.engine.calls import Calls
    from anchord.engine.capture_fate import Fates
    from anchord.engine.capture_lanes import CaptureLanes
    from anchord.engine.capture_report import Tally
    from anchord.engine.storing import StoringParts

LOST_AFTER_S = (3_600, 21_600, 64_800)
"""Waits between looks for a memento that was signed for and does not replay; after the last it is
lost. The archive has bad days (mementos that return after hours were seen)."""
_POSTPONED_S = 600
_OK = 200


class Mementos:
    """Looks for mementos and replays them."""

    def __init__(
        self, parts: StoringParts, lanes: CaptureLanes, fates: Fates, tally: Tally
    ) -> None:
        self.lanes = lanes
        self.listed: dict[int, Capture] = {}
        """Stored captures that the index still lists and whose replay is next. Not kept: a new
        process asks the index once more."""
        self._parts = parts
        self._archive = parts.captures
        self._policy = parts.capture_policy
        self._captures = lanes.captures
        self._fates = fates
        self._tally = tally
        self._indexing = Indexing(parts, self)

    def start(self, now: int, calls: Calls) -> None:
        """Start what is due and allowed now; first replays go before confirmations."""
        self._indexing.start(now, calls)
        if (
            self._archive is None
            or calls.room(REPLAY) < 1
            or self.lanes.free_at(REPLAY, now) != now
        ):
            return
        due = self._captures.due({CaptureState.INDEXED}, now, 1) or list(self.listed.values())[:1]
        if due:
            self._replay(due[0], now, calls)

    def moment(self, now: int, calls: Calls | None) -> int | None:
        """Return when the next look or replay can be made; a lane in use is left out."""
        moments = []
        if calls is None or calls.room("index") > 0:
            moments.append(self._indexing.moment(now))
        if calls is None or calls.room(REPLAY) > 0:
            free = self.lanes.free_at(REPLAY, now)
            due = now if self.listed else self._captures.next_moment({CaptureState.INDEXED})
            moments.append(None if free is None or due is None else max(free, due, now))
        return min((moment for moment in moments if moment is not None), default=None)

    # ------------------------------------------------------------------ the index

    def listed_as(self, capture: Capture, row: IndexRow, now: int) -> None:
        """The index lists the capture."""
        if capture.state is CaptureState.STORED:
            if listed_well(row):
                self.listed[capture.id] = capture
            else:
                self._weaken(capture, f"the index lists it with status {row.statuscode}", now)
        elif capture.state is CaptureState.LOOKING:
            self._adopt(capture, row, now)
        elif listed_well(row):
            columns = {"state": CaptureState.INDEXED, "next_attempt_at": now}
            self._fates.change(capture, columns, done="indexed")
        else:
            said = f"the index lists it with status {row.statuscode:.20}"
            self._fates.disbelieve(capture, Refused(code="unexpected-status", message=said), now)

    def unlisted(self, capture: Capture, now: int) -> None:
        """The index does not list it (yet)."""
        if capture.state is CaptureState.LOOKING:
            self._fates.not_found(capture, now)
        elif capture.state is CaptureState.STORED:
            self._weaken(capture, "the index does not list it any more", now)
        else:
            self._not_yet(capture, "not-indexed", "reported, and the index never listed it", now)

    def _adopt(self, capture: Capture, row: IndexRow, now: int) -> None:
        """A capture nobody told us of: ours, or one that was there already."""
        made = capture.submitted_at is not None
        ours = made and moment_of(row.timestamp) >= (capture.submitted_at or 0) - SKEW_S
        columns = {
            "state": CaptureState.INDEXED,
            "timestamp": row.timestamp,
            "final_url": row.original,
            "adopted": not ours,
            # The try that led here was counted as failed before its capture was found.
            "attempts": max(capture.attempts - 1, 0),
            "reported_at": now,
            "checks": 0,
            "next_attempt_at": now,
            "job_id": None,
            "deadline_at": None,
        }
        if self._fates.change(capture, columns, done="indexed") and not ours:
            self._tally.add("adopted")

    # ------------------------------------------------------------------ replay

    def _replay(self, capture: Capture, now: int, calls: Calls) -> None:
        if self._archive is None or capture.timestamp is None or capture.final_url is None:
            return
        self.lanes.take(REPLAY, now)
        self.lanes.flush()
        call = partial(self._archive.replay, capture.timestamp, capture.final_url, capture.contains)
        calls.start(REPLAY, ("replay", capture.id), call, partial(self._replayed, capture))

    def _replayed(
        self, capture: Capture, now: int, result: Memento | NotThere | Refused | AnchordError
    ) -> None:
        self.listed.pop(capture.id, None)
        if isinstance(result, AnchordError):
            raise result
        if isinstance(result, Refused):
            self._replay_refused(capture, result, now)
            return
        self.lanes.works(REPLAY, now)
        if isinstance(result, Memento) and result.timestamp != capture.timestamp:
            result = NotThere(reason=f"another capture: {result.timestamp:.20}")
        if isinstance(result, Memento) and not result.x_archive_src:
            result = NotThere(reason="the archive does not say where it has it from")
        if capture.state is CaptureState.STORED:
            self._confirm(capture, result, now)
        elif isinstance(result, NotThere):
            self._not_yet(
                capture, "not-replayed", f"indexed, and never replayed: {result.reason}", now
            )
        elif (problem := self._problem(capture, result, now)) is not None:
            self._fates.disbelieve(capture, problem, now)
        else:
            self._store(capture, result, now)

    def _store(self, capture: Capture, memento: Memento, now: int) -> None:
        """The memento replayed just now: state and event in one transaction, or neither."""
        check_unsigned(self._parts.parts.store, capture)
        columns: dict[str, Any] = {
            "state": CaptureState.STORED,
            "http_status": memento.http_status,
            "sha256": memento.sha256,
            "size": memento.size,
            "x_archive_src": memento.x_archive_src,
            "stored_at": now,
            "confirmed_at": None,
            "confirmations": 0,
            "attempts": 0,
            "checks": 0,
            "next_attempt_at": self._confirm_at(now, 0, now),
            "code": None,
            "note": None,
        }
        seen = msgspec.structs.replace(capture, **columns)
        intent = ledger.capture_series(self._parts.parts, seen, now)
        self._fates.change(capture, columns, intents=(intent,), done="stored")

    def _not_yet(self, capture: Capture, code: str, note: str, now: int) -> None:
        """It may still come: the next look, or after the last one another capture."""
        checks = capture.checks + 1
        after_s = self._policy.check_after_s
        if checks < len(after_s):
            planned = (capture.reported_at or now) + after_s[checks]
            # Looks that were late do not follow each other at once.
            at = max(planned, now + after_s[0])
            columns = {
                "state": CaptureState.REPORTED if code == "not-indexed" else CaptureState.INDEXED,
                "checks": checks,
                "next_attempt_at": self.lanes.gathered(now, at),
                "code": code,
            }
            self._fates.change(capture, columns)
            return
        self._fates.fail(capture, Refused(code=code, message=note[:300]), now)

    # ------------------------------------------------------------------ confirmations

    def _confirm(self, capture: Capture, result: Memento | NotThere, now: int) -> None:
        if isinstance(result, NotThere):
            self._weaken(capture, result.reason, now)
        elif result.http_status != _OK:
            self._weaken(capture, f"it has status {result.http_status} now", now)
        elif result.sha256 != capture.sha256:
            self._weaken(capture, f"other bytes: {result.sha256.hex()}", now)
        else:
            count = capture.confirmations + 1
            columns = {
                "confirmations": count,
                "confirmed_at": now,
                "checks": 0,
                "next_attempt_at": self._confirm_at(capture.stored_at or now, count, now),
                "code": None,
                "note": None,
            }
            self._fates.change(capture, columns, done="confirmed")

    def _confirm_at(self, stored_at: int, confirmations: int, now: int) -> int | None:
        after_s = self._policy.confirm_after_s
        if confirmations >= len(after_s):
            return None
        # Confirmations that were late do not follow each other at once.
        soonest = now + min(3_600, after_s[confirmations])
        return self.lanes.gathered(now, max(stored_at + after_s[confirmations], soonest))

    def _weaken(self, capture: Capture, why: str, now: int) -> None:
        """What was signed for does not replay: look again, and in the end withdraw."""
        checks = capture.checks + 1
        if checks > len(LOST_AFTER_S):
            self._lose(capture, why, now)
            return
        at = self.lanes.later(now, now + LOST_AFTER_S[checks - 1])
        columns = {
            "checks": checks, "next_attempt_at": at, "code": "memento-missing", "note": why[:300],
        }  # fmt: skip
        self._fates.change(capture, columns)

    def _lose(self, capture: Capture, why: str, now: int) -> None:
        """Withdraw what was signed, or keep it from being signed; capture the page again.

        All of it is one transaction. If we crash before it, the memento is looked for once more.
        """
        columns = {
            **UNSEEN,
            "state": CaptureState.WAITING,
            "attempts": 0,
            "next_attempt_at": now,
            "stored_at": None,
            "confirmed_at": None,
            "confirmations": 0,
            "lost": capture.lost + 1,
            "code": "memento-lost",
            "note": why[:300],
        }
        intents: tuple[Intent, ...] = ()
        cut: tuple[int, ...] = ()
        series = signed_series(self._parts.parts.store, capture)
        if series is not None:
            reason = f"memento lost: {why}"[:300]
            new = ledger.withdrawn_series(self._parts.parts, series, reason, now)
            intents = () if new is None else (Intent(batch_id=capture.batch_id, series=new),)
            cut = (series.id,)
        self._fates.change(capture, columns, intents=intents, cut_series=cut, done="lost")

    # ------------------------------------------------------------------ refusals

    def refused(self, code: str) -> None:
        """Count a refusal by a reader."""
        self._tally.refuse(code)

    def unreadable(self, capture: Capture, refused: Refused, now: int) -> None:
        """The archive does not show this page, or more of it than we read."""
        if capture.state is CaptureState.STORED:
            self._weaken(capture, f"{refused.code}: {refused.message}", now)
        else:
            self._fates.park(capture, capture.attempts, refused)

    def postpone(self, capture: Capture, at: int, now: int) -> None:
        """Let others go first: what was asked may be what the service cannot answer."""
        self._fates.change(capture, {"next_attempt_at": self.lanes.later(now, at)})

    def _replay_refused(self, capture: Capture, refused: Refused, now: int) -> None:
        self._tally.refuse(refused.code)
        if refused.code in ABOUT_THE_PAGE:
            self.unreadable(capture, refused, now)
            return
        self.lanes.refuse_reading(REPLAY, refused, now)
        if refused.code not in ABOUT_THE_SERVICE:
            self.postpone(capture, now + _POSTPONED_S, now)

    def _problem(self, capture: Capture, memento: Memento, now: int) -> Refused | None:
        """Say why a memento is not the record's page; None when it is."""
        url = capture.final_url or ""
        if not of_its_page(self._parts.parts.store, capture, url):
            return Refused(code="unexpected-url", message=f"the memento is of {url}"[:300])
        if moment_of(memento.timestamp) > now + SKEW_S:
            said = f"the memento is of {memento.timestamp}, which is yet to come"
            return Refused(code="unexpected-moment", message=said)
        if memento.http_status != _OK:
            said = f"the memento has status {memento.http_status}"
            return Refused(code="unexpected-status", message=said)
        if not memento.contains:
            said = "the memento does not hold what the record's page has"
            return Refused(code="unexpected-content", message=said)
        return None
