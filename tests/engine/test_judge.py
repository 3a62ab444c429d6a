"""The judge of ledgers judges one moment, whatever is written while it reads."""

from __future__ import annotations

import pytest
from support import check_ledger as judge
from support.parties import FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare

from anchord.engine.run import run_pass

pytestmark = pytest.mark.both_stores


def test_what_is_written_between_two_questions_of_the_judge_is_not_judged(tmp_path, monkeypatch):
    calendar, chain = FakeCalendar(), FakeChain()
    parts = make_parts(tmp_path, calendars=[calendar], headers=[chain])
    go = Passes(parts, chain)
    go.add(bare(3))
    go()
    real = judge._check_chain

    def while_somebody_writes(rows):
        real(rows)
        go.add(bare(2, f"beside {len(rows)}"))
        run_pass(parts, go.clock.advance(900))

    monkeypatch.setattr(judge, "_check_chain", while_somebody_writes)
    before = parts.store.ledger.head()[0]
    assert len(judge.check_ledger(parts.store, records=3)) == before
    assert parts.store.ledger.head()[0] > before
    monkeypatch.undo()
    judge.check_ledger(parts.store, records=5)
    parts.store.close()
