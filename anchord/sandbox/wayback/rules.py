"""The archive's limits and delays, as its documentation and its clients' reports have them.

SPN2 Public API document (revision of 2025-10-22) and changelog; wayback-cdx-server README;
edgi-govdata-archiving/wayback #137; akamhy/waybackpy #97; overcast07/wayback-machine-spn-scripts
#19, #39; agude/wayback-machine-archiver #28.
"""

from __future__ import annotations

from typing import Self

import msgspec

Span = tuple[float, float]
"""From, to: drawn evenly between them."""


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the archive allows, and how long it takes; the defaults are the real ones."""

    submits_per_minute: int = 7
    """In any 60 seconds, per account."""
    slots: int = 3
    """Captures of one account at a time."""
    daily_captures: int = 30_000
    per_url_per_day: int = 5
    per_host_per_day: int | None = None
    bytes_per_day: int = 5_000_000_000
    status_reads_per_day: int = 70_000
    cdx_per_minute: int = 30
    replay_per_minute: int = 600
    same_url_again_s: float = 3600
    """Younger captures are not made again, unless the client names another age."""
    host_queue_after: int | None = 20
    """More captures of one host in a minute than this begin later, by a fifth of a second each."""
    host_pause_s: float = 600
    """A host that answered 429 is left alone for this long."""
    duration_s: Span = (16, 50)
    """Of one capture."""
    slot_lag_s: Span = (0, 2)
    """A slot counts as taken for this long after its job has ended."""
    outcome_cache_s: float = 4500
    """A submit of the same URL gives the old outcome for this long, errors too."""
    job_kept_s: float = 3600
    """After its end a job is known for this long; then it is `pending` for ever."""
    index_lag_s: Span = (60, 240)
    """Before the index lists a capture and it replays."""
    available_lag_s: Span = (6_120, 19_800)
    """Before the availability API knows it."""
    revisits: bool = True
    """The same bytes again are kept as a revisit record."""
    ignored_429: int = 4
    """So many requests within a minute after a 429 and the firewall closes."""
    firewall_s: float = 3600
    """For how long; doubles each time."""

    @classmethod
    def quick(cls) -> Self:
        """Return rules under which a few records take seconds: for the demo and the sandbox."""
        return cls(
            submits_per_minute=60,
            cdx_per_minute=600,
            replay_per_minute=6_000,
            host_queue_after=None,
            duration_s=(0.2, 0.6),
            slot_lag_s=(0, 0.1),
            index_lag_s=(0.5, 0.5),
            available_lag_s=(1, 2),
        )
