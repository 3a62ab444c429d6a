"""Anchord's own commands, one after the other, against the sandbox on loopback.

The store is measured after every stage. Three passes do the work of one record's life:

    pass 1   seals, submits, signs `timestamp_submitted`
    pass 2   fetches the path and checks the header; confirmations are missing, so nothing is signed
    pass 3   signs and appends `timestamp_anchored`

A copy of the store makes pass 1 once more without signing, which tells what sealing costs alone.
"""

from __future__ import annotations

import json
import shutil
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anchord.sandbox.run import Sandbox
from benchmarks import measure, synthetic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SERVED_AFTER = 6
"""Blocks before a calendar of the sandbox gives out its path."""
SIGNED_AFTER = 12
"""Blocks before anchord signs: later than the path, so that pass 2 checks and pass 3 signs."""
POLL_MAX_S = 2
"""Longest wait between two questions, as the sandbox's configuration sets it."""
IDLE_PASSES = 9
STARTS = 9
"""How often a start is measured; the median counts."""


class Row(NamedTuple):
    """One line of the table."""

    stage: str
    count: int
    wall_s: float
    cpu_s: float
    peak_kib: int
    disk_bytes: int | None = None
    requests: int | None = None
    note: str = ""


class Bench:
    """One size: a sandbox, a store, and the stages in order."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.records = folder / "records.jsonl"
        self.home = folder / "home"
        self.sandbox = Sandbox(
            self.home, calendars=3, tick_s=0.05, confirmations=SERVED_AFTER, archive=False
        )

    def rows(self) -> Iterator[Row]:
        """Run everything and yield each stage's row as soon as it is known."""
        self.home.mkdir(parents=True)
        measure.workload("records", self.count, self.records)
        with self.sandbox:
            self._configure(self.sandbox.write_config())
            measure.anchord("init", cwd=self.home)
            yield self._stage("add", lambda: self._anchord("add", str(self.records)))
            yield self._seal_alone()
            yield self._stage(
                "pass 1: seal + submit + sign + append", lambda: self._pass(signed=self.count)
            )
            self._mine(SERVED_AFTER)
            yield self._stage("pass 2: upgrade + verify", lambda: self._pass(upgraded=3, signed=0))
            self._mine(SIGNED_AFTER - SERVED_AFTER)
            yield self._stage(
                "pass 3: sign + append", lambda: self._pass(upgraded=0, signed=self.count)
            )
            yield from self._idle()
            yield self._export()

    def _configure(self, file: Path) -> None:
        text = file.read_text("utf-8")
        old = f"confirmations = {SERVED_AFTER}\n"
        if old not in text:
            raise measure.StageError(f"{file} does not say `{old.strip()}`: the stages would mix")
        file.write_text(text.replace(old, f"confirmations = {SIGNED_AFTER}\n"), encoding="utf-8")

    def _anchord(self, *words: str) -> measure.Cost:
        return measure.anchord(*words, cwd=self.home)

    def _mine(self, blocks: int) -> None:
        """Mine, and let every time that was set for another try go by."""
        self.sandbox.mine(blocks)
        time.sleep(POLL_MAX_S + 1)

    def _pass(self, **expected: int) -> measure.Cost:
        """Make one pass, which must have done what its stage is about and nothing else."""
        cost = measure.anchord("run-once", "--json", cwd=self.home, allowed=(0, 3))
        report = json.loads(cost.stdout)
        if any(report[key] != value for key, value in expected.items()):
            raise measure.StageError(f"expected a pass with {expected}, it did {report}")
        return cost

    def _asked(self) -> int:
        return sum(
            number
            for calendar in self.sandbox.calendars
            for route, number in calendar.requests.items()
            if route in {"digest", "timestamp"}
        )

    def _stage(self, name: str, work: Callable[[], measure.Cost]) -> Row:
        before = self._asked()
        cost = work()
        return Row(
            name, self.count, cost.wall_s, cost.cpu_s, cost.peak_kib,
            measure.bytes_under(self.home, "anchord.db*"), self._asked() - before,
        )  # fmt: skip

    def _idle(self) -> Iterator[Row]:
        """A pass with nothing to do: the whole command, and the pass within a running process."""
        nothing = {"sealed": 0, "submitted": 0, "upgraded": 0, "signed": 0}
        yield self._stage("idle pass: the command", lambda: self._pass(**nothing))
        before = measure.bytes_under(self.home, "anchord.db*")
        cost, said = measure.workload("idle", IDLE_PASSES, self.home / "anchord.toml")
        after = measure.bytes_under(self.home, "anchord.db*")
        yield Row(
            "idle pass", self.count, float(said["result"]), cost.cpu_s, cost.peak_kib,
            after, 0, f"median of {IDLE_PASSES}; {after - before} bytes written",
        )  # fmt: skip

    def _seal_alone(self) -> Row:
        """Pass 1 on a copy of the store, with signing of submissions switched off."""
        original, self.home = self.home, self.folder / "copy"
        shutil.copytree(original, self.home, ignore=shutil.ignore_patterns("sandbox*"))
        shutil.copytree(original / "sandbox", self.home / "sandbox")
        config = self.home / "anchord.toml"
        text = config.read_text("utf-8").replace(
            "[anchoring]\n", "[anchoring]\nsign_submitted = false\n"
        )
        config.write_text(text, encoding="utf-8")
        try:
            return self._stage(
                "seal + submit alone", lambda: self._pass(sealed=self.count, signed=0)
            )
        finally:
            shutil.rmtree(self.home)
            self.home = original

    def _export(self) -> Row:
        target = self.folder / "export.tar"
        before = self._asked()
        cost = self._anchord("export", "--all", "-o", str(target))
        size = target.stat().st_size
        return Row(
            "export --all (.ots, tar)", self.count, cost.wall_s, cost.cpu_s, cost.peak_kib,
            size, self._asked() - before, "disk: the tar",
        )  # fmt: skip


def stamp_files(folder: Path, count: int) -> Row:
    """Stamp small files with the standard client, at its own sandbox calendar."""
    files = synthetic.write_files(folder / "files", count)
    with Sandbox(folder / "ots", calendars=1, tick_s=0.05, archive=False) as sandbox:
        calendar = sandbox.calendars[0]
        ots = str(Path(measure.PYTHON).with_name("ots"))
        names = [str(file) for file in files]
        cost = measure.run([ots, "--no-cache", "stamp", "-c", calendar.url, "-m", "1", *names])
        asked = calendar.requests["digest"]
    disk = measure.bytes_under(folder / "files", "*.ots")
    return Row("peer: ots stamp", count, cost.wall_s, cost.cpu_s, cost.peak_kib, disk, asked)


def check_headers(folder: Path, count: int) -> Iterator[Row]:
    """Import synthetic regtest headers into a header file, then check the whole file again."""
    home = folder / "headers"
    home.mkdir(parents=True)
    raw = folder / "synthetic-headers.bin"
    measure.workload("headers", count, raw)
    (home / "anchord.toml").write_text('[headers]\nnetwork = "regtest"\n', encoding="utf-8")
    for name, words in [
        ("headers import", ["headers", "import", str(raw)]),
        ("headers check", ["headers", "check"]),
    ]:
        cost = measure.anchord(*words, cwd=home)
        disk = measure.bytes_under(home, "headers.bin*")
        yield Row(name, count, cost.wall_s, cost.cpu_s, cost.peak_kib, disk)


def start(folder: Path) -> tuple[Row, Row]:
    """Return the medians of `python -c pass` and `anchord --help`, taken in turns."""
    bare, helped = [], []
    for _ in range(STARTS):
        bare.append(measure.run([measure.PYTHON, "-c", "pass"], cwd=folder))
        helped.append(measure.anchord("--help", cwd=folder))
    return _median("python -c pass", bare), _median("anchord --help", helped)


def _median(name: str, costs: list[measure.Cost]) -> Row:
    return Row(
        name,
        1,
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(cost.cpu_s for cost in costs),
        max(cost.peak_kib for cost in costs),
        note=f"median of {len(costs)}",
    )


def sign(count: int) -> Row:
    """Sign and do nothing else."""
    return _worked("floor: bare Ed25519", "sign", count)[0]


def tree_and_join(count: int) -> tuple[Row, Row]:
    """Return the library's and anchord's rows for the same work; the bytes must be the same.

    Raises:
        StageError: they are not.
    """
    peer, theirs = _worked("peer: tree + join by opentimestamps", "library", count)
    own, ours = _worked("tree + join by anchord.core", "own", count)
    if theirs != ours:
        raise measure.StageError("anchord's .ots bytes differ from the library's")
    return peer, own


def _worked(stage: str, name: str, count: int) -> tuple[Row, str]:
    cost, said = measure.workload(name, count)
    extra = int(said["peak_kib"]) - int(said["peak_before_kib"])
    row = Row(
        stage, count, float(said["wall_s"]), cost.cpu_s, extra,
        note="wall and memory of the work alone",
    )  # fmt: skip
    return row, str(said["result"])
