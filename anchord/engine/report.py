"""What verification says about one target, as values with stable names."""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal["proved", "not checked", "failed"]
Result = Literal["proved", "pending", "not proved", "failed"]


class Check(msgspec.Struct, frozen=True):
    """One thing that was or was not proved."""

    check: str
    """"digest", "record", "signature", "receipt", "proof", "header", "not before", "token",
    "stored" or "inclusion"."""
    outcome: Outcome
    detail: str


class PathReport(msgspec.Struct, frozen=True, kw_only=True):
    """One path of a proof and what became of it."""

    kind: str
    height: int | None = None
    uri: str | None = None
    message: str
    outcome: str
    """"verified", "too few confirmations", "does not hold", "not checked", "pending", "answered" or
    "not understood"."""
    detail: str = ""
    block_hash: str | None = None
    block_time: str | None = None
    confirmations: int | None = None
    checked_with: tuple[str, ...] = ()


class NotBeforeReport(msgspec.Struct, frozen=True, kw_only=True):
    """A block that a timestamp is younger than. It says nothing of the record's own age."""

    event_id: str
    """The event whose timestamp it is."""
    block_height: int
    block_hash: str
    block_time: str | None
    """Of the header, when it was seen: the timestamp was not made before that, good to hours."""
    outcome: str
    """"verified", "does not hold" or "not checked"."""
    detail: str


class TokenReport(msgspec.Struct, frozen=True, kw_only=True):
    """A token of a time-stamping authority; its signature holds, or there would be no report."""

    event_id: str
    """The event that carries it."""
    url: str
    signed_by: str
    """Subject of the certificate."""
    time: str
    """The record existed before that, by this authority's word."""
    policy: str
    serial: str
    """Decimal; it may be longer than numbers of JSON are."""
    commitment: str
    outcome: str
    """"trusted" or "root not trusted"."""
    detail: str


class EventReport(msgspec.Struct, frozen=True, kw_only=True):
    """One event and what it proved."""

    event_id: str
    event_type: str
    created_at: str
    signer_id: str
    key_id: str
    signature: str
    """"trusted", "key not trusted" or "not checked"."""
    trust: str | None
    withdrawn_by: str | None = None
    detail: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was proved about one target."""

    target: str
    kind: str
    result: Result
    reason: str | None
    temporary: bool
    """Only a header source stood in the way: try again."""
    digest: str | None = None
    digest_algorithm: str | None = None
    pith_number: str | None = None
    existed_before: str | None = None
    precision: str | None = None
    chain: str | None = None
    block_height: int | None = None
    block_hash: str | None = None
    confirmations: int | None = None
    checked_with: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    paths: tuple[PathReport, ...] = ()
    not_before: tuple[NotBeforeReport, ...] = ()
    tokens: tuple[TokenReport, ...] = ()
    events: tuple[EventReport, ...] = ()
