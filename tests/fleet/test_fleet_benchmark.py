"""The benchmark of workers lives through a small size from end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json
from benchmarks.fleet import round_of
from support.postgres import Cluster
with Cluster() as cluster:
    print(json.dumps(round_of(cluster, "2 workers, PostgreSQL", 100, 1.0)))
"""


def test_workers_are_measured_from_the_first_record_to_the_last_event() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False,
        timeout=200, env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    took = json.loads(done.stdout)
    assert 0 < took["added_s"] <= took["submitted_s"] < took["whole_s"]
    assert abs(took["whole_s"] - took["submitted_s"] - took["anchored_s"]) < 0.001
