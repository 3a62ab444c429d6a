"""The log as an audit recomputes it is that of RFC 6962, and its stored tiles are held to it."""

from __future__ import annotations

import functools
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audited import CHAIN, damaged, settled
from support.parties import FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare

from anchord.app.audit_wiring import reading_store
from anchord.core import log as rfc6962
from anchord.core.audit import AuditOptions
from anchord.engine.audit.store import audit_store
from anchord.engine.audit.store_log import Growing
from anchord.engine.audit.store_plan import jobs
from anchord.engine.header_view import HeaderView
from anchord.ports.reading import Span

LEAVES = [sha256(b"%d" % n).digest() for n in range(1300)]


@given(st.lists(st.integers(1, 400), max_size=3))
def test_it_grows_as_the_rfc_says(steps):
    log, at = Growing(), 0
    for step in steps:
        log.extend(LEAVES[at : at + step])
        at += step
        assert log.root() == rfc6962.root(b"".join(LEAVES[:at]))
    for (level, place), node in log.full.items():
        assert level == 1
        assert node == rfc6962.root(b"".join(LEAVES[256 * place : 256 * place + 256]))
    assert len(log.full) == at // 256


@given(st.lists(st.tuples(st.integers(1, 9000), st.integers(0, 3000)), max_size=8),
       st.integers(0, 9000))  # fmt: skip
def test_a_plan_covers_every_record_once_and_every_tile_that_has_one(pairs, last):
    spans = sorted(Span(first, first + more, n, 0) for n, (first, more) in enumerate(pairs))
    plan = list(jobs(spans, last))
    assert [at for job in plan for at in range(job.low, job.high + 1)] == list(range(1, last + 1))
    for job in plan:
        assert job.high - job.low < 2048
        near = {(s.batch_id, 0) for s in spans if s.first <= job.high and s.last >= job.low}
        assert set(job.tiles) == near


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("log")
    chain = FakeChain(height=20)
    parts = make_parts(folder, headers=[chain])
    passes = Passes(parts, chain)
    passes.add(bare(600))
    passes()
    passes.add(bare(20, "more"))
    passes(5)
    parts.store.close()
    path = folder / "anchord.db"
    settled(path)
    return path


def looked_at(path, since=None):
    headers = HeaderView([FakeChain(height=20)], CHAIN, 6)
    options = AuditOptions(now=2 * 10**9, since=since)
    opened = functools.partial(reading_store, f"sqlite:///{path}")
    keyring = FakeSigner().keyring()
    outcome, facts = audit_store(opened, keyring, (), headers, options, lambda *_: None)
    return outcome.report(**msgspec.structs.asdict(facts))


def test_tiles_are_there_and_hold(store):
    report = looked_at(store)
    assert report.result == "sound"
    assert report.coverage.tiles == 2


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE log_nodes SET hash = zeroblob(32) WHERE place = 0", "log-node-wrong"),
        ("DELETE FROM log_nodes WHERE place = 1", "log-node-missing"),
        ("UPDATE log_nodes SET place = 5 WHERE place = 1", "log-node-wrong"),
    ],
)
def test_a_changed_tile_is_found(store, tmp_path, statement, code):
    report = looked_at(damaged(store, tmp_path / "anchord.db", statement))
    assert report.result == "broken"
    assert code in report.counts


def test_a_history_that_was_rewritten_is_found_by_whoever_kept_a_checkpoint(store, tmp_path):
    kept = looked_at(store).checkpoint.encode()
    path = tmp_path / "anchord.db"
    for statement in (
        "UPDATE log_nodes SET hash = zeroblob(32) WHERE place = 0",
        "UPDATE events SET signature = zeroblob(64) WHERE seq = 610",
        "DELETE FROM events WHERE seq > 100",
    ):
        report = looked_at(damaged(store, path, statement), kept)
        assert "history-rewritten" in report.counts
        assert report.result == "broken"
    assert looked_at(store, kept).result == "sound"
