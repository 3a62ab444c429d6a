"""Several processes find what one finds; where there is little to audit, none is started."""

from __future__ import annotations

import pytest
from support.audited import audit, broken, damaged, database, settled, whole_place
from support.workplace import Workplace

from anchord.engine.audit import store


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    place = whole_place(tmp_path_factory.mktemp("whole"))
    settled(database(place))
    return place


def started(monkeypatch) -> list[int]:
    """Return a list of how many processes were asked for, which grows with every audit."""
    asked: list[int] = []
    real = store.outcomes

    def seen(reading, open_store, frame, jobs):
        asked.append(frame.options.jobs)
        return real(reading, open_store, frame, jobs)

    monkeypatch.setattr(store, "outcomes", seen)
    return asked


def test_several_processes_find_the_same(place, tmp_path, monkeypatch):
    path = damaged(database(place), tmp_path / "damaged.db",
                   "UPDATE events SET signature = zeroblob(64) WHERE seq > 3")  # fmt: skip
    alone = audit(place), audit(place, path)
    monkeypatch.setattr(store, "ALONE", 0)
    asked = started(monkeypatch)
    assert (audit(place, jobs=2), audit(place, path, jobs=2)) == alone
    assert asked == [2, 2]
    assert broken(alone[1])


def test_a_small_store_starts_no_process(place, monkeypatch):
    asked = started(monkeypatch)
    assert audit(place, jobs=8) == audit(place)
    assert asked == [1, 1]
