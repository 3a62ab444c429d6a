"""`python -m benchmarks --size 10000,100000`: prints a table as it goes, then ratios and JSON.

Needs room for about 6 KiB a record in the folder for temporary files. Every figure is of one run on
this machine; only ratios mean anything on another.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import measure, report, stages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from benchmarks.stages import Row

RESULTS = Path(__file__).resolve().parent / "results"


class Run:
    """Collects rows and prints each at once."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.ratios: dict[str, dict[str, float]] = {}

    def note(self, rows: Iterable[Row]) -> list[Row]:
        """Print rows as they come and keep them."""
        taken = []
        for row in rows:
            print(report.shown(row), flush=True)
            taken.append(row)
        self.rows += taken
        return taken


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--size", default="10000", help="record counts, with commas")
    parser.add_argument("--peer-max", type=int, default=100_000, help="most leaves for the library")
    parser.add_argument("--files", type=int, default=900, help="files for `ots stamp`")
    parser.add_argument("--headers", type=int, default=970_000, help="headers to check; 0: none")
    parser.add_argument("--only-core", action="store_true", help="leave out what needs a store")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON")
    return parser.parse_args()


def _once(run: Run, wanted: argparse.Namespace, folder: Path) -> None:
    """Measure what does not depend on the number of records."""
    bare, helped = run.note(stages.start(folder))
    found = {
        "anchord --help ms": 1000 * helped.wall_s,
        "anchord --help / python -c pass": helped.wall_s / bare.wall_s,
    }
    if not wanted.only_core:
        run.note([stages.stamp_files(folder, wanted.files)])
        if wanted.headers:
            *_, check = run.note(stages.check_headers(folder, wanted.headers))
            found["headers check s"] = check.wall_s
            found["headers check peak MiB"] = check.peak_kib / 1024
    run.ratios["once"] = found


def _sized(run: Run, wanted: argparse.Namespace, folder: Path, count: int) -> None:
    """Measure one number of records."""
    (floor,) = run.note([stages.sign(min(count, 200_000))])
    peer, own = run.note(stages.tree_and_join(min(count, wanted.peer_max)))
    found = {
        "tree + join, library / anchord, time": peer.wall_s / own.wall_s,
        "tree + join, library / anchord, memory": peer.peak_kib / max(own.peak_kib, 1),
    }
    if not wanted.only_core:
        rows = run.note(stages.Bench(folder / str(count), count).rows())
        found |= report.ratios(rows, floor)
    run.ratios[str(count)] = found


def main() -> None:
    """Measure everything that was asked for."""
    wanted = _arguments()
    run = Run()
    print(json.dumps(report.machine()))
    print(report.heading())
    with tempfile.TemporaryDirectory(prefix="anchord-bench-") as name:
        _once(run, wanted, Path(name))
        for size in wanted.size.split(","):
            _sized(run, wanted, Path(name), int(size))
    for scope, found in run.ratios.items():
        print(f"\n{scope}")
        for what, value in found.items():
            print(f"  {what:<48}{value:>12.2f}")
    print(f"\nwritten: {report.write(wanted.out, run.rows, run.ratios)}")


if __name__ == "__main__":
    try:
        main()
    except measure.StageError as error:
        raise SystemExit(f"benchmarks: {error}") from None
