"""Free space where anchord writes, against what it will need there."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, ok, warn
from anchord.core.header import HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from anchord.app.doctor.patient import Patient

_MIB = 1 << 20
_LEAST = 64 * _MIB
"""The write-ahead log alone may grow to this (`journal_size_limit`)."""
_HEADERS = 1_200_000 * HEADER_SIZE
"""Headers of the main chain for some years; a reorganisation is written beside the file."""


def check(patient: Patient) -> Iterator[Result]:
    """Look at each folder; two that share a disk share its free space."""
    for name, (folder, wanted) in _needs(patient).items():
        yield _room(f"disk: {name}", folder, wanted)


def _needs(patient: Patient) -> dict[str, tuple[Path, int]]:
    """Return folder and bytes by what is written there."""
    from anchord.adapters.store.database import sqlite_path
    from anchord.adapters.store.vitals import sizes

    config, found = patient.config, {}
    store = sqlite_path(patient.url)
    if store is not None:
        size = sizes(patient.url) or (0, 0)
        # Room to double: a backup beside it, a migration, or a year of records.
        found["store"] = (store.parent, max(size[0], 4 * _LEAST))
    if "file" in config.headers.sources:
        file = patient.loaded.resolve(config.headers.file.path)
        have = file.stat().st_size if file.is_file() else 0
        whole = _HEADERS if config.headers.network == "mainnet" else 0
        found["headers"] = (file.parent, max(whole - have, have, _MIB))
    if config.archive.items.enabled and config.archive.items.prefix:
        spool = patient.loaded.resolve(config.archive.items.spool_dir)
        found["spool"] = (spool, 4 * config.archive.items.max_bytes)
    return found


def _room(name: str, folder: Path, wanted: int) -> Result:
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    free = shutil.disk_usage(there).free
    inodes = os.statvfs(there)
    what = f"{_size(free)} free at {there}"
    if inodes.f_files and inodes.f_favail < 64:
        return fail(name, f"no inodes are left at {there}", "delete small files there")
    if free < min(_LEAST, wanted):
        return fail(name, f"{what}, {_size(wanted)} are needed", "make room before the next pass")
    if free < wanted:
        return warn(name, f"{what}, {_size(wanted)} would be good", "make room, or move the folder")
    return ok(name, what)


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 10**9 else f"{count / 1e6:,.0f} MB"
