"""When the next work is due is read from indexes in order, however much is done already."""

from __future__ import annotations

import re

import pytest
import sqlalchemy as sa
from support.parties import URI_A, URI_B, make_parts

from anchord.engine import due


@pytest.fixture
def store(tmp_path):
    parts = make_parts(tmp_path)
    yield parts.store
    parts.store.close()


def plans(store, ask) -> list[str]:
    """Return how SQLite answers what a call asks."""
    asked = []

    def note(_connection, _cursor, statement, parameters, *_rest):
        asked.append((statement, parameters))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    ask()
    sa.event.remove(store._engine, "before_cursor_execute", note)
    with store._engine.connect() as connection:
        return [
            row[3]
            for statement, parameters in asked
            if statement.startswith("SELECT")
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        ]


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.counts.next_moment(),
        lambda store: store.calls.due_pendings(1_000, [URI_A, URI_B], 10),
        lambda store: store.calls.due_submissions(1_000),
        lambda store: store.batches.due_checks(1_000),
        lambda store: store.tokens.due(1_000),
    ],
    ids=["next_moment", "due_pendings", "due_submissions", "due_checks", "tokens"],
)
def test_what_is_due_is_found_by_its_moment(store, ask) -> None:
    found = plans(store, lambda: ask(store))
    assert not [step for step in found if step.startswith("SCAN")]
    waiting = [step for step in found if re.search(r"next_(attempt|check)_at", step)]
    assert waiting
    assert not [step for step in found if "pendings" in step and "(uri" in step]


def test_what_is_due_of_all_stages_is_a_handful_of_questions_that_read_no_table(store, tmp_path):
    parts = make_parts(tmp_path, store=store)
    asked = []
    sa.event.listen(store._engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    due.moments(parts, store.counts, 1_000)
    assert len([text for text in asked if text.startswith("SELECT")]) <= 10
    found = plans(store, lambda: due.moments(parts, store.counts, 1_000))
    assert found
    assert not [step for step in found if step.startswith("SCAN") and "INDEX" not in step]
