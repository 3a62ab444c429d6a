"""Lanes in the store: what a pace remembers is what it is continued with."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stored_rows import Stores

from anchord.adapters.store.schema import lanes
from anchord.core.storage import Lane
from anchord.errors import FatalError

MOMENTS = st.integers(0, 2**62)
TEXTS = st.none() | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30)
LANES = st.builds(
    Lane,
    name=st.sampled_from(["spn", "index", "host:a.example.org", "host:b.example.org"]),
    grants=st.lists(MOMENTS, max_size=40).map(lambda found: tuple(sorted(found))),
    day=st.integers(0, 10**6),
    used=st.integers(0, 10**6),
    until=st.none() | MOMENTS,
    strikes=st.integers(0, 99),
    code=TEXTS,
    note=TEXTS,
    stopped=st.booleans(),
    alert=TEXTS,
    seen=st.none() | st.binary(max_size=40),
    changed_at=MOMENTS,
)

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    return Stores(tmp_path_factory.mktemp("lanes"))


@settings(deadline=None, max_examples=25)
@given(found=st.lists(LANES, max_size=8))
def test_a_lane_is_read_as_it_was_last_kept(stores, found):
    with stores.fresh() as store:
        kept = {}
        for lane in found:
            store.storage.lanes.put(lane)
            kept[lane.name] = lane
        assert store.storage.lanes.all() == [kept[name] for name in sorted(kept)]
        for name, lane in kept.items():
            assert store.storage.lanes.get(name) == lane


def test_a_lane_never_used_is_fresh_and_leaves_no_row(stores):
    with stores.fresh() as store:
        assert store.storage.lanes.get("spn") == Lane(name="spn")
        store.storage.lanes.put()
        assert store.storage.lanes.all() == []


def test_lanes_are_kept_together_or_not_at_all(stores):
    with stores.fresh() as store:
        broken = Lane(name="index", changed_at=None)  # type: ignore[arg-type]
        with pytest.raises(FatalError):
            store.storage.lanes.put(Lane(name="spn", used=1), broken)
        assert store.storage.lanes.all() == []


def test_grants_are_eight_bytes_a_moment_and_a_cut_one_is_damage(stores):
    with stores.fresh() as store:
        store.storage.lanes.put(Lane(name="spn", grants=(1, 258)))
        with store._engine.begin() as connection:
            raw = connection.execute(sa.select(lanes.c.grants)).scalar_one()
            assert raw == bytes([0] * 7 + [1] + [0] * 6 + [1, 2])
            connection.execute(sa.update(lanes).values(grants=raw[:-1]))
        with pytest.raises(FatalError, match=r"'spn'.*damaged"):
            store.storage.lanes.get("spn")
