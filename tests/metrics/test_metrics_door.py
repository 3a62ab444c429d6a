"""Who knocks at the door of metrics gets numbers or nothing, and hurts nobody else."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.monitored import filled, samples, value

from anchord.app.metrics import door
from anchord.app.metrics.address import host_and_port
from anchord.app.metrics.exposition import Metrics
from anchord.errors import ConfigError

HOST = "127.0.0.1"


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metrics]:
    loaded = filled(tmp_path_factory.mktemp("door"))
    shown = Metrics(lambda: loaded)
    yield shown
    shown.close()


@pytest.fixture
def port(metrics: Metrics) -> Iterator[int]:
    with door.opened(metrics, HOST, 0) as found:
        yield found


def asked(port: int, request: bytes, timeout_s: float = 20) -> bytes:
    """Send bytes and return all that comes back until the other side hangs up."""
    with socket.create_connection((HOST, port), timeout_s) as line:
        with contextlib.suppress(ConnectionError):
            line.sendall(request)
        got = b""
        with contextlib.suppress(ConnectionError):
            while some := line.recv(65_536):
                got += some
        return got


def get(
    port: int, path: str = "/metrics", method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    raw = asked(port, f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = raw.partition(b"\r\n\r\n")
    status, *fields = head.decode("ascii").split("\r\n")
    return int(status.split()[1]), dict(field.split(": ", 1) for field in fields), body


def test_metrics_are_served_as_prometheus_reads_them(port: int) -> None:
    status, fields, body = get(port)
    assert status == 200
    assert fields["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert int(fields["Content-Length"]) == len(body)
    assert value(samples(body), "store_up") == 1


def test_a_head_has_no_body_and_a_question_is_no_other_path(port: int) -> None:
    status, fields, body = get(port, method="HEAD")
    assert (status, body) == (200, b"")
    assert int(fields["Content-Length"]) > 1000
    assert get(port, "/metrics?name[]=x")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/metrics", 405), ("OPTIONS", "/metrics", 405), ("GET", "/", 404),
     ("GET", "/metrics/", 404), ("GET", "/../etc/passwd", 404), ("GET", "//metrics", 404)],
)  # fmt: skip
def test_nothing_else_is_there(port: int, method: str, path: str, status: int) -> None:
    found, _, body = get(port, path, method)
    assert found == status
    assert b"passwd" not in body


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=300) | st.text(st.characters(max_codepoint=255)).map(
    lambda text: b"GET " + text.encode("latin-1") + b" HTTP/1.1\r\n\r\n"))  # fmt: skip
def test_whatever_is_sent_it_answers_or_hangs_up_and_goes_on(port: int, request: bytes) -> None:
    with socket.create_connection((HOST, port), 20) as line:
        line.sendall(request)
        line.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            answer = line.recv(65_536)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 ")


def test_a_head_without_end_is_cut_off(port: int) -> None:
    began = time.monotonic()
    answer = asked(port, b"GET /metrics HTTP/1.1\r\n" + b"x: " + b"y" * 1_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    assert time.monotonic() - began < 5
    assert get(port)[0] == 200


def test_who_says_nothing_or_a_byte_at_a_time_is_hung_up_on(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_HEAD_S", 0.5)
    with door.opened(metrics, HOST, 0) as port:
        with socket.create_connection((HOST, port), 20) as silent:
            assert silent.recv(1) == b""
        began = time.monotonic()
        with socket.create_connection((HOST, port), 20) as slow, contextlib.suppress(OSError):
            for byte in b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 1000:
                slow.sendall(bytes([byte]))
                time.sleep(0.02)
        assert time.monotonic() - began < 5


def test_a_flood_of_silent_ones_is_turned_away_and_then_forgotten(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "_HEAD_S", 1.0)
    with door.opened(metrics, HOST, 0) as port, contextlib.ExitStack() as stack:
        for _ in range(200):
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_connection((HOST, port), 1))
        assert len([t for t in threading.enumerate() if t.name == "metrics"]) == 1
        end = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError, ValueError, IndexError):
                if get(port)[0] == 200:
                    return
            assert time.monotonic() < end
            time.sleep(0.1)


def test_the_door_shuts_at_once_whoever_stands_in_it(metrics: Metrics) -> None:
    with contextlib.ExitStack() as stack:
        with door.opened(metrics, HOST, 0) as port:
            for _ in range(10):
                stack.enter_context(socket.create_connection((HOST, port), 5))
            time.sleep(0.1)
            began = time.monotonic()
        assert time.monotonic() - began < 3
    assert "metrics" not in [thread.name for thread in threading.enumerate()]
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((HOST, port), 1)


def test_an_address_that_is_taken_is_named(port: int, metrics: Metrics) -> None:
    with (
        pytest.raises(ConfigError, match=rf"{HOST}:{port}.*service\.metrics"),
        door.opened(metrics, HOST, port),
    ):
        pass


def test_a_fault_behind_the_door_is_an_answer_and_the_door_stays_open() -> None:
    class Broken:
        def exposition(self) -> bytes:
            raise ZeroDivisionError("x")

    with door.opened(Broken(), HOST, 0) as port:  # type: ignore[arg-type]
        for _ in range(2):
            assert get(port)[::2] == (500, b"ZeroDivisionError\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("9464", ("127.0.0.1", 9464)),
        (":9464", ("127.0.0.1", 9464)),
        ("localhost:9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("192.0.2.1:80", ("192.0.2.1", 80)),
    ],
)
def test_an_address_is_read_and_a_port_alone_is_on_loopback(
    text: str, expected: tuple[str, int]
) -> None:
    assert host_and_port(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "127.0.0.1", "example.org:9464", "127.0.0.1:65536", "127.0.0.1:-1", "1:2:3",
             "127.0.0.1:٣", "127.0.0.1:", "http://127.0.0.1:9464", "[::1]", "*:9464"],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ConfigError, match=r"expected an IP address and a port"):
        host_and_port(text)


def test_a_page_of_numbers_holds_no_path_of_this_machine(port: int, tmp_path: Path) -> None:
    assert str(tmp_path.parent).encode() not in get(port)[2]


def test_the_door_opens_for_a_worker_whose_thread_runs_a_loop(metrics: Metrics) -> None:
    async def worker() -> bytes:
        with door.opened(metrics, HOST, 0) as port:
            return await asyncio.to_thread(asked, port, b"GET /metrics HTTP/1.1\r\n\r\n")

    assert asyncio.run(worker()).startswith(b"HTTP/1.1 200")
