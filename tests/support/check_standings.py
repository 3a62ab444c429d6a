"""A judge of what is kept beside the ledger: it must be what the ledger says, derived again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_FACETS = {
    "timestamp_submitted": "submitted",
    "timestamp_anchored": "anchored",
    "capture_stored": "stored",
    "item_stored": "stored",
}
_BITS = {"submitted": 1, "anchored": 2, "stored": 4}
_CHUNK = 4096

Ask = Callable[[str], Sequence[Any]]


def facets(ask: Ask) -> dict[int, set[str]]:
    """Return which facets stand, by record, from events and series alone."""
    series = {
        row[0]: (row[1], row[2]) for row in ask("SELECT id, event_type, withdraws FROM series")
    }
    rows = [(row[0], row[1]) for row in ask("SELECT record_id, series_id FROM events")]
    gone = {(record, series[number][1]) for record, number in rows if series[number][1]}
    found: dict[int, set[str]] = {}
    for record, number in rows:
        facet = _FACETS.get(series[number][0])
        if facet is not None and (record, number) not in gone:
            found.setdefault(record, set()).add(facet)
    return found


def check_standings(ask: Ask) -> None:
    """Compare what is kept with what follows.

    Args:
        ask: returns the rows that a statement selects, all at one moment.
    """
    expected = facets(ask)
    kept = {}
    for chunk, states in ask("SELECT chunk, states FROM standings"):
        assert len(states) == _CHUNK
        kept.update({chunk * _CHUNK + place: byte for place, byte in enumerate(states) if byte})
    assert kept == {
        record: sum(_BITS[name] for name in names) for record, names in expected.items()
    }
    sums = ask(
        "SELECT sum(records), sum(anchored), sum(stored), sum(complete), count(*) FROM days"
    )[0]
    records = ask("SELECT count(*) FROM records")[0][0]
    every = expected.values()
    assert [int(each or 0) for each in sums[:4]] == [
        records,
        sum("anchored" in names for names in every),
        sum("stored" in names for names in every),
        sum({"anchored", "stored"} <= names for names in every),
    ]
