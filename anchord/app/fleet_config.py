"""The configuration of workers that share a store: the table [fleet]."""

from __future__ import annotations

from typing import Annotated

import msgspec

from anchord.app.section import Seconds, Section


class FleetConfig(Section, frozen=True, kw_only=True):
    """How `anchord worker` shares a PostgreSQL store with others."""

    concurrency: Annotated[int, msgspec.Meta(ge=1, le=32)] = 4
    """Of `anchord worker`: how much it does at once; each has sessions at the server, two or three.
    At least 2 where it also stores, for that takes one for itself."""
    lease_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 60.0
    """Of `anchord worker`: a worker that gives no sign of life loses its work, and others have it,
    within this many seconds."""
    shift_s: Seconds = 300.0
    """Of `anchord worker`: how long one of them has the way to the Internet Archive before the next
    may; calls under way are taken in first."""
