"""What one look of `anchord doctor` found."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec

from anchord.errors import AnchordError, ConfigError, FatalError, TransientError


class State(StrEnum):
    """How it is, best first."""

    OK = "ok"
    SKIPPED = "skipped"
    """Not looked at, or not set up."""
    WARN = "warn"
    """It works; look at it when there is time."""
    FAIL = "fail"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One finding."""

    name: str
    state: State
    what: str
    """What is there, or what was expected and what came."""
    todo: str = ""
    """What to do; empty when nothing is to be done."""
    code: int = 0
    """Exit code it asks for: 0, or of a failure 2 (a person), 3 (wait) or 4 (unsafe)."""


def ok(name: str, what: str) -> Result:
    """Return that all is well."""
    return Result(name=name, state=State.OK, what=what)


def skipped(name: str, what: str) -> Result:
    """Return that nothing was looked at."""
    return Result(name=name, state=State.SKIPPED, what=what)


def warn(name: str, what: str, todo: str) -> Result:
    """Return what should be looked at when there is time."""
    return Result(name=name, state=State.WARN, what=what, todo=todo)


def fail(name: str, what: str, todo: str, code: int = ConfigError.exit_code) -> Result:
    """Return what keeps anchord from working."""
    return Result(name=name, state=State.FAIL, what=what, todo=todo, code=code)


def failed(name: str, error: AnchordError, todo: str) -> Result:
    """Return an error as a result; what is refused or false is for a person to look at."""
    code = error.exit_code if error.exit_code > 1 else ConfigError.exit_code
    return fail(name, str(error).removeprefix(f"{name}: "), todo, code)


def exit_code(results: Iterable[Result]) -> int:
    """Return what the command ends with: the worst a failure asks for, warnings aside.

    4 the store is unsafe, else 2 a person must act, else 3 waiting helps, else 0.
    """
    codes = {one.code for one in results}
    worst = (FatalError.exit_code, ConfigError.exit_code, TransientError.exit_code)
    return next((code for code in worst if code in codes), 0)
