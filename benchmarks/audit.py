"""`python -m benchmarks.audit --size 100000`: what an audit costs beside its signatures.

A store of anchored records is made in the sandbox; then, each in a process of its own: the bare
Ed25519 verification of all its signatures, the audit with one process and with two, and an audit
since a checkpoint after 1,000 more records came. A ratio is CPU time of the bare verification by
CPU time of the audit (all of its processes), so it is "per core" whatever else the machine does.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchord.app.audit_wiring import open_store
from anchord.app.config import load
from anchord.app.wiring import App, chain_name
from anchord.core.audit import AuditOptions
from anchord.core.keyring import PublicKey
from anchord.core.signatures import Verifier
from anchord.engine.audit.store import audit_store
from anchord.engine.checkpointing import checkpoint_of
from anchord.engine.header_view import HeaderView
from anchord.sandbox.run import Sandbox
from benchmarks import measure, synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIRMATIONS = 6
_PASSES = 6
_POLL_MAX_S = 2
"""As the sandbox's configuration sets it."""
MORE = 1_000
"""Records that come after the first audit."""


def _spent() -> float:
    """Return CPU seconds of this process and of those it waited for."""
    both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def timed(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what a piece of work says of itself, and what it cost."""
    began, spent = time.perf_counter(), _spent()
    found = work()
    peaks = [resource.getrusage(who).ru_maxrss
             for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]  # fmt: skip
    return {
        **found,
        "wall_s": time.perf_counter() - began,
        "cpu_s": _spent() - spent,
        "peak_mib": max(peaks) / 1024,
    }


def bare(config: Path) -> dict[str, Any]:
    """Verify every signature of the ledger, and do nothing else."""
    with App(load(str(config))) as app:
        own = next(key for key in app.keyring if key.own)
        store = open_store(app.loaded)()
        rows = [(row[1], row[2]) for some in store.audit.ledger() for row in some]
        store.close()
    return timed(lambda: _bare(own, rows))


def _bare(key: PublicKey, rows: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    ids, signatures = [row[0] for row in rows], [row[1] for row in rows]
    if Verifier(key).wrong(ids, signatures):
        raise measure.StageError("a signature of the ledger does not hold")
    return {"signatures": len(rows)}


def audited(config: Path, jobs: int, since: Path | None) -> dict[str, Any]:
    """Audit the store, offline but for the headers of the sandbox."""
    with App(load(str(config))) as app:
        chain = chain_name(app.config.headers.network)
        headers = HeaderView(app.headers, chain, CONFIRMATIONS)
        note = since.read_bytes() if since else None
        options = AuditOptions(now=int(time.time()), jobs=jobs, since=note)
        opened, keyring = open_store(app.loaded), app.keyring

        def work() -> dict[str, Any]:
            outcome, facts = audit_store(
                opened, keyring, (), headers, options, lambda *_progress: None
            )
            if outcome.broken:
                raise measure.StageError("the audit found broken evidence")
            done = {name: outcome.counted(name) for name in ("records", "signatures")}
            return {**done, "checkpoint": facts.checkpoint}

        return timed(work)


def _elsewhere(*words: str) -> dict[str, Any]:
    cost = measure.run([measure.PYTHON, "-m", "benchmarks.audit", *words])
    found: dict[str, Any] = json.loads(cost.stdout)
    return found


class Place:
    """A store in the sandbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.sandbox = Sandbox(
            folder, calendars=2, tick_s=0.05, confirmations=CONFIRMATIONS, archive=False
        )

    def anchor(self, count: int, seed: int) -> None:
        """Add records and bring them all the way."""
        file = self.folder / f"records-{seed}.jsonl"
        with file.open("w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line in synthetic.records(count, seed))
        measure.anchord("add", str(file), cwd=self.folder)
        signed = 0
        for _ in range(_PASSES):
            cost = measure.anchord("run-once", "--json", cwd=self.folder, allowed=(0, 3))
            signed += json.loads(cost.stdout)["signed"]
            if signed == 2 * count:
                # Passes make one an hour: here it is wanted now.
                with App(load(str(self.folder / "anchord.toml"))) as app:
                    checkpoint_of(app.parts(), int(time.time()))
                return
            self.sandbox.mine(CONFIRMATIONS)
            # Every time that was set for another try goes by.
            time.sleep(_POLL_MAX_S + 1)
        raise measure.StageError(f"expected {2 * count} events, {_PASSES} passes made {signed}")


def run(folder: Path, count: int) -> dict[str, Any]:
    """Measure one size."""
    place = Place(folder)
    with place.sandbox:
        config = place.sandbox.write_config()
        measure.anchord("init", cwd=folder)
        place.anchor(count, 1)
        floor = _elsewhere("--bare", str(config))
        one = _elsewhere("--audit", str(config), "--jobs", "1")
        two = _elsewhere("--audit", str(config), "--jobs", "2")
        kept = folder / "kept.checkpoint"
        kept.write_text(one["checkpoint"], encoding="utf-8")
        place.anchor(MORE, 2)
        later = _elsewhere("--audit", str(config), "--jobs", "1", "--since", str(kept))
    each = floor["cpu_s"] / floor["signatures"]
    return {
        "records": count,
        "signatures": one["signatures"],
        "bare Ed25519, us a signature": 1e6 * each,
        "audit, us a signature": 1e6 * one["cpu_s"] / one["signatures"],
        "bare / audit, 1 process": each * one["signatures"] / one["cpu_s"],
        "bare / audit, 2 processes": each * two["signatures"] / two["cpu_s"],
        "wall s, 1 process": one["wall_s"],
        "wall s, 2 processes": two["wall_s"],
        "peak MiB, 1 process": one["peak_mib"],
        "peak MiB, largest of 2 processes": two["peak_mib"],
        f"records verified since the checkpoint, after {MORE} more": later["records"],
        "incremental / whole audit, CPU": later["cpu_s"] / one["cpu_s"],
    }


def main() -> int:
    """Measure every size asked for, or do one piece of work for another process."""
    parser = argparse.ArgumentParser(prog="benchmarks.audit", description=__doc__)
    parser.add_argument("--size", default="10000", help="record counts, with commas")
    parser.add_argument("--bare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--audit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--since", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.bare or wanted.audit:
        found = bare(wanted.bare) if wanted.bare else audited(
            wanted.audit, wanted.jobs, wanted.since)  # fmt: skip
        print(json.dumps(found))
        return 0
    for count in map(int, wanted.size.split(",")):
        with tempfile.TemporaryDirectory(prefix="anchord-audit-") as name:
            print(json.dumps(run(Path(name) / str(count), count), indent=2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
