"""Who is asked for stored copies when an audit goes online: the archives, read without an account.

A configuration may name stand-ins on loopback and a contact; without one the public addresses of
the Internet Archive are asked, slowly.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from anchord.adapters.archives.hosts import stand_in
from anchord.adapters.archives.public_items import API_URL, PublicItems
from anchord.adapters.archives.wayback import WAYBACK_URL, Wayback
from anchord.adapters.http import USER_AGENT, authority
from anchord.app.archive_config import ArchiveConfig
from anchord.engine.audit.online import OnlineCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anchord.engine.audit.outcome import Outcome

NO_CONTACT = "an audit by anchord"
"""Named where nobody configured a contact."""
_ITEM_PAUSE_S = 2.0


class Pace:
    """Waits so that calls to one archive do not follow each other too fast.

    Args:
        pauses_s: archive -> seconds between the beginnings of two calls.
    """

    def __init__(self, pauses_s: Mapping[str, float]) -> None:
        self._pauses_s = pauses_s
        self._last: dict[str, float] = {}

    def __call__(self, archive: str) -> None:
        """Wait until the archive may be called again."""
        now = time.monotonic()
        due = self._last.get(archive, float("-inf")) + self._pauses_s.get(archive, 0.0)
        if due > now:
            time.sleep(due - now)
        self._last[archive] = time.monotonic()


def check_online(
    outcome: Outcome,
    archive: ArchiveConfig | None,
    on_progress: Callable[[str, int, int], None],
) -> OnlineCheck:
    """Fetch the copies an outcome has drawn; the findings go into it.

    Args:
        outcome: of an audit whose options say how many.
        archive: the configuration, for its addresses and contact; None: the public archive.
        on_progress: told of every copy.

    Raises:
        ConfigError: addresses or contact that cannot be used.
    """
    where = archive or ArchiveConfig()
    captures, items = where.captures, where.items
    contact = where.contact or NO_CONTACT
    check = OnlineCheck(
        outcome,
        Wayback(
            captures.web_url, None, contact=contact, timeout_s=captures.timeout_s,
            max_replay_bytes=captures.max_replay_bytes,
        ),
        PublicItems(
            items.api_url, where=authority(items.api_url), timeout_s=items.timeout_s,
            user_agent=f"{USER_AGENT} (+{contact})",
        ),
        Pace(
            {
                "wayback": _pause(captures.web_url, WAYBACK_URL, 60 / captures.replays_per_minute),
                "items": _pause(items.api_url, API_URL, _ITEM_PAUSE_S),
            }
        ),
    )  # fmt: skip
    check.run(on_progress)
    return check


def _pause(url: str, real: str, pause_s: float) -> float:
    """Return the pause between calls; a stand-in on this machine needs none."""
    return 0.0 if stand_in(url, real, "archive") else pause_s
