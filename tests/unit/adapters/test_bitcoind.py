"""The operator's node is a witness only for its own network, once it is ready and lets us in."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.blocks import header, shown
from support.http_server import Asked, ScriptedServer, always, dead_port, reply

from anchord.adapters.headers.bitcoind import NodeSource
from anchord.adapters.http import Client
from anchord.errors import (
    AnchordError,
    ConfigError,
    NetworkError,
    ProtocolError,
    TransientError,
)
from anchord.ports import HeaderSource, Tip

CHAIN = [header(number) for number in range(5)]
BY_HASH = {shown(raw): raw for raw in CHAIN}
SECRET = "hush-hush"


def login(pair: str) -> str:
    return "Basic " + base64.b64encode(pair.encode()).decode()


class FakeNode:
    """Answers as Bitcoin Core does; `changes` replace single results or raise RPC errors."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.login = login(f"__cookie__:{SECRET}")
        self.calls: list[tuple[str, list[Any]]] = []

    def __call__(self, asked: Asked) -> list[bytes]:
        if asked.headers["authorization"] != self.login:
            return [reply(b"", "401 Unauthorized", 'WWW-Authenticate: Basic realm="x"\r\n')]
        call = json.loads(asked.body)
        self.calls.append((call["method"], call["params"]))
        result, error = self._result(call["method"], call["params"])
        body = json.dumps({"result": result, "error": error, "id": call["id"]}).encode()
        return [reply(body, "500 Internal Server Error" if error else "200 OK")]

    def _result(self, method: str, params: list[Any]) -> tuple[Any, Any]:
        if method in self.changes:
            change = self.changes[method]
            return (
                (None, change) if isinstance(change, dict) and "code" in change else (change, None)
            )
        if method == "getblockchaininfo":
            info = {"chain": "main", "blocks": 4, "bestblockhash": shown(CHAIN[4])}
            return info | {"initialblockdownload": False, "pruned": True} | self.changes, None
        if method == "getblockhash":
            if params[0] < len(CHAIN):
                return shown(CHAIN[params[0]]), None
            return None, {"code": -8, "message": "Block height out of range"}
        return BY_HASH[params[0]].hex(), None


@pytest.fixture
def cookie(tmp_path: Path) -> Path:
    path = tmp_path / ".cookie"
    path.write_text(f"__cookie__:{SECRET}\n")
    return path


def source(server: ScriptedServer, cookie: Path, network: str = "mainnet") -> NodeSource:
    return NodeSource(server.url, client=Client(0.5), network=network, cookie_file=cookie)


def test_it_is_a_header_source_of_the_port(cookie: Path) -> None:
    made: HeaderSource = NodeSource(
        "http://node.example.org:8332", client=Client(0.5), network="signet", cookie_file=cookie
    )
    assert made.name == "bitcoin node"
    made.refresh()
    made.close()
    made.close()


def test_the_tip_and_every_header_up_to_it(cookie: Path) -> None:
    node = FakeNode()
    with ScriptedServer(node) as server:
        made = source(server, cookie)
        assert made.tip() == Tip(4, bytes.fromhex(shown(CHAIN[4])), 1_700_000_004)
        assert [made.header(height) for height in range(7)] == [*CHAIN, None, None]
    assert ("getblockheader", [shown(CHAIN[4]), False]) in node.calls
    assert {method for method, _ in node.calls} == {
        "getblockchaininfo",
        "getblockhash",
        "getblockheader",
    }


def test_a_chain_that_became_shorter_between_two_calls_gives_none(cookie: Path) -> None:
    with ScriptedServer(FakeNode(blocks=10)) as server:
        assert source(server, cookie).header(9) is None


@pytest.mark.parametrize(
    ("network", "chain"),
    [("mainnet", "main"), ("testnet4", "testnet4"), ("signet", "signet"), ("regtest", "regtest")],
)
def test_a_node_on_another_network_is_a_person_s_matter(cookie, network: str, chain: str) -> None:
    with ScriptedServer(FakeNode(chain=chain)) as server:
        assert source(server, cookie, network).tip().height == 4
    with ScriptedServer(FakeNode(chain="test")) as server:
        for ask in (NodeSource.tip, lambda made: made.header(1)):
            with pytest.raises(ConfigError, match=chain):
                ask(source(server, cookie, network))


WARMUP = {"code": -28, "message": "Loading block index\u2026\x1b[2J"}
HASH = shown(CHAIN[1])
WRONG: dict[str, tuple[FakeNode, type[AnchordError], str]] = {
    "still downloading": (FakeNode(initialblockdownload=True), TransientError, "downloading"),
    "warming up": (FakeNode(getblockchaininfo=WARMUP), TransientError, "starting"),
    "warming up later": (FakeNode(getblockhash=WARMUP), TransientError, "starting"),
    "another header": (FakeNode(getblockheader=CHAIN[2].hex()), ProtocolError, "header of block"),
    "a short header": (FakeNode(getblockheader="00"), ProtocolError, "160 hex"),
    "a header with spaces": (FakeNode(getblockheader=" " * 160), ProtocolError, "160 hex"),
    "no header": (FakeNode(getblockheader=None), ProtocolError, "getblockheader"),
    "a header as object": (FakeNode(getblockheader={}), ProtocolError, "getblockheader"),
    "a hash that is none": (FakeNode(getblockhash="x" * 64), ProtocolError, "block hash"),
    "a number as hash": (FakeNode(getblockhash=7), ProtocolError, "getblockhash"),
    "an unknown method": (
        FakeNode(getblockhash={"code": -32601, "message": "Method not found"}),
        ProtocolError,
        "-32601",
    ),
    "a negative height": (FakeNode(blocks=-1), ProtocolError, "getblockchaininfo"),
    "an endless height": (FakeNode(blocks=2**40), ProtocolError, "getblockchaininfo"),
}


@pytest.mark.parametrize(("node", "error", "words"), WRONG.values(), ids=WRONG.keys())
def test_each_wrong_answer_has_its_error(cookie, node, error: type[AnchordError], words) -> None:
    with ScriptedServer(node) as server, pytest.raises(error, match=words) as caught:
        source(server, cookie).header(1)
    assert type(caught.value) is error
    assert SECRET not in str(caught.value)
    assert "\x1b" not in str(caught.value)


ODD: dict[str, tuple[bytes, type[AnchordError]]] = {
    "not JSON": (reply(b"<html>"), ProtocolError),
    "JSON of something else": (reply(b'{"error": "no"}'), ProtocolError),
    "not UTF-8": (reply(b'{"result": "\xff"}'), ProtocolError),
    "nested without end": (reply(b'{"x":' + b"[" * 100_000), ProtocolError),
    "too long": (reply(b" " * 1_000_001), ProtocolError),
    "an error without JSON": (reply(b"oops", "500 Internal Server Error"), TransientError),
    "moved": (reply(b"", "302 Found", "Location: http://127.0.0.1:1/\r\n"), ProtocolError),
    "its queue is full": (reply(b"Work queue depth exceeded", "503 Busy"), TransientError),
    "this machine may not ask": (reply(b"", "403 Forbidden"), ConfigError),
}


@pytest.mark.parametrize(("answer", "error"), ODD.values(), ids=ODD.keys())
def test_each_odd_answer_has_its_error(cookie: Path, answer: bytes, error) -> None:
    with ScriptedServer(always(answer)) as server, pytest.raises(error) as caught:
        source(server, cookie).tip()
    assert type(caught.value) is error


def test_a_dead_node_is_a_network_error(cookie: Path) -> None:
    made = NodeSource(
        f"http://127.0.0.1:{dead_port()}", client=Client(0.5), network="mainnet", cookie_file=cookie
    )
    with pytest.raises(NetworkError):
        made.tip()


def test_the_cookie_of_a_node_that_was_restarted_is_read_again(cookie: Path) -> None:
    node = FakeNode()
    with ScriptedServer(node) as server:
        made = source(server, cookie)
        made.tip()
        node.login = login("__cookie__:another")
        cookie.write_text("__cookie__:another")
        before = len(server.asked)
        made.tip()
        assert len(server.asked) == before + 3
        made.tip()
        assert len(server.asked) == before + 5


def test_a_login_that_stays_wrong_is_tried_twice_and_is_a_person_s_matter(cookie: Path) -> None:
    node = FakeNode()
    node.login = "nobody"
    with ScriptedServer(node) as server:
        with pytest.raises(ConfigError, match="login") as caught:
            source(server, cookie).tip()
        assert server.connections == 2
    assert SECRET not in str(caught.value)


def test_a_missing_cookie_means_that_the_node_is_down(tmp_path: Path) -> None:
    with ScriptedServer(FakeNode()) as server:
        with pytest.raises(TransientError, match="cookie_file"):
            source(server, tmp_path / "none").tip()
        assert server.connections == 0


def test_a_cookie_that_is_none_is_a_person_s_matter(cookie: Path) -> None:
    cookie.write_text(SECRET)
    with (
        ScriptedServer(FakeNode()) as server,
        pytest.raises(ConfigError, match="cookie_file") as caught,
    ):
        source(server, cookie).tip()
    assert SECRET not in str(caught.value)


def with_password(server: ScriptedServer, path: Path) -> NodeSource:
    return NodeSource(
        server.url, client=Client(0.5), network="mainnet", user="anchord", password_file=path
    )


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_user_with_a_private_password_file_is_let_in(tmp_path: Path, mode: int) -> None:
    node, path = FakeNode(), tmp_path / "password"
    node.login = login("anchord:geheim\u00e4\u00f6")
    path.write_text("geheim\u00e4\u00f6\nsecond line\n", "utf-8")
    path.chmod(mode)
    with ScriptedServer(node) as server:
        assert with_password(server, path).tip().height == 4


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o777])
def test_a_password_file_open_to_everybody_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "password"
    path.write_text(SECRET)
    path.chmod(mode)
    with ScriptedServer(FakeNode()) as server:
        with pytest.raises(ConfigError, match="chmod") as caught:
            with_password(server, path).tip()
        assert server.connections == 0
    assert SECRET not in str(caught.value)


def _empty(path: Path) -> None:
    path.touch(0o600)


@pytest.mark.parametrize("make", [_empty, Path.mkdir, lambda _: None])
def test_a_password_file_without_password_is_refused(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "password"
    make(path)
    with ScriptedServer(FakeNode()) as server, pytest.raises(ConfigError, match="password"):
        with_password(server, path).tip()


def test_a_wrong_password_is_sent_once(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.touch(0o600)
    path.write_text(SECRET)
    with ScriptedServer(FakeNode()) as server:
        with pytest.raises(ConfigError) as caught:
            with_password(server, path).tip()
        assert server.connections == 1
    assert SECRET not in str(caught.value)


LOGINS: list[dict[str, Any]] = [
    {},
    {"user": "a"},
    {"password_file": Path("p")},
    {"cookie_file": Path("c"), "user": "a", "password_file": Path("p")},
    {"cookie_file": Path("c"), "user": "a"},
]


@pytest.mark.parametrize("given", LOGINS)
def test_one_whole_way_of_logging_in_must_be_set(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="cookie_file"):
        NodeSource("http://127.0.0.1:8332", client=Client(0.5), network="mainnet", **given)


def test_credentials_in_the_address_are_refused_and_never_shown(cookie: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        NodeSource(
            f"http://u:{SECRET}@127.0.0.1:8332",
            client=Client(0.5),
            network="mainnet",
            cookie_file=cookie,
        )
    assert SECRET not in str(caught.value)


def test_its_repr_shows_where_it_is_and_no_secret(cookie: Path) -> None:
    with ScriptedServer(FakeNode()) as server:
        made = source(server, cookie)
        made.tip()
    assert server.url in repr(made)
    assert SECRET not in repr(vars(made)) + repr(made)
