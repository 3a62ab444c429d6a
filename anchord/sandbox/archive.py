"""The Internet Archive of a sandbox: Wayback Machine and items, one account, one clock."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from anchord.errors import ConfigError
from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.faults import ARCHIVE_ORG, IAS3
from anchord.sandbox.items.front import ItemsService, item_services
from anchord.sandbox.items.rules import Rules as ItemRules
from anchord.sandbox.loopback import Acceptor, Listener, RequestCounts
from anchord.sandbox.state import replace_file
from anchord.sandbox.wayback.door import Door
from anchord.sandbox.wayback.kinds import WAYBACK
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.service import ACCESS, SECRET, WaybackService
from anchord.sandbox.wayback.site import Page
from anchord.sandbox.wayback.weather import Weather

SERVICES = [WAYBACK, ARCHIVE_ORG, IAS3]
_MAX_ADVANCE_S = 315_360_000


class SiteChange(msgspec.Struct, frozen=True, kw_only=True):
    """What the web says at a URL from now on."""

    url: str
    status: int = 200
    location: str | None = None
    body: str | None = None
    content_type: str | None = None
    change: bool = False
    """Only put a new edition out."""
    clear: bool = False
    """As if nothing had ever been said about it."""


class WaybackHandle(msgspec.Struct, frozen=True):
    """The running Wayback Machine, as tests and the demo see it."""

    url: str
    service: WaybackService
    credentials_file: Path
    counts: RequestCounts

    @property
    def requests(self) -> Counter[str]:
        """How often it was asked: `save`, `status`, `user`, `cdx`, `replay`, ..."""
        return self.counts.of(WAYBACK)


class ItemsHandle(msgspec.Struct, frozen=True):
    """The running hosts of items."""

    api_url: str
    s3_url: str
    archive: ItemsArchive


class InternetArchive:
    """What stands in for the Internet Archive; a second run in the same folder goes on.

    Args:
        folder: where captures, items, the clock and the account's keys are kept.
        clock: the archive's time; None: this machine's, shifted by what it was advanced before.
        rules: limits and delays of the Wayback Machine.
        item_rules: the same of items.
        weather: faults by chance and by the clock.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: SandboxClock | None,
        rules: Rules,
        item_rules: ItemRules,
        weather: Weather | None,
    ) -> None:
        self._shift_file = folder / "archive-clock.json"
        self.credentials_file = folder / "archive-keys"
        _write_keys(self.credentials_file)
        self._own_clock = clock is None
        self.clock = clock or SandboxClock(time.time() + self._shift())
        self.wayback = WaybackService(
            self.clock, folder / "wayback.jsonl", rules=rules, weather=weather
        )
        self.items = ItemsArchive(
            self.clock, folder / "items", item_rules, access=ACCESS, secret=SECRET
        )
        self.hosts: tuple[ItemsService, ItemsService] = item_services(self.items)

    def watch_door(self, listener: Listener, acceptor: Acceptor) -> None:
        """Close the Wayback Machine's port whenever its firewall is closed."""
        Door(self.wayback, listener, acceptor)

    def advance(self, seconds: float) -> float:
        """Move the archive's clock on; return its moment.

        Raises:
            ConfigError: backwards, or by more than ten years.
        """
        if not 0 <= seconds <= _MAX_ADVANCE_S:
            raise ConfigError(f"seconds to advance: {seconds:g}: expected 0 to {_MAX_ADVANCE_S}")
        moment = self.clock.advance(seconds)
        if self._own_clock:
            shift = {"ahead_s": round(moment - time.time(), 3)}
            replace_file(self._shift_file, json.dumps(shift) + "\n")
        return moment

    def change_site(self, change: SiteChange) -> None:
        """Change what the web says.

        Raises:
            ConfigError: no http(s) URL.
        """
        site = self.wayback.site
        if change.clear:
            site.clear(change.url or None)
            return
        if not change.url.startswith(("http://", "https://")):
            raise ConfigError(f"url is {change.url!r}: expected http(s)://host/path")
        if change.change:
            site.change(change.url)
            return
        status = 302 if change.location and change.status == 200 else change.status
        page = Page(
            status=status,
            location=change.location,
            body=None if change.body is None else change.body.encode(),
            content_type=change.content_type or Page().content_type,
        )
        site.put(change.url, page)

    def reports(self) -> dict[str, dict[str, float]]:
        """Return what was asked and how often rules were broken, by part: plain numbers."""
        wayback = msgspec.to_builtins(self.wayback.report())
        del wayback["now"]
        wayback["jobs_ended"] = len(wayback.pop("durations"))
        return {WAYBACK: _flat(wayback), "items": _flat(self.items.report())}

    def close(self) -> None:
        """Write out what is kept."""
        self.wayback.close()
        self.items.close()

    def _shift(self) -> float:
        if not self._shift_file.exists():
            return 0.0
        return float(json.loads(self._shift_file.read_text())["ahead_s"])


def _flat(counts: Mapping[str, Any]) -> dict[str, float]:
    """Return counts of counts as `name.inner`."""
    flat: dict[str, float] = {}
    for name, value in counts.items():
        inner = value.items() if isinstance(value, dict) else None
        flat |= {name: value} if inner is None else {f"{name}.{key}": n for key, n in inner}
    return flat


def _write_keys(file: Path) -> None:
    """Write the account's keys as anchord reads them: two lines, for the owner only."""
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(f"{ACCESS}\n{SECRET}\n")
    part.replace(file)
