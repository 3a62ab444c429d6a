"""The whole examination: the list of checks. Each stands alone; one fault hides no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.app.doctor import (
    clock,
    configuration,
    disk,
    exchange,
    headers,
    keys,
    ledger,
    leftovers,
    services,
    store,
)
from anchord.app.doctor.result import Result, State, fail, failed, skipped
from anchord.errors import AnchordError, ConfigError, FatalError, TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.app.doctor.patient import Patient

Check = tuple[str, "Callable[[Patient], Iterator[Result]]", bool]

CHECKS: tuple[Check, ...] = (
    ("configuration", lambda patient: configuration.check(patient.loaded), False),
    ("key", keys.check, False),
    ("clock", clock.check, False),
    ("disk", disk.check, False),
    ("store", store.check, False),
    ("ledger", ledger.check, True),
    ("calendars", services.calendars, False),
    ("headers", headers.check, False),
    ("authorities", services.authorities, True),
    ("archive", services.archive, True),
    ("sources", exchange.sources, True),
    ("outlets", exchange.outlets, True),
    ("leftovers", leftovers.check, False),
)
"""Name, what looks, and whether it needs a store that opens."""


def examine(patient: Patient) -> list[Result]:
    """Make every check; what cannot be looked at is said so.

    Results come in the order of the checks; see `worst_first`.
    """
    found: list[Result] = []
    opens = _opens(patient)
    for name, check, needs_store in CHECKS:
        if needs_store and not opens:
            found.append(skipped(name, "the store cannot be opened"))
            continue
        try:
            found += check(patient)
        except AnchordError as error:
            found.append(failed(name, error, "see what the message asks for"))
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            found.append(fail(name, f"{where}{error.strerror}", "check the path and permissions"))
    return found


def _opens(patient: Patient) -> bool:
    try:
        return patient.store is not None
    except AnchordError:
        return False  # told by the check of the store


def worst_first(results: list[Result]) -> list[Result]:
    """Return what a person should read first, first."""
    states = (State.FAIL, State.WARN, State.OK, State.SKIPPED)
    codes = (FatalError.exit_code, ConfigError.exit_code, TransientError.exit_code, 0)
    return sorted(results, key=lambda one: (states.index(one.state), codes.index(one.code)))
