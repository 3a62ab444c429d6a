"""What the archive allows and how long it takes; the defaults are the real numbers."""

from __future__ import annotations

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one archive.

    Rations and levels are those of a real `check_limit` answer (tests of the `internetarchive`
    library); item limits are those of https://archive.org/developers/items.html; lags are from
    https://github.com/jjjake/internetarchive/issues/168.
    """

    accesskey_ration: int = 74
    """Tasks one account may have in the queue."""
    bucket_ration: int = 24
    """Tasks one item may have in the queue."""
    rationing_level: int = 1399
    total_global_limit: int = 1799
    """Tasks of everybody; with more, nobody may upload."""
    background_tasks: int = 1017
    """Tasks of others."""
    metadata_lag_s: tuple[float, float] = (5.0, 7200.0)
    """How long a task waits until it ran; seeded, and short waits are as likely as long ones."""
    queued_share: float = 0.8
    """The part of the wait before the task runs."""
    first_put_s: float = 30.0
    """After the first upload to a new item others collide with it for so long."""
    item_max_files: int = 10_000
    item_max_bytes: int = 1 << 40
    advised_files: int = 500
    """More files in one item are a violation, but taken."""
    advised_files_per_day: int = 5_000
    items_per_day: int = 100
    """More new items a day look like spam."""
    task_limits: int = 500
    collections: frozenset[str] = frozenset({"opensource", "opensource_media", "test_collection"})
    """Where the account may put items."""
    seed: int = 1

    @classmethod
    def quick(cls) -> Rules:
        """Return rules for tests and demos: the same limits, lags of parts of a second."""
        return cls(metadata_lag_s=(0.3, 1.0), first_put_s=0.2)
