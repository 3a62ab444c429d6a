"""What interrupted work left lying about. None of it is ever read; it only takes room."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from anchord.app.doctor.patient import Patient

NAME = "leftovers"
_HOUR_S = 3600
"""Younger ones may be in the making."""
_PART = re.compile(r"\..+\.part|\.keyring\.toml\..+|.+\.(tmp|new)", re.DOTALL)


def check(patient: Patient) -> Iterator[Result]:
    """Name temporary files in the folders anchord writes to."""
    found = [
        path
        for folder in sorted(_folders(patient))
        for path in sorted(folder.iterdir())
        if _PART.fullmatch(path.name) and patient.now - _changed(path) > _HOUR_S
    ]
    if found:
        names = ", ".join(str(path) for path in found[:5])
        yield warn(
            NAME, f"{len(found):,} file(s) of interrupted work: {names}",
            "delete them; nothing reads them",
        )  # fmt: skip
    else:
        yield ok(NAME, "no files of interrupted work")


def _folders(patient: Patient) -> set[Path]:
    from anchord.adapters.store.database import sqlite_path

    config, resolve = patient.config, patient.loaded.resolve
    store = sqlite_path(patient.url)
    wanted = {
        patient.loaded.path.parent,
        resolve(config.signer.key_dir),
        resolve(config.headers.file.path).parent,
        resolve(config.archive.items.spool_dir),
    } | (set() if store is None else {store.parent})
    return {folder for folder in wanted if folder.is_dir()}


def _changed(path: Path) -> float:
    return path.lstat().st_mtime
