"""What comes in and goes out by itself, as the store has it: nobody is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor.result import Result, fail, ok, skipped, warn
from anchord.core.moment import utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.doctor.patient import Patient

_OFTEN = 3
"""Failures in a row after which a source or an outlet is worth a look."""


def sources(patient: Patient) -> Iterator[Result]:
    """Tell which sources could not be read, and which never were."""
    if not patient.config.sources:
        yield skipped("sources", "none is configured")
    known = {row.name: row for row in patient.store.sources.all()}
    for one in patient.config.sources:
        name, row = f"source {one.name}", known.get(one.name)
        if row is None:
            yield ok(name, "looked at by the next pass")
        elif row.failures >= _OFTEN:
            what = f"failed {row.failures:,} times in a row, last: {row.last_error}"
            yield warn(name, what, f"mend it, then anchord sources pull {one.name}")
        else:
            looked = "never" if row.looked_at is None else utc(row.looked_at)
            yield ok(name, f"last looked at {looked}; {row.taken:,} records are of it")


def outlets(patient: Patient) -> Iterator[Result]:
    """Tell which outlets are stopped or fail, and what of theirs waits for a person."""
    if not patient.config.outlets:
        yield skipped("outlets", "none is configured")
    known = {row.name: row for row in patient.store.outlets.all()}
    parked = {name: count for (name, state), count in patient.store.outlets.counts().items()
              if state == "parked"}  # fmt: skip
    for one in patient.config.outlets:
        name, row = f"outlet {one.name}", known.get(one.name)
        todo = f"mend it, then anchord retry --outlet {one.name}"
        if row is None:
            yield ok(name, "begun by the next pass")
        elif row.next_attempt_at is None:
            yield fail(name, f"stopped: {row.last_error or 'it wants nothing more'}", todo)
        elif parked.get(one.name):
            what = f"{parked[one.name]:,} event(s) were refused, later ones of the records wait"
            yield fail(name, what, todo)
        elif row.failures >= _OFTEN:
            what = f"failed {row.failures:,} times in a row, last: {row.last_error}"
            yield warn(name, what, "see that it answers; it is tried again by itself")
        else:
            yield ok(name, f"{row.delivered:,} events handed over")
