"""Parsers of what services answer: by their functions, and through a socket."""

# ruff: noqa: E501 -- tables of what formats are made of

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable
from functools import cache
from typing import Any

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.public_items import PublicItems
from anchord.adapters.archives.wayback import Wayback
from anchord.adapters.calendars import HttpCalendar
from anchord.adapters.headers.bitcoind import NodeSource
from anchord.adapters.headers.esplora import ExplorerSource
from anchord.adapters.headers.p2p import Address, Peer
from anchord.adapters.http import Client
from anchord.adapters.mirrors.http import HttpMirror
from anchord.adapters.tsa import HttpAuthority
from anchord.core import capture, capture_proof, capture_words, item_answer
from anchord.core.network import REGTEST
from anchord.errors import AnchordError
from support.blocks import header, shown
from support.fuzzing import samples
from support.fuzzing.engine import Target
from support.fuzzing.raw_server import http_server, peer_server
from support.scripted_peer import headers_payload, message
from support.wayback_calls import Archive

URL = "https://arxiv.org/abs/2401.00001v1"
STAMP = "20270115120000"
_JOB = "spn2-0123456789abcdef0123456789abcdef01234567"
_KEYS = Keys("0123456789abcdef", "fedcba9876543210")
_TIMEOUT_S = 2.0

Said = tuple[int, dict[str, str], bytes]


def said(data: bytes) -> Said:
    """Return status, headers and body of an answer written as `status`, lines, an empty line."""
    head, _, body = data.partition(b"\n\n")
    status, *lines = head.decode("latin-1").split("\n")
    pairs = [line.partition(":") for line in lines]
    number = int(status) if status.isascii() and status.isdigit() and len(status) < 4 else 200
    return number, {name.strip(): value.strip() for name, _, value in pairs if name}, body


def saying(body: Any, status: int = 200, **headers: str) -> bytes:
    """Return an answer as `said` reads it."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {"Content-Type": "application/json", **headers}
    head = "".join(f"\n{name.replace('_', '-')}: {value}" for name, value in names.items())
    return f"{status}{head}\n\n".encode("latin-1") + raw


# ---------------------------------------------------------------------- the Wayback Machine


def _saved(data: bytes) -> None:
    status, headers, body = said(data)
    capture.read_submit(status, headers, body, URL)
    capture.read_statuses(status, headers, body, (_JOB,))
    capture.read_account(status, headers, body)
    capture.read_system(status, headers, body)


@cache
def _saves() -> tuple[bytes, ...]:
    archive = Archive()
    submitted = archive.save()
    archive.clock.advance(55)
    return (
        saying({**submitted, "job_id": _JOB}),
        saying([{**archive.status(submitted["job_id"]), "job_id": _JOB}]),
        saying(archive.user()),
        saying({"status": "ok"}),
        saying({"status": "error", "status_ext": "error:no-access", "message": "Cannot."}),
        saying(b"<html><title>429 Too Many Requests</title>", 429, Retry_After="60"),
        saying({"message": "The same snapshot had been made 5 minutes ago."}),
    )


def _listed(data: bytes) -> None:
    capture_proof.read_index(*said(data))


@cache
def _lists() -> tuple[bytes, ...]:
    fields = ["timestamp", "original", "statuscode", "mimetype", "digest", "length", "urlkey"]
    row = [STAMP, URL, "200", "text/html", "A" * 32, "512", "org,arxiv)/abs/2401.00001v1"]
    archive = Archive()
    archive.captured()
    found = archive.cdx(fl=",".join(capture_proof.FIELDS))
    return (
        saying([list(capture_proof.FIELDS), *found, [], ["org%2Carxiv"]]),
        saying([fields, row]), saying(b""), saying([]),
    )  # fmt: skip


def _replayed(data: bytes) -> None:
    status, headers, body = said(data)
    capture_proof.read_replay(status, headers, body, STAMP, URL, "pith")
    capture_proof.holds(body, headers, "pith")


def _replays() -> tuple[bytes, ...]:
    page = b"<html><body>pith:2024:AAAA</body></html>"
    named = {
        "Content_Type": "text/html; charset=utf-8", "Memento_Datetime":
        "Fri, 15 Jan 2027 12:00:00 GMT", "Link": f'<{URL}>; rel="original"',
        "X_Archive_Src": "spn2-20270115-x.warc.gz",
    }  # fmt: skip
    return (saying(page, **named), saying(page, 404, **named), saying(page, 302, Location="/web/1"))


def _words(data: bytes) -> None:
    status, headers, body = said(data)
    capture_words.words(body)
    capture_words.read_json(headers, body)
    capture_words.save_refused(status, headers, body)
    capture_words.reading_refused(status, headers, body)
    capture_words.unknown("a memento", body)
    capture_words.object_refused({"message": body.decode("latin-1")}, "error:x")
    capture_words.code_of_object({"status_ext": body.decode("latin-1")})


# ---------------------------------------------------------------------- items


def _item(data: bytes) -> None:
    status, _, body = said(data)
    item_answer.read_item(status, body, "anchord-test-2024", ("urn:anchord:x",))
    item_answer.read_tasks(status, body)
    item_answer.read_headroom(status, body)
    item_answer.read_account(status, body)
    item_answer.read_refusal(status, body)
    item_answer.read_upload(status, body, framed=True)


def _items() -> tuple[bytes, ...]:
    file = {"name": "a.zip", "size": "10", "md5": "0" * 32, "sha1": "1" * 40, "mtime": "1"}
    metadata = {"identifier": "anchord-test-2024", "external-identifier": "urn:anchord:x"}
    error = "<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>wait</Message></Error>"
    return (
        saying({"files": [file], "metadata": metadata, "created": 1, "server": "ia1.us"}),
        saying({}), saying({"is_dark": True}), saying(error.encode(), 503),
        saying({"value": {"summary": {"queued": 1, "running": 0, "error": 0, "paused": 0}}}),
        saying({"detail": {"accesskey_ration": 100, "accesskey_tasks_queued": 1}, "over_limit": 0}),
        saying({"authorized": True, "username": "reader@example.org"}),
    )  # fmt: skip


# ---------------------------------------------------------------------- through a socket


def _http(use: Callable[[str], object]) -> Callable[[bytes], None]:
    """Return a feed that has the bytes answered by a server, to whatever it is asked."""

    def feed(data: bytes) -> None:
        server = http_server()
        server.data = data
        use(server.url)

    return feed


def wire(body: bytes, *lines: str, status: str = "200 OK") -> bytes:
    """Return an answer as it goes over the wire."""
    head = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{head}\r\n".encode() + body


def _get(url: str) -> None:
    answer = Client(_TIMEOUT_S).get(url + "/x", max_bytes=50_000)
    assert len(answer.body) <= 50_000


def _calendar(url: str) -> None:
    calendar = HttpCalendar(url, (url,), Client(_TIMEOUT_S))
    for ask in (lambda: calendar.submit(samples.DIGEST), lambda: calendar.upgrade(url, bytes(32))):
        try:
            ask()
        except AnchordError:
            continue


def _explorer(url: str) -> None:
    source = ExplorerSource([url + "/a", url + "/b"], client=Client(_TIMEOUT_S), min_agree=2)
    source.tip()


def _node(url: str) -> None:
    cookie = samples.scratch() / "cookie"
    cookie.write_text("user:password")
    NodeSource(url, client=Client(_TIMEOUT_S), network="regtest", cookie_file=cookie).header(0)


def _wayback(url: str) -> None:
    archive = Wayback(url, _KEYS, contact="a@example.org", timeout_s=_TIMEOUT_S)
    archive.submit(URL, within_s=None, plain=False)
    archive.index(URL, first=STAMP, last=STAMP)
    archive.replay(STAMP, URL, None)


def _public_items(url: str) -> None:
    found = PublicItems(url, where="archive.org", timeout_s=_TIMEOUT_S, user_agent="test")
    found.describe("anchord-test-2024")
    found.member("anchord-test-2024", "a.zip", "b.json")


def _mirror(url: str) -> None:
    mirror = HttpMirror(url, Client(_TIMEOUT_S), 10_000, local=True, sleep=lambda _s: None)
    mirror.get(url + "/pith-mirrors.json", None, None, 50_000)


def _authority(url: str) -> None:
    roots = samples.authority().root_file
    HttpAuthority(url, roots, Client(_TIMEOUT_S), bytes).stamp(samples.DIGEST)


_HTTP = (b"\r\n", b"Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\n", b"Content-Length: -1\r\n",
         b"Location: ", b"Content-Length: 99999999999999999999\r\n", b"HTTP/1.1 100 Continue\r\n\r\n",
         b"Content-Encoding: gzip\r\n", b"\0", b"0\r\n\r\n", b"Set-Cookie: a\r\n", b" folded\r\n")  # fmt: skip


def _info() -> bytes:
    block = shown(header(1))
    info = {"chain": "regtest", "blocks": 1, "bestblockhash": block, "initialblockdownload": False}
    return json.dumps({"result": info, "error": None, "id": "anchord"}).encode()


# ---------------------------------------------------------------------- a peer


def _talk(data: bytes) -> None:
    server = peer_server()
    server.data = data
    peer = Peer(
        Address("127.0.0.1", server.port), REGTEST, timeout_s=_TIMEOUT_S,
        until=time.monotonic() + _TIMEOUT_S,
    )  # fmt: skip
    try:
        found = peer.headers_after([REGTEST.genesis[:32]])
        assert len(found) % 80 == 0
    finally:
        peer.close()


def _version(agent: bytes = b"/x:1/") -> bytes:
    body = struct.pack("<iQq", 70016, 9, 0) + bytes(60) + bytes([len(agent)]) + agent
    return message("version", body + struct.pack("<iB", 7, 1))


def _enveloped(data: bytes) -> None:
    """The same with envelopes that are right: version and headers are the bytes given."""
    version, _, headers = data.partition(b"|")
    _talk(
        message("version", version) + message("verack", b"") + message("ping", b"12345678")
        + message("headers", headers)
    )  # fmt: skip


def _conversation() -> bytes:
    raws = [header(number) for number in range(3)]
    return _version() + message("verack", b"") + message("headers", headers_payload(raws))


TARGETS = (
    Target(name="captures saved", feed=_saved, seeds=_saves),
    Target(name="captures listed", feed=_listed, seeds=_lists),
    Target(name="captures replayed", feed=_replayed, seeds=_replays),
    Target(name="words of the archive", feed=_words, seeds=lambda: [*_saves(), *_replays()]),
    Target(name="items", feed=_item, seeds=_items,
           words=(b"<Error>", b"</Error>", b"<Code>", b"</Code>", b"<Message>", b"&#x0;", b"<!")),
    Target(name="HTTP", feed=_http(_get), words=_HTTP, seeds=lambda: [
        wire(b"hello"), b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        wire(b"", "Location: https://elsewhere.example.org/", status="302 Found")]),
    Target(name="calendar", feed=_http(_calendar), words=_HTTP, grows=False,
           seeds=lambda: [wire(b"Not found", status="404 Not Found")]),
    Target(name="explorers", feed=_http(_explorer), words=_HTTP, grows=False, strict=False,
           seeds=lambda: [wire(b"1"), wire(shown(header(1)).encode())]),
    Target(name="node", feed=_http(_node), words=_HTTP, grows=False, strict=False,
           seeds=lambda: [wire(_info()), wire(b'{"result":null,"error":{"code":-8,"message":"x"}}',
                                              status="500 Internal Server Error")]),
    Target(name="Wayback Machine", feed=_http(_wayback), words=_HTTP, grows=False,
           seeds=lambda: [wire(b'{"url":"' + URL.encode() + b'","job_id":"' + _JOB.encode() + b'"}',
                               "Content-Type: application/json")]),
    Target(name="public items", feed=_http(_public_items), words=_HTTP, grows=False,
           seeds=lambda: [wire(b"{}", "Content-Type: application/json")]),
    Target(name="mirror over HTTP", feed=_http(_mirror), words=_HTTP, grows=False,
           seeds=lambda: [wire(b"{}", 'ETag: "a"', "Last-Modified: now")]),
    Target(name="authority over HTTP", feed=_http(_authority), words=_HTTP, grows=False,
           strict=False, seeds=lambda: [
               wire(samples.stamped()[0], "Content-Type: application/timestamp-reply")]),
    Target(name="peer", feed=_talk, grows=False, seeds=lambda: [_conversation()],
           words=(REGTEST.magic, b"headers\0\0\0\0\0", b"\xfd\xff\xff", b"\xff" * 9)),
    Target(name="messages of a peer", feed=_enveloped, grows=False,
           words=(b"|", b"\xfd\xd0\x07", b"\xff" * 9),
           seeds=lambda: [_version()[24:] + b"|" + headers_payload([header(0), header(1)])]),
)  # fmt: skip
"""One connection costs about a millisecond: those through a socket get fewer inputs."""
