"""A call over HTTP ends in time, in memory, and in one of anchord's own errors."""

from __future__ import annotations

import errno
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.http_server import (
    RESET,
    SILENCE,
    ScriptedServer,
    always,
    dead_port,
    drip,
    reply,
)
from support.tls import self_signed

from anchord import __version__
from anchord.adapters.http import Client
from anchord.adapters.http.deadline import TotalTimeoutSocket
from anchord.errors import AnchordError, ConfigError, NetworkError, ProtocolError

TIMEOUT_S = 0.3
SLACK_S = 1.0
"""What threads may lose on a busy machine with two cores."""


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def client() -> Client:
    return Client(TIMEOUT_S)


def test_a_post_carries_body_length_and_name_and_gets_the_answer(client: Client) -> None:
    with ScriptedServer(always(reply(b"yes", headers="X-Kind: a\r\n"))) as server:
        answer = client.post(
            f"{server.url}/a/digest", body=b"\x00\xff" * 16, headers={"Accept": "x/y"}
        )
    assert (answer.status, answer.body, answer.headers["x-kind"]) == (200, b"yes", "a")
    (asked,) = server.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/a/digest", b"\x00\xff" * 16)
    assert asked.headers["content-length"] == "32"
    assert asked.headers["user-agent"] == f"anchord/{__version__}"
    assert asked.headers["accept"] == "x/y"
    assert asked.headers["accept-encoding"] == "identity"
    assert "authorization" not in asked.headers


def test_each_call_has_its_own_connection_whatever_the_server_offers(client: Client) -> None:
    kept = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx"
    with ScriptedServer(always(kept, SILENCE)) as server:
        assert [client.get(server.url).body for _ in range(3)] == [b"x"] * 3
        assert server.connections == 3


def test_an_answer_without_length_ends_with_the_connection(client: Client) -> None:
    with ScriptedServer(always(b"HTTP/1.0 200 OK\r\n\r\n", b"all ", b"of it")) as server:
        assert client.get(server.url).body == b"all of it"


def test_redirects_come_back_as_values(client: Client) -> None:
    with ScriptedServer(always(reply(b"", headers="X: 1\r\n"))) as other:
        moved = reply(status="302 Found", headers=f"Location: {other.url}/x\r\n")
        with ScriptedServer(always(moved)) as server:
            assert client.get(server.url).status == 302
        assert other.connections == 0


HEAD = b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n"
SLOW = {
    "silent after the request": always(SILENCE),
    "silent after the headers": always(HEAD, SILENCE),
    "silent within the body": always(HEAD + b"x" * 50, SILENCE),
    "dripping the status line": lambda _: drip(HEAD, 0.1),
    "dripping one endless header": lambda _: drip(b"HTTP/1.0 200 OK\r\nX: " + b"a" * 100, 0.05),
    "dripping the body": lambda _: [HEAD, *drip(b"x" * 100, 0.05)],
    "dripping chunks": lambda _: [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        *drip(b"1\r\nx\r\n" * 50, 0.05),
    ],
    "100 Continue for ever": lambda _: [
        step for _ in range(100) for step in (b"HTTP/1.1 100 Continue\r\n\r\n", 0.05)
    ],
}


@pytest.mark.parametrize("script", SLOW.values(), ids=SLOW.keys())
def test_a_slow_server_is_cut_at_the_total_time(client: Client, script) -> None:
    with ScriptedServer(script) as server:
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"within 0\.3 s"):
            client.get(server.url)
        assert TIMEOUT_S - 0.01 <= time.monotonic() - began < TIMEOUT_S + SLACK_S


def test_a_full_backlog_is_cut_at_the_total_time(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", port))
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"within 0\.3 s"):
            client.get(f"http://127.0.0.1:{port}")
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S
        for sock in waiting:
            sock.close()


def test_a_resolver_that_hangs_is_cut_at_the_total_time(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hang(*_args: object, **_more: object) -> list[object]:
        over.wait(5)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    began = time.monotonic()
    with pytest.raises(NetworkError, match=r"within 0\.3 s"):
        client.get("https://calendar.example.org")
    assert time.monotonic() - began < TIMEOUT_S + SLACK_S
    over.set()


def test_a_silent_address_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        socket.create_server(("127.0.0.1", 0), backlog=0) as full,
        ScriptedServer(always(reply(b"second"))) as server,
    ):
        waiting = [socket.socket() for _ in range(4)]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        both = [(*stream, full.getsockname()), (*stream, ("127.0.0.1", server.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: both)
        assert Client(1.0).get("http://localhost:1").body == b"second"
        for sock in waiting:
            sock.close()


BROKEN = {
    "reset at once": always(RESET),
    "closed at once": always(),
    "closed within the headers": always(b"HTTP/1.0 200 OK\r\nConte"),
    "closed before the promised length": always(reply(b"short", length=50)),
    "reset within the body": always(HEAD + b"x" * 10, RESET),
    "closed within a chunk": always(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\nx"
    ),
}


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_connection_is_a_network_error_and_is_not_retried(client, script) -> None:
    with ScriptedServer(script) as server:
        with pytest.raises(NetworkError):
            client.post(server.url, body=b"x")
        assert server.connections == 1


def test_a_reset_while_sending_is_a_network_error(client: Client) -> None:
    with (
        ScriptedServer(always(), on_accept=[RESET]) as server,
        pytest.raises(NetworkError, match=f"127.0.0.1:{server.port}"),
    ):
        client.post(server.url, body=b"x" * 5_000_000)


def test_a_reset_while_connecting_is_a_network_error(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reset(*_args: object) -> None:
        raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr(TotalTimeoutSocket, "connect", reset)
    with pytest.raises(NetworkError, match="Connection reset by peer"):
        client.get("http://127.0.0.1:1")


def test_a_dead_port_is_a_network_error(client: Client) -> None:
    with pytest.raises(NetworkError, match="Connection refused"):
        client.get(f"http://127.0.0.1:{dead_port()}")


def test_a_name_that_does_not_exist_is_a_network_error(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_args: object, **_more: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(NetworkError, match="Name or service not known"):
        client.get("https://nowhere.example.org")


@pytest.mark.parametrize("name", ["a" * 70 + ".example.org", "a..example.org"])
def test_an_impossible_name_is_an_error_of_ours(client: Client, name: str) -> None:
    with pytest.raises((NetworkError, ProtocolError)):
        client.get(f"https://{name}")


GARBAGE = {
    "not HTTP": b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    "no status": b"HTTP/1.0 abc\r\n\r\n",
    "an endless header line": b"HTTP/1.0 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    "a thousand headers": b"HTTP/1.0 200 OK\r\n" + b"X: 1\r\n" * 1000 + b"\r\n",
    "two lengths": b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
}


@pytest.mark.parametrize("answer", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_is_a_protocol_error(client: Client, answer: bytes) -> None:
    with ScriptedServer(always(answer)) as server, pytest.raises(ProtocolError):
        client.get(server.url)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
TOO_LONG = {
    "with a length": [reply(b"x" * 101)],
    "with a length of a terabyte": [reply(b"x" * 200, length=10**12), SILENCE],
    "without a length": [b"HTTP/1.0 200 OK\r\n\r\n", b"x" * 101, SILENCE],
    "in chunks": [CHUNKED, b"33\r\n" + b"x" * 51 + b"\r\n", b"33\r\n" + b"x" * 51, SILENCE],
    "in one endless chunk": [CHUNKED, b"ffffffffff\r\n" + b"x" * 200, SILENCE],
}


@pytest.mark.parametrize("steps", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_an_answer_over_the_cap_is_refused_at_once(client: Client, steps: list[bytes]) -> None:
    with (
        ScriptedServer(always(*steps)) as server,
        pytest.raises(ProtocolError, match="at most 100 bytes"),
    ):
        client.get(server.url, max_bytes=100)


def test_an_answer_of_exactly_the_cap_passes(client: Client) -> None:
    with ScriptedServer(always(reply(b"x" * 100))) as server:
        assert len(client.get(server.url, max_bytes=100).body) == 100


def test_the_words_of_an_error_are_cut_so_that_its_status_counts(client: Client) -> None:
    with ScriptedServer(always(reply(b"x" * 1_000_000, "502 Bad Gateway"))) as server:
        answer = client.get(server.url, max_bytes=100)
    assert (answer.status, len(answer.body)) == (502, 100)


def test_a_compressed_answer_is_not_unpacked(client: Client) -> None:
    packed = gzip.compress(b"\x00" * 10_000_000)
    with ScriptedServer(always(reply(packed, headers="Content-Encoding: gzip\r\n"))) as server:
        assert client.get(server.url, max_bytes=len(packed)).body == packed


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=60), st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", HEAD, CHUNKED]))
def test_whatever_bytes_come_only_our_errors_leave(tail: bytes, start: bytes) -> None:
    with ScriptedServer(always(start + tail)) as server:
        try:
            answer = Client(TIMEOUT_S).get(server.url, max_bytes=50)
        except AnchordError:
            return
    assert len(answer.body) <= 50


def test_threads_share_a_client(client: Client) -> None:
    bodies: list[bytes] = []
    with ScriptedServer(lambda asked: [reply(asked.path.encode())]) as server:

        def ask(number: int) -> None:
            bodies.append(Client.get(client, f"{server.url}/{number}").body)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(bodies) == sorted(f"/{number}".encode() for number in range(12))


@pytest.fixture
def tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A server's certificate for 127.0.0.1, trusted by this machine during the test."""
    context, certificate = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    return context


def test_a_trusted_certificate_is_accepted(client: Client, tls: ssl.SSLContext) -> None:
    with ScriptedServer(always(reply(b"secret")), tls=tls) as server:
        assert client.get(server.url).body == b"secret"


def test_an_unknown_certificate_is_refused_before_anything_is_sent(
    client: Client, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with ScriptedServer(always(reply()), tls=tls) as server:
        with pytest.raises(NetworkError, match="certificate was not accepted"):
            client.get(server.url)
        assert server.asked == []


def test_a_certificate_for_another_name_is_refused(client: Client, tls: ssl.SSLContext) -> None:
    with (
        ScriptedServer(always(reply()), tls=tls) as server,
        pytest.raises(NetworkError, match="certificate was not accepted"),
    ):
        client.get(server.url.replace("127.0.0.1", "localhost"))


SLOW_TLS = {
    "silent in the handshake": [SILENCE],
    "dripping a handshake": list(drip(b"\x16\x03\x03\x40\x00" + b"\x02" * 100, 0.05)),
}


@pytest.mark.parametrize("steps", SLOW_TLS.values(), ids=SLOW_TLS.keys())
def test_a_slow_handshake_is_cut_at_the_total_time(client: Client, steps: list[bytes]) -> None:
    with ScriptedServer(always(), on_accept=steps) as server:
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"within 0\.3 s"):
            client.get(server.url.replace("http:", "https:"))
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S


@pytest.mark.parametrize("name", ["silent within the body", "dripping the body"])
def test_a_slow_answer_over_tls_is_cut_too(client: Client, tls: ssl.SSLContext, name: str) -> None:
    with ScriptedServer(SLOW[name], tls=tls) as server:
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"within 0\.3 s"):
            client.get(server.url)
        assert time.monotonic() - began < TIMEOUT_S + SLACK_S


def test_plain_http_behind_https_is_a_network_error(client: Client) -> None:
    with (
        ScriptedServer(always(), on_accept=[reply(b"plain")]) as server,
        pytest.raises(NetworkError, match="connection failed"),
    ):
        client.get(server.url.replace("http:", "https:"))


def test_a_proxy_of_the_environment_is_used_with_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer(always(reply(b"", "407 Proxy Authentication Required"))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://user:hush@127.0.0.1:{proxy.port}")
        with pytest.raises(NetworkError, match=r"proxy failed .*407") as caught:
            Client(TIMEOUT_S).get("https://calendar.example.org/x")
    (asked,) = proxy.asked
    assert (asked.method, asked.path) == ("CONNECT", "calendar.example.org:443")
    assert asked.headers["proxy-authorization"] == "Basic dXNlcjpodXNo"
    assert "hush" not in str(caught.value)


def test_a_slow_proxy_is_cut_at_the_total_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer(lambda _: drip(b"HTTP/1.0 200 OK\r\nX: " + b"a" * 100, 0.05)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        began = time.monotonic()
        with pytest.raises(NetworkError, match=r"within 0\.3 s"):
            Client(TIMEOUT_S).get("https://calendar.example.org/x")
    assert time.monotonic() - began < TIMEOUT_S + SLACK_S


def test_loopback_and_no_proxy_go_direct(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{dead_port()}")
    monkeypatch.setenv("NO_PROXY", "example.org")
    with ScriptedServer(always(reply(b"direct"))) as server:
        assert Client(TIMEOUT_S).get(server.url).body == b"direct"
        local = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", server.port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_more: local)
        assert Client(TIMEOUT_S).get("http://node.example.org").body == b"direct"


@pytest.mark.parametrize("proxy", ["socks5h://u:hush@127.0.0.1:9050", "https://127.0.0.1:1"])
def test_a_proxy_that_is_not_supported_is_never_passed_by(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigError, match="NO_PROXY") as caught:
        Client(TIMEOUT_S).get("https://calendar.example.org")
    assert "hush" not in str(caught.value)
