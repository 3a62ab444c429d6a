"""Bitcoin Core's JSON-RPC, the part that reads the chain.

Errors carry Core's codes and words (rpc/protocol.h, rpc/blockchain.cpp); cookie and password
both work, as in Core.
"""

from __future__ import annotations

import base64
import inspect
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from anchord.sandbox.block import BITS, DIFFICULTY, TARGET, Block
from anchord.sandbox.chain import Chain
from anchord.sandbox.loopback import RequestCounts
from anchord.sandbox.web import Answer, HangUpError, Request, json_answer

USER = "anchord"
_WORK = 2
"""Hashes a regtest block stands for."""

_HASH_HEX = 64
INVALID_PARAMETER, NOT_FOUND, WARM_UP, TYPE_ERROR, MISC_ERROR = -8, -5, -28, -3, -1
METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR = -32601, -32600, -32700
_STATUS = {INVALID_REQUEST: 400, METHOD_NOT_FOUND: 404}


class RpcError(Exception):
    """An error as Core reports it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Node:
    """A node that follows the sandbox's chain; a service.

    Args:
        chain: what it follows.
        folder: where it leaves `.cookie` and `password`, both for the owner only.
        counts: every call is counted by its method.
    """

    name = "node"
    protocol_version = "HTTP/1.1"

    def __init__(self, chain: Chain, folder: Path, counts: RequestCounts) -> None:
        self._chain = chain
        self._counts = counts
        self.cookie_file = folder / ".cookie"
        self.password_file = folder / "password"
        cookie = f"__cookie__:{secrets.token_hex(32)}"
        _write_private(self.cookie_file, cookie)
        if not self.password_file.exists():
            _write_private(self.password_file, secrets.token_hex(16) + "\n")
        self.password = self.password_file.read_text("ascii").strip()
        self._allowed = {_basic(cookie), _basic(f"{USER}:{self.password}")}
        self.methods: dict[str, Callable[..., Any]] = {
            "getbestblockhash": lambda: chain.tip.display_hash,
            "getblock": self._block,
            "getblockchaininfo": self._chain_info,
            "getblockcount": lambda: chain.height,
            "getblockhash": self._hash_at,
            "getblockheader": self._header,
            "getnetworkinfo": _network_info,
        }

    def route(self, method: str, path: str) -> str:
        """Return `rpc` for whatever it is; the methods are in the body."""
        del method, path
        return "rpc"

    def answer(self, request: Request) -> Answer:
        """Answer one call or a batch."""
        if request.method != "POST":
            return Answer(405, b"JSONRPC server handles only POST requests")
        length = request.headers.get("Content-Length", "0")
        if not length.isdigit():
            raise HangUpError
        body = request.read(int(length))
        sent = request.headers.get("Authorization", "")
        if sent not in self._allowed or request.fault_is("unauthorized"):
            realm = (("WWW-Authenticate", 'Basic realm="jsonrpc"'),)
            return Answer(401, b"", None, realm)
        kind = request.fault.kind if request.fault else None
        try:
            call = json.loads(body)
        except ValueError:
            return _failed(None, RpcError(PARSE_ERROR, "Parse error"))
        if isinstance(call, list):
            replies = [self._reply(one, fault=kind)[0] for one in call]
            return json_answer(replies)
        reply, status = self._reply(call, fault=kind)
        return json_answer(reply, status)

    def _reply(self, call: Any, *, fault: str | None) -> tuple[dict[str, Any], int]:
        """Return the answer to one call and the HTTP status it has alone."""
        asked = call if isinstance(call, dict) else {}
        try:
            result = self._call(asked, fault=fault)
        except RpcError as error:
            modern = asked.get("jsonrpc") == "2.0"
            return _error(asked, error), 200 if modern else _STATUS.get(error.code, 500)
        if asked.get("jsonrpc") == "2.0":
            return {"jsonrpc": "2.0", "result": result, "id": asked.get("id")}, 200
        return {"result": result, "error": None, "id": asked.get("id")}, 200

    def _call(self, asked: dict[str, Any], *, fault: str | None) -> Any:
        method, params = asked.get("method"), asked.get("params") or []
        if not isinstance(method, str):
            raise RpcError(INVALID_REQUEST, "Missing method" if asked else "Invalid Request object")
        self._counts.add(self.name, method)
        if fault == "warm-up":
            raise RpcError(WARM_UP, "Loading block index…")
        if method not in self.methods:
            raise RpcError(METHOD_NOT_FOUND, "Method not found")
        try:
            bound = inspect.signature(self.methods[method]).bind(
                *(params if isinstance(params, list) else ()),
                **(params if isinstance(params, dict) else {}),
            )
        except TypeError:
            raise RpcError(MISC_ERROR, f"{method}: wrong number of arguments") from None
        with self._chain.lock:
            result = self.methods[method](*bound.args, **bound.kwargs)
        still = fault == "syncing" and method == "getblockchaininfo"
        return result | _syncing(result["blocks"]) if still else result

    def _hash_at(self, height: Any) -> str:
        if isinstance(height, bool) or not isinstance(height, int):
            raise RpcError(
                TYPE_ERROR, f"JSON value of type {_type(height)} is not of expected type number"
            )
        block = self._chain.block(height)
        if block is None:
            raise RpcError(INVALID_PARAMETER, "Block height out of range")
        return block.display_hash

    def _find(self, blockhash: Any) -> Block:
        if not isinstance(blockhash, str):
            raise RpcError(
                TYPE_ERROR, f"JSON value of type {_type(blockhash)} is not of expected type string"
            )
        if len(blockhash) != _HASH_HEX:
            raise RpcError(
                INVALID_PARAMETER,
                f"blockhash must be of length {_HASH_HEX} "
                f"(not {len(blockhash)}, for '{blockhash}')",
            )
        try:
            block = self._chain.find(bytes.fromhex(blockhash)[::-1])
        except ValueError:
            raise RpcError(
                INVALID_PARAMETER, f"blockhash must be hexadecimal string (not '{blockhash}')"
            ) from None
        if block is None:
            raise RpcError(NOT_FOUND, "Block not found")
        return block

    def _header(self, blockhash: Any, verbose: Any = True) -> Any:
        block = self._find(blockhash)
        return self._facts(block) if verbose else block.header.hex()

    def _block(self, blockhash: Any, verbosity: Any = 1) -> Any:
        block = self._find(blockhash)
        if not verbosity:
            return block.raw.hex()
        txids = [tx.display_txid for tx in block.transactions]
        size = len(block.raw)
        return self._facts(block) | {
            "tx": txids,
            "size": size,
            "strippedsize": size,
            "weight": 4 * size,
        }

    def _facts(self, block: Block) -> dict[str, Any]:
        """Return a header as Core's verbose answer states it."""
        confirmations = self._chain.confirmations(block)
        following = self._chain.block(block.height + 1) if confirmations > 0 else None
        version = int.from_bytes(block.header[:4], "little")
        facts: dict[str, Any] = {
            "hash": block.display_hash,
            "confirmations": confirmations,
            "height": block.height,
            "version": version,
            "versionHex": f"{version:08x}",
            "merkleroot": block.root[::-1].hex(),
            "time": block.time,
            "mediantime": self._chain.median_time(block.height),
            "nonce": block.nonce,
            **_target_facts(),
            "chainwork": _chainwork(block.height),
            "nTx": len(block.transactions),
        }
        if block.height:
            facts["previousblockhash"] = block.previous[::-1].hex()
        if following is not None:
            facts["nextblockhash"] = following.display_hash
        return facts

    def _chain_info(self) -> dict[str, Any]:
        tip = self._chain.tip
        return {
            "chain": "regtest",
            "blocks": tip.height,
            "headers": tip.height,
            "bestblockhash": tip.display_hash,
            **_target_facts(),
            "time": tip.time,
            "mediantime": self._chain.median_time(tip.height),
            "verificationprogress": 1,
            "initialblockdownload": False,
            "chainwork": _chainwork(tip.height),
            "size_on_disk": 0,
            "pruned": False,
            "warnings": ["sandbox, not Bitcoin"],
        }


def _syncing(blocks: int) -> dict[str, Any]:
    """Return what differs while a node still downloads blocks."""
    return {"headers": 2 * blocks, "verificationprogress": 0.5, "initialblockdownload": True}


def _target_facts() -> dict[str, Any]:
    return {"bits": f"{BITS:08x}", "target": f"{TARGET:064x}", "difficulty": DIFFICULTY}


def _chainwork(height: int) -> str:
    return f"{_WORK * (height + 1):064x}"


def _network_info() -> dict[str, Any]:
    return {
        "version": 290000,
        "subversion": "/Satoshi:29.0.0(sandbox, not Bitcoin)/",
        "protocolversion": 70016,
        "localservices": "0000000000000409",
        "localrelay": False,
        "timeoffset": 0,
        "networkactive": True,
        "connections": 0,
        "relayfee": 0.00001,
        "warnings": ["sandbox, not Bitcoin"],
    }


def _error(asked: dict[str, Any], error: RpcError) -> dict[str, Any]:
    told = {"code": error.code, "message": error.message}
    if asked.get("jsonrpc") == "2.0":
        return {"jsonrpc": "2.0", "error": told, "id": asked.get("id")}
    return {"result": None, "error": told, "id": asked.get("id")}


def _failed(asked: dict[str, Any] | None, error: RpcError) -> Answer:
    return json_answer(_error(asked or {}, error), _STATUS.get(error.code, 500))


def _type(value: Any) -> str:
    """Return UniValue's name of a JSON type."""
    names = {
        bool: "bool",
        str: "string",
        int: "number",
        float: "number",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), "null")


def _basic(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _write_private(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text, "ascii")
