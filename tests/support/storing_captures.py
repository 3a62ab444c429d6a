"""A store of records, the captures lane over it, and a clock that jumps to the next moment."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec.structs import replace

from anchord.adapters.store.sql import SqlStore
from anchord.core.event import CAPTURED, WITHDRAWN
from anchord.core.model import Record, Scheme
from anchord.core.storage import Capture, CaptureChange, CaptureState
from anchord.engine import anchoring, continuity, ledger
from anchord.engine.calls import Calls
from anchord.engine.capturing import Capturing
from anchord.engine.storing import CapturePolicy, StoringParts, UrlTemplate
from anchord.errors import AnchordError
from support.fake_wayback import FakeWayback
from support.killing import Fuse, Wrapped
from support.parties import FakeClock, FakeSigner, make_parts, open_store

DAY = 86_400
MORNING = 20_000 * DAY + 3_600
"""An hour into a UTC day."""
PORT = ("submit", "statuses", "account", "system", "index", "replay")
WRITING = {"captures": ("claim", "claim_again", "change"), "lanes": ("put",)}
ARXIV = {"arxiv": UrlTemplate(url="https://arxiv.example.org/abs/{id}v{version}", contains="{id}")}


def policy(**changes: Any) -> CapturePolicy:
    """Return the configuration's numbers as they are by default."""
    values: dict[str, Any] = {
        "urls": ARXIV, "extra_urls": (), "adopt_younger_than_s": 30 * DAY, "submits_per_minute": 7,
        "parallel": 3, "daily_share": 0.9, "status_per_day": 60_000, "index_per_minute": 24,
        "replays_per_minute": 12, "first_poll_s": 15, "poll_s": 10, "slot_poll_s": 2,
        "job_deadline_s": 900, "check_after_s": (300, 1_800, 10_800, 43_200, 86_400, 259_200),
        "confirm_after_s": (DAY, 30 * DAY), **changes,
    }  # fmt: skip
    return CapturePolicy(**values)


def papers(count: int, first: int = 0) -> list[Record]:
    """Return records of arXiv papers."""
    found = []
    for number in range(first, first + count):
        body = b'{"paper":%d}' % number
        found.append(
            Record(
                digest=hashlib.sha256(body).digest(), scheme=Scheme.PITH_JSON_V1, canonical=body,
                year="2026", source_kind="arxiv", source_id=f"2507.{number:05d}", source_version=1,
            )
        )  # fmt: skip
    return found


def _without_fsync(store: SqlStore) -> None:
    """Processes die in these tests, machines do not: what was written is there without fsync."""

    if store._engine.dialect.name != "sqlite":
        return  # the server was started without it

    @sa.event.listens_for(store._engine, "connect")
    def _(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA synchronous = OFF")

    store._engine.dispose()


class CallsAtOnce(Calls):
    """Calls whose effects come in the order they were started in."""

    def __init__(self, parallel: int) -> None:
        widths = {"submit": parallel, "status": 1, "index": 1, "replay": 1}
        super().__init__(widths)

    def _run(self, _lane: str, function: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function())
        except AnchordError as error:
            future.set_result(error)
        return future


class CaptureShop:
    """The captures lane over a real store, before a fake archive.

    Args:
        folder: an empty one.
        template: a fresh store's file, to be copied instead of made.
        numbers: numbers of the policy that differ.
    """

    def __init__(self, folder: Path, **numbers: Any) -> None:
        store = open_store(folder)
        _without_fsync(store)
        self.signer = FakeSigner()
        self.parts = make_parts(folder, store=store, signer=self.signer)
        self.clock = FakeClock(MORNING)
        self.archive = FakeWayback(self.clock)
        self.storing = StoringParts(
            parts=self.parts,
            stored_when="either",  # type: ignore[arg-type]
            keyring=self.signer.keyring(),
            captures=self.archive,
            capture_policy=policy(**numbers),
            items=None,
            spool=None,  # type: ignore[arg-type]
            item_policy=None,  # type: ignore[arg-type]
            jitter=lambda wait_s: wait_s,
        )
        self.totals: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self._judged: set[tuple[int, str]] = set()
        self.begin()

    @property
    def captures(self) -> Any:
        """The table of captures, unguarded."""
        return self.parts.store.storage.captures

    @property
    def lanes(self) -> Any:
        """The table of lanes, unguarded."""
        return self.parts.store.storage.lanes

    def configure(self, **numbers: Any) -> None:
        """Begin a new process with other numbers."""
        changed = replace(self.storing.capture_policy, **numbers)
        self.storing = replace(self.storing, capture_policy=changed)
        self.begin()

    def begin(self, fuse: Fuse | None = None) -> None:
        """Let a new process begin; what an older one had in flight is forgotten."""
        self.calls = CallsAtOnce(self.storing.capture_policy.parallel)
        self.lane = Capturing(self.storing if fuse is None else with_fuse(self.storing, fuse))
        self.fresh = True

    def close(self) -> None:
        self.parts.store.close()  # type: ignore[attr-defined]

    def add(self, records: Sequence[Record]) -> int:
        """Take records in and seal them; return the batch."""
        self.parts.store.add(records, self.clock.now())  # type: ignore[attr-defined]
        batch = anchoring.seal(self.parts, self.clock.now())
        assert batch is not None
        return batch.id

    # ------------------------------------------------------------------ time

    def step(self) -> Any:
        """One step now, with the laws that hold after every step."""
        now = self.clock.now()
        if self.fresh:
            continuity.heal_captures(self.storing, now)
            self.lane.recover(now)
            self.fresh = False
        self.calls.collect(now)
        report = self.lane.step(now, self.calls)
        counts = msgspec.structs.asdict(report)
        self.refused.update(counts.pop("refused"))
        self.totals.update(counts)
        self.judge()
        ledger.append_all(self.parts, now)
        return report

    def run(self, until: int | None = None, most: int = 3_000) -> None:
        """Step from one moment to the next, until nothing is left to do or until a moment."""
        for _ in range(most):
            self.step()
            if self.calls.busy():
                continue
            now = self.clock.now()
            at = self.lane.next_moment(now)
            if at is None or (until is not None and at > until):
                self.clock.moment = max(now, until or now)
                return
            self.clock.moment = max(at, now + 1)
        raise AssertionError(f"not done after {most} steps: {self.states()}")

    def run_for(self, seconds: int, most: int = 3_000) -> None:
        self.run(self.clock.now() + seconds, most)

    def settle(self, days: int = 40) -> None:
        """Clear the weather, let a person look after what waits for one, and wait."""
        self.archive.weather.clear()
        self.archive.lies.clear()
        self.archive.bend = None
        for _ in range(3):
            self.retry()
            self.run_for(days * DAY)

    def retry(self) -> None:
        """What a person does: lanes go on, parked captures come back."""
        self.lanes.put(
            *[replace(lane, stopped=False, until=None, alert=None) for lane in self.lanes.all()]
        )
        back = {
            "state": CaptureState.WAITING, "attempts": 0, "next_attempt_at": self.clock.now(),
        }  # fmt: skip
        parked = self.captures.in_state((CaptureState.PARKED,))
        self.captures.change([CaptureChange(capture=one, columns=back) for one in parked])

    # ------------------------------------------------------------------ looking

    def all(self) -> list[Capture]:
        return self.captures.in_state(tuple(CaptureState), 10_000)

    def one(self) -> Capture:
        (capture,) = self.all()
        return capture

    def put(self, **columns: Any) -> Capture:
        """Bring the only capture into a state; return it."""
        assert self.captures.change([CaptureChange(capture=self.one(), columns=columns)]) == 1
        return self.one()

    def states(self) -> dict[str, int]:
        return dict(Counter(capture.state.value for capture in self.all()))

    def events(self) -> list[str]:
        """Return the types of all events, in ledger order."""
        store = self.parts.store
        return [
            store.ledger.get_series(row.series_id).event_type
            for rows in store.ledger.walk()
            for row in rows
        ]

    def live(self) -> Counter[tuple[int, int]]:
        """Return how many live `capture_stored` series each member of a batch has."""
        live: Counter[tuple[int, int]] = Counter()
        for batch_id in {capture.batch_id for capture in self.all()}:
            series = self.parts.store.ledger.series_of(batch_id)
            gone = {one.withdraws for one in series if one.event_type == WITHDRAWN}
            for one in series:
                if one.event_type == CAPTURED and one.id not in gone and one.stop > one.start:
                    live[one.batch_id, one.start] += 1
        return live

    def judge(self) -> None:
        """What must hold at any moment."""
        archive, captures = self.archive, self.all()
        flying = sum(
            capture.state in (CaptureState.SENDING, CaptureState.SUBMITTED) for capture in captures
        )
        assert flying <= self.storing.capture_policy.parallel
        moments = [at for at, _ in archive.calls("submit")]
        limit = self.storing.capture_policy.submits_per_minute
        for first, last in zip(moments, moments[limit:], strict=False):
            assert last - first > 60, "too many submits in a minute"
        expected: Counter[tuple[int, int]] = Counter()
        for capture in captures:
            self._judge_one(capture)
            if capture.state is CaptureState.STORED:
                expected[capture.batch_id, capture.place] += 1
        assert self.live() == expected

    def _judge_one(self, capture: Capture) -> None:
        resting = {CaptureState.PARKED, CaptureState.SENDING, CaptureState.STORED}
        assert capture.next_attempt_at is not None or capture.state in resting, capture
        assert (capture.series_id is not None) == (capture.state is CaptureState.STORED)
        if capture.state is CaptureState.STORED:
            assert capture.timestamp is not None
            assert capture.final_url is not None
            assert capture.sha256 is not None
            key = (capture.id, capture.timestamp)
            if key not in self._judged:
                self._judged.add(key)
                replayed = [
                    about for at, about in self.archive.calls("replay") if at == capture.stored_at
                ]
                assert (capture.timestamp, capture.final_url) in replayed
                assert self.archive.replays(capture.timestamp, capture.final_url, capture.sha256)


def with_fuse(storing: StoringParts, fuse: Fuse) -> StoringParts:
    """Return parts that die at the fuse's moment: at each write, and around each call."""
    store, storage = storing.parts.store, storing.parts.store.storage
    tables = {
        name: Wrapped(getattr(storage, name), fuse, names, f"{name}.")
        for name, names in WRITING.items()
    }
    guarded = SimpleNamespace(
        records=store.records, batches=store.batches, calls=store.calls, ledger=store.ledger,
        lookup=store.lookup, storage=SimpleNamespace(items=storage.items, **tables),
    )  # fmt: skip
    return replace(
        storing,
        parts=replace(storing.parts, store=guarded),  # type: ignore[arg-type]
        captures=Wrapped(storing.captures, fuse, PORT),  # type: ignore[arg-type]
    )
