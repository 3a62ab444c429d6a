"""The fault table over all ports: whatever call goes wrong, and however, the end is the same.

Each life goes through every port, and in each, every call of every port goes wrong once in one
way: it fails, it fails though it happened, it hangs, the process is killed before it, or behind it.
The ledger is judged after every pass, and at the end nothing is lost, doubled, false or stuck.
"""

from __future__ import annotations

import importlib
import pkgutil
import time
from pathlib import Path
from typing import Any

import pytest
from support.authorities import FakeAuthority, LocalAuthority
from support.fault_table import (
    DEATHS,
    ELSEWHERE,
    FAULTS,
    NOT_IN_A_PASS,
    PORTS,
    Strikes,
    methods,
    rows,
)
from support.whole_life import lived

from anchord import ports

ROOT = Path(__file__).resolve().parents[2]
_HANG_S = 0.02


def protocols() -> set[type]:
    """Return every Protocol that `anchord.ports` defines."""
    names = [f"{ports.__name__}.{one.name}" for one in pkgutil.iter_modules(ports.__path__)]
    modules = [ports, *map(importlib.import_module, names)]
    return {
        value
        for module in modules
        for value in vars(module).values()
        if getattr(value, "_is_protocol", False) and value.__module__ == module.__name__
    }


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LocalAuthority:
    return LocalAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, authority: LocalAuthority
) -> dict[str, Any]:
    strikes = Strikes(None)
    with lived(tmp_path_factory.mktemp("life"), FakeAuthority(authority), strikes) as life:
        assert not life.troubles
        return life.judge()


def test_every_port_is_in_the_table_or_it_is_said_where_it_fails() -> None:
    said = {port.protocol.__name__ for port in PORTS.values()} | NOT_IN_A_PASS.keys()
    assert {one.__name__ for one in protocols()} == said


def test_every_method_has_a_row_and_what_is_said_of_it_is_so() -> None:
    for name, port in PORTS.items():
        known = set(methods(port.protocol))
        assert known, name
        assert set(port.reads.split()) <= known, name
        assert {method for place, method in ELSEWHERE if place == name} <= known, name
    assert {port for port, _ in ELSEWHERE} <= PORTS.keys()
    for file in {*ELSEWHERE.values(), *NOT_IN_A_PASS.values()}:
        assert (ROOT / file).is_file(), file


@pytest.mark.parametrize("nth", [1, 3])
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_call_goes_wrong_nothing_is_lost_doubled_false_or_stuck(
    undisturbed: dict[str, Any], authority: LocalAuthority, tmp_path: Path, fault: str, nth: int
) -> None:
    strikes = Strikes(fault, nth, wait=lambda: time.sleep(_HANG_S))
    with lived(tmp_path, FakeAuthority(authority), strikes) as life:
        assert life.judge() == undisturbed
        # Two calls on two threads may be struck by one death.
        assert life.deaths <= len(strikes.struck)
        assert bool(life.deaths) == (fault in DEATHS)
    wanted = {(row.port, row.method) for port in PORTS for row in rows(port, fault)}
    struck = {(row.port, row.method) for row in strikes.struck}
    assert len(struck) == len(strikes.struck)
    if nth == 1:
        assert wanted - struck <= ELSEWHERE.keys()
