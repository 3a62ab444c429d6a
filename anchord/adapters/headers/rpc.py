"""Bitcoin Core's JSON-RPC: one call, its errors sorted by what must happen next."""

from __future__ import annotations

import http.client
import threading
from typing import TypeVar

import msgspec

from anchord.adapters.headers.credentials import Cookie, Password
from anchord.adapters.http import Client, Response, clean, require_ok
from anchord.core.strictjson import UNREADABLE
from anchord.errors import ConfigError, ProtocolError, TransientError

MAX_ANSWER_BYTES = 1_000_000
"""Headers and getblockchaininfo are under 10 KB; warnings may add to it."""

IN_WARMUP = -28
"""RPC_IN_WARMUP of Bitcoin Core, src/rpc/protocol.h."""
OUT_OF_RANGE = -8
"""RPC_INVALID_PARAMETER: what getblockhash says above the tip."""

_RPC_STATUSES = {
    http.client.OK,
    http.client.BAD_REQUEST,
    http.client.NOT_FOUND,
    http.client.INTERNAL_SERVER_ERROR,
}
"""Bitcoin Core sends an RPC error with one of these and says the rest in JSON (httprpc.cpp)."""

T = TypeVar("T")


class _Error(msgspec.Struct, frozen=True):
    code: int
    message: str


class _Answer(msgspec.Struct, frozen=True):
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: _Error | None = None


class Refusal(msgspec.Struct, frozen=True):
    """The node understood the call and says no: a value, the caller knows what it means."""

    code: int
    message: str


class Rpc:
    """Calls one node. Threads may share it.

    Args:
        url: the node's RPC address, without credentials in it.
        client: sends the requests.
        login: where user and password come from.
    """

    def __init__(self, url: str, client: Client, login: Cookie | Password) -> None:
        self._url = url
        self._client = client
        self._login = login
        self._pair: tuple[str, str] | None = None
        self._lock = threading.Lock()

    def call(self, kind: type[T], method: str, *params: object) -> T | Refusal:
        """Call `method` and read its result as `kind`.

        Raises:
            ConfigError: the node does not accept user and password, or this machine.
            TransientError: it cannot be reached, or is starting.
            ProtocolError: the answer is not what Bitcoin Core would send.
        """
        body = msgspec.json.encode(
            {"jsonrpc": "1.0", "id": "anchord", "method": method, "params": params}
        )
        response = self._post(body)
        if response.status not in _RPC_STATUSES:
            require_ok(response, "bitcoin node")
        try:
            answer = _decode(response.body, _Answer, method)
        except ProtocolError:
            require_ok(response, "bitcoin node")  # an error page without JSON: its status counts
            raise
        if answer.error is None:
            require_ok(response, "bitcoin node")
            return _decode(answer.result, kind, method)
        if answer.error.code == IN_WARMUP:
            words = clean(answer.error.message)
            raise TransientError(f"the bitcoin node is starting ({words}); it is asked again later")
        return Refusal(answer.error.code, clean(answer.error.message))

    def _post(self, body: bytes) -> Response:
        """Send with the login of before; when it is refused, once more with a fresh one."""
        response = self._send(body, self._pair or self._fresh())
        if response.status == http.client.UNAUTHORIZED and self._login.changes:
            response = self._send(body, self._fresh())
        if response.status == http.client.UNAUTHORIZED:
            raise ConfigError(
                f"the bitcoin node at {self._url} does not accept the login: check "
                "headers.node (cookie_file, or user and password_file)"
            )
        if response.status == http.client.FORBIDDEN:
            raise ConfigError(
                f"the bitcoin node at {self._url} does not accept calls from this machine: "
                "check its rpcallowip and rpcwhitelist"
            )
        return response

    def _send(self, body: bytes, pair: tuple[str, str]) -> Response:
        return self._client.post(
            self._url,
            body=body,
            headers={"Content-Type": "application/json"},
            max_bytes=MAX_ANSWER_BYTES,
            basic_auth=pair,
        )

    def _fresh(self) -> tuple[str, str]:
        with self._lock:
            self._pair = self._login.read()
            return self._pair


def _decode(raw: bytes | msgspec.Raw, kind: type[T], method: str) -> T:
    try:
        return msgspec.json.decode(raw, type=kind)
    except UNREADABLE:
        raise ProtocolError(
            f"bitcoin node: expected an answer of Bitcoin Core to {method}, got something else; "
            "check that headers.node.url is its RPC address"
        ) from None
