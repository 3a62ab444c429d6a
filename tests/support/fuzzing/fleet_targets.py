"""Parsers of what stands in the table of audits, where anybody may have written who may write."""

from __future__ import annotations

import msgspec

from anchord.app.fleet.auditing import asked_bytes, read_asked
from anchord.core.audit import AuditOptions
from anchord.core.finding import Part, Severity
from anchord.core.keyring import REGISTRY_KEY, make_keyring
from anchord.core.not_before import NotBefore
from anchord.core.standing import Standing
from anchord.engine.audit.outcome import Outcome, ReportFacts
from anchord.engine.audit.store_frame import Frame, Job, Verdict
from anchord.engine.audit.store_shards import (
    frame_bytes,
    jobs_bytes,
    outcome_bytes,
    read_frame,
    read_jobs,
    read_outcome,
)
from support.fuzzing.engine import Target
from support.parties import START

OPTIONS = AuditOptions(now=START, online=2)
_WORDS = (b"\x90", b"\x80", b"\xc0", b"\xdc\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc4\x20",
          b"\xcf" + b"\xff" * 8, b"\xd3" + b"\x80" + b"\0" * 7, b"\xa1a")  # fmt: skip


def _frame() -> Frame:
    return Frame(
        options=OPTIONS,
        keyring=make_keyring([REGISTRY_KEY]),
        given=(REGISTRY_KEY,),
        verdicts={(7, b"m" * 32): Verdict("confirmed", b"h" * 32, START)},
        replaced={("bitcoin", NotBefore(height=3, hash="ab" * 32)): "none of the chain"},
        chain="bitcoin",
        drawn=frozenset((1, 5)),
    )


def _outcome() -> Outcome:
    found = Outcome(OPTIONS)
    found.find("leaf-differs", Severity.BROKEN, Part.RECORD, "row 1", "expected a", "restore")
    found.count("records_counted", 4)
    found.stand(Standing("arxiv", START, "anchored", START, "stored", START), 4)
    found.know("key", "words")
    found.doubt("events are by nobody")
    found.lack("other")
    found.offer("event", "capture_stored", {"url": "https://example.org", "more": [1, None]})
    return found


def _answer(data: bytes) -> None:
    """Read an answer, and make a report with it."""
    whole = Outcome(OPTIONS)
    whole.merge(read_outcome(data, OPTIONS))
    facts = ReportFacts(source="the store", kind="store")
    whole.report(**msgspec.structs.asdict(facts))


TARGETS = (
    Target(name="audit that is asked for", feed=read_asked, words=_WORDS,
           seeds=lambda: [asked_bytes("00000003-0000001B-1", _frame())]),
    Target(name="frame of an audit", feed=read_frame, words=_WORDS,
           seeds=lambda: [frame_bytes(_frame())]),
    Target(name="stretches of an audit", feed=read_jobs, words=_WORDS,
           seeds=lambda: [jobs_bytes([Job(1, 9, ((1, 0),)), Job(10, 12, (), verified=False)])]),
    Target(name="answer of a shard", feed=_answer, words=_WORDS,
           seeds=lambda: [outcome_bytes(_outcome()), outcome_bytes(Outcome(OPTIONS))]),
)  # fmt: skip
