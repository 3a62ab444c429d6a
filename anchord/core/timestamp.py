"""The tree of a proof: parsed and written without recursion, under limits.

Format: python-opentimestamps, opentimestamps/core/timestamp.py. Differences, all on purpose: two
forks with the same operation are merged (version 0.4.5 lets the second replace the first), and
size, node count, integers and heights are bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import msgspec

from anchord.core import wire
from anchord.core.attestation import MAX_PAYLOAD, TAG_LENGTH, Attestation, checked, rank
from anchord.core.operation import BINARY, MAX_MESSAGE, Op, apply
from anchord.errors import RefusedError

MAX_PROOF_BYTES = 65536
"""Longest serialised proof. Real ones have 150 to 5,000 bytes."""
MAX_NODES = 4096
"""Most operations in one proof. The longest real path known has about 150."""
MAX_DEPTH = 255
"""Most operations from the start to an attestation: what the standard library reads."""

_FORK = 0xFF
_ATTESTATION = 0x00


class Timestamp(msgspec.Struct, frozen=True, eq=False):
    """What is claimed about one message: attestations, and operations leading to other messages.

    A value: functions that change something return a new one. Sets and dictionaries have no order
    of their own; `serialise` and `walk` put things in the order of the standard library.
    """

    message: bytes
    attestations: set[Attestation] = msgspec.field(default_factory=set)
    ops: dict[Op, Timestamp] = msgspec.field(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Timestamp):
            return NotImplemented
        return self.message == other.message and _written(self) == _written(other)

    def __hash__(self) -> int:
        return hash((self.message, len(self.attestations), len(self.ops)))

    def __repr__(self) -> str:
        return (
            f"Timestamp({self.message.hex()}, {len(self.attestations)} attestations, "
            f"{len(self.ops)} ops)"
        )


def parse_timestamp(raw: bytes, message: bytes) -> Timestamp:
    """Return the timestamp that starts at `message`; `raw` has no header.

    Raises:
        RefusedError: not a timestamp, outside the limits, or bytes are left over.
    """
    reader = wire.Reader(raw)
    timestamp = read_timestamp(reader, message)
    reader.finish("a proof")
    return timestamp


def read_timestamp(
    reader: wire.Reader, message: bytes, tags: Collection[int] | None = None
) -> Timestamp:
    """Read a timestamp where `reader` stands.

    Items of a node are separated by a fork mark before each but the last, so only nodes with more
    items to come wait on the stack.

    Args:
        reader: where to read; what follows the timestamp is left.
        message: where the timestamp starts.
        tags: operations that may occur; all may when left out.

    Raises:
        RefusedError: not a timestamp, or outside the limits.
    """
    _check_size(reader.raw, message)
    start = node = Timestamp(message)
    depth = nodes = 0
    waiting: list[tuple[Timestamp, int]] = []
    while True:
        tag = reader.byte()
        more = tag == _FORK
        if more:
            tag = reader.byte()
        if tag != _ATTESTATION:
            if more:
                waiting.append((node, depth))
            node = _follow(node, _read_op(reader, tag, tags))
            depth, nodes = depth + 1, nodes + 1
            _check_shape(depth, nodes)
            continue
        node.attestations.add(_read_attestation(reader))
        if more:
            continue
        if not waiting:
            return start
        node, depth = waiting.pop()


def _check_size(raw: bytes, message: bytes) -> None:
    if len(raw) > MAX_PROOF_BYTES:
        raise RefusedError(f"expected a proof of at most {MAX_PROOF_BYTES} bytes, got {len(raw)}")
    if len(message) > MAX_MESSAGE:
        raise RefusedError(f"expected a message of at most {MAX_MESSAGE} bytes, got {len(message)}")


def _check_shape(depth: int, nodes: int) -> None:
    if depth > MAX_DEPTH:
        raise RefusedError(f"expected at most {MAX_DEPTH} operations in a row, got more")
    if nodes > MAX_NODES:
        raise RefusedError(f"expected at most {MAX_NODES} operations in a proof, got more")


def _read_op(reader: wire.Reader, tag: int, tags: Collection[int] | None) -> Op:
    if tags is not None and tag not in tags:
        known = ", ".join(f"0x{known:02x}" for known in sorted(tags))
        raise RefusedError(f"expected no other operations than {known}, got 0x{tag:02x}")
    return Op(tag, reader.varbytes(MAX_MESSAGE, "an argument") if tag in BINARY else b"")


def _read_attestation(reader: wire.Reader) -> Attestation:
    return checked(reader.take(TAG_LENGTH), reader.varbytes(MAX_PAYLOAD, "an attestation"))


def _follow(node: Timestamp, op: Op) -> Timestamp:
    """Return the node behind `op`; a fork that repeats an operation goes on in the same node."""
    known = node.ops.get(op)
    if known is None:
        known = node.ops[op] = Timestamp(apply(op, node.message))
    return known


def serialise(timestamp: Timestamp) -> bytes:
    """Return the bytes the standard library writes: attestations first, then operations, sorted.

    Raises:
        RefusedError: a branch ends without an attestation, so there is nothing to write.
    """
    return _written(timestamp, whole=True)


def _written(timestamp: Timestamp, *, whole: bool = False) -> bytes:
    """Write nodes from a stack; a node's items go on it last first, each before what follows it."""
    out: list[bytes] = []
    todo: list[bytes | Timestamp] = [timestamp]
    while todo:
        piece = todo.pop()
        if isinstance(piece, bytes):
            out.append(piece)
            continue
        items = _items(piece)
        if whole and not items:
            raise RefusedError("expected an attestation at the end of every branch, got none")
        fork = b""  # marks every item but the last
        for head, child in reversed(items):
            if child is not None:
                todo.append(child)
            todo.append(fork + head)
            fork = b"\xff"
    return b"".join(out)


def _items(node: Timestamp) -> list[tuple[bytes, Timestamp | None]]:
    """Return what a node writes, in order, each with the node that follows it."""
    found: list[tuple[bytes, Timestamp | None]] = [
        (b"\x00" + item.tag + wire.varbytes(item.payload), None)
        for item in sorted(node.attestations, key=rank)
    ]
    for op, child in sorted(node.ops.items(), key=_by_op):
        argument = wire.varbytes(op.argument) if op.tag in BINARY else b""
        found.append((bytes((op.tag,)) + argument, child))
    return found


def _by_op(item: tuple[Op, Timestamp]) -> Op:
    return item[0]


def walk(timestamp: Timestamp) -> Iterator[Timestamp]:
    """Yield every node in the order in which `serialise` writes them."""
    todo = [timestamp]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(child for _, child in sorted(node.ops.items(), key=_by_op, reverse=True))
