"""A short day in fair and in foul weather meets every law; the long ones are benchmarks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def lived(weather: str, *words: str) -> list[dict[str, Any]]:
    """Return what was found after a day and at its end."""
    command = [sys.executable, "-m", "benchmarks.day", "--json", "--weather", weather, *words]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.stdout, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == any(not held for one in found for held in one["laws"].values())
    return found


def broken(found: list[dict[str, Any]]) -> list[str]:
    return [law for one in found for law, held in one["laws"].items() if not held]


def test_a_fair_hour_uses_what_is_allowed_and_breaks_no_limit() -> None:
    (found,) = lived("fair", "--records", "400", "--hours", "1", "--day-only")
    assert broken([found]) == []
    assert "at least 95% of the allowed submits are used" in found["laws"]
    assert found["figures"]["events live"] > 0


@pytest.mark.parametrize("seed", ["1", "2"])
def test_foul_weather_loses_nothing_doubles_nothing_and_leaves_nothing_false(seed: str) -> None:
    day, end = lived("foul", "--records", "60", "--hours", "0.3", "--seed", seed)
    assert broken([day, end]) == []
    assert end["figures"]["captures by state"] == "60 stored"
    assert "every record is stored" in end["laws"]
