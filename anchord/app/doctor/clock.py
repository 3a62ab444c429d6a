"""The machine's clock, held against block headers, the store, and the calendars' answers.

A block's time may be up to two hours ahead of the network's (Bitcoin Core, validation.h,
MAX_FUTURE_BLOCK_TIME), never more: a header from further ahead means that this clock is behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.headers import newest
from anchord.app.doctor.result import Result, fail, ok
from anchord.core.chain import MAX_FUTURE_S
from anchord.core.moment import utc
from anchord.errors import AnchordError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient

NAME = "clock"
_STEP_S = 60
"""What a clock that is being set right may be apart."""
_SYNC = "set the clock right and keep it so: timedatectl set-ntp true"


def check(patient: Patient) -> Iterator[Result]:
    """Compare; anything signed while the clock is wrong would state a wrong time."""
    found = [one for one in (_headers(patient), _store(patient)) if one is not None]
    yield from found or [ok(NAME, f"{utc(patient.now)}; nothing known is later")]


def _headers(patient: Patient) -> Result | None:
    path = patient.loaded.resolve(patient.config.headers.file.path)
    try:
        last = newest(path) if "file" in patient.config.headers.sources else None
    except OSError:
        return None  # told where headers are looked at
    if last is None or last[1] <= patient.now + MAX_FUTURE_S:
        return None
    return fail(
        NAME, f"it says {utc(patient.now)}, block {last[0]:,} is of {utc(last[1])}: it is behind",
        _SYNC,
    )  # fmt: skip


def _store(patient: Patient) -> Result | None:
    try:
        moment = patient.store.newest_moment()
    except AnchordError:
        return None  # told where the store is looked at
    if moment is None or moment <= patient.now + _STEP_S:
        return None
    return fail(
        NAME, f"it says {utc(patient.now)}, the store was written at {utc(moment)}: it went back",
        f"{_SYNC}; if it ran ahead then, wait until that moment is over",
    )  # fmt: skip
