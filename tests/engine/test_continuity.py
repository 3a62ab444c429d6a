"""Between two passes a person changes the network, or the clock goes astray."""

from __future__ import annotations

import msgspec
import pytest
from support.parties import FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare

from anchord.errors import ConfigError

pytestmark = pytest.mark.both_stores
YEARS_S = 10 * 365 * 86_400


@pytest.fixture
def world(tmp_path):
    calendar, chain = FakeCalendar(), FakeChain()
    parts = make_parts(tmp_path, calendars=[calendar], headers=[chain])
    yield Passes(parts, chain), calendar, chain
    parts.store.close()


def anchor(go, calendar, chain):
    go.add(bare(2))
    go()
    calendar.mine(chain)
    chain.grow(5)
    go(900)


def test_a_store_of_one_chain_is_not_continued_on_another(world):
    go, calendar, chain = world
    anchor(go, calendar, chain)
    before = go.judge()
    policy = msgspec.structs.replace(go.parts.policy, chain="bitcoin")
    moved = Passes(msgspec.structs.replace(go.parts, policy=policy), chain)
    go.add(bare(1, "later"))
    with pytest.raises(ConfigError, match=r"bitcoin-regtest.*headers\.network"):
        moved(60)
    assert go.judge() == before
    assert go().sealed == 1


def test_what_a_clock_ahead_put_off_is_done_once_it_is_right(world):
    go, calendar, chain = world
    go.add(bare(2))
    go(YEARS_S)
    go.clock.advance(-YEARS_S)
    calendar.mine(chain)
    chain.grow(5)
    go(60)
    assert go(60).anchored + len(go.types(1)) >= 2
    assert "timestamp_anchored" in go.types(1)


def test_a_failed_submission_put_off_by_a_clock_ahead_is_repeated(tmp_path):
    good, chain = FakeCalendar(), FakeChain()
    parts = make_parts(tmp_path, calendars=[good], headers=[chain])
    go = Passes(parts, chain)
    go.add(bare(1))
    go()
    now = go.clock.now()
    assert parts.store.calls.bring_forward(now, now) == 1
    assert parts.store.calls.bring_forward(now, now) == 0
    parts.store.close()


def test_waits_of_our_own_choosing_are_left_alone(world):
    go, calendar, chain = world
    anchor(go, calendar, chain)
    now = go.clock.now()
    before = go.parts.store.counts.next_moment()
    go()
    assert go.parts.store.counts.next_moment() == before
    assert before is None or before > now
