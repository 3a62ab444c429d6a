"""`anchord ledger check` looks at the store as it was at one moment, whatever passes write."""

from __future__ import annotations

import pytest
from support.beside import Beside
from support.workplace import Workplace, sample

from anchord.app import audit_wiring


@pytest.mark.parametrize("at", [2, 4, 6, 8])
def test_what_a_pass_adds_meanwhile_is_not_held_against_the_ledger(tmp_path, monkeypatch, at):
    place = Workplace(tmp_path)
    place.anchor(*map(sample, range(3)))
    place.add(*map(sample, range(10, 13)))
    place.step()
    happened = []

    def happens():
        happened.append(True)
        place.mine()
        place.step(1000)
        place.anchor(*map(sample, range(20, 23)))

    opened = audit_wiring.reading_store
    monkeypatch.setattr(audit_wiring, "reading_store", lambda url: Beside(opened(url), happens, at))
    report = place.json("ledger", "check")
    assert happened
    assert (report["result"], report["rows"]) == ("sound", 9)
    monkeypatch.undo()
    report = place.json("ledger", "check")
    assert (report["result"], report["rows"]) == ("sound", 18)
