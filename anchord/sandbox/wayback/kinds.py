"""What can go wrong with the Wayback Machine on command or by weather.

Plain data (words, groups, routes, options), so that the board's module can import it.
"""

from __future__ import annotations

WAYBACK = "wayback"
"""The service, and its group."""

SAVE, STATUS, USER, SYSTEM = "save", "status", "user", "system"
CDX, REPLAY, AVAILABLE, TIMEMAP = "cdx", "replay", "available", "timemap"
_JSON = frozenset({SAVE, STATUS, USER, SYSTEM, CDX, AVAILABLE})

_Row = tuple[str, frozenset[str], frozenset[str] | None, frozenset[str]]


def _row(words: str, routes: frozenset[str] | None, *options: str) -> _Row:
    return words, frozenset({WAYBACK}), routes, frozenset(options)


def _save(words: str, *options: str) -> _Row:
    return _row(words, frozenset({SAVE}), *options)


def _read(words: str, *routes: str) -> _Row:
    return _row(words, frozenset(routes))


WAYBACK_KINDS: dict[str, _Row] = {
    # before anything is done
    "refused": _row(
        "refuses connections for delay_s seconds, as its firewall does", None, "delay_s"
    ),
    "offline": _row("answers 503 with the page of an outage", None),
    "rate-limited": _row("answers 429 with a page, without Retry-After", None),
    "bad-gateway": _row("answers 502 with a page", None),
    "gateway-timeout": _row("answers 504 with a page", None),
    "unknown-shape": _row("answers with JSON of a shape nobody knows", _JSON),
    "html": _row("answers 200 with a page where JSON is due", _JSON),
    "empty-body": _row("answers 200 with nothing", None),
    "not-logged-in": _row(
        "says 401 to a valid key, as under overload", frozenset({SAVE, STATUS, USER})
    ),
    "session-limit": _save("says that all slots are taken"),
    "day-limit": _save("says that the account's captures of the day are used up"),
    "url-limit": _save("says that the URL was captured often enough today"),
    "host-limit": _save("says that the account captured the host often enough today"),
    "bandwidth-limit": _save("says that the account's bytes of the day are used up"),
    "blocked-ip": _save("says that this address is in its block list"),
    # the capture is made
    "captured-5xx": _save("takes the job, then answers with status (default 502)", "status"),
    "captured-520": _save("takes the job, then answers 520 with nothing"),
    "captured-hangup": _save("takes the job, then hangs up"),
    "job-failed": _save(
        "the job ends in error:code (default job-failed); captured=1: having captured",
        "code",
        "captured",
    ),
    "no-snapshot": _save("the job ends in success, and there is no capture"),
    "forget-job": _save("forgets the job delay_s seconds after its end (default 0)", "delay_s"),
    "vanish": _save(
        "the capture is gone delay_s seconds after it was made (listed=1: the index keeps it)",
        "delay_s",
        "listed",
    ),
    "slow-slot": _save("counts the slot as taken delay_s seconds longer", "delay_s"),
    "delayed": _save("begins the capture delay_s seconds later, and says so", "delay_s"),
    "late-index": _save("lists and replays the capture delay_s seconds later", "delay_s"),
    # readers
    "stale-slots": _read("says that no slot is free", USER),
    "overloaded": _read("says that its servers are overloaded", SYSTEM),
    "nothing-listed": _read("lists nothing", CDX),
    "blocked-site": _read("answers 403: the site is excluded", CDX),
    "not-archived": _read("says that the URL is not archived", REPLAY),
    "false-empty": _read("knows no capture", AVAILABLE),
}
"""Every fault: words, groups, routes (None: any), options besides `on`."""
