"""What a shard of an audit is told, and what it found, as bytes that a table can hold.

Typed MessagePack, read strictly: whatever stands in the table, reading it makes values of the kinds
below or is refused, and runs nothing. Whether what it says is true, no encoding can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from anchord.core.audit import AuditOptions
from anchord.core.finding import Part, Severity
from anchord.core.keyring import PublicKey, make_keyring
from anchord.core.not_before import NotBefore
from anchord.engine.audit.outcome import Outcome, OutcomeParts
from anchord.engine.audit.store_frame import Frame, Job, Verdict
from anchord.engine.audit.store_plan import LONGEST
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 256 << 20
"""Bytes: findings of a kind are kept by the thousand, so no shard comes near."""

Value = TypeVar("Value")


class _Told(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A frame; what has keys of several parts is a list here."""

    options: AuditOptions
    seed: str
    """Of the options: a number of any length."""
    keyring: tuple[PublicKey, ...]
    given: tuple[PublicKey, ...]
    verdicts: tuple[tuple[int, bytes, Verdict], ...]
    replaced: tuple[tuple[str, NotBefore, str], ...]
    chain: str | None
    upto: int
    drawn: tuple[int, ...] | None


_frames = msgspec.msgpack.Decoder(_Told)
_jobs = msgspec.msgpack.Decoder(tuple[Job, ...])
_outcomes = msgspec.msgpack.Decoder(OutcomeParts)


def frame_bytes(frame: Frame) -> bytes:
    """Return a frame as bytes.

    Raises:
        FatalError: it holds what cannot be written down.
    """
    return _written(
        _Told(
            options=msgspec.structs.replace(frame.options, seed=0),
            seed=str(frame.options.seed),
            keyring=tuple(frame.keyring),
            given=frame.given,
            verdicts=tuple((*path, verdict) for path, verdict in frame.verdicts.items()),
            replaced=tuple((*older, words) for older, words in frame.replaced.items()),
            chain=frame.chain,
            upto=frame.upto,
            drawn=None if frame.drawn is None else tuple(sorted(frame.drawn)),
        )
    )


def read_frame(raw: bytes) -> Frame:
    """Return the frame that `frame_bytes` wrote.

    Raises:
        FatalError: these bytes are none.
    """
    told = _read(_frames, raw, "what an audit is about")
    try:
        options = msgspec.structs.replace(told.options, seed=int(told.seed))
        keyring = make_keyring(list(told.keyring))
    except (ValueError, RefusedError) as error:
        raise _refused("what an audit is about", error) from None
    return Frame(
        options=options,
        keyring=keyring,
        given=told.given,
        verdicts={(height, message): verdict for height, message, verdict in told.verdicts},
        replaced={(chain, older): words for chain, older, words in told.replaced},
        chain=told.chain,
        upto=told.upto,
        drawn=None if told.drawn is None else frozenset(told.drawn),
    )


def jobs_bytes(jobs: Sequence[Job]) -> bytes:
    """Return stretches of records as bytes.

    Raises:
        FatalError: they hold what cannot be written down.
    """
    return _written(jobs)


def read_jobs(raw: bytes) -> tuple[Job, ...]:
    """Return the stretches that `jobs_bytes` wrote.

    Raises:
        FatalError: these bytes are none, or one is longer than any that is planned.
    """
    jobs = _read(_jobs, raw, "stretches of records")
    for job in jobs:
        if not 1 <= job.low <= job.high < job.low + LONGEST:
            raise _refused("stretches of records", f"one from {job.low} to {job.high}")
    return jobs


def outcome_bytes(outcome: Outcome) -> bytes:
    """Return what was found as bytes.

    Raises:
        FatalError: it holds what cannot be written down.
    """
    return _written(outcome.parts())


def read_outcome(raw: bytes, options: AuditOptions) -> Outcome:
    """Return what `outcome_bytes` wrote.

    Args:
        raw: the bytes.
        options: of the audit; they are asked, not found.

    Raises:
        FatalError: these bytes are no outcome.
    """
    return Outcome.of(options, _read(_outcomes, raw, "what a shard of an audit found"))


def note_workers(outcome: Outcome, count: int) -> None:
    """Note that a report rests on what `count` workers answered."""
    words = "1 worker says" if count == 1 else f"{count:,} workers say"
    outcome.find(
        "audited-by-workers", Severity.NOTE, Part.STORE, "the records",
        f"that they hold is what {words}; nothing proves that the words are theirs, so whoever "
        "runs a worker, or may write to the database, is believed",
        "where nobody is to be believed, audit with --jobs on a machine of your own, or audit a "
        "published tree",
    )  # fmt: skip


def _written(value: object) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FatalError(
            f"a part of this audit cannot be written down for workers: {error}; audit on one "
            "machine, with --jobs"
        ) from error


def _read(decoder: msgspec.msgpack.Decoder[Value], raw: bytes, what: str) -> Value:
    if len(raw) > _MOST:
        raise _refused(what, f"{len(raw):,} bytes, of at most {_MOST:,}")
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _refused(what, error) from None


def _refused(what: str, error: Any) -> FatalError:
    return FatalError(
        f"expected {what} in the table audit_shards, got something else: {error!s:.500}; either a "
        "worker is of another version, or somebody else wrote there: find out who may write to "
        "the database, and audit on one machine, with --jobs"
    )
