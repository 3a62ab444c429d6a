"""A store of records, the item lane over it, and a clock that jumps from one moment to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from anchord.core.event import ITEM_STORED, WITHDRAWN
from anchord.core.item_name import DAY_S
from anchord.core.model import BatchChange, BatchState
from anchord.core.storage import FileChange, FileKind, FileState, ItemFile
from anchord.engine import anchoring, ledger
from anchord.engine.calls import Calls
from anchord.engine.itemising import Itemising
from anchord.engine.storing import ItemPolicy, StoringParts
from anchord.errors import AnchordError
from support.fake_items import FakeItems, FakeSpool, policy_values
from support.killing import Fuse, Wrapped
from support.parties import START, FakeClock, FakeSigner, make_parts, open_store
from support.passes import bare

LIVE = (FileState.PACKED, FileState.SENDING, FileState.SENT, FileState.STORED, FileState.PARKED)
WRITING = {
    "items": ("add_files", "pass_over", "add_item", "change_item", "change"),
    "lanes": ("put",),
}


class CallsAtOnce(Calls):
    """Calls in flight whose effects come in the order they were started in."""

    def __init__(self) -> None:
        super().__init__({"upload": 2, "metadata": 1})

    def _run(self, _lane: str, function: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function())
        except AnchordError as error:
            future.set_result(error)
        return future


class Workshop:
    """The item lane over a real store, with everything outside faked.

    Args:
        folder: an empty one.
        template: a fresh store's file, to be copied instead of made.
        spool: another than the fake one.
        policy: numbers of the policy that differ.
    """

    def __init__(self, folder: Path, spool: Any = None, **policy: Any) -> None:
        store = open_store(folder)
        self.signer = FakeSigner()
        self.parts = make_parts(folder, store=store, signer=self.signer)
        self.clock = FakeClock(START - START % DAY_S + 3_600)
        self.archive = FakeItems(self.clock.now)
        self.spool = FakeSpool(folder / "spool") if spool is None else spool
        self.storing = StoringParts(
            parts=self.parts,
            stored_when="either",  # type: ignore[arg-type]
            keyring=self.signer.keyring(),
            captures=None,
            capture_policy=None,  # type: ignore[arg-type]
            items=self.archive,
            spool=self.spool,
            item_policy=ItemPolicy(**policy_values(**policy)),
            jitter=lambda wait_s: wait_s * 1.1,
        )
        self._shown: set[tuple[int, int]] = set()
        self._judged: list[tuple[int, int]] = []
        self.reports: list[Any] = []
        self.begin()

    @property
    def items(self) -> Any:
        """The tables of items and files, unguarded."""
        return self.parts.store.storage.items

    def begin(self, fuse: Fuse | None = None) -> None:
        """Let a new process begin; what an older one had in flight is forgotten."""
        self.calls = CallsAtOnce()
        self.lane = Itemising(self.storing if fuse is None else with_fuse(self.storing, fuse))
        self.fresh = True

    def close(self) -> None:
        self.parts.store.close()  # type: ignore[attr-defined]

    def batch(self, records: int, name: str = "record", *, anchored: bool = True) -> int:
        """Take records in and seal them; return the batch."""
        self.parts.store.add(bare(records, name), self.clock.now())  # type: ignore[attr-defined]
        batch = anchoring.seal(self.parts, self.clock.now())
        assert batch is not None
        if anchored:
            self.anchor(batch.id)
        return batch.id

    def anchor(self, batch_id: int) -> None:
        """Let a batch be anchored, without any of the events that would say so."""
        columns = {"state": BatchState.ANCHORED.value, "anchored_at": self.clock.now()}
        self.parts.store.batches.change([BatchChange(batch_id=batch_id, columns=columns)])

    # ------------------------------------------------------------------ time

    def step(self) -> Any:
        """One step now, with the laws that hold after every step."""
        now = self.clock.now()
        if self.fresh:
            self.lane.recover(now)
            self.fresh = False
        self.calls.collect(now)
        report = self.lane.step(now, self.calls)
        self.reports.append(report)
        self.judge()
        ledger.append_all(self.parts, now)
        return report

    def run(self, until: int, most: int = 2_000) -> None:
        """Step from one moment to the next until a moment."""
        for _ in range(most):
            if not self.tick(until):
                self.clock.moment = max(self.clock.moment, until)
                return
        raise AssertionError(f"not done after {most} steps: {self.states()}")

    def tick(self, until: int = 2**40) -> bool:
        """Step now and go on to the next moment; False when it is after `until`, or never."""
        self.step()
        if self.calls.busy():
            self.clock.advance(1)
            return True
        at = self.lane.next_moment(self.clock.now())
        if at is None or at > until:
            return False
        self.clock.moment = max(at, self.clock.moment + 1)
        return True

    def settle(self, days: int = 12) -> None:
        """Clear the weather, let a person look after what waits for one, and wait."""
        self.archive.clear()
        for _ in range(3):
            self.retry()
            self.run(self.clock.now() + days * DAY_S)

    def retry(self) -> None:
        """What a person does: lanes go on, parked files come back."""
        lanes = self.parts.store.storage.lanes
        lanes.put(*[replace(lane, stopped=False, until=None) for lane in lanes.all()])
        back = {
            "state": FileState.PACKED, "next_attempt_at": self.clock.now(), "attempts": 0,
            "checks": 0,
        }  # fmt: skip
        parked = self.items.in_state((FileState.PARKED,))
        self.items.change([FileChange(file=file, columns=back) for file in parked])

    # ------------------------------------------------------------------ looking

    def files(self, kind: FileKind | None = None) -> list[ItemFile]:
        """Return all files, in the order they were packed."""
        found = self.items.in_state(tuple(FileState), 10_000)
        return [file for file in found if kind is None or file.kind is kind]

    def states(self) -> dict[str, str]:
        """Return every file's state, by name."""
        return {file.name: file.state.value for file in self.files()}

    def holders(self) -> dict[tuple[int, int], list[ItemFile]]:
        """Return which files that are not gone hold each member."""
        found: dict[tuple[int, int], list[ItemFile]] = {}
        for file in self.files(FileKind.BUNDLES):
            if file.state is not FileState.GONE:
                for part in self.items.ranges(file.id):
                    for place in range(part.start, part.stop):
                        found.setdefault((part.batch_id, place), []).append(file)
        return found

    def live_events(self) -> dict[int, int]:
        """Return how many `item_stored` events of each record nothing has withdrawn."""
        store = self.parts.store
        live: dict[int, int] = {}
        for rows in store.ledger.walk():
            for row in rows:
                kind = store.ledger.get_series(row.series_id).event_type
                step = {ITEM_STORED: 1, WITHDRAWN: -1}[kind]
                live[row.record_id] = live.get(row.record_id, 0) + step
        return live

    def judge(self) -> None:
        """What must hold at any moment."""
        assert self.archive.faults == []
        looks = [(file.id, file.version) for file in self.files()]
        if looks == self._judged:
            return
        self._judged = looks
        by_item: dict[int, list[ItemFile]] = {}
        for file in self.files():
            by_item.setdefault(file.item_id, []).append(file)
            key = (file.id, file.stored_at or 0)
            if file.state is FileState.STORED and key not in self._shown:
                self._shown.add(key)
                listed = self.archive.shown[file.identifier].files[file.name]
                ours = (file.size, file.md5.hex(), file.sha1.hex())
                assert (listed.size, listed.md5, listed.sha1) == ours
        for item_id, files in by_item.items():
            if self.items.item(item_id).seen_at is None:
                assert sum(_is_out(file) for file in files) <= 1, "two first uploads"
        for member, files in self.holders().items():
            assert len(files) == 1, f"{member} is in {[file.name for file in files]}"

    def judge_done(self, batches: Sequence[int]) -> None:
        """What must hold when the weather is clear and everything was waited for."""
        holders = self.holders()
        store = self.parts.store
        for batch_id in batches:
            for place in range(store.batches.get(batch_id).size):
                (file,) = holders[batch_id, place]
                assert file.state is FileState.STORED, (file.name, file.state, file.note)
        for file in self.files():
            if file.state is FileState.STORED:
                kept = self.archive.kept[file.identifier][file.name]
                assert kept.listing().md5 == file.md5.hex()
        live = self.live_events()
        assert set(live.values()) == {1}
        assert len(live) == sum(store.batches.get(batch_id).size for batch_id in batches)


def _is_out(file: ItemFile) -> bool:
    in_flight = file.state is FileState.SENDING and file.next_attempt_at is None
    return in_flight or file.state is FileState.SENT


def with_fuse(storing: StoringParts, fuse: Fuse) -> StoringParts:
    """Return parts that die at the fuse's moment."""
    store: Any = storing.parts.store
    tables = {
        table: Wrapped(getattr(store.storage, table), fuse, names, f"{table}.")
        for table, names in WRITING.items()
    }
    storage = SimpleNamespace(**tables, captures=store.storage.captures)
    guarded = SimpleNamespace(
        storage=storage, records=store.records, batches=store.batches, ledger=store.ledger,
        lookup=store.lookup,
    )  # fmt: skip
    return replace(
        storing,
        parts=replace(storing.parts, store=guarded),
        items=Wrapped(storing.items, fuse, ("upload", "describe", "headroom", "fetch")),
        spool=Wrapped(storing.spool, fuse, ("pack", "write", "remove")),
    )
