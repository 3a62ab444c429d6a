"""What was asked of the archive, what it made, and how often its rules were broken."""

from __future__ import annotations

from collections import Counter

import msgspec


class Tally(msgspec.Struct, kw_only=True):
    """Counts while the service runs."""

    submits: int = 0
    accepted: int = 0
    duplicates: int = 0
    old_outcomes: int = 0
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    answers_lost: int = 0
    captures_made: int = 0
    captured_twice: int = 0
    jobs_failed: int = 0
    rate_429: int = 0
    rate_429_by: Counter[str] = msgspec.field(default_factory=Counter)
    session_limit_refusals: int = 0
    closed_on: int = 0
    status_reads: int = 0
    status_ids: int = 0
    cdx_reads: int = 0
    replay_reads: int = 0
    user_reads: int = 0
    system_reads: int = 0
    available_reads: int = 0
    slot_seconds_used: float = 0
    durations: list[float] = msgspec.field(default_factory=list)
    max_submits_in_a_minute: int = 0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The same for people, JSON and the laws of a simulated day."""

    now: float
    """The archive's clock."""
    submits: int
    """Requests to /save, refused ones too."""
    accepted: int
    """New jobs."""
    duplicates: int
    """Submits that were told of a recent capture."""
    old_outcomes: int
    """Submits that were given a running or just ended job."""
    refused: dict[str, int]
    """Refused submits by code: `http-429`, `http-401`, `user-session-limit`, ..."""
    answers_lost: int
    """Accepted submits whose answer was spoiled by a fault."""
    captures_made: int
    """By jobs; redirects on the way are not counted."""
    captured_twice: int
    """Captures made though a living one existed, younger than the client's
    if_not_archived_within or the rule for the same URL."""
    live_twice: int
    """URLs with more than one living capture made by jobs."""
    vanished: int
    jobs_failed: int
    rate_429: int
    """429 answers earned by pace, of all request families; those of faults are not counted."""
    rate_429_by: dict[str, int]
    session_limit_refusals: int
    """Submits while all slots were taken."""
    firewall_events: int
    """How often a 429 was ignored until the firewall closed."""
    closed_on: int
    """Requests that found the service closed."""
    status_reads: int
    status_ids: int
    cdx_reads: int
    replay_reads: int
    user_reads: int
    system_reads: int
    available_reads: int
    slot_seconds_used: float
    durations: tuple[float, ...]
    """Of every job that ended."""
    idle_slot_seconds: float
    """Seconds since the first submit in which a slot and a submit of the minute were free."""
    max_submits_in_a_minute: int


class Memento(msgspec.Struct, frozen=True, kw_only=True):
    """One capture, as tests ask for it."""

    url: str
    timestamp: str
    status: int
    body: bytes
    source: str
    replays: bool
    """Now."""
