"""What a calendar answered: taken only when it is exactly what was asked for.

The calendar protocol is that of opentimestamps-server (otsserver/rpc.py). The standard client
checks none of this (python-opentimestamps issue 29).
"""

from __future__ import annotations

from collections.abc import Collection

from anchord.core import wire
from anchord.core.attestation import BITCOIN, PENDING
from anchord.core.graft import Found, attestations
from anchord.core.operation import APPEND, PREPEND, SHA256
from anchord.core.timestamp import read_timestamp
from anchord.errors import ProtocolError, RefusedError

MAX_ANSWER_BYTES = 10_000
"""What the standard client reads of an answer; real ones have 70 to 1,000 bytes."""

_SUBMIT_TAGS = frozenset({SHA256, APPEND, PREPEND})
_MERKLE_ROOT_BYTES = 32


def check_submit_answer(
    raw: bytes, digest: bytes, uris: Collection[str]
) -> list[tuple[str, bytes]]:
    """Return (uri, commitment) of each pending attestation in the answer to a submitted digest.

    Args:
        raw: the answer's body.
        digest: what was submitted.
        uris: pending URIs this calendar may name, compared exactly.

    Raises:
        ProtocolError: anything but sha256, append and prepend leading to such URIs.
    """
    found = _read(raw, digest, _SUBMIT_TAGS)
    points = []
    for item in found:
        uri = item.attestation.uri
        if uri is None:
            raise ProtocolError(
                f"expected only pending attestations in a submit answer, got one of kind "
                f"{item.attestation.kind}"
            )
        if uri not in uris:
            raise ProtocolError(
                f"expected a pending URI of {', '.join(sorted(uris))}, got {uri:.200}: "
                "if the calendar moved, change its uris in the configuration"
            )
        points.append((uri, item.message))
    # Each is asked for and each answer takes room in the proof; the real server gives one.
    if len(points) > len(uris):
        raise ProtocolError(
            f"expected one pending attestation for each URI at most, got {len(points)}"
        )
    return points


def check_upgrade_answer(raw: bytes, commitment: bytes) -> list[int]:
    """Return the heights of the Bitcoin blocks an upgrade answer leads to.

    The heights are claims: block headers decide.

    Args:
        raw: the answer's body.
        commitment: what the calendar was asked for.

    Raises:
        ProtocolError: a pending attestation, or none of Bitcoin on a 32-byte message.
    """
    found = _read(raw, commitment, None)
    if any(item.attestation.tag == PENDING for item in found):
        raise ProtocolError("expected a path to Bitcoin, got an answer that is pending itself")
    heights = [
        height
        for item in found
        if item.attestation.tag == BITCOIN
        and len(item.message) == _MERKLE_ROOT_BYTES
        and (height := item.attestation.height) is not None
    ]
    if not heights:
        kinds = ", ".join(sorted({item.attestation.kind for item in found}))
        raise ProtocolError(
            f"expected a Bitcoin attestation on a 32-byte Merkle root, got none (kinds: {kinds})"
        )
    return heights


def _read(raw: bytes, message: bytes, tags: Collection[int] | None) -> list[Found]:
    if len(raw) > MAX_ANSWER_BYTES:
        raise ProtocolError(
            f"expected a calendar's answer of at most {MAX_ANSWER_BYTES} bytes, got {len(raw)}"
        )
    reader = wire.Reader(raw)
    try:
        timestamp = read_timestamp(reader, message, tags)
        reader.finish("a calendar's answer")
    except RefusedError as error:
        raise ProtocolError(f"a calendar's answer is not used: {error}") from error
    return attestations(timestamp)
