"""Items: `python -m benchmarks.items --size 10000,300000`: bundles packed, uploaded and confirmed.

Bundles are packed into ZIPs while the real library uploads those that are ready; then metadata is
read until all is stored and signed, and once more a day later, with sampled downloads. The clock
jumps over the service's delays, so the figures are anchord's own work and the library's.
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

from anchord.core.storage import FileState
from anchord.sandbox.items.rules import Rules
from benchmarks import measure
from benchmarks.timeless import DAY_S, Place

if TYPE_CHECKING:
    from anchord.engine.archiving import ArchiveReport
    from anchord.sandbox.run import Sandbox


def _tables(sandbox: Sandbox) -> str:
    return f"""[archive.captures]
enabled = false

[archive.items]
api_url = "{sandbox.items.api_url}"
s3_url = "{sandbox.items.s3_url}"
prefix = "anchord-benchmark"
collection = "test_collection"
wait_for_anchor_s = 1
flush_after_s = 3600
"""


def _run(folder: Path, count: int) -> dict[str, Any]:
    """Take `count` records from waiting to stored, and return what it cost.

    Raises:
        StageError: not every record was stored exactly once.
    """
    place = Place(folder, count, item_rules=Rules(), quiet=True)
    with place.opened(_tables) as (app, parts, archiving):
        place.clock.advance(DAY_S)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        marks = {"begin": time.perf_counter()}
        items = app.store.storage

        def packed(_: ArchiveReport) -> bool:
            return items.counts().unpacked == 0

        def stored(_: ArchiveReport) -> bool:
            return items.counts().by_item == count

        def confirmed(_: ArchiveReport) -> bool:
            due = items.items.next_moment(set(FileState))
            return due is None

        place.live(app, parts, archiving, place.clock.now() + 9 * DAY_S, done=packed)
        marks["packed"] = time.perf_counter()
        place.live(app, parts, archiving, place.clock.now() + 9 * DAY_S, done=stored)
        marks["stored"] = time.perf_counter()
        place.live(app, parts, archiving, place.clock.now() + 9 * DAY_S, done=confirmed)
        marks["confirmed"] = time.perf_counter()
        found = items.counts()
        report = place.sandbox.items.archive.report()
        if found.by_item != count or report["put_twice"] or report["overwrites"]:
            raise measure.StageError(f"expected {count} stored once, got {found} and {report}")
        requests = place.sandbox.requests
        return {
            "records": count,
            "packed, and most of it uploaded, a second": count / (marks["packed"] - marks["begin"]),
            "packed, uploaded, stored and signed a second":
                count / (marks["stored"] - marks["begin"]),
            "confirmed a second": count / (marks["confirmed"] - marks["stored"]),
            "peak MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "peak MiB before": before / 1024,
            "peak MiB of the upload process":
                resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
            "requests a record": sum(
                number
                for service, routes in requests.items() if service in ("ias3", "archive-org")
                for route, number in routes.items() if route != "connections"
            ) / count,
        }  # fmt: skip


def main() -> int:
    """Run each size and print one line of figures for each."""
    parser = argparse.ArgumentParser(prog="benchmarks.items", description=__doc__)
    parser.add_argument("--size", default="10000", help="record counts, with commas")
    wanted = parser.parse_args()
    for count in map(int, wanted.size.split(",")):
        with tempfile.TemporaryDirectory(prefix="anchord-items-") as temporary:
            print(json.dumps(_run(Path(temporary) / "run", count)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
