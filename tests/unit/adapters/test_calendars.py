"""A calendar's fault costs one error of the right class, and nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from support.http_server import (
    RESET,
    SILENCE,
    Asked,
    ScriptedServer,
    always,
    dead_port,
    drip,
    reply,
)

from anchord.adapters.calendars import HttpCalendar
from anchord.adapters.http import Client
from anchord.core.proof import MAX_ANSWER_BYTES
from anchord.errors import (
    AnchordError,
    ConfigError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    TransientError,
)
from anchord.ports import Calendar, NotYet, PendingPoint, Upgraded

URI = "https://alice.calendar.example.org"
DIGEST = hashlib.sha256(b"root").digest()
PENDING = bytes.fromhex("83dfe30d2ef90c8e")
BITCOIN = bytes.fromhex("0588960d73d71901")
TIMEOUT_S = 0.3


def _varbytes(data: bytes) -> bytes:
    assert len(data) < 128
    return bytes([len(data)]) + data


def _pending(uri: str = URI) -> bytes:
    return b"\x00" + PENDING + _varbytes(_varbytes(uri.encode()))


def _bitcoin(height: int = 100) -> bytes:
    return b"\x00" + BITCOIN + _varbytes(bytes([height]))


NONCE, CLOCK, MAC = b"n" * 16, b"\x6b\x0c\x0b\x0a", b"m" * 8
PATH = b"\xf0" + _varbytes(NONCE) + b"\x08\xf1" + _varbytes(CLOCK) + b"\xf0" + _varbytes(MAC)
COMMITMENT = CLOCK + hashlib.sha256(DIGEST + NONCE).digest() + MAC
SUBMITTED = PATH + _pending()
UPGRADED = b"\x08\xf0" + _varbytes(b"s" * 32) + b"\x08" + _bitcoin()


def calendar(server: ScriptedServer, path: str = "") -> HttpCalendar:
    url = server.url + path
    return HttpCalendar(url, [URI, url], Client(TIMEOUT_S))


def submit(script, path: str = ""):
    with ScriptedServer(script) as server:
        return calendar(server, path).submit(DIGEST), server.asked


def upgrade(script, commitment: bytes = COMMITMENT):
    with ScriptedServer(script) as server:
        return calendar(server).upgrade(server.url, commitment), server.asked


def test_it_is_a_calendar_of_the_port() -> None:
    made: Calendar = HttpCalendar("https://a.example.org", [URI], Client(TIMEOUT_S))
    assert (made.url, made.uris) == ("https://a.example.org", (URI,))


@pytest.mark.parametrize("path", ["", "/", "/ots", "/ots/", "/a/b"])
def test_a_digest_is_posted_raw_below_the_base_url(path: str) -> None:
    got, (asked,) = submit(always(reply(SUBMITTED)), path)
    assert got.raw == SUBMITTED
    assert got.pendings == (PendingPoint(URI, COMMITMENT),)
    assert (asked.method, asked.path) == ("POST", path.rstrip("/") + "/digest")
    assert asked.body == DIGEST
    assert asked.headers["content-length"] == "32"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["accept"] == "application/vnd.opentimestamps.v1"


def test_an_upgrade_is_asked_for_by_commitment() -> None:
    got, (asked,) = upgrade(always(reply(UPGRADED)))
    assert got == Upgraded(UPGRADED)
    assert (asked.method, asked.path) == ("GET", f"/timestamp/{COMMITMENT.hex()}")


def test_the_uri_that_was_named_is_asked_with_its_path() -> None:
    with ScriptedServer(always(reply(UPGRADED))) as server:
        uris = [server.url + "/one", server.url + "/two/"]
        made = HttpCalendar("https://a.example.org", uris, Client(TIMEOUT_S))
        for uri in uris:
            made.upgrade(uri, COMMITMENT)
    paths = [asked.path.removesuffix(COMMITMENT.hex()) for asked in server.asked]
    assert paths == ["/one/timestamp/", "/two/timestamp/"]


@pytest.mark.parametrize("change", ["/", "x", "@evil.example.org", ":443", "#", "\n"])
def test_a_uri_that_is_not_configured_is_never_asked(change: str) -> None:
    with ScriptedServer(always(reply(UPGRADED))) as server:
        with pytest.raises(ConfigError):
            calendar(server).upgrade(server.url + change, COMMITMENT)
        assert server.connections == 0


@pytest.mark.shared_data
def test_a_real_calendars_answer_is_accepted(shared_data: Path) -> None:
    vectors = shared_data / "ots-vectors"
    (about,) = json.loads((vectors / "index.json").read_text())["calendar_answers"]
    raw = (vectors / about["file"]).read_bytes()
    got, _ = upgrade(always(reply(raw)), bytes.fromhex(about["commitment"]))
    assert got == Upgraded(raw)


WAITING = "Timestamped by transaction " + "ab" * 32 + "; waiting for 6 confirmations"
NOT_YET = [
    ("Pending confirmation in Bitcoin blockchain", "journal"),
    (WAITING, "transaction"),
    ("Not found", "unknown"),
    ("gone fishing", "unknown"),
    ("", "unknown"),
]


@pytest.mark.parametrize(("text", "status"), NOT_YET)
def test_the_404_texts_are_values(text: str, status: str) -> None:
    got, _ = upgrade(always(reply(text.encode(), "404 Not Found")))
    assert got == NotYet(status, text)


HOSTILE = {
    "escape codes": b"\x1b]0;owned\x07\x1b[2JNot found",
    "lines of a log": b"Not found\n2026-11-30 anchored everything\r\n",
    "a megabyte": b"Not found " * 100_000,
    "not text": bytes(range(256)),
    "markup": b"<script>alert(1)</script>",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_404_text_cannot_poison_a_log(text: bytes) -> None:
    got, _ = upgrade(always(reply(text, "404 Not Found")))
    assert isinstance(got, NotYet)
    assert got.status == "unknown"
    assert re.fullmatch(r"[A-Za-z0-9#\-.,; _]{1,160}", got.detail)


FAULTS: dict[str, tuple[Callable[[Asked], object], type[AnchordError]]] = {
    "silent": (always(SILENCE), NetworkError),
    "dripping headers": (lambda _: drip(b"HTTP/1.0 200 OK\r\n" * 9, 0.05), NetworkError),
    "dripping body": (lambda _: [reply(length=9999), *drip(b"x" * 99, 0.05)], NetworkError),
    "hung up": (always(), NetworkError),
    "reset": (always(RESET), NetworkError),
    "cut short": (always(reply(SUBMITTED[:20], length=len(SUBMITTED))), NetworkError),
    "rate limit": (always(reply(b"", "429 Slow", "Retry-After: 5\r\n")), RateLimitedError),
    "overloaded": (always(reply(b"", "503 Busy", "Retry-After: 5\r\n")), TransientError),
    "broken": (always(reply(b"x" * 50_000, "500 Oops")), TransientError),
    "not HTTP": (always(b"hello\r\n"), ProtocolError),
    "moved": (
        always(reply(b"", "301 Moved", "Location: https://b.example.org/\r\n")),
        ProtocolError,
    ),
    "empty": (always(reply()), ProtocolError),
    "no content": (always(reply(b"", "204 No Content")), ProtocolError),
    "HTML": (always(reply(b"<html>Sign in to the hotel's network</html>")), ProtocolError),
    "bad request": (always(reply(b"digest too long", "400 Bad Request")), ProtocolError),
    "too long": (always(reply(b"\x08" * (MAX_ANSWER_BYTES + 1))), ProtocolError),
    "too long in chunks": (
        always(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            *[b"fff\r\n" + b"\x08" * 0xFFF + b"\r\n"] * 4,
            SILENCE,
        ),
        ProtocolError,
    ),
    "unknown attestation only": (always(reply(b"\x00" + b"?" * 8 + b"\x00")), ProtocolError),
}


@pytest.mark.parametrize(("script", "error"), FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("ask", [submit, upgrade])
def test_every_fault_has_its_error(ask, script, error: type[AnchordError]) -> None:
    with pytest.raises(error) as caught:
        ask(script)
    assert type(caught.value) is error
    wait = 5.0 if error is RateLimitedError or re.search(r"\b503\b", str(caught.value)) else None
    assert getattr(caught.value, "retry_after", None) == wait


LIES = {
    "another URI": PATH + _pending("https://evil.example.org"),
    "a URI beside ours": PATH + b"\xff" + _pending() + _pending("https://evil.example.org"),
    "a file": PATH + _pending("file:///etc/passwd"),
    "trailing bytes": SUBMITTED + b"\x00",
    "cut": SUBMITTED[:-1],
    "another operation": b"\x67" + _pending(),
    "no attestation": PATH,
    "already Bitcoin": PATH + _bitcoin(),
}


@pytest.mark.parametrize("raw", LIES.values(), ids=LIES.keys())
def test_a_lie_in_a_submit_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        submit(always(reply(raw)))


UPGRADE_LIES = {
    "pending": b"\x08" + _pending(),
    "pending beside Bitcoin": b"\xff" + _pending() + UPGRADED,
    "trailing bytes": UPGRADED + b"\x00",
    "cut": UPGRADED[:-1],
    "no attestation": b"\x08",
}


@pytest.mark.parametrize("raw", UPGRADE_LIES.values(), ids=UPGRADE_LIES.keys())
def test_a_lie_in_an_upgrade_answer_is_refused(raw: bytes) -> None:
    with pytest.raises(ProtocolError):
        upgrade(always(reply(raw)))


def test_a_dead_port_is_a_network_error() -> None:
    made = HttpCalendar(f"http://127.0.0.1:{dead_port()}", [URI], Client(TIMEOUT_S))
    with pytest.raises(NetworkError):
        made.submit(DIGEST)


@pytest.mark.parametrize("ask", [submit, upgrade])
def test_a_redirect_is_named_and_its_target_never_asked(ask) -> None:
    with ScriptedServer(always(reply(SUBMITTED))) as target:
        moved = reply(b"", "302 Found", f"Location: {target.url}/\r\n")
        with pytest.raises(ProtocolError, match=f"127.0.0.1_{target.port}"):
            ask(always(moved))
        assert target.connections == 0


BAD_ADDRESSES = [
    "http://a.example.org",
    "https://user:hush@a.example.org",
    "https://a.example.org/?x",
    "https://a.example.org/#x",
    "ftp://127.0.0.1",
]


@pytest.mark.parametrize("bad", BAD_ADDRESSES)
def test_addresses_that_are_not_plain_https_are_refused(bad: str) -> None:
    for url, uris in ((bad, [URI]), ("https://a.example.org", [URI, bad])):
        with pytest.raises(ConfigError) as caught:
            HttpCalendar(url, uris, Client(TIMEOUT_S))
        assert "hush" not in str(caught.value)


def test_a_calendar_without_uris_is_refused() -> None:
    with pytest.raises(ConfigError, match="uris"):
        HttpCalendar("https://a.example.org", [], Client(TIMEOUT_S))
