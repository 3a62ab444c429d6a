"""The benchmark runs from end to end on a small size, so it can be trusted with a large one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_a_small_run_gives_every_stage_and_ratio(tmp_path: Path) -> None:
    words = ["--size", "300", "--headers", "400", "--files", "5", "--out", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = tmp_path.glob("*.json")
    found = json.loads(file.read_text("utf-8"))
    stages = {row["stage"].split(":")[0] for row in found["rows"]}
    assert {"add", "pass 1", "pass 2", "pass 3", "idle pass", "peer", "floor"} <= stages
    assert found["ratios"]["300"]["requests to upgrade"] == 3
    assert found["ratios"]["300"]["end to end per signed event / bare signing"] > 0
    assert found["ratios"]["once"]["anchord --help / python -c pass"] > 1


def test_a_small_audit_is_measured_from_end_to_end() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.audit", "--size", "40"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["signatures"] == 80
    assert 0 < found["bare / audit, 1 process"] < 1
    assert found["records verified since the checkpoint, after 1000 more"] == 1000


def test_a_small_tree_is_published_audited_and_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tree", "--size", "40"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert (found["records"], found["signatures of events"]) == (40, 80)
    for stage in ("publishing", "publishing again", "audit"):
        assert 0 < found[f"bare / {stage}"] < 1


def test_a_small_store_is_served_and_measured() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.idle", "--size", "50", "--seconds", "2"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["records"] == 50
    assert found["after the work, MiB"] > 0
    assert found["share of a core"] < 0.5


def test_a_small_face_is_served_and_measured() -> None:
    words = ["--size", "60", "--count", "3", "--seconds", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.face", *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)
    for kind in ("page", "record, JSON", "list", "list, not stored", "dashboard", "search"):
        assert 0 < found[kind]["median, ms"] <= found[kind]["p99, ms"]
    assert found["page"]["a second"] > 0
    assert found["memory, MiB"] > 10
