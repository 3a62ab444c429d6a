"""Databases that are odd: a server that hangs, rows too long to hold, rows without a key."""

from __future__ import annotations

import gc
import json
import time
import tracemalloc
from pathlib import Path

import pytest
from support.silence import mute
from support.sourcing import PAPERS, Database
from support.stores import server

from anchord.core.model import Record, Rejection
from anchord.errors import TransientError

NOW = 2_000_000_000
ONWARD = "SELECT id, canonical_sha256 FROM papers WHERE id > :cursor ORDER BY id"


@pytest.fixture
def small(tmp_path: Path) -> Database:
    found = Database(f"sqlite:///{tmp_path / 'small.db'}")
    found.run(PAPERS)
    return found


def items(source) -> list:
    return [item for step in source.look(None, NOW) for item in step.items]


# psycopg warns about a cursor of the server that could not be closed there any more.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_that_says_nothing_any_more_is_hung_up_on(tmp_path: Path) -> None:
    papers = Database(server().empty())
    papers.run(PAPERS)
    papers.fill(range(100))
    slowly = "SELECT id, canonical_sha256, pg_sleep(0.01) FROM papers WHERE id > :cursor ORDER BY 1"
    with mute(papers.url) as stopped:
        started = time.monotonic()
        with pytest.raises(TransientError, match="asked again later"):
            for _ in papers.source(query=slowly, timeout_s=1).look(None, NOW):
                pass
        assert stopped
        assert time.monotonic() - started < 20
    gc.collect()
    assert len(items(papers.source())) == 100


def test_rows_that_are_long_are_not_held_by_the_hundred(small: Database) -> None:
    long = 1 << 20
    small.run(
        "INSERT INTO papers (id, record) VALUES (:id, :record)",
        *({"id": one, "record": json.dumps({"n": one, "t": "x" * long})} for one in range(64)),
    )
    tracemalloc.start()
    try:
        found = sum(len(step.items) for step in small.source().look(None, NOW))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found == 64
    assert peak < 32 * long


@pytest.mark.parametrize("options", [{"table": "papers"}, {"query": ONWARD}])
def test_rows_without_a_key_are_told_and_hold_up_nobody(tmp_path: Path, options) -> None:
    found = Database(f"sqlite:///{tmp_path / 'keyless.db'}")
    found.run("CREATE TABLE papers (id INTEGER, canonical_sha256 TEXT)")
    found.fill([None, 1, 2, None])
    got = items(found.source(**options))
    assert [one.label for one in got if isinstance(one, Record)] == ["1", "2"]
    if "table" in options:  # a query has its own idea of what it gives
        (told,) = [one for one in got if isinstance(one, Rejection)]
        assert "2 rows" in told.reason
