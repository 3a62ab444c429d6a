"""Shards as bytes: what comes back is what was sent, and bytes of somebody else are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audited import CHAIN, audit, broken, damaged, database, settled, whole_place
from support.audits import facts
from support.workplace import Workplace

from anchord.app.audit_wiring import reading_store
from anchord.core.audit import AuditOptions, AuditReport, Coverage
from anchord.core.finding import Part, Severity
from anchord.core.keyring import REGISTRY_KEY, PublicKey, make_keyring
from anchord.core.not_before import NotBefore
from anchord.core.standing import Standing
from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.store import audit_store
from anchord.engine.audit.store_chunk import ChunkAudit
from anchord.engine.audit.store_frame import Frame, Job, Verdict
from anchord.engine.audit.store_plan import LONGEST
from anchord.engine.audit.store_shards import (
    frame_bytes,
    jobs_bytes,
    outcome_bytes,
    read_frame,
    read_jobs,
    read_outcome,
)
from anchord.engine.header_view import HeaderView
from anchord.errors import FatalError

NOW = 1_785_000_000
WORDS = st.text(max_size=12)
NUMBERS = st.integers(0, 2**40)
MOMENTS = st.none() | st.integers(0, NOW)
STANDINGS = st.builds(
    Standing,
    source=st.sampled_from(["arxiv", "none"]) | WORDS,
    added_at=MOMENTS,
    anchored=st.sampled_from(["anchored", "submitted", "not anchored", "parked"]),
    anchored_at=MOMENTS,
    stored=st.sampled_from(["stored", "capturing", "not stored", "parked"]),
    stored_at=MOMENTS,
    sound=st.booleans(),
)
PAYLOADS = st.dictionaries(
    WORDS, WORDS | st.integers(-(2**53), 2**53) | st.none() | st.lists(WORDS)
)
CODES = st.sampled_from(["leaf-differs", "event-missing", "not-covered"])
STEPS = st.one_of(
    st.tuples(st.just("find"), CODES, st.sampled_from(Severity), st.sampled_from(Part),
              WORDS, WORDS, WORDS),
    st.tuples(st.just("count"), st.sampled_from(Coverage.__struct_fields__), NUMBERS),
    st.tuples(st.just("stand"), STANDINGS, NUMBERS),
    st.tuples(st.just("know"), WORDS, WORDS),
    st.tuples(st.just("doubt"), WORDS, NUMBERS),
    st.tuples(st.just("lack"), WORDS),
    st.tuples(st.just("offer"), WORDS, WORDS, PAYLOADS),
)  # fmt: skip
SHARDS = st.lists(st.lists(STEPS, max_size=12), max_size=5)
OPTIONS = st.builds(
    AuditOptions, now=st.just(NOW), seed=st.integers(0, 2**300), online=st.none() | st.just(3)
)


def found(options: AuditOptions, steps: Iterable[tuple]) -> Outcome:
    outcome = Outcome(options)
    for name, *given_ in steps:
        getattr(outcome, name)(*given_)
    return outcome


def judged(outcome: Outcome) -> tuple[AuditReport, list]:
    return outcome.report(**msgspec.structs.asdict(facts())), outcome.drawn


@given(OPTIONS, SHARDS)
def test_outcomes_that_went_through_bytes_add_up_to_the_same_report(options, shards):
    straight, through = Outcome(options), Outcome(options)
    for steps in shards:
        one = found(options, steps)
        through.merge(read_outcome(outcome_bytes(one), options))
        straight.merge(one)
    assert judged(through) == judged(straight)


KEYS = st.builds(
    PublicKey, key_id=WORDS, public_key=st.binary(min_size=32, max_size=32), signer_id=WORDS,
    valid_from=MOMENTS, revoked_at=MOMENTS, targets=st.lists(WORDS, max_size=3).map(tuple),
)  # fmt: skip
KEYRINGS = st.lists(
    KEYS, max_size=3, unique_by=(lambda key: key.key_id, lambda key: key.public_key)
).map(make_keyring)
DIGESTS = st.binary(min_size=32, max_size=32)
FRAMES = st.builds(
    Frame,
    options=OPTIONS,
    keyring=KEYRINGS,
    given=st.lists(KEYS, max_size=2).map(tuple),
    verdicts=st.dictionaries(
        st.tuples(st.integers(0, 2**31), DIGESTS),
        st.builds(Verdict, state=WORDS, hash=DIGESTS, time=NUMBERS, detail=WORDS),
        max_size=3,
    ),
    replaced=st.dictionaries(
        st.tuples(WORDS, st.builds(NotBefore, height=NUMBERS, hash=WORDS)), WORDS, max_size=3
    ),
    chain=st.none() | WORDS,
    upto=NUMBERS,
    drawn=st.none() | st.frozensets(NUMBERS, max_size=5),
)
JOBS = st.builds(
    lambda low, more, tiles, verified: Job(low, low + more, tiles, verified),
    st.integers(1, 2**40), st.integers(0, LONGEST - 1),
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=4).map(tuple), st.booleans(),
)  # fmt: skip


@given(FRAMES, st.lists(JOBS, max_size=4))
def test_what_a_shard_is_told_arrives_as_it_was(frame, jobs):
    assert read_frame(frame_bytes(frame)) == frame
    assert read_jobs(jobs_bytes(jobs)) == tuple(jobs)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    place = whole_place(tmp_path_factory.mktemp("whole"))
    settled(database(place))
    return place


def audited_through_bytes(place: Workplace, path=None, **options) -> AuditReport:
    """Audit with records in shards of one stretch, each told and answered in bytes."""
    opened = partial(reading_store, f"sqlite:///{path or database(place)}")

    def elsewhere(frame: Frame, jobs: Iterable[Job]) -> Iterator[Outcome]:
        told, store = frame_bytes(frame), opened()
        for job in jobs:
            (same,) = read_jobs(jobs_bytes([job]))
            answer = outcome_bytes(ChunkAudit(store, read_frame(told)).run(same))
            yield read_outcome(answer, frame.options)
        store.close()

    with place.app() as app:
        keyring = app.keyring
    headers = HeaderView([place.chain], CHAIN, 6)
    asked = AuditOptions(now=place.clock.now(), **options)
    outcome, said = audit_store(opened, keyring, (), headers, asked, lambda *_: None, elsewhere)
    return outcome.report(**msgspec.structs.asdict(said))


@pytest.mark.parametrize("options", [{}, {"sample": 2, "seed": 2**80}, {"online": 2}])
def test_an_audit_through_bytes_is_the_audit(place, options):
    assert audited_through_bytes(place, **options) == audit(place, **options)


def test_what_is_broken_stays_broken_through_bytes(place, tmp_path):
    path = damaged(database(place), tmp_path / "damaged.db",
                   "UPDATE events SET signature = zeroblob(64) WHERE seq > 3",
                   "UPDATE tiles SET leaves = zeroblob(40)")  # fmt: skip
    report = audited_through_bytes(place, path)
    assert broken(report)
    assert report == audit(place, path)


def _good() -> list[tuple]:
    options = AuditOptions(now=NOW, online=2)
    frame = Frame(
        options=options,
        keyring=make_keyring([REGISTRY_KEY]),
        given=(REGISTRY_KEY,),
        verdicts={(7, b"m" * 32): Verdict("confirmed")},
        replaced={(CHAIN, NotBefore(height=3, hash="aa")): "none"},
        chain=CHAIN,
    )
    standing = Standing("x", 1, "anchored", 2, "stored", 3)
    steps = [("count", "records_counted", 4), ("offer", "a", "b", {"c": [1]}), ("stand", standing)]
    outcome = found(options, steps)
    return [
        (frame_bytes(frame), read_frame),
        (jobs_bytes([Job(1, 9, ((1, 0),))]), read_jobs),
        (outcome_bytes(outcome), lambda raw: judged(read_outcome(raw, options))),
    ]


@settings(max_examples=200)
@given(st.data())
def test_bytes_of_somebody_else_are_refused_or_are_values_of_the_same_kinds(data):
    raw, read = data.draw(st.sampled_from(_good()))
    at, length = data.draw(st.integers(0, len(raw))), data.draw(st.integers(0, 9))
    changed = raw[:at] + data.draw(st.binary(max_size=9)) + raw[at + length :]
    try:
        read(changed)
    except FatalError as error:
        assert "audit_shards" in str(error)  # noqa: PT017 - what is refused may be anything


@pytest.mark.parametrize("raw", [b"", b"\xc1", b"\x90" * 100_000, b"\x91" * 100_000])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_what_is_no_shard_is_refused_in_words(raw, which):
    with pytest.raises(FatalError, match="find out who may write"):
        _good()[which][1](raw)


@pytest.mark.parametrize("job", [Job(0, 1, ()), Job(5, 4, ()), Job(1, LONGEST + 1, ())])
def test_no_stretch_is_longer_than_any_that_is_planned(job):
    with pytest.raises(FatalError, match=f"from {job.low} to {job.high}"):
        read_jobs(jobs_bytes([job]))
