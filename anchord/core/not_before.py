"""A block's hash within a proof: what follows it was made after that block.

Nobody can know the hash of a block before it was mined. So where a path, on its way from a record
to Bitcoin, appends such a hash and hashes the result, everything above that step is younger than
the block. It says that the *timestamp* is not older; of the record it says nothing: that may be
older by any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from anchord.core.header import block_hash, display, internal
from anchord.core.line import climb
from anchord.core.operation import APPEND, SHA256, Op
from anchord.core.proof import Timestamp, parse_detached
from anchord.core.timestamp import parse_timestamp
from anchord.errors import AttestationError


class NotBefore(msgspec.Struct, frozen=True, kw_only=True):
    """A block that is older than the timestamp."""

    height: int
    hash: str
    """As explorers print it."""


def stem(timestamp: Timestamp) -> list[tuple[Op, Timestamp]]:
    """Return the steps that all paths of a proof share, each with the node it leads to.

    It ends where the first calendar's part begins, or at the latest at an attestation.
    """
    steps = []
    node = timestamp
    while len(node.ops) == 1 and not node.attestations:
        ((op, node),) = node.ops.items()
        steps.append((op, node))
    return steps


class Stem(NamedTuple):
    """The steps that all paths of a proof share."""

    ops: tuple[tuple[int, bytes], ...]
    """Tag and argument."""
    messages: tuple[bytes, ...]
    """What they run through, the record's digest first."""


def stem_of(proof: bytes) -> Stem:
    """Return the stem of an `.ots`; of what many proofs share it is read once.

    Raises:
        RefusedError: not a proof.
    """
    line = climb(proof)
    if line is None:
        return _stem_of(parse_detached(proof).timestamp)
    upper = _upper_stem(line.rest, line.messages[-1])
    return Stem(line.ops + upper.ops, line.messages[:-1] + upper.messages)


@lru_cache(maxsize=16)
def _upper_stem(rest: bytes, message: bytes) -> Stem:
    return _stem_of(parse_timestamp(rest, message))


def _stem_of(timestamp: Timestamp) -> Stem:
    steps = stem(timestamp)
    return Stem(
        tuple((op.tag, op.argument) for op, _ in steps),
        (timestamp.message, *(node.message for _, node in steps)),
    )


def check_path(stated: NotBefore, ops: Iterable[tuple[int, bytes]], attested: int) -> None:
    """Check that a proof carries the block's hash where it says something about every path.

    Args:
        stated: the block.
        ops: tag and argument of the steps all its paths share.
        attested: height of the block the proof leads to, which must be younger.

    Raises:
        AttestationError: it does not.
        VerificationError: the hash is none.
    """
    if not 0 <= stated.height < attested:
        raise AttestationError(
            f"not_before names block {stated.height}, and the proof leads to block {attested}: "
            "expected an older one"
        )
    wanted = internal(stated.hash)
    for (tag, argument), (after, _) in pairwise(ops):
        if tag == APPEND and after == SHA256 and argument.endswith(wanted):
            return
    raise AttestationError(
        f"not_before names block {stated.height} with hash {stated.hash}, and the proof does not "
        "carry that hash: nothing says that it was made after that block"
    )


def check_header(stated: NotBefore, raw: bytes) -> None:
    """Check that the header at that height has that hash.

    Raises:
        AttestationError: it has another one.
    """
    found = display(block_hash(raw))
    if found != stated.hash:
        raise AttestationError(
            f"not_before names block {stated.height} with hash {stated.hash}, the chain has "
            f"{found} there: that block is none, or was replaced since"
        )
