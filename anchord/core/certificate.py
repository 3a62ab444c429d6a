"""What a certificate says: plain values, for whatever renders them.

There is no moment of making among them: the same record, at the same state, gives the same values.
"""

from __future__ import annotations

import msgspec

from anchord.core.model import Scheme
from anchord.core.trust import Trust


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What existed."""

    digest: str
    scheme: Scheme
    """What made the digest; `sha256` when only the digest is known."""
    pith_number: str | None
    source: str | None
    """As the record itself names it."""
    title: str | None
    """As whoever made the certificate named it."""
    title_proved: bool
    """The record holds the hash of that title."""


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """The block that carries it."""

    chain: str
    height: int
    hash: str
    merkle_root: str
    """Both in the order explorers print."""
    time: str
    confirmations: int
    """At least so many blocks stood on it, itself included."""
    checked_with: tuple[str, ...]
    calendars: tuple[str, ...]
    """Whose paths the proof holds."""


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """The signed event that states the anchor."""

    event_id: str
    signed_at: str
    signer_id: str
    key_id: str
    fingerprint: str
    trust: Trust
    proof_sha256: str


class Earliest(msgspec.Struct, frozen=True, kw_only=True):
    """A block that the timestamp is younger than; of the record that says nothing."""

    height: int
    hash: str
    time: str


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A second witness of time: an RFC 3161 token whose signature holds."""

    signed_by: str
    time: str
    trusted: bool
    """Its root was given; otherwise its certificate is the token's own word."""


class Copy(msgspec.Struct, frozen=True, kw_only=True):
    """Where a copy lies, as the signer states; nobody fetched it for the certificate."""

    kind: str
    """`capture` or `item`."""
    where: str
    """Capture URL, or item and file; the member is named after the digest."""
    at: str
    sha256: str
    """Of the page's bytes, or of the member."""
    stand_in: bool
    """Not at the Internet Archive, as in trials."""


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What one page says."""

    subject: Subject
    anchor: Anchor
    statement: Statement
    not_before: Earliest | None
    tokens: tuple[Token, ...]
    copies: tuple[Copy, ...]
