"""Records over real sockets: many at once, slow ones, and a store that is written to meanwhile."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.face_places import Serving, place_of
from support.workplace import Workplace, sample

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
