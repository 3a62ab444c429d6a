"""A whole pass sequence, from waiting records to signed receipts, judged after every step."""

from __future__ import annotations

import pytest
from support.check_ledger import check_all_anchored
from support.parties import FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare, numbered

from anchord.core.model import BatchState


@pytest.fixture
def world(tmp_path):
    a, chain = FakeCalendar(), FakeChain()
    b = FakeCalendar("https://b.pool.example.org", ("https://bob.calendar.example.org",))
    parts = make_parts(tmp_path, calendars=[a, b], headers=[chain])
    yield Passes(parts, chain), a, b, chain
    parts.store.close()


def test_records_are_sealed_submitted_attested_anchored_and_signed(world):
    go, a, _b, chain = world
    go.add([*bare(3), *numbered(4)])
    first = go()
    assert (first.sealed, first.submitted, first.signed) == (7, 2, 7)
    a.mine(chain)
    attested = go(60)
    assert (attested.upgraded, attested.anchored, attested.signed) == (1, 0, 0)
    assert go.parts.store.batches.get(1).state is BatchState.ATTESTED
    chain.grow(5)
    anchored = go(900)
    assert (anchored.anchored, anchored.signed) == (1, 7)
    check_all_anchored(go.parts.store)
    assert go.types(1) == ["timestamp_submitted", "timestamp_anchored"]


def test_submitted_events_can_be_switched_off(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain], sign_submitted=False)
    go = Passes(parts, chain)
    go.add(bare(2))
    assert go().signed == 0
    parts.calendars[0].mine(chain)
    chain.grow(5)
    assert go(60).signed == 2
    assert go.types(1) == ["timestamp_anchored"]
    parts.store.close()


def test_a_record_is_named_by_its_number_where_it_has_one(world):
    go, _a, _b, _chain = world
    go.add([*bare(1), *numbered(1)])
    go()
    with_id, with_number = go.judge()
    assert with_id["subject_record_id"].startswith("sha256:")
    assert with_number["subject_pith_number"].startswith("pith:2026:")


def test_records_that_come_later_go_into_their_own_batch(world):
    go, a, _b, chain = world
    go.add(bare(3, "first"))
    go()
    go.add(bare(2, "second"))
    assert go(10).batch_id == 2
    a.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 2
    check_all_anchored(go.parts.store)


def test_batches_are_spaced_when_that_is_asked_for(tmp_path):
    parts = make_parts(tmp_path, min_batch_interval_s=3600)
    go = Passes(parts)
    go.add(bare(1, "first"))
    assert go().sealed == 1
    go.add(bare(1, "second"))
    assert go(3599).sealed == 0
    assert go(1).sealed == 1
    parts.store.close()


def test_a_hash_only_record_keeps_its_signed_subject_when_its_text_comes(world):
    go, a, _b, chain = world
    (text,) = numbered(1)
    digest_only = bare(1)[0].__class__(digest=text.digest, scheme=bare(1)[0].scheme)
    go.add([digest_only])
    go()
    go.add([text])
    a.mine(chain)
    chain.grow(5)
    go(60)
    submitted, anchored = go.judge()
    assert "subject_record_id" in submitted
    assert "subject_pith_number" in anchored
