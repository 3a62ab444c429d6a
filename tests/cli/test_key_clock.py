"""A key is never ended before what it has signed, whatever the clock shows."""

from __future__ import annotations

import time

import pytest
from support.workplace import Workplace, sample

WAYS = {
    "rotate": ("key", "rotate"),
    "revoke": ("key", "revoke", "{key}", "--reason", "laptop stolen"),
}


@pytest.fixture
def place(tmp_path):
    made = Workplace(tmp_path)
    made.add(sample(1))
    made.step()
    return made


def words(place, way):
    key = place.json("key", "list")[0]["key_id"]
    return [word.format(key=key) for word in WAYS[way]]


def told(place, command, code):
    result = place.run(*command)
    assert result.exit_code == code, result.output
    return result.stderr


def newest(place):
    with place.app() as app:
        return app.store.ledger.last_moment()


def ends(place):
    return [(one["valid_until"], one["revoked_at"]) for one in place.json("key", "list")]


@pytest.mark.parametrize("way", WAYS)
def test_a_key_is_not_ended_before_its_newest_event(place, way, monkeypatch):
    before, command, last = ends(place), words(place, way), newest(place)
    monkeypatch.setattr(time, "time", lambda: float(last - 1))
    assert "Set the clock right" in told(place, command, 2)
    assert ends(place) == before
    monkeypatch.setattr(time, "time", lambda: float(last))
    told(place, command, 0)
    assert ends(place) != before


def test_who_knows_that_the_clock_was_wrong_then_may_end_it_all_the_same(place, monkeypatch):
    command, last = words(place, "revoke"), newest(place)
    monkeypatch.setattr(time, "time", lambda: float(last - 1))
    told(place, command, 2)
    told(place, [*command, "--accept-clock"], 0)


def test_a_key_can_be_ended_where_there_is_no_store(place):
    (place.folder / "anchord.db").unlink()
    told(place, words(place, "rotate"), 0)
