"""Everything around the service: the stand-ins, the virtual time, and the records that come."""

from __future__ import annotations

import itertools
import json
import random
import time
from typing import TYPE_CHECKING, Any

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items.rules import Rules as ItemRules
from anchord.sandbox.run import Sandbox
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.weather import Spell, Weather
from benchmarks import measure, synthetic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.soak.stores import Place

DAY_S = 86_400
_HOUR_S = 3_600
_PLAIN = "dataset"
"""Source kind of records that have no page of their own."""


def rules() -> Rules:
    """Return limits under which some two thousand pages a day are captured, not eight."""
    return Rules(
        submits_per_minute=60, slots=20, cdx_per_minute=600, replay_per_minute=6_000,
        host_queue_after=None,
    )  # fmt: skip


def weather(days: int, seed: int) -> Weather:
    """Return what goes wrong at the Wayback Machine, all the time and at hours of each day."""
    draw = random.Random(seed)
    end = days * DAY_S

    def always(kind: str, share: float, on: str | None = None, **options: Any) -> Spell:
        return Spell(kind=kind, share=share, stop_s=end, on=on, options=options)

    spells = [
        always("captured-5xx", 0.01), always("captured-520", 0.005),
        always("captured-hangup", 0.005), always("job-failed", 0.005, captured=1),
        always("job-failed", 0.01), always("no-snapshot", 0.005), always("forget-job", 0.01),
        always("vanish", 0.01, delay_s=6 * _HOUR_S), always("vanish", 0.005, delay_s=3 * _HOUR_S,
        listed=1), always("late-index", 0.01, delay_s=4_000), always("session-limit", 0.01),
        always("slow-slot", 0.02, delay_s=40), always("url-limit", 0.002),
        always("unknown-shape", 0.001), always("html", 0.001),
        always("empty-body", 0.001, on="status"), always("nothing-listed", 0.01),
        always("gateway-timeout", 0.01, on="cdx"),
    ]  # fmt: skip
    for day in range(days):
        for kind, hours, share, on in (
            ("offline", 2.5, 1.0, None), ("refused", 1.5, 1.0, None), ("day-limit", 1.0, 1.0, None),
            ("not-logged-in", 0.2, 0.4, None), ("rate-limited", 0.1, 1.0, "cdx"),
            ("not-archived", 0.5, 1.0, "replay"), ("overloaded", 0.5, 1.0, None),
        ):  # fmt: skip
            if draw.random() < 0.5:
                begin = day * DAY_S + draw.uniform(0, 20) * _HOUR_S
                stop = begin + hours * _HOUR_S
                spells.append(Spell(kind=kind, start_s=begin, stop_s=stop, share=share, on=on))
    return Weather(tuple(spells), seed=seed)


class World:
    """The stand-ins, and the truth: which records came, and what the stand-ins know.

    Args:
        folder: where all of it lives; made here.
        place: of the store.
        days: how long things go wrong.
        records: how many come in these days.
        captured: share of the records that have a page.
        seed: of chances.
    """

    def __init__(
        self, folder: Path, place: Place, days: int, records: int, *, captured: float, seed: int
    ) -> None:
        self.folder, self.place = folder, place
        folder.mkdir(parents=True, exist_ok=True)
        # Tomorrow's noon, so that keys, which are made by the machine's clock, count.
        self.begin = int(time.time()) // DAY_S * DAY_S + DAY_S + DAY_S // 2
        self.clock = SandboxClock(self.begin, frozen=True)
        self.sandbox = Sandbox(
            folder, calendars=3, explorers=2, peers=2, tick_s=0.01, clock=self.clock,
            archive_rules=rules(), item_rules=ItemRules(items_per_day=1_000),
            archive_weather=weather(days, seed),
        )  # fmt: skip
        self._coming = _records(records, captured, seed)
        self.waiting: list[tuple[bytes, bool]] = []
        """Lines that could not be added yet, and whether each has a page."""
        self.truth: dict[str, bool] = {}
        """Digest of each record that was taken in, and whether it has a page."""

    @property
    def config(self) -> Path:
        """Path of the configuration."""
        return self.folder / "anchord.toml"

    def now(self) -> int:
        """Return the moment it is."""
        return int(self.clock.now())

    def start(self) -> None:
        """Start the stand-ins, and make configuration, key and store."""
        self.sandbox.start()
        self.configure()
        measure.anchord("init", cwd=self.folder)

    def close(self) -> None:
        """End the stand-ins."""
        self.sandbox.stop()

    def configure(self, poll_max_s: int = 900) -> None:
        """Write the configuration."""
        self.config.write_text(_config(self, poll_max_s), encoding="utf-8")

    def come(self, count: int) -> None:
        """Let records come, and add them as `anchord add` would; what cannot be added waits."""
        from anchord.app.config import load
        from anchord.app.wiring import App
        from anchord.core.canonical import read_record
        from anchord.errors import AnchordError

        self.delay(count)
        if not self.waiting:
            return
        records = [read_record(line) for line, _ in self.waiting]
        try:
            with App(load(str(self.config))) as app:
                app.store.add(records, self.now())
        except AnchordError:
            return  # whoever adds tries again; what was committed is known then
        for record, (_, page) in zip(records, self.waiting, strict=True):
            self.truth[record.digest.hex()] = page
        self.waiting = []

    def delay(self, count: int) -> None:
        """Let records come that nobody adds yet."""
        self.waiting += itertools.islice(self._coming, count)


def _records(count: int, captured: float, seed: int) -> Iterator[tuple[bytes, bool]]:
    """Yield records as lines of JSON; a share of them stand for a page."""
    draw = random.Random(seed)
    for line in synthetic.records(count, seed):
        value = json.loads(line)
        page = draw.random() < captured
        if not page:
            value["source"]["kind"] = _PLAIN
        yield json.dumps(value, separators=(",", ":")).encode(), page


def _config(world: World, poll_max_s: int) -> str:
    box = world.sandbox
    calendars = "".join(
        f'[[anchoring.calendars]]\nurl = "{one.url}"\nuris = ["{one.url}"]\n\n'
        for one in box.calendars
    )
    authorities = "".join(
        f'[[anchoring.authorities]]\nurl = "{one.url}"\ncertificates = "{one.certificates}"\n\n'
        for one in box.authorities.values()
    )
    lists = {"explorers": box.explorer_urls, "peers": box.peer_addresses}
    urls = {name: ", ".join(f'"{url}"' for url in found) for name, found in lists.items()}
    return f"""# Of the soak: sandbox, not Bitcoin.
[store]
url = "{world.place.url}"

[anchoring]
min_answers = 2
timeout_s = 1
poll_min_s = 60
poll_max_s = {poll_max_s}
resubmit_after_s = 21600
confirmations = 6
not_before = true

{authorities}{calendars}[headers]
network = "regtest"
sources = ["node", "explorers", "file"]

[headers.node]
url = "{box.node_url}"
cookie_file = "{box.cookie_file.relative_to(world.folder.absolute())}"

[headers.explorers]
urls = [{urls["explorers"]}]

[headers.file]
path = "headers.bin"
peers = [{urls["peers"]}]
timeout_s = 2

[archive]
stored_when = "either"
credentials_file = "{box.wayback.credentials_file}"
contact = "https://registry.example.org/"
account_dir = "account"

[archive.captures]
web_url = "{box.wayback.url}"
submits_per_minute = 55
parallel = 20
index_per_minute = 500
replays_per_minute = 600
check_after_s = [300, 1800, 10800, 43200, 86400]
confirm_after_s = [86400]
timeout_s = 2

[archive.items]
api_url = "{box.items.api_url}"
s3_url = "{box.items.s3_url}"
prefix = "anchord-soak"
collection = "test_collection"
flush_after_s = 7200
timeout_s = 10
"""
