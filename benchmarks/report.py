"""The table, the ratios and the JSON file."""

from __future__ import annotations

import json
import os
import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.stages import Row

_COLUMNS = ["stage", "count", "wall s", "us each", "CPU s", "peak MiB", "disk MiB", "requests"]
_WIDTHS = [40, 9, 9, 9, 9, 9, 9, 9]
_LIVES = ("add", "pass 1", "pass 2", "pass 3")
"""The stages that make up a record's way from input to two signed events."""


def line(cells: Sequence[str]) -> str:
    """Return one line of the table."""
    first, *rest = zip(cells, _WIDTHS, strict=True)
    return first[0].ljust(first[1]) + "".join(cell.rjust(width) for cell, width in rest)


def heading() -> str:
    """Return the table's first line."""
    return line(_COLUMNS)


def shown(row: Row) -> str:
    """Return a stage's line."""
    return line(
        [
            row.stage,
            f"{row.count:,}",
            f"{row.wall_s:.3f}",
            f"{1e6 * row.wall_s / row.count:.1f}",
            f"{row.cpu_s:.3f}",
            f"{row.peak_kib / 1024:.1f}",
            "" if row.disk_bytes is None else f"{row.disk_bytes / 2**20:.1f}",
            "" if row.requests is None else str(row.requests),
        ]
    )


def ratios(rows: Sequence[Row], floor: Row) -> dict[str, float]:
    """Return what the aims are about, for one size; `floor` is bare signing in the same run."""
    named = {row.stage: row for row in rows}
    life = [row for row in rows if row.stage.startswith(_LIVES)]
    count = life[0].count
    third = named["pass 3: sign + append"]
    bare = floor.wall_s / floor.count
    return {
        "end to end per signed event / bare signing": sum(row.wall_s for row in life)
        / (2 * count)
        / bare,
        "sign + append per event / bare signing": third.wall_s / count / bare,
        "peak MiB, all stages": max(row.peak_kib for row in rows) / 1024,
        "disk bytes a record": (third.disk_bytes or 0) / count,
        "requests to upgrade": float(named["pass 2: upgrade + verify"].requests or 0),
        "idle pass ms": 1000 * named["idle pass"].wall_s,
    }


def machine() -> dict[str, Any]:
    """Return what the figures were taken on."""
    return {
        "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "python": sys.version.split()[0],
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "anchord": version("anchord"),
        "opentimestamps": version("opentimestamps"),
        "opentimestamps-client": version("opentimestamps-client"),
        "cryptography": version("cryptography"),
    }


def write(folder: Path, rows: Sequence[Row], found: dict[str, dict[str, float]]) -> Path:
    """Write one run's JSON and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    about = machine()
    file = folder / f"{about['at'].replace(':', '')}.json"
    document = {"machine": about, "rows": [row._asdict() for row in rows], "ratios": found}
    file.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return file
