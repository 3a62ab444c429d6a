"""The fault table of calendars: each call failing, failing though it happened, and hanging.

Whatever one calendar does costs its own row an attempt and nothing else.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest
import sqlalchemy as sa
from support.check_ledger import check_all_anchored
from support.parties import URI_A, URL_A, FakeCalendar, FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare

from anchord.core.model import BatchState
from anchord.engine.run import run_pass
from anchord.errors import NetworkError, ProtocolError, RateLimitedError, RefusedError
from anchord.ports import Submitted, Upgraded

FAULTS = {
    "dead": NetworkError("connection refused"),
    "busy": RateLimitedError("429", retry_after=30),
    "lying": ProtocolError("expected the commitment, got another"),
    "refusing": RefusedError("400"),
}


class Losing:
    """A calendar whose answers get lost: the call happens, and the caller hears `error`."""

    def __init__(self, inner: FakeCalendar) -> None:
        self.inner = inner
        self.url, self.uris = inner.url, inner.uris
        self.lose: dict[str, Exception] = {}
        self.hang = threading.Event()
        self.hangs = False

    def submit(self, digest):
        answer = self.inner.submit(digest)
        self._lose("submit")
        return answer

    def upgrade(self, uri, commitment):
        answer = self.inner.upgrade(uri, commitment)
        self._lose("upgrade")
        return answer

    def _lose(self, what):
        if self.hangs:
            self.hang.wait(10)
        if what in self.lose:
            raise self.lose[what]


def calendars(count: int) -> list[FakeCalendar]:
    return [
        FakeCalendar(f"https://{n}.pool.example.org", (f"https://{n}.calendar.example.org",))
        for n in "abcd"[:count]
    ]


def calls(calendar: FakeCalendar) -> Counter[str]:
    return Counter(entry[0] for entry in calendar.log)


@pytest.fixture
def world(tmp_path):
    made = []

    def make(parties, chain=None, **policy):
        chain = chain or FakeChain()
        parts = make_parts(tmp_path, calendars=parties, headers=[chain], **policy)
        made.append(parts)
        return Passes(parts, chain), chain

    yield make
    for parts in made:
        parts.store.close()


@pytest.mark.parametrize("error", FAULTS.values(), ids=FAULTS)
def test_a_failed_submit_costs_its_own_row_an_attempt_and_is_tried_again(world, error):
    a, b, c = calendars(3)
    go, chain = world([a, b, c], min_answers=2)
    c.fail_submit = error
    go.add(bare(3))
    report = go()
    assert (report.submitted, report.failed_calls, report.signed) == (2, 1, 3)
    assert go.parts.store.batches.get(1).state is BatchState.SUBMITTED
    (health,) = [h for h in go.parts.store.counts.calendars() if h.failures]
    assert (health.url, health.failures) == (c.url, 1)
    assert go(10).submitted == 0
    c.fail_submit = None
    report = go(60)
    assert (report.submitted, report.failed_calls) == (1, 0)
    assert [calls(x)["submit"] for x in (a, b, c)] == [1, 1, 2]
    c.mine(chain)
    chain.grow(5)
    assert go(60).signed == 3
    check_all_anchored(go.parts.store)


@pytest.mark.parametrize("error", FAULTS.values(), ids=FAULTS)
def test_a_failed_upgrade_costs_its_own_row_an_attempt_and_nothing_else(world, error):
    a, b = calendars(2)
    go, chain = world([a, b])
    go.add(bare(3))
    go()
    a.mine(chain)
    b.mine(chain)
    chain.grow(5)
    b.fail_upgrade = error
    report = go(60)
    assert (report.upgraded, report.failed_calls, report.anchored) == (1, 1, 1)
    waits = go.parts.store.counts.waits()
    assert [(w.where, w.status, w.attempts) for w in waits] == [(b.uris[0], "error", 1)]
    b.fail_upgrade = None
    assert go(120).upgraded == 1


@pytest.mark.parametrize("error", FAULTS.values(), ids=FAULTS)
def test_a_lost_submit_reply_makes_one_more_commitment_and_one_event(world, error):
    inner, b = calendars(2)
    a = Losing(inner)
    go, chain = world([a, b])
    a.lose["submit"] = error
    go.add(bare(2))
    assert go().signed == 0
    a.lose.clear()
    assert go(60).signed == 2
    assert calls(inner)["submit"] == 2
    inner.mine(chain)
    chain.grow(5)
    go(60)
    check_all_anchored(go.parts.store)


@pytest.mark.parametrize("error", FAULTS.values(), ids=FAULTS)
def test_a_lost_upgrade_reply_is_asked_for_again(world, error):
    inner, b = calendars(2)
    a = Losing(inner)
    go, chain = world([a, b])
    go.add(bare(2))
    go()
    inner.mine(chain)
    chain.grow(5)
    a.lose["upgrade"] = error
    assert go(60).upgraded == 0
    a.lose.clear()
    assert go(120).signed == 2
    check_all_anchored(go.parts.store)


def test_a_slow_answer_is_kept_in_the_same_pass_and_nobody_waits_for_it(tmp_path):
    inner, b, c = calendars(3)
    slow = Losing(inner)
    slow.hangs = True

    class Releasing(FakeSigner):
        """Lets the slow one answer once something is signed: signing did not wait for it."""

        def sign(self, digest):
            slow.hang.set()
            return super().sign(digest)

    parts = make_parts(
        tmp_path, calendars=[slow, b, c], min_answers=2, signer=Releasing(), timeout_s=10
    )
    go = Passes(parts)
    go.add(bare(1))
    report = go()
    assert (report.submitted, report.signed) == (3, 1)
    assert sorted(go.judge()[0]["payload"]["calendars"]) == [b.url, c.url]
    assert sorted(parts.store.calls.answered(1)) == [slow.url, b.url, c.url]
    parts.store.close()


def test_a_calendar_that_hangs_with_many_batches_holds_up_nobody(world, tmp_path):
    inner, b, c = calendars(3)
    silent = Losing(inner)
    go, _ = world([silent, b, c], min_answers=2)
    silent.hangs, silent.lose["submit"] = True, NetworkError("timed out")
    b.fail_submit = c.fail_submit = NetworkError("away")
    silent.hang.set()
    for n in range(20):
        go.add(bare(1, f"batch {n}"))
        go(1)
    b.fail_submit = c.fail_submit = None
    silent.hang.clear()
    threading.Timer(0.5, silent.hang.set).start()
    before = len(inner.log)
    report = go(4000)
    assert report.submitted == 40
    # Two calls were in flight when the silence was noticed; the rest were spared.
    assert len(inner.log) - before <= 3


def test_below_m_answers_nothing_is_signed(world):
    a, b, c = calendars(3)
    go, _ = world([a, b, c], min_answers=2)
    b.fail_with = c.fail_with = NetworkError("away")
    go.add(bare(2))
    assert go(0, 1).signed == 0
    assert go.parts.store.batches.get(1).state is BatchState.SEALED
    assert go(60, 5).signed == 0
    c.fail_with = None
    assert go(900).signed == 2


def test_a_path_alone_does_not_make_m_answers(world):
    """A lying path must not carry a batch past the calendars that are still to answer."""
    a, b = calendars(2)
    go, chain = world([a, b])
    b.fail_with = NetworkError("away")
    go.add(bare(2))
    go()
    a.lie(len(chain.headers) - 2)
    go(60)
    assert go.parts.store.batches.get(1).state is BatchState.SEALED
    b.fail_with = None
    assert go(900).signed == 2
    assert go.types(1) == ["timestamp_submitted"]


def test_a_third_answer_that_comes_later_is_merged(world):
    a, b, c = calendars(3)
    go, chain = world([a, b, c], min_answers=2)
    c.fail_with = NetworkError("away")
    go.add(bare(2))
    go()
    before = len(go.parts.store.batches.get(1).proof)
    c.fail_with = None
    assert go(60).submitted == 1
    assert len(go.parts.store.batches.get(1).proof) > before
    c.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 1


def reconfigured(go, parties):
    parts = go.parts
    names = [n for n in parts.__struct_fields__ if n != "calendars"]
    go.parts = parts.__class__(**{n: getattr(parts, n) for n in names}, calendars=parties)


def test_a_calendar_added_later_gets_the_root_until_the_batch_is_attested(world):
    a, b, c = calendars(3)
    go, chain = world([a, b])
    go.add(bare(2))
    go()
    reconfigured(go, [a, b, c])
    assert go(60).submitted == 1
    c.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 1
    (d,) = calendars(4)[3:]
    reconfigured(go, [a, b, c, d])
    assert go(60).submitted == 0


def test_a_calendar_taken_out_is_neither_asked_nor_waited_for(world):
    a, b, c = calendars(3)
    go, chain = world([a, b, c], min_answers=2)
    c.fail_with = NetworkError("away")
    go.add(bare(1))
    go()
    asked = len(c.log)
    reconfigured(go, [a, b])
    go(3600, 3)
    assert len(c.log) == asked
    moment = go.parts.store.counts.next_moment()
    assert moment > go.clock.now(), "what nobody does must not be due"
    c.fail_with = None
    reconfigured(go, [a, b, c])
    assert go(60).submitted == 1
    c.mine(chain)
    chain.grow(5)
    assert go(3600).anchored == 1


def test_no_calendar_at_all_waits_without_harm(world):
    (a,) = calendars(1)
    go, _ = world([a], min_answers=1)
    reconfigured(go, [])
    go.add(bare(1))
    assert go().signed == 0
    reconfigured(go, [a])
    assert go(60).signed == 1


def test_two_batches_shortly_after_each_other_do_not_hide_each_other(world):
    a, b = calendars(2)
    go, chain = world([a, b])
    for n in range(3):
        go.add(bare(2, f"batch {n}"))
        go(1)
    a.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 3
    check_all_anchored(go.parts.store)


class Overflowing(FakeCalendar):
    """Answers that are each within the limits, and too much together."""

    def __init__(self) -> None:
        super().__init__(URL_A, (URI_A,))
        self.big = False

    def submit(self, digest):
        from opentimestamps.core.notary import PendingAttestation
        from opentimestamps.core.op import OpAppend
        from opentimestamps.core.timestamp import Timestamp
        from support.ots_oracle import written

        answer = super().submit(digest)
        if not self.big:
            return answer
        whole = Timestamp(digest)
        for n in range(20):
            node = whole.ops.add(OpAppend(bytes([n]) * 4000))
            node.attestations.add(PendingAttestation(self.uris[0]))
        return Submitted(written(whole), answer.pendings)


def test_an_answer_too_big_to_merge_costs_the_calendar_and_the_pass_goes_on(world):
    """Stored, it could never be read again and every later pass would break on it."""
    a, b = Overflowing(), calendars(2)[1]
    a.big = True
    go, chain = world([a, b], min_answers=1)
    go.add(bare(2))
    report = go()
    assert (report.submitted, report.failed_calls) == (1, 1)
    b.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 1


def test_a_path_too_deep_to_merge_costs_the_calendar_and_the_pass_goes_on(world):
    from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
    from opentimestamps.core.op import OpSHA256
    from opentimestamps.core.timestamp import Timestamp
    from support.ots_oracle import written

    a, b = calendars(2)
    go, chain = world([a, b])

    def deep(uri, commitment):
        node = start = Timestamp(commitment)
        for _ in range(253):
            node = node.ops.add(OpSHA256())
        node.attestations.add(BitcoinBlockHeaderAttestation(3))
        return Upgraded(written(start))

    a.upgrade = deep
    go.add(bare(2))
    go()
    report = go(60)
    assert (report.upgraded, report.failed_calls) == (0, 1)
    b.mine(chain)
    chain.grow(5)
    assert go(60).anchored == 1


def test_a_calendar_that_always_lies_gets_the_root_few_times_over_a_month(world):
    a, b = calendars(2)
    go, chain = world([a, b])
    go.add(bare(1))
    go()
    for _ in range(30 * 6):
        a.lie(5)
        run_pass(go.parts, go.clock.advance(4 * 3600))
    go.judge()
    assert calls(a)["submit"] <= 8
    assert len(go.parts.store.batches.get(1).proof) < 4000
    b.mine(chain)
    chain.grow(5)
    assert go(3600).anchored == 1
    check_all_anchored(go.parts.store)


def test_a_path_that_claims_a_far_block_is_not_looked_at_every_minute(world):
    a, b = calendars(2)
    go, chain = world([a, b])
    go.add(bare(1))
    go()
    a.lie(2_000_000)
    go(60)
    refreshed = chain.refreshed
    go(60, 60)
    assert chain.refreshed - refreshed <= 1
    b.mine(chain)
    chain.grow(5)
    assert go(900).anchored == 1


def test_the_store_being_busy_is_not_charged_to_a_calendar(world):
    a, b = calendars(2)
    go, _ = world([a, b])
    go.add(bare(1))

    class Busy:
        def __init__(self, inner):
            self._inner = inner

        def __getattr__(self, name):
            return getattr(self._inner, name)

        def store_answer(self, *_args):
            from anchord.errors import StoreBusyError

            raise StoreBusyError("locked")

    store = go.parts.store
    real, store.calls = store.calls, Busy(store.calls)
    with pytest.raises(Exception, match="locked"):
        go()
    store.calls = real
    with store._engine.connect() as connection:
        attempts = connection.execute(sa.text("SELECT SUM(attempts) FROM submissions")).scalar()
    assert attempts == 0
    assert go(1).signed == 1
