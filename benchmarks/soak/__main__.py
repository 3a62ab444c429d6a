"""The soak: `python -m benchmarks.soak --days 30 --records 50000 [--store postgres]`.

Days of virtual time go by with everything going wrong that can; then all is well, and whatever was
begun must come to its end. The exit code is 1 when anything was lost, doubled, false or stuck, when
the service ended though nothing was wrong with its disk, or when its memory or handles grew.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.soak.judge import KINDS, RowJudge, Verdict, done, judge
from benchmarks.soak.life import Life
from benchmarks.soak.machine import Machine
from benchmarks.soak.stores import Place, PostgresPlace, SqlitePlace
from benchmarks.soak.trouble import calm, draw
from benchmarks.soak.world import World

_MOST_DAYS = 25
"""After the last fault, for what was begun to end."""
_GROWTH_KIB = 16 * 1024
"""By how much a process may have grown between its second evening and its last."""
_HANDLES = 8
"""Calls that happen to be under way have some."""


class Soak:
    """One run.

    Args:
        folder: where all of it lives.
        wanted: the command line.
    """

    def __init__(self, folder: Path, wanted: argparse.Namespace) -> None:
        self._wanted = wanted
        self._place: Place = PostgresPlace() if wanted.store == "postgres" else SqlitePlace(folder)
        self._world = World(
            folder, self._place, wanted.days, wanted.records, captured=wanted.captured,
            seed=wanted.seed,
        )  # fmt: skip
        self._machine = Machine(self._world.config, folder / "service.log")
        self._life = Life(self._world, self._machine, self._evening, quiet=wanted.quiet)
        self._verdict = Verdict()
        self._vitals: list[dict[str, int]] = []
        self._rows = RowJudge(self._world)
        self._checks = 0

    def run(self) -> dict[str, Any]:
        """Live through all of it; return the report."""
        began = time.perf_counter()
        wanted = self._wanted
        try:
            self._world.start()
            events = draw(
                wanted.days, wanted.records, wanted.seed, postgres=wanted.store != "sqlite"
            )
            self._life.live(events, wanted.days)
            lived = time.perf_counter()
            self._life.heal_all()
            self._life.heed_alerts()
            after = self._life.settle(lambda: done(self._world), _MOST_DAYS)
            settled = time.perf_counter()
            self._machine.stop()
            judge(self._world, self._verdict)
            judged = time.perf_counter()
            audit = self._audit()
        finally:
            self._machine.kill()
            self._world.close()
            self._place.close()
        seconds = {
            "faults": lived - began, "settling": settled - lived, "judging": judged - settled,
            "audit": time.perf_counter() - judged, "all": time.perf_counter() - began,
        }  # fmt: skip
        return self._report(seconds, after, audit)

    def _evening(self, day: int) -> None:
        if day - 1 in calm(self._wanted.days):
            self._vitals = list(self._machine.vitals_of_life)
        self._rows(self._verdict)
        self._checks += 1

    def _audit(self) -> dict[str, Any]:
        """Let anchord audit the store against the stand-ins' headers."""
        headers = self._world.folder / "truth.bin"
        headers.write_bytes(b"".join(self._world.sandbox.chain.headers()))
        cost = measure.run(
            [measure.PYTHON, "-m", "benchmarks.soak.at", str(self._world.now()), "audit", "--json",
             "-q", "--headers", str(headers), "--network", "regtest"],
            cwd=self._world.folder, allowed=(0, 1, 2, 3, 4),
        )  # fmt: skip
        document = json.loads(cost.stdout) if cost.stdout.strip() else {}
        return {"exit_code": cost.code, "result": document.get("result"),
                "reasons": document.get("reasons"), "counts": document.get("counts"),
                "broken": _broken(document), "words": cost.stderr[-500:]}  # fmt: skip

    def _report(
        self, seconds: dict[str, float], after: float, audit: dict[str, Any]
    ) -> dict[str, Any]:
        wanted, verdict, machine, life = self._wanted, self._verdict, self._machine, self._life
        first, last = (self._vitals[0], self._vitals[-1]) if self._vitals else ({}, {})
        laws = {
            **{f"{name}: none": not getattr(verdict, name) for name in KINDS},
            "`anchord audit` calls the store sound": audit["exit_code"] == 0,
            "the service ended by itself only when its disk was bad": not life.bad_ends,
            "every record came in": len(self._world.truth) == wanted.records,
        }
        if len(calm(wanted.days)) > 1:
            laws["one process lived through the days without kills"] = len(self._vitals) > 1
        if len(self._vitals) > 1:
            grown = last["rss_kib"] - first["rss_kib"]
            laws["memory is flat"] = grown <= _GROWTH_KIB
            laws["file handles are flat"] = last["handles"] - first["handles"] <= _HANDLES
        return {
            "days": wanted.days, "records": wanted.records, "store": wanted.store,
            "brought back by a person": self._life.brought_back,
            "seed": wanted.seed, "pages": sum(self._world.truth.values()),
            "days until all was settled": round(after, 2),
            "seconds": {name: round(value, 1) for name, value in seconds.items()},
            "happened": dict(sorted(life.happened.items())),
            "kill -9": machine.kills, "starts of the service": machine.starts,
            "blocks": self._world.sandbox.height,
            "paused by": dict(life.paused), "ended by": machine.ends,
            "ended wrongly by": life.bad_ends, "checks of the rows": self._checks,
            "memory of one life, KiB": [one["rss_kib"] for one in self._vitals],
            "handles of one life": [one["handles"] for one in self._vitals],
            **verdict.figures, "audit": audit,
            **{name: getattr(verdict, name)[:50] for name in KINDS},
            "laws": laws,
        }  # fmt: skip


def _broken(document: dict[str, Any]) -> list[str]:
    """Return the first findings that say something does not hold, so that a report tells why."""
    found = [one for one in document.get("findings") or [] if one["severity"] == "broken"]
    return [f"{one['code']}: {one['subject']}: {one['what']}" for one in found[:10]]


def lines(report: dict[str, Any]) -> list[str]:
    """Return a report for people."""
    shown = [
        f"  {name:<40}{json.dumps(value, ensure_ascii=False)}"
        for name, value in report.items() if name != "laws"
    ]  # fmt: skip
    laws = [f"  {'holds ' if held else 'BROKEN'}  {law}" for law, held in report["laws"].items()]
    return [f"soak of {report['days']} days, {report['records']:,} records", *shown, *laws]


def main() -> int:
    """Run the soak; 1 when a law is broken."""
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--captured", type=float, default=0.3, help="share of records with a page")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", type=Path, help="keep everything here")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--report", type=Path, help="also write the JSON document here")
    parser.add_argument("--quiet", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anchord-soak-") as temporary:
        report = Soak(wanted.dir or Path(temporary) / "soak", wanted).run()
    document = json.dumps(report, indent=1, ensure_ascii=False)
    if wanted.report is not None:
        wanted.report.write_text(document + "\n", encoding="utf-8")
    print(document if wanted.json else "\n".join(lines(report)), flush=True)
    return 0 if all(report["laws"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())
