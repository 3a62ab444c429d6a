"""The table behind `capture_rules`: each code of a refusal, who waits for it, and how long.

The codes are those of the "Save Page Now 2 Public API Docs" (linked from
https://archive.org/details/spn-2-public-api-docs), and a few that only clients saw: no-captures
(https://github.com/internetarchive/wayback/issues/304), redis-error (InternetArchiveBot, APII.php),
recursion (wayback-machine-spn-scripts, spn.sh), invalid-url and forbidden (sandcrawler, ia.py).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

MINUTE, HOUR, DAY = 60, 3_600, 86_400


class Scope(StrEnum):
    """Who waits."""

    JOB = "job"
    HOST = "host"
    ACCOUNT = "account"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    codes: str
    """Separated by spaces."""
    scope: Scope
    waits: tuple[int, ...] = ()
    """Seconds by failed attempts (job) or by refusals in a row (host, account); the last stays."""
    next_day: bool = False
    """Wait for the next UTC day instead. Not a failure."""
    follows: bool = False
    """A Retry-After replaces the wait; elsewhere it only lengthens it."""
    look: bool = False
    """It may have been captured all the same: ask the index before another submit."""
    permanent: bool = False
    """It will never work: parked at once."""
    stops_after: int | None = None
    """Refusals in a row that are borne before a person must act."""
    alert: str | None = None
    """What a person should know or do."""
    watched: bool = False
    """Something is wrong when many URLs of a host have it: `capture_rules.host_alert`."""
    lane: Scope | None = None
    """Of a job's trouble that may be the whole host's or service's: whose it may be."""
    widens_at: int = 0
    """Refusals in a row from which it is taken for that."""
    wide_waits: tuple[int, ...] = ()
    """Seconds then; empty: the next UTC day."""


_SERIES = (80 * MINUTE, 6 * HOUR, 24 * HOUR, 72 * HOUR)
"""An outcome is cached for at least 75 minutes: asking again sooner repeats it."""
_SOON = (5 * MINUTE, 80 * MINUTE, 6 * HOUR, 24 * HOUR)
_OUTAGE = (5 * MINUTE, 10 * MINUTE, 20 * MINUTE, 30 * MINUTE)
_DOUBLING_HOURS = tuple(hours * HOUR for hours in (1, 2, 4, 8, 16, 24))

# Mostly over in seconds; an account that keeps refusing what it says is free is asked more rarely.
SESSION_LIMIT = Rule(
    codes="user-session-limit",
    scope=Scope.ACCOUNT,
    waits=(20, 20, 40, 80, 160, 300),
)
# A slot is freed later than its job ends. After five in a row the lane rests: sustained disregard
# of 429 costs a firewall's block (https://github.com/edgi-govdata-archiving/wayback/issues/137).
THROTTLED = Rule(
    codes="http-429",
    scope=Scope.ACCOUNT,
    waits=(20, 90, 180, 360, 30 * MINUTE),
    follows=True,
)
DAY_OF_ACCOUNT = Rule(
    codes="daily-captures-limit max-daily-bandwidth max-daily-bandwidth-from-ip",
    scope=Scope.ACCOUNT,
    next_day=True,
)
# Sporadic under overload too: https://github.com/overcast07/wayback-machine-spn-scripts/issues/27.
KEY = Rule(
    codes="unauthorized-key forbidden-key",
    scope=Scope.ACCOUNT,
    waits=(60, 120),
    stops_after=2,
    alert="the archive does not accept the key: check it against "
    "https://archive.org/account/s3.php, then run `anchord retry --archive`",
)
ADDRESS_LISTED = Rule(
    codes="blocked-client-ip",
    scope=Scope.ACCOUNT,
    stops_after=0,
    alert="the archive has this address on its block list: write to info@archive.org, then run "
    "`anchord retry --archive`",
)
FIREWALL = Rule(
    codes="connection-refused http-403",
    scope=Scope.ACCOUNT,
    waits=_DOUBLING_HOURS,
    alert="the archive takes no connection from this address, as after too many requests: it is "
    "left alone for hours; check that no other client runs here",
)
OFFLINE = Rule(
    codes="offline",
    scope=Scope.ACCOUNT,
    waits=_OUTAGE,
)
BUSY_WORKERS = Rule(
    codes="redis-error no-browsers-available celery",
    scope=Scope.JOB,
    waits=_SOON,
    lane=Scope.ACCOUNT,
    widens_at=5,
    wide_waits=_OUTAGE,
)
DAY_OF_URL = Rule(
    codes="too-many-daily-captures",  # so a capture of today exists
    scope=Scope.JOB,
    next_day=True,
    look=True,
)
DAY_OF_HOST = Rule(
    codes="too-many-daily-captures-host max-daily-bandwidth-host",
    scope=Scope.HOST,
    next_day=True,
)
HOST_THROTTLES = Rule(
    codes="too-many-requests",
    scope=Scope.HOST,
    waits=tuple(minutes * MINUTE for minutes in (10, 20, 40, 80, 160, 320, 360)),
    alert="the captured server throttles the archive: if it is ours, let its crawler in",
)
HOST_BANDWIDTH = Rule(
    codes="bandwidth-limit-exceeded",
    scope=Scope.HOST,
    waits=_DOUBLING_HOURS,
)
FAILED = Rule(
    codes="job-failed cannot-fetch browsing-timeout soft-time-limit-exceeded read-timeout "
    "protocol-error proxy-error internal-server-error capture-location-error gateway-timeout "
    "bad-gateway service-unavailable invalid-server-response no-captures recursion unknown-error",
    scope=Scope.JOB,
    waits=_SERIES,
    look=True,
)
PAGE = Rule(
    codes="not-found no-access unauthorized invalid-host-resolution too-many-redirects blocked",
    scope=Scope.JOB,
    waits=_SERIES,
    watched=True,
)
BLOCKED_URL = Rule(
    codes="blocked-url",
    scope=Scope.JOB,
    permanent=True,
    alert="the archive has this URL on its block list: write to info@archive.org",
    lane=Scope.HOST,
    widens_at=3,
)
EXCLUDED = Rule(
    codes="excluded",
    scope=Scope.JOB,
    permanent=True,
    alert="the archive does not show this site: write to info@archive.org",
)
PERMANENT = Rule(
    codes="invalid-url-syntax invalid-url bad-request filesize-limit ftp-access-denied "
    "method-not-allowed not-implemented http-version-not-supported "
    "network-authentication-required forbidden",
    scope=Scope.JOB,
    permanent=True,
)
# The capture was often made: https://github.com/internetarchive/wayback/issues/297. Three in a
# row are an outage, in which no capture may use up its attempts.
BROKEN_ANSWER = Rule(
    codes="no-answer unknown-answer too-large http-408",  # and http-5NN
    scope=Scope.JOB,
    waits=_SOON,
    look=True,
    lane=Scope.ACCOUNT,
    widens_at=3,
    wide_waits=_OUTAGE,
)
READING = Rule(
    codes="",  # every look that is refused without a row of its own
    scope=Scope.ACCOUNT,
    waits=(60, 120, 240, 480, 15 * MINUTE),
    follows=True,
)

ROWS = (
    SESSION_LIMIT,
    THROTTLED,
    DAY_OF_ACCOUNT,
    KEY,
    ADDRESS_LISTED,
    FIREWALL,
    OFFLINE,
    BUSY_WORKERS,
    DAY_OF_URL,
    DAY_OF_HOST,
    HOST_THROTTLES,
    HOST_BANDWIDTH,
    FAILED,
    PAGE,
    BLOCKED_URL,
    EXCLUDED,
    PERMANENT,
    BROKEN_ANSWER,
)
_BY_CODE = {code: rule for rule in ROWS for code in rule.codes.split()}


def rule_of(code: str) -> Rule:
    """Return the rule of any code: what nobody knows is a failed job that may work later."""
    if code.startswith("http-5"):
        return BROKEN_ANSWER
    return _BY_CODE.get(code, FAILED)
