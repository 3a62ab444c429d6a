"""Counts: what a pass over many records costs, and that an idle pass writes nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.check_ledger import check_ledger
from support.parties import FakeChain, make_parts
from support.passes import Passes, bare

from anchord.engine.run import PassReport, run_pass


class Counter:
    """Counts statements and writing transactions of a store."""

    def __init__(self, store) -> None:
        self.statements: list[str] = []
        self.writes = 0
        sa.event.listen(store._engine, "before_cursor_execute", self._statement)
        sa.event.listen(store._engine, "commit", self._commit)

    def reset(self) -> None:
        self.statements, self.writes = [], 0

    def _statement(self, _connection, _cursor, statement, *_rest):
        self.statements.append(statement)

    def _commit(self, connection):
        self.writes += bool(connection.get_execution_options().get("writes"))


def files(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name.endswith((".db", ".db-wal"))
    }


def test_a_pass_over_ten_thousand_records_takes_few_transactions_and_calls(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    a, b = parts.calendars
    parts.store.add(bare(10_000), 0)
    count = Counter(parts.store)
    go = Passes(parts, chain, step=1000)
    assert run_pass(parts, go.clock.now()).signed == 10_000
    # One seals; each of two answers is kept; one settles; two append ten tiles of events; one
    # keeps the checkpoint of them.
    assert count.writes <= 7
    assert (len(a.log), len(b.log)) == (1, 1)
    a.mine(chain)
    chain.grow(5)
    count.reset()
    assert run_pass(parts, go.clock.advance(60)).signed == 10_000
    # Two answers about commitments, one change of the batch, two transactions of events, one of
    # a checkpoint.
    assert count.writes <= 6
    assert (len(a.log), len(b.log)) == (2, 2)
    assert len(count.statements) < 135
    check_ledger(parts.store, chain, records=10_000, step=1000)
    parts.store.close()


@pytest.mark.parametrize("stage", ["waiting for calendars", "anchored", "final"])
def test_an_idle_pass_writes_nothing_and_asks_little(tmp_path, stage):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], sign_submitted=False)
    a, b = parts.calendars
    go = Passes(parts, chain)
    # A hundred thousand records that stand in batches already, as rows only: what an idle pass
    # must not look at. The one batch that is real passes through all states.
    _bulk(parts.store, 100_000)
    go.parts.store.add(bare(3), 0)
    run_pass(parts, go.clock.now())
    if stage != "waiting for calendars":
        a.mine(chain)
        b.mine(chain)
        chain.grow(120 if stage == "final" else 5)
        run_pass(parts, go.clock.advance(60))
    before = files(tmp_path)
    calls = len(a.log) + len(b.log)
    count = Counter(parts.store)
    raw = parts.store._engine.raw_connection()
    changes = raw.driver_connection.total_changes
    raw.close()
    assert run_pass(parts, go.clock.advance(1)) == PassReport()
    assert len(count.statements) <= 34
    assert count.writes == 0
    first = len(count.statements)
    count.reset()
    run_pass(parts, go.clock.advance(1))
    assert len(count.statements) == first
    assert len(a.log) + len(b.log) == calls
    raw = parts.store._engine.raw_connection()
    assert raw.driver_connection.total_changes == changes
    raw.close()
    assert files(tmp_path) == before
    parts.store.close()


def test_an_idle_pass_reads_by_index_only(tmp_path):
    """Whatever the number of records: no statement of an idle pass walks a big table."""
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], sign_submitted=False)
    go = Passes(parts, chain)
    parts.store.add(bare(3), 0)
    run_pass(parts, go.clock.now())
    count = Counter(parts.store)
    asked = []
    sa.event.listen(
        parts.store._engine,
        "before_cursor_execute",
        lambda _c, _k, statement, parameters, *_: asked.append((statement, parameters)),
    )
    run_pass(parts, go.clock.advance(1))
    questions = [pair for pair in list(asked) if pair[0].startswith("SELECT")]
    assert len(questions) == len([s for s in count.statements if s.startswith("SELECT")])
    with parts.store._engine.connect() as connection:
        for statement, parameters in questions:
            rows = connection.exec_driver_sql("EXPLAIN QUERY PLAN " + statement, parameters).all()
            for row in rows:
                plan = row[3]
                assert not plan.startswith("SCAN") or "INDEX" in plan, (statement, plan)
    parts.store.close()


def _bulk(store, count: int) -> None:
    """Put records into a batch that is over and done with."""
    with store._engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO batches (id, kind, state, root, size, driving, created_at, final_at) "
            "VALUES (900, 'sealed', 'anchored', zeroblob(32), ?, ?, 1, 2)",
            (count, count),
        )
        connection.exec_driver_sql(
            "INSERT INTO records (digest, scheme, batch_id, added_at) VALUES (?, 3, 900, 1)",
            [(hashlib.sha256(b"%d" % n).digest(),) for n in range(count)],
        )
