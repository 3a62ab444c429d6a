"""Attestations: the leaves of a proof, each a claim that somebody or some chain saw a message.

Tags and limits: python-opentimestamps, opentimestamps/core/notary.py and core/dubious/notary.py.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from anchord.core import wire
from anchord.errors import RefusedError

Kind = Literal["pending", "bitcoin", "litecoin", "ethereum", "unknown"]

PENDING = bytes.fromhex("83dfe30d2ef90c8e")
BITCOIN = bytes.fromhex("0588960d73d71901")
LITECOIN = bytes.fromhex("06869a0d73d71b45")
ETHEREUM = bytes.fromhex("30fe8087b5c7ead7")

TAG_LENGTH = 8
MAX_PAYLOAD = 8192
MAX_URI = 1000
MAX_HEIGHT = 2**31 - 1

_KINDS: dict[bytes, Kind] = {
    PENDING: "pending",
    BITCOIN: "bitcoin",
    LITECOIN: "litecoin",
    ETHEREUM: "ethereum",
}
# No query, fragment, userinfo or escapes: the format's authors left them out on purpose.
_URI_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/:"


class Attestation(msgspec.Struct, frozen=True):
    """One attestation. The payload of a known kind is in its shortest form.

    Two attestations are equal when tag and payload are.
    """

    tag: bytes
    payload: bytes

    @property
    def kind(self) -> Kind:
        """What attests."""
        return _KINDS.get(self.tag, "unknown")

    @property
    def uri(self) -> str | None:
        """Where to ask for the path of a pending attestation; None for other kinds."""
        if self.tag != PENDING:
            return None
        return wire.Reader(self.payload).varbytes(MAX_URI, "a pending URI").decode("ascii")

    @property
    def height(self) -> int | None:
        """Block height; None for a kind without."""
        if self.tag not in _KINDS or self.tag == PENDING:
            return None
        return wire.Reader(self.payload).varuint()


def pending(uri: str) -> Attestation:
    """Return the pending attestation of a calendar.

    Raises:
        RefusedError: the URI is too long or has characters the format does not allow.
    """
    return checked(PENDING, wire.varbytes(uri.encode()))


def bitcoin(height: int) -> Attestation:
    """Return the attestation of a Bitcoin block.

    Raises:
        RefusedError: no such height.
    """
    if height < 0:
        raise RefusedError(f"expected a block height from 0 on, got {height}")
    return checked(BITCOIN, wire.varuint(height))


def checked(tag: bytes, payload: bytes) -> Attestation:
    """Return an attestation read from a proof; payloads of unknown kinds are kept as they are.

    Raises:
        RefusedError: the payload breaks the limits of its kind.
    """
    if tag not in _KINDS:
        return Attestation(tag, payload)
    reader = wire.Reader(payload)
    shortest = _uri(reader) if tag == PENDING else _height(reader)
    reader.finish("an attestation")
    return Attestation(tag, shortest)


def _uri(reader: wire.Reader) -> bytes:
    uri = reader.varbytes(MAX_URI, "a pending URI")
    foreign = uri.translate(None, _URI_BYTES)
    if foreign:
        raise RefusedError(
            f"expected a pending URI of letters, digits and -._/: got character {foreign[:1]!r}"
        )
    return wire.varbytes(uri)


def _height(reader: wire.Reader) -> bytes:
    height = reader.varuint()
    if height > MAX_HEIGHT:
        raise RefusedError(f"expected a block height up to {MAX_HEIGHT}, got {height}")
    return wire.varuint(height)


def rank(attestation: Attestation) -> tuple[bytes, int, bytes]:
    """Return what attestations sort by when written: tag, then height, URI or payload."""
    if attestation.tag == PENDING:
        return attestation.tag, 0, (attestation.uri or "").encode()
    return attestation.tag, attestation.height or 0, attestation.payload
