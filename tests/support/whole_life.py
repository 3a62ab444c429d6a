"""A whole life of records, through every port: received, anchored, stored, handed over.

The outside is faked and outlives processes; a process is parts over a store that is opened anew.
Whatever happens to a process, a person would do no more than start the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from anchord.adapters.archives.spool import FolderSpool
from anchord.core.canonical import read_record
from anchord.core.model import Record
from anchord.core.storage import StoredWhen
from anchord.engine.archiving import Archiving
from anchord.engine.run import run_pass
from anchord.engine.storing import ItemPolicy, StoringParts
from anchord.errors import AnchordError, FatalError
from anchord.ports.source import Step
from support.authorities import FakeAuthority
from support.check_ledger import check_all_anchored, check_ledger
from support.check_log import check_log
from support.fake_items import FakeItems, policy_values
from support.fake_wayback import FakeWayback
from support.fault_table import PORTS, Strikes
from support.handing_over import FakeOutlet
from support.killing import Killed
from support.parties import (
    URI_B,
    URL_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    FakeSigner,
    make_parts,
    mine_together,
    open_store,
)  # fmt: skip
from support.storing_captures import policy

HOUR = 3_600
DAY = 24 * HOUR
_PATIENCE = 400


def papers(count: int) -> list[Record]:
    """Return records of arXiv papers, with their source in their canonical bytes."""
    return [
        read_record(
            b'{"schema_version":"1.0","metadata":{"submitted_at":"2025-07-14T15:31:31Z"},'
            b'"source":{"id":"2507.%05d","kind":"arxiv","version":1}}' % number
        )
        for number in range(1, count + 1)
    ]


class FakeSource:
    """A source that has what a test gives it."""

    name, kind, every_s = "fake", "sql", 600

    def __init__(self) -> None:
        self.records: list[Record] = []

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        del now
        for number in range(int(cursor or b"0"), len(self.records)):
            yield Step(items=[self.records[number]], cursor=b"%d" % (number + 1))

    def place(self, cursor: bytes | None) -> str:
        return f"after {cursor!r}"


class Life:
    """One store and everything around it.

    Args:
        folder: an empty one.
        authority: a time-stamping authority, or none.
        strikes: what goes wrong.
    """

    def __init__(self, folder: Path, authority: FakeAuthority, strikes: Strikes) -> None:
        self.folder, self.strikes = folder, strikes
        self.clock = FakeClock()
        self.chain = FakeChain(height=10)
        self.calendar_pair = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        self.authority, self.signer_ = authority, FakeSigner()
        self.wayback = FakeWayback(self.clock)
        self.items_ = FakeItems(self.clock.now)
        self.source, self.outlet = FakeSource(), FakeOutlet(at_once=2)
        self.troubles: Counter[str] = Counter()
        self.deaths = 0
        self.archiving: Archiving | None = None
        self.store: Any = None
        self._judged: Any = None

    # ------------------------------------------------------------------ processes

    def begin(self) -> None:
        """Start a process."""
        self.strikes.begin()
        self.store = open_store(self.folder)
        whole = self._parts()
        self.parts = whole["parts"]
        self.archiving = Archiving(whole["storing"])

    def end(self) -> None:
        """End it, however it ended."""
        archiving, self.archiving = self.archiving, None
        if archiving is not None:
            archiving.close()
        if self.store is not None:
            self.store.close()

    def _parts(self) -> dict[str, Any]:
        """Return a process's parts, with the port that is struck put in the place of itself."""
        strikes = self.strikes
        store = self.store
        for port, one in PORTS.items():
            head, _, path = one.path.partition(".")
            if head == "store":
                store = _replaced(store, path, port, strikes)
        made: dict[str, Any] = {
            "store": store,
            "calendars": [strikes.around("calendar", one) for one in self.calendar_pair],
            "authorities": [strikes.around("authority", self.authority)],
            "headers": [strikes.around("headers", self.chain)],
            "signer": strikes.around("signer", self.signer_),
            "captures": strikes.around("captures", self.wayback),
            "items": strikes.around("items", self.items_),
            "spool": strikes.around("spool", FolderSpool(self.folder / "spool")),
            "sources": [strikes.around("source", self.source)],
            "outlets": [strikes.around("outlet", self.outlet)],
        }
        parts = make_parts(
            self.folder, store=made["store"], calendars=made["calendars"], headers=made["headers"],
            signer=made["signer"], not_before=True, authorities=(self.authority.url,),
            resubmit_after_s=6 * HOUR, min_batch_interval_s=1,
        )  # fmt: skip
        parts = msgspec.structs.replace(
            parts, authorities=made["authorities"], sources=made["sources"],
            outlets=made["outlets"], keyring=self.signer_.keyring,
        )  # fmt: skip
        storing = StoringParts(
            parts=parts, stored_when=StoredWhen.BOTH, keyring=self.signer_.keyring(),
            captures=made["captures"], capture_policy=policy(confirm_after_s=(DAY,)),
            items=made["items"], spool=made["spool"],
            item_policy=ItemPolicy(**policy_values(flush_after_s=HOUR)),
            jitter=lambda wait_s: wait_s,
        )  # fmt: skip
        return {"parts": parts, "storing": storing}

    # ------------------------------------------------------------------ time

    def run_for(self, seconds: int, step_s: int = 900) -> None:
        """Pass again and again for so long."""
        end = self.clock.now() + seconds
        while self.clock.now() < end:
            self.step()
            self.clock.advance(step_s)

    def step(self) -> None:
        """Make a pass that gets through, however many do not; judge after each of them."""
        for _ in range(_PATIENCE):
            through = self._try()
            self._judge_if_changed()
            if through:
                return
            self.clock.advance(60)
        raise AssertionError(f"no pass gets through: {self.troubles}")

    def _try(self) -> bool:
        """Make one pass; False when it did not get through. A dead process is followed."""
        try:
            if self.archiving is None:
                self.begin()
            self._work()
        except Killed:
            self.deaths += 1
            self.end()
        except FatalError as error:
            # The service ends with it; a person looks, and starts it again.
            self.troubles[f"{type(error).__name__}: {error}"[:200]] += 1
            self.end()
        except AnchordError as error:
            self.troubles[f"{type(error).__name__}: {error}"[:200]] += 1
        else:
            return True
        return False

    def _judge_if_changed(self) -> None:
        with contextlib.closing(open_store(self.folder)) as store:
            head = store.ledger.head()
            if head != self._judged:
                check_ledger(store)
                self._judged = head

    def _work(self) -> None:
        assert self.archiving is not None
        run_pass(self.parts, self.clock.now(), self.archiving)
        for _ in range(20):
            if not self.archiving.busy:
                break
            self.archiving.wait(5)
            run_pass(self.parts, self.clock.now(), self.archiving)
        self.archiving.next_moment(self.clock.now())

    def mine(self, more: int = 6) -> None:
        """Put what waits into a block, and grow the chain."""
        if any(one.waiting(self.chain) for one in self.calendar_pair):
            mine_together(self.chain, *self.calendar_pair)
        self.chain.grow(more)

    def live(self) -> None:
        """Receive, anchor and store; lose a block; receive more; let all of it be seen again."""
        self.source.records = papers(2)
        self.run_for(HOUR, 900)
        self.mine()
        self.run_for(3 * HOUR, 1_800)
        self.chain.reorg(8)
        self.run_for(10 * HOUR, 2 * HOUR)
        self.source.records = papers(3)
        self.run_for(HOUR, 900)
        for _ in range(3):
            self.mine()
            self.run_for(6 * HOUR, 2 * HOUR)
        self.run_for(2 * DAY, 6 * HOUR)
        self.mine(100)
        self.run_for(DAY, 8 * HOUR)

    # ------------------------------------------------------------------ the end

    def judge(self) -> dict[str, Any]:
        """Judge the end; return what must not depend on what went wrong."""
        store = self.store
        events = check_ledger(store, self.chain, records=3)
        check_all_anchored(store)
        check_log(store, self.signer_.public_key)
        assert self.items_.faults == []
        assert self.wayback.violations == []
        live = self._live(events)
        assert set(self.outlet.rows) == {row.seq for rows in store.ledger.walk() for row in rows}
        for digest, kinds in live.items():
            assert kinds == ["capture_stored", "item_stored", "timestamp_anchored"], digest
        return {
            "records": sorted(live), "unsigned": store.counts.unsigned(),
            "waiting": store.records.waiting()[0], "stored": store.storage.counts().by_item,
            "next": store.counts.next_moment(),
        }  # fmt: skip

    def _live(self, events: list[dict[str, Any]]) -> dict[str, list[str]]:
        gone = {one["payload"].get("withdraws") for one in events}
        live: dict[str, list[str]] = {}
        for one in events:
            kind = one["event_type"]
            if one["event_id"] in gone or kind in ("facet_withdrawn", "timestamp_submitted"):
                continue
            live.setdefault(one["payload"]["canonical_sha256"], []).append(kind)
            self._true(one)
        return {digest: sorted(kinds) for digest, kinds in live.items()}

    def _true(self, event: dict[str, Any]) -> None:
        """Hold what an event says of the archive against what the archive has."""
        payload = event["payload"]
        if event["event_type"] == "capture_stored":
            moment = "".join(filter(str.isdigit, payload["captured_at"]))
            sha256 = bytes.fromhex(payload["sha256"])
            assert self.wayback.replays(moment, payload["final_url"], sha256)
        if event["event_type"] == "item_stored":
            held = self.items_.holds(payload["identifier"], payload["file"])
            assert held is not None
            assert hashlib.sha256(held).hexdigest() == payload["sha256"]


@contextlib.contextmanager
def lived(folder: Path, authority: FakeAuthority, strikes: Strikes) -> Iterator[Life]:
    """Give a life that was lived to its end."""
    life = Life(folder, authority, strikes)
    try:
        life.live()
        yield life
    finally:
        life.end()


class _Over:
    """An object of which one attribute is another."""

    def __init__(self, inner: Any, name: str, value: Any) -> None:
        self._inner = inner
        setattr(self, name, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _replaced(store: Any, path: str, port: str, strikes: Strikes) -> Any:
    """Return a store with one of its tables guarded; no path: itself."""
    if not path:
        return strikes.around(port, store)
    head, _, rest = path.partition(".")
    return _Over(store, head, _replaced(getattr(store, head), rest, port, strikes))
