"""What is measured besides anchord's own commands; each in a process of its own.

`python -m benchmarks.workloads NAME COUNT...` prints one JSON object: what the work alone took, and
the memory the process had before it (interpreter, imports, input).
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

URIS = ["https://alice.calendar.example.org", "https://bob.calendar.example.org"]


def _timed(work: Callable[[], object]) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    result = work()
    return {
        "wall_s": time.perf_counter() - began,
        "peak_before_kib": before,
        "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "result": result,
    }


def _input(count: int) -> tuple[list[bytes], bytes]:
    draw = random.Random(count)
    return [draw.randbytes(32) for _ in range(count)], draw.randbytes(16 * count)


def sign(count: int) -> dict[str, Any]:
    """Sign `count` digests with Ed25519 and do nothing else: the floor of everything that signs."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    digests, _ = _input(count)
    one = Ed25519PrivateKey.from_private_bytes(bytes(32)).sign

    def work() -> str:
        for digest in digests:
            one(digest)
        return one(digests[-1]).hex()

    return _timed(work)


def library(count: int) -> dict[str, Any]:
    """Nonces, tree, two calendars' paths, and every `.ots` in memory: by `opentimestamps`."""
    from opentimestamps.core.notary import PendingAttestation
    from opentimestamps.core.op import OpAppend, OpSHA256
    from opentimestamps.core.serialize import BytesSerializationContext
    from opentimestamps.core.timestamp import DetachedTimestampFile, Timestamp, make_merkle_tree

    digests, nonces = _input(count)

    def work() -> str:
        whole = [Timestamp(digest) for digest in digests]
        leaves = [
            one.ops.add(OpAppend(nonces[16 * at : 16 * at + 16])).ops.add(OpSHA256())
            for at, one in enumerate(whole)
        ]
        tip = make_merkle_tree(leaves)
        for uri in URIS:
            tip.attestations.add(PendingAttestation(uri))
        every = sha256()
        for one in whole:
            context = BytesSerializationContext()
            DetachedTimestampFile(OpSHA256(), one).serialize(context)
            every.update(context.getbytes())
        return every.hexdigest()

    return _timed(work)


def own(count: int) -> dict[str, Any]:
    """Do what `library` does with anchord's core, tile by tile as the store holds it."""
    from opentimestamps.core.notary import PendingAttestation
    from opentimestamps.core.serialize import BytesSerializationContext
    from opentimestamps.core.timestamp import Timestamp

    from anchord.core import merkle
    from anchord.core.proof import join

    digests, nonces = _input(count)

    def work() -> str:
        size = merkle.TILE
        tiles = [
            merkle.leaves(digests[at : at + size], nonces[16 * at : 16 * (at + size)])
            for at in range(0, count, size)
        ]
        upper = merkle.levels(b"".join(merkle.root(tile) for tile in tiles))
        tip = Timestamp(upper[-1])
        for uri in URIS:
            tip.attestations.add(PendingAttestation(uri))
        context = BytesSerializationContext()
        tip.serialize(context)
        tails = merkle.suffixes(upper, context.getbytes())
        every = sha256()
        for number, (tile, tail) in enumerate(zip(tiles, tails, strict=True)):
            for at, end in enumerate(merkle.suffixes(merkle.levels(tile), tail), number * size):
                every.update(join(digests[at], nonces[16 * at : 16 * at + 16], end))
        return every.hexdigest()

    return _timed(work)


def idle(count: int, config: str) -> dict[str, Any]:
    """Make `count` passes with nothing to do, in one process; the result is the median."""
    from anchord.app.wiring import open_app
    from anchord.engine.run import run_pass

    with open_app(config) as app:
        parts = app.parts(lambda _stage, _done, _total: None)

        def work() -> float:
            took = []
            for _ in range(count):
                began = time.perf_counter()
                run_pass(parts, app.clock.now())
                took.append(time.perf_counter() - began)
            return statistics.median(took)

        return _timed(work)


def records(count: int, file: str) -> dict[str, Any]:
    """Write synthetic records to a file."""
    return _timed(lambda: synthetic.write_records(Path(file), count))


def headers(count: int, file: str) -> dict[str, Any]:
    """Write synthetic headers to a file."""
    return _timed(lambda: synthetic.write_headers(Path(file), count))


WORKLOADS: dict[str, Callable[..., dict[str, Any]]] = {
    "sign": sign,
    "library": library,
    "own": own,
    "idle": idle,
    "records": records,
    "headers": headers,
}

if __name__ == "__main__":
    name, count, *rest = sys.argv[1:]
    print(json.dumps(WORKLOADS[name](int(count), *rest)))
