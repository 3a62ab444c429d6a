"""An Esplora server: the paths of Blockstream's REST interface that read headers.

Answers and error texts after electrs (src/rest.rs); the base path is `/api`, as on the
public servers.
"""

from __future__ import annotations

import os
from typing import Any

from anchord.sandbox.block import BITS, DIFFICULTY, Block, Transaction, mine_header
from anchord.sandbox.chain import Chain
from anchord.sandbox.faults import Fault
from anchord.sandbox.web import Answer, Request, json_answer

BASE = "/api"
_SHORT = (("Cache-Control", "public, max-age=10"),)
_LONG = (("Cache-Control", "public, max-age=157784630"),)


class Branch:
    """Another branch than the chain's: the same up to a height, then its own headers.

    Args:
        chain: what it branches off.
        first: height of the first header of its own.
        height: how high it is.
    """

    def __init__(self, chain: Chain, first: int, height: int) -> None:
        self._blocks: list[Block] = []
        for at in range(height + 1):
            self._blocks.append(self._other(at) if at >= first else _same(chain, at))
        self._by_hash = {block.hash: block for block in self._blocks}

    def _other(self, height: int) -> Block:
        before = self._blocks[height - 1]
        made = Transaction(os.urandom(100))
        return Block(height, mine_header(before.hash, made.txid, before.time + 600), [made])

    @property
    def tip(self) -> Block:
        """The newest block."""
        return self._blocks[-1]

    def block(self, height: int) -> Block | None:
        """Return the block at a height."""
        return self._blocks[height] if 0 <= height < len(self._blocks) else None

    def find(self, block_hash: bytes) -> Block | None:
        """Return a block by its hash, inner order."""
        return self._by_hash.get(block_hash)

    def median_time(self, height: int) -> int:
        """Return the median time of eleven blocks."""
        times = sorted(block.time for block in self._blocks[max(0, height - 10) : height + 1])
        return times[len(times) // 2]

    def headers(self) -> list[bytes]:
        """Return every header, genesis first."""
        return [block.header for block in self._blocks]


class Explorer:
    """One Esplora server; a service of the sandbox."""

    protocol_version = "HTTP/1.1"

    def __init__(self, name: str, chain: Chain) -> None:
        self.name = name
        self._chain = chain
        self._branches: dict[tuple[int, bytes], Branch] = {}

    def route(self, method: str, path: str) -> str:
        """Return the name of an Esplora path, or `other`."""
        del method
        match path.removeprefix(BASE).strip("/").split("/"):
            case ["blocks", "tip", "height"]:
                return "tip-height"
            case ["blocks", "tip", "hash"]:
                return "tip-hash"
            case ["block-height", _]:
                return "block-height"
            case ["block", _]:
                return "block"
            case ["block", _, "header" | "status" as what]:
                return what
        return "other"

    def answer(self, request: Request) -> Answer:
        """Answer as electrs does."""
        parts = request.path.removeprefix(BASE).strip("/").split("/")
        view = self._view(request.fault)
        match self.route(request.method, request.path):
            case "tip-height":
                return Answer(200, str(view.tip.height).encode(), headers=_SHORT)
            case "tip-hash":
                return Answer(200, view.tip.display_hash.encode(), headers=_SHORT)
            case "block-height":
                return _hash_at(view, parts[1])
            case "other":
                return Answer(404, f"endpoint does not exist: {request.path}".encode())
            case what:
                return _one_block(view, parts[1], what)

    def _view(self, fault: Fault | None) -> Chain | Branch:
        """Return the branch this server believes in; it stays the same while the tip does."""
        if fault is None or fault.kind not in {"disagree", "behind"}:
            return self._chain
        height = self._chain.height
        if fault.kind == "behind":
            return Branch(self._chain, height + 1, max(0, height - int(fault.number("blocks", 1))))
        key = (max(1, int(fault.number("from", 1))), self._chain.tip.hash)
        if key not in self._branches:
            self._branches[key] = Branch(self._chain, key[0], height)
        return self._branches[key]


def _same(chain: Chain, height: int) -> Block:
    block = chain.block(height)
    if block is None:
        raise LookupError(height)
    return block


def _hash_at(view: Chain | Branch, text: str) -> Answer:
    if not text.isdigit():
        return Answer(400, b"Invalid number")
    block = view.block(int(text))
    if block is None:
        return Answer(404, b"Block not found")
    return Answer(200, block.display_hash.encode(), headers=_SHORT)


def _one_block(view: Chain | Branch, text: str, what: str) -> Answer:
    try:
        block_hash = bytes.fromhex(text)[::-1]
    except ValueError:
        return Answer(400, b"Invalid hex string")
    block = view.find(block_hash)
    if block is None:
        return Answer(404, b"Block not found")
    if what == "header":
        return Answer(200, block.header.hex().encode(), headers=_LONG)
    return json_answer(_status(view, block) if what == "status" else _facts(view, block))


def _status(view: Chain | Branch, block: Block) -> dict[str, Any]:
    best = view.block(block.height) is block
    following = view.block(block.height + 1) if best else None
    status: dict[str, Any] = {"in_best_chain": best}
    if best:
        status["height"] = block.height
    status["next_best"] = following.display_hash if following else None
    return status


def _facts(view: Chain | Branch, block: Block) -> dict[str, Any]:
    size = len(block.raw)
    return {
        "id": block.display_hash,
        "height": block.height,
        "version": int.from_bytes(block.header[:4], "little"),
        "timestamp": block.time,
        "tx_count": len(block.transactions),
        "size": size,
        "weight": 4 * size,
        "merkle_root": block.root[::-1].hex(),
        "previousblockhash": block.previous[::-1].hex() if block.height else None,
        "mediantime": view.median_time(block.height),
        "nonce": block.nonce,
        "bits": BITS,
        "difficulty": DIFFICULTY,
    }
