"""Header sources: how old the newest block is that each of them knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, failed, ok, skipped, warn
from anchord.core.header import HEADER_SIZE, parse_header
from anchord.core.moment import utc
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from anchord.app.doctor.patient import Patient

_OLD_S = 6 * 3600
"""Blocks come every ten minutes; six hours without one was never seen on the main chain."""


def check(patient: Patient) -> Iterator[Result]:
    """Look at each configured source; own headers are read from the file, others asked."""
    names = list(dict.fromkeys(patient.config.headers.sources))
    for place, name in enumerate(names):
        if name == "file":
            yield _own(patient)
        elif patient.online:
            yield _asked(patient, name, place)
        else:
            yield skipped(f"headers: {name}", "not asked: --offline")


def newest(path: Path) -> tuple[int, int] | None:
    """Return height and time of a header file's last header; None when there is none.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        whole = file.seek(0, 2) // HEADER_SIZE
        if not whole:
            return None
        file.seek((whole - 1) * HEADER_SIZE)
        return whole - 1, parse_header(file.read(HEADER_SIZE)).time


def _own(patient: Patient) -> Result:
    name, path = "headers: file", patient.loaded.resolve(patient.config.headers.file.path)
    try:
        found = newest(path)
    except OSError as error:
        return fail(name, f"{path}: {error.strerror}", "anchord headers sync")
    if found is None:
        return fail(name, f"{path} is empty", "anchord headers sync")
    wrong = _wrong_header(path, patient) if patient.full else None
    if wrong is not None:
        return fail(
            name, f"{path}: {wrong}", f"mv '{path}' '{path}.bad', then anchord headers sync"
        )
    return _age(name, *found, patient, "anchord headers sync; is the network's port 8333 open?")


def _wrong_header(path: Path, patient: Patient) -> str | None:
    """Check every header, as `anchord headers check` does; return what is wrong with the first."""
    from anchord.adapters.headers.intake import InputRefusedError, check_headers
    from anchord.core.network import network

    try:
        with path.open("rb") as file:
            check_headers(
                file, network(patient.config.headers.network), patient.now, lambda _height: None
            )
    except InputRefusedError as error:
        return str(error)
    return None


def _asked(patient: Patient, source: str, place: int) -> Result:
    name = f"headers: {source}"
    try:
        tip = patient.app.headers[place].tip()
    except AnchordError as error:
        return failed(name, error, f"see that it answers, or take {source} out of headers.sources")
    return _age(name, tip.height, tip.time, patient, "see that it is in sync")


def _age(name: str, height: int, time: int, patient: Patient, todo: str) -> Result:
    what = f"block {height:,} of {utc(time)}"
    if patient.config.headers.network == "regtest":
        return ok(name, f"{what}, regtest")
    if patient.now - time > _OLD_S:
        hours = (patient.now - time) // 3600
        return warn(name, f"the newest is {what}, {hours:,} hours ago", todo)
    return ok(name, what)
