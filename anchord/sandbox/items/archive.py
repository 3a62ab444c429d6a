"""The archive both services show: items, limits, and what tests may do to it."""

from __future__ import annotations

import math
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items import s3
from anchord.sandbox.items.headers import Metadata
from anchord.sandbox.items.report import Tally
from anchord.sandbox.items.rules import Rules
from anchord.sandbox.items.store import (
    Bent,
    Darkened,
    Halted,
    Happened,
    Item,
    Lost,
    Made,
    Queued,
    State,
)
from anchord.sandbox.items.tasks import ERROR, Task, Version, moment

_DAY_S = 86_400
_CONGESTED_SHARE = 0.97
"""The share of the global limit at which uploads were refused (seen: 11,639 of 11,999)."""


class ItemsArchive:
    """All items of one folder. Threads may share it.

    Args:
        clock: the only source of time.
        folder: where files and journal are kept; a second archive there goes on.
        rules: limits and lags; None: the real ones.
        access: the access key of the one account that may upload.
        secret: its secret.
        username: its name, the `uploader` of its items.
    """

    def __init__(
        self,
        clock: SandboxClock,
        folder: Path,
        rules: Rules | None = None,
        *,
        access: str,
        secret: str,
        username: str = "sandbox@example.org",
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.clock = clock
        self.rules = rules or Rules()
        self.access = access
        self.username = username
        self.tally = Tally()
        self.making: set[str] = set()
        """New items whose first upload is on its way in."""
        self.spammer = False
        self._secret = secret
        self._congested = False
        self._files_of_day: Counter[int] = Counter()
        self._lock = threading.RLock()
        self._state = State(folder)

    def close(self) -> None:
        """Close the journal."""
        with self._lock:
            self._state.close()

    # ------------------------------------------------------------------ what services ask

    def knows(self, keys: tuple[str, str] | None) -> bool:
        """Tell whether these are the account's keys."""
        return keys == (self.access, self._secret)

    @contextmanager
    def settled(self) -> Iterator[State]:
        """Hold the archive still, with every task run whose time has come."""
        with self._lock:
            self._state.settle(self.clock.now())
            yield self._state

    def item(self, identifier: str) -> Item | None:
        """Return a copy of an item as it is now, also when nobody can see it yet."""
        with self.settled() as state:
            item = state.items.get(identifier)
            if item is None:
                return None
            return msgspec.structs.replace(
                item, files=dict(item.files), queue=list(item.queue), history=list(item.history)
            )

    def waiting(self) -> Counter[str]:
        """Return the tasks in the queue by item."""
        with self.settled() as state:
            return state.waiting()

    def blob(self, version: Version) -> Path:
        """Return where the bytes of a file lie."""
        return self._state.blobs.path(version.blob)

    def limits(self, identifier: str) -> dict[str, Any]:
        """Return the `detail` of check_limit; `limit_reason` is empty when one may upload."""
        waiting, rules = self.waiting(), self.rules
        own, here = waiting.total(), waiting[identifier]
        total = own + rules.background_tasks
        if self._congested:
            total = max(total, int(rules.total_global_limit * _CONGESTED_SHARE))
        reasons = {
            s3.GLOBAL: self._congested or total > rules.total_global_limit,
            s3.ACCESSKEY: own >= rules.accesskey_ration,
            s3.BUCKET: here >= rules.bucket_ration,
        }
        return {
            "accesskey_ration": rules.accesskey_ration,
            "accesskey_tasks_queued": own,
            "bucket_ration": rules.bucket_ration,
            "bucket_tasks_queued": here,
            "limit_reason": next((reason for reason, holds in reasons.items() if holds), ""),
            "rationing_engaged": int(self._congested or total >= rules.rationing_level),
            "rationing_level": rules.rationing_level,
            "total_global_limit": rules.total_global_limit,
            "total_tasks_queued": total,
        }

    def items_today(self) -> int:
        """Return how many items the account made since midnight UTC."""
        today = self.clock.now() // _DAY_S
        with self._lock:
            mine = (i for i in self._state.items.values() if i.uploader == self.username)
            return sum(item.made // _DAY_S == today for item in mine)

    # ------------------------------------------------------------------ what uploads do

    def receive(self, name: str, length: int, read: Any) -> Version:
        """Stream a body to disk; nothing is in an item yet.

        Raises:
            EOFError: the sender went away.
        """
        return self._state.blobs.take(name, length, read, self.clock.now())

    def discard(self, version: Version) -> None:
        """Throw away a body that is refused."""
        self._state.blobs.remove(version.blob)

    def make(self, identifier: str, metadata: Metadata) -> None:
        """Make an item of the account; it is shown when its first task ran."""
        with self._lock:
            now = self.clock.now()
            fields: Metadata = {"identifier": identifier, "mediatype": "data"}
            fields |= {"collection": "opensource"} | metadata
            fields |= {"uploader": self.username, "addeddate": moment(now)}
            self._happen(Made(identifier, now, self.username, fields))
            self.tally.add("items")

    def queue(
        self, identifier: str, cmd: str, name: str = "", put: Version | None = None, **more: bool
    ) -> None:
        """Put a task behind the others of the item."""
        with self._lock:
            now, task_id = self.clock.now(), self._state.next_task()
            waiting = self._state.items[identifier].queue
            due = max(now + self._lag(task_id), waiting[-1].due if waiting else now)
            starts = now + (due - now) * self.rules.queued_share
            task = Task(
                task_id=task_id,
                cmd=cmd,
                submitter=self.username,
                at=now,
                starts=starts,
                due=due,
                name=name,
                put=put,
                **more,
            )
            self._happen(Queued(identifier, now, task))

    def count_file(self, item: Item) -> None:
        """Count a file of today, and whether it is more than the archive advises."""
        with self._lock:
            today = int(self.clock.now() // _DAY_S)
            self._files_of_day[today] += 1
            over_day = self._files_of_day[today] > self.rules.advised_files_per_day
            over_item = len(item.all_names()) > self.rules.advised_files
            self.tally.add("files_over_day_advice", int(over_day))
            self.tally.add("files_over_advice", int(over_item))

    def _lag(self, task_id: int) -> float:
        """Return a wait; on a scale of logarithms all are as likely, and a seed repeats them."""
        low, high = self.rules.metadata_lag_s
        if low <= 0 or high <= low:
            return max(low, 0.0)
        chance = random.Random(f"{self.rules.seed}:{task_id}").random()  # noqa: S311 (no secret)
        return math.exp(math.log(low) + chance * (math.log(high) - math.log(low)))

    def _happen(self, what: Happened) -> None:
        self._state.happen(what)

    # ------------------------------------------------------------------ what tests do

    def report(self) -> dict[str, int | dict[str, int]]:
        """Return counts and violations."""
        return self.tally.report()

    def plant(self, identifier: str, uploader: str = "somebody@example.org") -> None:
        """Make an item of somebody else, shown at once."""
        with self._lock:
            fields: Metadata = {"identifier": identifier, "mediatype": "data"}
            fields |= {"collection": "opensource", "uploader": uploader}
            self._happen(Made(identifier, self.clock.now(), uploader, fields, shown=True))

    def darken(self, identifier: str, *, dark: bool = True) -> None:
        """Take an item down, or put it up again."""
        with self._lock:
            self._happen(Darkened(identifier, self.clock.now(), dark))

    def lose(self, identifier: str, name: str) -> None:
        """Let a visible file vanish without a word."""
        with self._lock:
            self._visible(identifier, name)
            self._happen(Lost(identifier, self.clock.now(), name))

    def corrupt(self, identifier: str, name: str, *, listed: bool = False) -> None:
        """Change a byte of a visible file; `listed`: and metadata shows the new checksums."""
        with self._lock:
            version = self._visible(identifier, name)
            with self.blob(version).open("r+b") as file:
                middle = version.size // 2
                file.seek(middle)
                byte = file.read(1)
                file.seek(middle)
                file.write(bytes([byte[0] ^ 0xFF]))
            if listed:
                with self.blob(version).open("rb") as file:
                    seen = self.receive(name, version.size, file.read)
                self._happen(Bent(identifier, self.clock.now(), seen))
                self.discard(version)

    def fail_tasks(self, identifier: str, wait_admin: int = ERROR) -> None:
        """Stop the item's tasks in error (2) or paused (9); 0: the staff lets them go on."""
        with self._lock:
            self._happen(Halted(identifier, self.clock.now(), wait_admin))

    def congest(self, congested: bool = True) -> None:
        """Fill the queue of everybody, or empty it."""
        self._congested = congested

    def forgive(self) -> None:
        """Tell the spam filter that the account is no spammer."""
        self.spammer = False

    def _visible(self, identifier: str, name: str) -> Version:
        item = self.item(identifier)
        if item is None or name not in item.files:
            raise ValueError(f"no file {name!r} is visible in item {identifier!r} yet")
        return item.files[name]
