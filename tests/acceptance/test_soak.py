"""Days with all faults, killed and healed: nothing is lost, doubled, false or stuck."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def soaked(*words: str) -> dict[str, Any]:
    """Return the report of a soak."""
    command = [sys.executable, "-m", "benchmarks.soak", "--json", "--quiet", *words]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=550
    )
    assert done.stdout, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (not all(report["laws"].values()))
    return report


@pytest.mark.timeout(600)  # a day takes a minute, and several on a machine that does much else
@pytest.mark.parametrize(
    ("store", "days", "records"),
    [("sqlite", 1, 150), ("postgres", 1, 60)],
    ids=["sqlite", "postgres"],
)
def test_bad_days_lose_nothing_double_nothing_and_leave_nothing_false_or_stuck(
    store: str, days: int, records: int
) -> None:
    words = ["--days", str(days), "--records", str(records), "--captured", "0.2"]
    report = soaked(*words, "--store", store)
    broken = [law for law, held in report["laws"].items() if not held]
    assert broken == [], json.dumps(report, indent=1)
    assert report["kill -9"] > 2
    happened = report["happened"]
    assert {"reorg", "fault", "kill", "hold"} <= set(happened), happened
    assert ("restart" in happened) == (store == "postgres")
