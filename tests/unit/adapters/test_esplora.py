"""Explorers are one witness together: what one of them says alone is never believed."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence

import pytest
from support.blocks import header, shown
from support.http_server import SILENCE, Asked, ScriptedServer, Step, dead_port, reply

from anchord.adapters.headers.esplora import ExplorerSource
from anchord.adapters.http import Client
from anchord.errors import ConfigError, NetworkError, ProtocolError
from anchord.ports import HeaderSource, Tip

CHAIN = [header(number) for number in range(6)]
FORK = [*CHAIN[:3], *(header(number, salt=1) for number in range(3, 6))]
TIMEOUT_S = 0.3


class Explorer:
    """Answers as Esplora does from `chain`; `changes` replace the answers to single paths."""

    def __init__(self, chain: Sequence[bytes] = CHAIN, **changes: bytes | Step) -> None:
        self.chain = list(chain)
        self.changes = changes

    def __call__(self, asked: Asked) -> list[bytes | Step]:
        assert asked.method == "GET"
        kind, *rest = asked.path.removeprefix("/api/").split("/")
        name = {"block-height": "hash", "blocks": "tip", "block": "header"}[kind]
        if name in self.changes:
            return [self.changes[name]]
        if asked.path == "/api/blocks/tip/height":
            return [reply(str(len(self.chain) - 1).encode())]
        if kind == "block-height":
            height = int(rest[0])
            if height >= len(self.chain):
                return [reply(b"Block not found", "404 Not Found")]
            return [reply(shown(self.chain[height]).encode())]
        by_hash = {shown(raw): raw for raw in self.chain}
        return [reply(by_hash[rest[0]].hex().encode())]


DOWN = None


@contextlib.contextmanager
def explorers(*servers: Explorer | None, min_agree: int = 2) -> Iterator[ExplorerSource]:
    """Start the servers, `DOWN` ones not, and give a source that asks them all."""
    with contextlib.ExitStack() as stack:
        urls = [
            f"http://127.0.0.1:{dead_port()}/api/"
            if server is DOWN
            else stack.enter_context(ScriptedServer(server)).url + "/api/"
            for server in servers
        ]
        yield ExplorerSource(urls, client=Client(TIMEOUT_S), min_agree=min_agree)


def tip(height: int, chain: Sequence[bytes] = CHAIN) -> Tip:
    return Tip(height, bytes.fromhex(shown(chain[height])), 1_700_000_000 + height)


def test_it_is_a_header_source_of_the_port() -> None:
    with explorers(DOWN, DOWN) as made:
        port: HeaderSource = made
        assert port.name == "explorers"
        port.refresh()
        port.close()
        port.close()


@pytest.mark.parametrize("servers", [2, 3])
def test_what_all_say_is_given(servers: int) -> None:
    with explorers(*[Explorer() for _ in range(servers)]) as made:
        assert [made.header(height) for height in range(8)] == [*CHAIN, None, None]
        assert made.tip() == tip(5)


@pytest.mark.parametrize("bad", ["down", "silent", "garbage", "limited", "broken", "lying"])
def test_enough_that_agree_do_without_one_that_fails(bad: str) -> None:
    other = {
        "down": DOWN,
        "silent": Explorer(hash=SILENCE, tip=SILENCE),
        "garbage": Explorer(hash=b"hello", tip=reply(b"many")),
        "limited": Explorer(hash=reply(b"", "429 Slow"), tip=reply(b"", "429 Slow")),
        "broken": Explorer(header=reply(b"", "500 Oops")),
        "lying": Explorer(header=reply(CHAIN[0].hex().encode()), tip=reply(b"999999999")),
    }[bad]
    with explorers(Explorer(), other, Explorer()) as made:
        began = time.monotonic()
        assert made.header(3) == CHAIN[3]
        assert made.header(9) is None
        assert made.tip() == tip(5)
        assert time.monotonic() - began < 4 * TIMEOUT_S + 2


def test_too_few_answers_name_who_failed_and_keep_the_longest_wait() -> None:
    limited = Explorer(hash=reply(b"", "429 Slow", "Retry-After: 30\r\n"))
    busy = Explorer(hash=reply(b"", "503 Busy", "Retry-After: 60\r\n"))
    with explorers(Explorer(), limited, busy, DOWN) as made:
        with pytest.raises(NetworkError) as caught:
            made.header(1)
        assert caught.value.retry_after == 60.0
        urls = [server.base for server in made._servers]
    message = str(caught.value)
    assert [url in message for url in urls[1:3]] == [True, True]
    assert urls[3].removesuffix("/api").removeprefix("http://") in message
    assert urls[0] not in message


@pytest.mark.parametrize("servers", [(DOWN, DOWN), (Explorer(), DOWN)])
def test_a_single_witness_is_none(servers) -> None:
    with explorers(*servers) as made:
        for ask in (made.tip, lambda: made.header(1), lambda: made.header(99)):
            with pytest.raises(NetworkError, match="expected 2 of 2"):
                ask()


@pytest.mark.parametrize("agreeing", [1, 2, 3])
def test_a_disagreement_names_who_said_what_and_nothing_is_given(agreeing: int) -> None:
    servers = [*[Explorer() for _ in range(agreeing)], Explorer(FORK)]
    with explorers(*servers) as made:
        assert made.header(2) == CHAIN[2]
        with pytest.raises(ProtocolError, match="disagree on block 4") as caught:
            made.header(4)
        for server in made._servers:
            assert server.base in str(caught.value)
        with pytest.raises(ProtocolError):
            made.tip()
    assert shown(CHAIN[4]) in str(caught.value)
    assert shown(FORK[4]) in str(caught.value)


def test_a_block_that_only_one_has_yet_is_waited_for() -> None:
    with explorers(Explorer(), Explorer(CHAIN[:5])) as made:
        assert made.tip() == tip(4)
        with pytest.raises(NetworkError, match="has no such block"):
            made.header(5)


def test_one_that_lags_does_not_hold_back_enough_others() -> None:
    with explorers(Explorer(), Explorer(CHAIN[:2]), Explorer()) as made:
        assert made.tip() == tip(5)
        assert made.header(5) == CHAIN[5]


def test_one_that_runs_ahead_is_not_followed() -> None:
    ahead = [*CHAIN, header(6), header(7)]
    with explorers(Explorer(ahead), Explorer(), Explorer()) as made:
        assert made.tip() == tip(5)
        assert made.header(7) is None


def test_a_tip_that_enough_claim_and_do_not_show_is_not_believed() -> None:
    with (
        explorers(Explorer(tip=reply(b"40")), Explorer(tip=reply(b"50"))) as made,
        pytest.raises(NetworkError, match="block 40 exists"),
    ):
        made.tip()


ODD_HEADERS = {
    "another block's": reply(CHAIN[1].hex().encode()),
    "short": reply(CHAIN[3].hex().encode()[:-2]),
    "long": reply(CHAIN[3].hex().encode() + b"00"),
    "endless": reply(b"0" * 1_000_000),
    "not hex": reply(b"g" * 160),
    "missing": reply(b"Block not found", "404 Not Found"),
    "moved": reply(b"", "301 Moved", "Location: https://evil.example.org/\r\n"),
    "raw": reply(CHAIN[3]),
}


@pytest.mark.parametrize("answer", ODD_HEADERS.values(), ids=ODD_HEADERS.keys())
def test_a_header_that_is_not_the_named_block_s_does_not_count(answer: bytes) -> None:
    with (
        explorers(Explorer(), Explorer(header=answer)) as made,
        pytest.raises(NetworkError, match="expected 2 of 2"),
    ):
        made.header(3)


@pytest.mark.parametrize("text", [b"", b"-1", b"1e9", b"5.0", b"9999999999", b"\xb2", b"<html>"])
def test_a_height_that_is_none_does_not_count(text: bytes) -> None:
    with (
        explorers(Explorer(), Explorer(tip=reply(text))) as made,
        pytest.raises(NetworkError, match="tip's height"),
    ):
        made.tip()


A, B = "https://a.example.org/api", "https://b.example.org/api"
SETTINGS = [
    ([A, B], 1),
    ([A, B], 3),
    ([A], 2),
    ([], 2),
    ([A, A], 2),
    ([A, A + "/"], 2),
    ([A, "https://A.example.org/api"], 2),
    ([A, "http://b.example.org/api"], 2),
    ([A, "https://u:hush@b.example.org/api"], 2),
]


@pytest.mark.parametrize(("urls", "min_agree"), SETTINGS)
def test_settings_that_make_one_server_enough_are_refused(urls, min_agree: int) -> None:
    with pytest.raises(ConfigError, match=r"headers\.explorers") as caught:
        ExplorerSource(urls, client=Client(TIMEOUT_S), min_agree=min_agree)
    assert "hush" not in str(caught.value)


def test_explorers_of_another_network_are_refused_before_any_header_of_theirs_counts():
    for genesis, fits in ((CHAIN[0], True), (FORK[3], False)):
        with contextlib.ExitStack() as stack:
            servers = [stack.enter_context(ScriptedServer(Explorer())) for _ in range(2)]
            urls = [server.url + "/api/" for server in servers]
            source = ExplorerSource(urls, client=Client(TIMEOUT_S), min_agree=2, genesis=genesis)
            if fits:
                assert source.tip().height == source.tip().height == 5
                asked = [one.path for one in servers[0].asked]
                assert asked.count("/api/block-height/0") == 1
            else:
                with pytest.raises(ConfigError, match="another network"):
                    source.tip()
