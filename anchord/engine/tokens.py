"""Tokens of time-stamping authorities for batches (RFC 3161), beside Bitcoin.

A token is an extra witness: whatever an authority does, the pass goes on. Each authority is asked
in a lane of its own while the calendars are asked, and again later until the batch is anchored;
its events are signed then, and a token that comes afterwards would be in none of them.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future, as_completed
from typing import TYPE_CHECKING

from anchord.core.model import BatchState
from anchord.core.retry import next_attempt
from anchord.core.tsa import Token
from anchord.engine.lanes import Lanes
from anchord.errors import AnchordError, ProtocolError, RefusedError, TransientError

if TYPE_CHECKING:
    from anchord.engine.parts import Parts
    from anchord.ports.authority import TimestampAuthority
    from anchord.ports.log import StoredToken

AT_ONCE = 16
"""Tokens asked of one authority in one pass: what piled up while it was away comes in bits."""
_OVER = (BatchState.ANCHORED, BatchState.PARKED)


class Stamping:
    """Asks for the tokens that are due; everything is written by the thread of the pass.

    What a killed pass leaves behind is an intent that is still due: asking again makes a second
    token over the same bytes, which is harmless.
    """

    def __init__(self, parts: Parts, now: int) -> None:
        self._parts = parts
        self._now = now
        self._calls: dict[Future[Token | AnchordError | None], StoredToken] = {}
        self._lanes = Lanes()
        self._down: set[str] = set()
        self.failed = 0

    def start(self) -> None:
        """Send what is due; give up what no event can hold any more."""
        by_url = {authority.url: authority for authority in self._parts.authorities}
        asked: Counter[str] = Counter()
        for intent in self._parts.store.tokens.due(self._now):
            batch = self._parts.store.batches.get(intent.batch_id)
            authority = by_url.get(intent.url)
            if batch.state in _OVER:
                self._give_up(intent, "none came before the events were signed")
            elif authority is None:
                self._give_up(intent, "this authority is not configured any more")
            elif asked[intent.url] < AT_ONCE:
                asked[intent.url] += 1
                call = self._lanes.call(intent.url, _ask, authority, batch.root, self._down)
                self._calls[call] = intent

    def collect(self) -> None:
        """Write what has come so far, without waiting."""
        for call in [call for call in self._calls if call.done()]:
            self._write(self._calls.pop(call), call.result())

    def finish(self) -> None:
        """Write what came; every call ends by its own timeout."""
        try:
            for call in as_completed(list(self._calls)):
                self._write(self._calls.pop(call), call.result())
        finally:
            self._lanes.close()

    def _write(self, intent: StoredToken, answer: Token | AnchordError | None) -> None:
        with self._parts.store.exclusive():
            self._keep(intent, answer)

    def _keep(self, intent: StoredToken, answer: Token | AnchordError | None) -> None:
        tokens = self._parts.store.tokens
        if isinstance(answer, Token):
            tokens.store(intent.batch_id, intent.url, answer.raw, self._now)
        elif answer is not None:
            self.failed += 1
            at = self._later(intent.attempts + 1, answer)
            tokens.postpone(intent.batch_id, intent.url, at, str(answer)[:500])

    def _later(self, attempts: int, error: AnchordError) -> int:
        return next_attempt(
            self._now,
            attempts,
            shortest_s=self._parts.policy.poll_min_s,
            longest_s=self._parts.policy.poll_max_s,
            retry_after_s=error.retry_after if isinstance(error, TransientError) else None,
        )

    def _give_up(self, intent: StoredToken, why: str) -> None:
        said = f"{why}; last: {intent.last_error}" if intent.last_error else why
        with self._parts.store.exclusive():
            self._parts.store.tokens.postpone(intent.batch_id, intent.url, None, said[:500])


def _ask(
    authority: TimestampAuthority, digest: bytes, down: set[str]
) -> Token | AnchordError | None:
    """Ask one authority for one token; None when it was found down meanwhile."""
    if authority.url in down:
        return None
    try:
        return authority.stamp(digest)
    except TransientError as error:
        down.add(authority.url)
        return error
    except (ProtocolError, RefusedError) as error:
        return error
