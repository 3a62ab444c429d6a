"""Witnesses: what several header sources together say about a height."""

from __future__ import annotations

import pytest
from support.check_ledger import check_all_anchored
from support.parties import FakeChain, make_parts
from support.passes import Passes, bare

from anchord.core.header import parse_header
from anchord.core.model import BatchState, Block
from anchord.engine.witnesses import Later, Void, Witnesses
from anchord.errors import NetworkError, ProtocolError


class Mirror:
    """Another source: sees the first `height` blocks of a chain, or lies, or is away."""

    def __init__(self, chain: FakeChain, name: str = "explorers") -> None:
        self.chain, self.name = chain, name
        self.behind = 0
        self.lies = False
        self.errors: dict[str, Exception] = {}

    def refresh(self):
        self._fail("refresh")

    def tip(self):
        self._fail("tip")
        tip = self.chain.tip()
        return tip.__class__(tip.height - self.behind, tip.hash, tip.time)

    def header(self, height):
        self._fail("header")
        raw = self.chain.header(height - 1 if self.lies else height)
        return None if height > self.tip().height else raw

    def close(self):
        pass

    def _fail(self, what):
        if what in self.errors:
            raise self.errors[what]


@pytest.fixture
def chain():
    return FakeChain(height=20)


def root(chain: FakeChain, height: int) -> bytes:
    return parse_header(chain.headers[height]).merkle_root


def test_a_header_that_carries_the_message_confirms_it(chain):
    found = Witnesses([chain, Mirror(chain)], 6).examine(15, root(chain, 15))
    assert isinstance(found, Block)
    assert (found.height, found.confirmations) == (15, 6)
    assert found.checked_with == ("own headers", "explorers")
    assert found.merkle_root == root(chain, 15)[::-1]


@pytest.mark.parametrize("message", [b"", bytes(31), bytes(33), bytes(64)])
def test_only_the_whole_root_confirms(chain, message):
    assert isinstance(Witnesses([chain], 6).examine(10, message), Void)
    assert isinstance(Witnesses([chain], 6).examine(10, root(chain, 10)[:31]), Void)
    assert isinstance(Witnesses([chain], 6).examine(10, root(chain, 10)[::-1]), Void)


def test_a_shallow_mismatch_is_not_final_and_a_buried_one_is(chain):
    assert isinstance(Witnesses([chain], 6).examine(16, bytes(32)), Later)
    assert isinstance(Witnesses([chain], 6).examine(15, bytes(32)), Void)


@pytest.mark.parametrize("height", [21, 22, 1000, 2**31 - 1])
def test_nothing_is_said_about_a_height_beyond_the_tip(chain, height):
    for message in (bytes(32), root(chain, 20)):
        verdict = Witnesses([chain], 6).examine(height, message)
        assert isinstance(verdict, Later)
        assert verdict.blocks == height - 20


def test_a_source_that_is_behind_holds_the_decision_up(chain):
    late = Mirror(chain)
    late.behind = 10
    verdict = Witnesses([chain, late], 6).examine(12, root(chain, 12))
    assert isinstance(verdict, Later)
    assert verdict.blocks == 2
    assert "explorers" in verdict.reason


def test_confirmations_are_those_of_the_shortest_chain(chain):
    late = Mirror(chain)
    late.behind = 3
    found = Witnesses([chain, late], 6).examine(15, root(chain, 15))
    assert isinstance(found, Block)
    assert found.confirmations == 3


def test_a_source_that_could_not_catch_up_speaks_only_of_what_it_has(chain):
    stale = Mirror(chain)
    stale.behind = 10
    witnesses = Witnesses([chain, stale], 6, stale=["explorers"])
    new = witnesses.examine(15, root(chain, 15))
    assert isinstance(new, Block)
    assert (new.checked_with, new.confirmations) == (("own headers",), 6)
    old = witnesses.examine(8, root(chain, 8))
    assert isinstance(old, Block)
    assert (old.checked_with, old.confirmations) == (("own headers", "explorers"), 13)
    stale.lies = True
    again = Witnesses([chain, stale], 6, stale=["explorers"])
    assert isinstance(again.examine(8, root(chain, 8)), Later)


def test_a_source_that_could_not_catch_up_is_enough_when_it_is_the_only_one(chain):
    found = Witnesses([chain], 6, stale=["own headers"]).examine(15, root(chain, 15))
    assert isinstance(found, Block)
    assert found.confirmations == 6
    assert isinstance(Witnesses([chain], 6, stale=["own headers"]).examine(21, bytes(32)), Later)


def test_sources_that_disagree_decide_nothing(chain):
    liar = Mirror(chain)
    liar.lies = True
    for message in (root(chain, 10), root(chain, 9), bytes(32)):
        verdict = Witnesses([chain, liar], 6).examine(10, message)
        assert isinstance(verdict, Later)
        assert "disagree" in verdict.reason


@pytest.mark.parametrize("what", ["tip", "header"])
def test_a_source_that_is_away_leaves_the_decision_to_the_others(chain, what):
    away = Mirror(chain)
    away.errors[what] = NetworkError("connection refused")
    witnesses = Witnesses([away, chain], 6)
    found = witnesses.examine(15, root(chain, 15))
    assert isinstance(found, Block)
    assert found.checked_with == ("own headers",)
    assert witnesses.problems() == {"explorers": "connection refused"}


def test_a_source_whose_servers_disagree_about_a_header_decides_nothing(chain):
    torn = Mirror(chain)
    torn.errors["header"] = ProtocolError("two explorers, two headers")
    assert isinstance(Witnesses([chain, torn], 6).examine(15, root(chain, 15)), Later)


def test_a_header_of_the_wrong_length_decides_nothing(chain):
    short = Mirror(chain)
    short.header = lambda _height: bytes(79)
    assert isinstance(Witnesses([short], 6).examine(15, bytes(32)), Later)


def test_without_any_source_nothing_is_said(chain):
    assert isinstance(Witnesses([], 6).examine(15, root(chain, 15)), Later)
    away = Mirror(chain)
    away.errors["tip"] = NetworkError("away")
    assert isinstance(Witnesses([away], 6).examine(15, root(chain, 15)), Later)


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    mirror = Mirror(chain)
    parts = make_parts(tmp_path, headers=[chain, mirror])
    go = Passes(parts, chain)
    go.add(bare(3))
    go()
    parts.calendars[0].mine(chain)
    yield go, chain, mirror
    parts.store.close()


def test_too_few_confirmations_are_attested_and_not_signed(world):
    go, chain, _mirror = world
    for blocks in range(1, 6):
        report = go(900)
        assert (report.anchored, report.signed) == (0, 0)
        batch = go.parts.store.batches.get(1)
        assert (batch.state, batch.block_height) == (BatchState.ATTESTED, 101)
        assert f"{blocks} of 6" in batch.note
        chain.grow(1)
    assert go(900).signed == 3


def test_disagreement_signs_nothing_until_it_ends(world):
    go, chain, mirror = world
    chain.grow(5)
    mirror.lies = True
    assert go(60).signed == 0
    assert go(60, 3).signed == 0
    mirror.lies = False
    assert go(60).signed == 3
    assert go.judge()[-1]["payload"]["checked_with"] == ["own headers", "explorers"]


def test_one_source_away_is_named_and_the_other_decides(world):
    go, chain, mirror = world
    chain.grow(5)
    mirror.errors = dict.fromkeys(("refresh", "tip", "header"), NetworkError("away"))
    report = go(60)
    assert (report.signed, report.problems) == (3, {"explorers": "away"})
    assert go.judge()[-1]["payload"]["checked_with"] == ["own headers"]


def test_all_sources_away_changes_nothing(world):
    go, chain, mirror = world
    chain.grow(5)
    chain.fail_with = NetworkError("away")
    mirror.errors["tip"] = NetworkError("away, too")
    report = go(60)
    assert (report.signed, sorted(report.problems)) == (0, ["explorers", "own headers"])
    assert go.parts.store.batches.get(1).state is BatchState.SUBMITTED
    chain.fail_with = None
    mirror.errors.clear()
    assert go(60).signed == 3
    check_all_anchored(go.parts.store)


def test_a_signed_batch_outlives_that_all_sources_are_away(world):
    go, chain, mirror = world
    chain.grow(5)
    go(60)
    chain.fail_with = mirror.errors["tip"] = NetworkError("away")
    go(6 * 3600)
    assert go.parts.store.batches.get(1).state is BatchState.ANCHORED
    chain.fail_with = None
    mirror.errors.clear()
    chain.grow(100)
    go(6 * 3600)
    assert go.parts.store.batches.get(1).final_at == go.clock.now()
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]


def test_a_block_from_our_future_says_that_the_clock_is_wrong(chain):
    at = parse_header(chain.headers[10]).time
    right = Witnesses([chain], 6, (), at - 7200).examine(10, root(chain, 10))
    assert isinstance(right, Block)
    wrong = Witnesses([chain], 6, (), at - 7201).examine(10, root(chain, 10))
    assert isinstance(wrong, Later)
    assert "our clock" in wrong.reason


class Unsynced(FakeChain):
    """A source with no headers yet that cannot fetch any."""

    def refresh(self):
        raise NetworkError("no peer answered")

    def tip(self):
        raise NetworkError("no headers yet")


def test_why_a_source_cannot_catch_up_is_what_is_told(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[Unsynced()])
    go = Passes(parts, chain)
    go.add(bare(1))
    go()
    parts.calendars[0].mine(chain)
    assert go(60).problems == {"own headers": "no peer answered"}
    parts.store.close()
