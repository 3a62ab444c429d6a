"""`anchord serve` beside what goes wrong: it says so, and is right again afterwards."""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from support.asking import Asked
from support.face_places import Serving
from support.workplace import Workplace, sample

from anchord.adapters.store.reading import SqlReadingStore
from anchord.app.config import Loaded, load
from anchord.app.metrics.reading import Reading
from anchord.app.web import certificates as certificates_module
from anchord.app.web import dashboard, figures
from anchord.app.web.certificates import Certificates
from anchord.app.web.face import Face, site_of
from anchord.app.web.readers import Readers
from anchord.core.model import StoredRecord


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    made = Workplace(tmp_path_factory.mktemp("served"))
    made.anchor(sample(1), sample(2))
    return made


def streaming(host: str) -> http.client.HTTPConnection:
    """Return a connection over which events come for ever."""
    link = http.client.HTTPConnection(host, timeout=30)
    link.request("GET", "/events.stream")
    assert link.getresponse().status == 200
    return link


@pytest.fixture(scope="module")
def host(place: Workplace) -> Iterator[str]:
    with Serving(place.config) as serving:
        yield urlsplit(serving.url).netloc


def test_no_answer_waits_for_the_clients_delayed_acknowledgement(host: str) -> None:
    """It would take 40 ms more, each time, from when the kernel stops acknowledging at once."""
    link, took = http.client.HTTPConnection(host, timeout=30), []
    for _ in range(60):
        began = time.perf_counter()
        link.request("GET", "/healthz")
        assert link.getresponse().read() == b"ok\n"
        took.append(time.perf_counter() - began)
    link.close()
    assert min(took[-20:]) < 0.03


def test_a_stop_while_streams_are_open_is_quick_and_no_fault(place: Workplace) -> None:
    with Serving(place.config) as serving:
        host = urlsplit(serving.url).netloc
        links = [streaming(host) for _ in range(8)]
        began = time.monotonic()
    assert time.monotonic() - began < 8
    assert [line.split("anchord: ")[-1] for line in serving.said.splitlines()] == [
        f"anchord serves {serving.url}",
        "stopped",
    ]
    for link in links:
        link.close()


def test_who_comes_first_to_a_large_store_sees_that_it_is_counted(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = threading.Event()
    real = figures.read

    def slowly(loaded: Loaded) -> Reading:
        assert counted.wait(20)
        return real(loaded)

    monkeypatch.setattr(figures, "read", slowly)
    monkeypatch.setattr(dashboard, "PATIENCE_S", 0.05)
    with Asked(place.config) as asked:
        for path in ("/", "/parked"):
            answer = asked.ask(path)
            assert (answer.status, answer.headers["refresh"]) == (200, "3")
            assert "being counted" in answer.body.decode()
        counted.set()
        monkeypatch.setattr(dashboard, "PATIENCE_S", 20)
        for path in ("/", "/parked"):
            answer = asked.ask(path)
            assert (answer.status, "refresh" in answer.headers) == (200, False)
            assert "being counted" not in answer.body.decode()


def test_a_certificate_that_many_ask_for_at_once_is_made_once(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bytes] = []
    real = Certificates._make

    def slowly(self: Certificates, store: SqlReadingStore, record: StoredRecord) -> bytes:
        made.append(record.digest)
        time.sleep(0.2)  # the others come meanwhile
        return real(self, store, record)

    monkeypatch.setattr(Certificates, "_make", slowly)
    monkeypatch.setattr(certificates_module, "_PATIENCE_S", 20)
    loaded = load(str(place.config))
    with contextlib.closing(Readers(loaded)) as readers, ThreadPoolExecutor(6) as threads:
        certificates = Certificates(Face(loaded=loaded, readers=readers, site=site_of(loaded)))

        def ask(_: int) -> bytes:
            mark = readers.mark()
            with readers.lend() as store:
                return certificates.pdf(store, next(store.records.walk())[0], mark)

        assert len(set(threads.map(ask, range(6)))) == 1
    assert len(made) == 1
