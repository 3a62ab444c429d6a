"""Records over real sockets: many at once, slow ones, and a store that is written to meanwhile."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.face_places import Serving, place_of
from support.workplace import Workplace, sample

from anchord.app.config import load
from anchord.app.service.notify import Notifier
from anchord.app.web import patience
from anchord.app.web.application import Offered
from anchord.app.web.face import Face, site_of
from anchord.app.web.readers import Readers
from anchord.app.web.server import MOST_AT_ONCE, Server, listening

AT_ONCE = 60


class Served:
    """A store of its own, served."""

    def __init__(self, folder: Path) -> None:
        self.place = Workplace(folder)
        self.place.anchor(sample(1), sample(2))
        self.serving = Serving(self.place.config)
        self.host = urlsplit(self.serving.url).netloc

    def ask(self, path: str, method: str = "GET", body: bytes | None = None) -> tuple[int, bytes]:
        return self.whole(path, method, body)[::2]

    def whole(
        self, path: str, method: str = "GET", body: bytes | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        link = http.client.HTTPConnection(self.host, timeout=30)
        try:
            link.request(method, path, body)
            answer = link.getresponse()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, headers, answer.read()
        finally:
            link.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    served = Served(tmp_path_factory.mktemp("served"))
    with served.serving:
        yield served


def test_a_head_is_the_answer_without_its_body(served: Served) -> None:
    at = f"/{place_of(sample(1))}"
    for target in (at, f"{at}.json", f"{at}/bundle.json", "/records", "/", "/openapi.json"):
        status, headers, body = served.whole(target)
        assert status == 200
        head = served.whole(target, "HEAD")
        assert (head[0], head[2]) == (200, b"")
        assert head[1].get("content-length") == str(len(body))
        assert head[1].get("etag") == headers.get("etag")


def test_a_body_that_nobody_asked_for_is_not_looked_at(served: Served) -> None:
    assert served.ask(f"/{place_of(sample(1))}.json", body=b"{" * 5000)[0] == 200


def test_many_at_once_are_all_answered(served: Served) -> None:
    at = f"/{place_of(sample(1))}"
    targets = (at, f"{at}.json", f"{at}/bundle.json", "/records.json", f"{at}/badge.svg")
    found: Counter[int] = Counter()

    def ask(number: int) -> None:
        status, _ = served.ask(targets[number % len(targets)])
        found[status] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {200: AT_ONCE}


def test_who_says_nothing_holds_nobody_up(served: Served) -> None:
    host, port = served.host.split(":")
    silent = [socket.create_connection((host, int(port)), 10) for _ in range(30)]
    try:
        for one in silent[::2]:
            one.sendall(b"GET /records HTTP/1.1\r\nHost: a\r\nAccept")
        assert served.ask(f"/{place_of(sample(2))}.json")[0] == 200
    finally:
        for one in silent:
            one.close()


def test_what_is_added_is_there_at_once_and_what_grows_has_another_tag(served: Served) -> None:
    record = sample(3)
    at = f"/{place_of(record)}.json"
    assert served.ask(at)[0] == 404
    served.place.add(record)
    status, before, body = served.whole(at)
    assert (status, json.loads(body)["completeness"]["anchored"]) == (200, "not anchored")
    served.place.step()
    status, after, body = served.whole(at)
    assert (status, json.loads(body)["completeness"]["anchored"]) == (200, "submitted")
    assert before["etag"] != after["etag"]


def test_a_store_that_is_away_is_told_without_its_address(served: Served) -> None:
    store = served.place.folder / "anchord.db"
    if not store.exists():
        return  # on PostgreSQL no file can be moved away
    away = store.with_name("away.db")
    store.rename(away)
    try:
        status, headers, body = served.whole(f"/{place_of(sample(1))}.json")
    finally:
        away.rename(store)
    assert status == 503
    assert headers["content-type"] == "application/problem+json"
    assert str(served.place.folder) not in body.decode()
    assert served.ask(f"/{place_of(sample(1))}.json")[0] == 200


def held(host: str, asked: bytes, count: int = MOST_AT_ONCE) -> list[socket.socket]:
    name, port = host.split(":")
    links = []
    for _ in range(count):
        link = socket.create_connection((name, int(port)), 10)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link.sendall(asked)
        links.append(link)
    return links


BODY = b"Content-Length: 100000\r\n\r\n{"


@pytest.mark.parametrize(
    "asked",
    [b"", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX-", b"GET /healthz HTTP/1.1\r\nHost: a\r\n" + BODY,
     b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 40],
    ids=["silent", "half a head", "half a body", "many, and none is read"],
)  # fmt: skip
def test_all_connections_at_once_are_given_back(
    served: Served, monkeypatch: pytest.MonkeyPatch, asked: bytes
) -> None:
    """A server in this process, whose patience is shorter."""
    monkeypatch.setattr(patience, "ASKING_S", 1.0)
    monkeypatch.setattr(patience, "READING_S", 1.0)
    with serving_here(served.place.config) as host:
        links = held(host, asked)
        try:
            end, status = time.monotonic() + 20, 0
            while status != 200:
                assert time.monotonic() < end
                status = ask_once(host)
                for link in links:  # a byte now and then buys no time
                    with contextlib.suppress(OSError):
                        link.send(b"x")
        finally:
            for link in links:
                link.close()


def ask_once(host: str) -> int:
    link = http.client.HTTPConnection(host, timeout=5)
    try:
        link.request("GET", "/healthz")
        return link.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        link.close()
        time.sleep(0.2)


@contextlib.contextmanager
def serving_here(config: Path) -> Iterator[str]:
    """Serve in a thread of this process; yield host and port."""
    loaded = load(str(config))
    with contextlib.closing(Readers(loaded)) as readers, listening("127.0.0.1", 0) as listener:
        face = Face(loaded=loaded, readers=readers, site=site_of(loaded))
        server = Server(Offered(missing=list, face=face), Notifier({}), "here")
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)
        assert not thread.is_alive()
