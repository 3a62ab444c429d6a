"""What follows from a refusal: who waits, until when, and who must act. Arithmetic only.

Throttling is never counted as a failed attempt, and what may have been carried out is looked for
before it is tried again: captures were found behind failed answers
(https://github.com/overcast07/wayback-machine-spn-scripts/issues/26).
"""

from __future__ import annotations

import msgspec

from anchord.core.capture_table import (
    DAY,
    HOUR,
    READING,
    THROTTLED,
    Rule,
    Scope,
    rule_of,
)
from anchord.core.storage import Refused

__all__ = [
    "ATTEMPTS",
    "Decision",
    "Rule",
    "Scope",
    "decide",
    "decide_reading",
    "host_alert",
    "lane_of",
    "rule_of",
]

ATTEMPTS = 5
"""Counted failures after which a capture is parked."""
RETRY_AFTER_MAX_S = HOUR
"""How far a Retry-After is followed."""
SHARE_OF_A_HOST = 0.01
"""Above this share of a host's URLs, codes that are `watched` mean that something is wrong."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What follows from one refusal."""

    scope: Scope
    """Who waits until `at`: this capture, all of its host, or everything of the account."""
    at: int | None
    """Not before this moment; jitter may only add to it. None: parked or stopped."""
    counted: bool
    """The attempt counts as failed."""
    look: bool
    """Ask the index before another submit."""
    park: bool
    """This capture waits for a person."""
    stop: bool
    """The lane waits for a person."""
    alert: str | None
    """A line for people."""
    lane: Scope | None
    """Whose row notes `strikes` and the code; None: no row does."""
    strikes: int
    """Refusals in a row, this one included."""


def lane_of(code: str) -> Scope:
    """Return whose refusals in a row `decide` asks for: the host's or the account's."""
    rule = rule_of(code)
    return Scope.HOST if Scope.HOST in (rule.scope, rule.lane) else Scope.ACCOUNT


def decide(
    refused: Refused, now: int, *, attempts: int, strikes: int, last_code: str | None = None
) -> Decision:
    """Return what follows from a refused submit, or from a job that ended in an error.

    Args:
        refused: what was said.
        now: Unix seconds.
        attempts: counted failures of this capture before this one.
        strikes: refusals in a row of the lane `lane_of(refused.code)` before this one.
        last_code: the code that lane noted with them; if of another row, they are over.
    """
    rule = rule_of(refused.code)
    if last_code is not None and rule_of(last_code) is not rule:
        strikes = 0
    if rule.scope is not Scope.JOB:
        return _lane_waits(rule, refused, now, strikes)
    wide = rule.lane is not None and strikes + 1 >= rule.widens_at
    if wide and not rule.permanent:
        whole = msgspec.structs.replace(rule, scope=rule.lane, waits=rule.wide_waits)
        return _lane_waits(whole, refused, now, strikes)
    alone = _capture_waits(rule, refused, now, attempts, strikes)
    if not wide:
        return alone
    return msgspec.structs.replace(alone, scope=rule.lane, at=_next_day(now))


def decide_reading(
    refused: Refused, now: int, *, strikes: int, last_code: str | None = None
) -> Decision:
    """Return what follows from a refused look: at a status, the account, the index or a replay.

    No capture failed by it, so nothing is counted, and the lane that was asked by waits, which
    the scope `account` stands for here. Only an excluded site is the capture's own end.

    Args:
        refused: what was said.
        now: Unix seconds.
        strikes: refusals in a row of the lane that was asked by, before this one.
        last_code: the code that lane noted with them; if of another row, they are over.
    """
    rule = _reading_rule(refused.code)
    if last_code is not None and _reading_rule(last_code) is not rule:
        strikes = 0
    if rule.permanent:
        return _capture_waits(rule, refused, now, 0, strikes)
    return _lane_waits(rule, refused, now, strikes)


def host_alert(code: str, failing: int, of: int) -> str | None:
    """Return a line for people when too many URLs of a host fail with a `watched` code.

    Args:
        code: of the refusal.
        failing: URLs of the host that wait because of this code.
        of: all URLs of the host.
    """
    if not rule_of(code).watched or failing <= of * SHARE_OF_A_HOST:
        return None
    return (
        f"{failing:,} of {of:,} URLs of a host are answered {code}: check the URL template, "
        "and that the host lets the archive's crawler in"
    )


def _reading_rule(code: str) -> Rule:
    """Return the rule of a refused look; jobs and hosts have no part in it."""
    rule = rule_of(code)
    own = rule.permanent or (rule.scope is Scope.ACCOUNT and rule is not THROTTLED)
    return rule if own else READING


def _lane_waits(rule: Rule, refused: Refused, now: int, strikes: int) -> Decision:
    """Let a lane wait; the capture that met it waits with it, and is not to blame."""
    stop = rule.stops_after is not None and strikes >= rule.stops_after
    at = _next_day(now) if rule.next_day else now + _wait(rule, refused, strikes)
    return Decision(
        scope=rule.scope,
        at=None if stop else at,
        counted=False,
        look=rule.look,
        park=False,
        stop=stop,
        alert=rule.alert if stop or rule.stops_after is None else None,
        lane=rule.scope,
        strikes=strikes + 1,
    )


def _capture_waits(rule: Rule, refused: Refused, now: int, attempts: int, strikes: int) -> Decision:
    """Let one capture wait, or park it once its attempts are used up."""
    counted = not rule.next_day
    park = rule.permanent or (counted and attempts + 1 >= ATTEMPTS)
    at = _next_day(now) if rule.next_day else now + _wait(rule, refused, attempts)
    return Decision(
        scope=Scope.JOB,
        at=None if park else at,
        counted=counted,
        look=rule.look,
        park=park,
        stop=False,
        alert=rule.alert,
        lane=rule.lane,
        strikes=strikes + (rule.lane is not None),
    )


def _wait(rule: Rule, refused: Refused, before: int) -> int:
    """Return the seconds after so many refusals; the last wait is never cut by a Retry-After."""
    if not rule.waits:
        return 0
    last = len(rule.waits) - 1
    own = rule.waits[min(max(before, 0), last)]
    if refused.retry_after_s is None:
        return own
    asked = max(int(min(refused.retry_after_s, RETRY_AFTER_MAX_S)), 1)
    return asked if rule.follows and before < last else max(asked, own)


def _next_day(now: int) -> int:
    return (now // DAY + 1) * DAY
