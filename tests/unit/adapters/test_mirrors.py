"""Mirrors in folders and behind web servers: polite, within limits, and never led elsewhere."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.http_server import RESET, ScriptedServer, always, dead_port, reply
from support.static_site import StaticSite

from anchord.adapters.http import Client
from anchord.adapters.mirrors.folder import FolderMirror
from anchord.adapters.mirrors.http import TRIES, HttpMirror, checked_url
from anchord.errors import ConfigError, ProtocolError, TransientError
from anchord.ports.mirror import Absent, Fetched, NotModified

LIMIT = 1000


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "mirror"
    (root / "pith" / "A").mkdir(parents=True)
    (root / "pith" / "A" / "bundle.json").write_bytes(b"bundle")
    (tmp_path / "secret").write_bytes(b"secret")
    return root


class Time:
    """A clock that only sleeping moves."""

    def __init__(self):
        self.now = 0.0
        self.slept = []

    def sleep(self, seconds):
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self):
        return self.now


def web(url, rate=1000.0, *, time=None, local=True, timeout=5.0):
    time = time or Time()
    client = Client(timeout)
    return HttpMirror(
        url, client, rate, local=local, sleep=time.sleep, monotonic=time.monotonic
    )  # fmt: skip


# ---------------------------------------------------------------------- folders


def test_a_folder_gives_its_files_and_says_when_nothing_changed(folder):
    mirror = FolderMirror(folder)
    got = mirror.get("pith/A/bundle.json", None, None, LIMIT)
    assert isinstance(got, Fetched)
    assert got.data == b"bundle"
    assert mirror.get("pith/A/bundle.json", got.etag, None, LIMIT) == NotModified()
    (folder / "pith" / "A" / "bundle.json").write_bytes(b"another")
    again = mirror.get("pith/A/bundle.json", got.etag, None, LIMIT)
    assert isinstance(again, Fetched)
    assert again.data == b"another"


@pytest.mark.parametrize("name", ["pith/B/bundle.json", "pith/A", "pith/A/bundle.json/x"])
def test_what_a_folder_lacks_is_absent(folder, name):
    assert FolderMirror(folder).get(name, None, None, LIMIT) == Absent()


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "pith/../../secret", "pith//A", "", ".", "..", "pith\\A", "a\0b"],
)
def test_no_name_leads_out_of_a_folder(folder, name):
    with pytest.raises(ProtocolError):
        FolderMirror(folder).get(name, None, None, LIMIT)


@settings(max_examples=200)
@given(parts=st.lists(st.sampled_from(["..", ".", "pith", "A", "secret", "mirror", ""])))
def test_no_walk_leads_out_of_a_folder(tmp_path_factory, parts):
    above = tmp_path_factory.getbasetemp() / "walked"
    (above / "mirror" / "pith" / "A").mkdir(parents=True, exist_ok=True)
    (above / "secret").write_bytes(b"secret")
    try:
        got = FolderMirror(above / "mirror").get("/".join(parts), None, None, LIMIT)
    except ProtocolError:
        return
    assert got == Absent()


def test_links_out_of_a_folder_are_not_followed(folder, tmp_path):
    (folder / "out.json").symlink_to(tmp_path / "secret")
    (folder / "above").symlink_to(tmp_path)
    (folder / "circle").symlink_to(folder / "circle")
    mirror = FolderMirror(folder)
    for name in ("out.json", "above/secret"):
        with pytest.raises(ProtocolError, match="link"):
            mirror.get(name, None, None, LIMIT)
    with pytest.raises((TransientError, ProtocolError)):
        mirror.get("circle", None, None, LIMIT)
    (folder / "in.json").symlink_to(folder / "pith" / "A" / "bundle.json")
    assert isinstance(mirror.get("in.json", None, None, LIMIT), Fetched)


def test_a_pipe_is_not_waited_for(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(ProtocolError, match="ordinary"):
        FolderMirror(folder).get("pipe", None, None, LIMIT)


def test_an_oversized_file_is_refused(folder):
    (folder / "big").write_bytes(bytes(LIMIT + 1))
    with pytest.raises(ProtocolError) as caught:
        FolderMirror(folder).get("big", None, None, LIMIT)
    assert caught.value.too_long


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigError):
        FolderMirror(tmp_path / "nothing")


# ---------------------------------------------------------------------- web


def test_a_server_is_asked_only_for_what_changed(folder):
    with StaticSite(folder) as site:
        mirror, url = web(site.url), f"{site.url}/pith/A/bundle.json"
        got = mirror.get(url, None, None, LIMIT)
        assert isinstance(got, Fetched)
        assert (got.data, got.last_modified) == (b"bundle", "Thu, 01 Aug 2024 12:00:00 GMT")
        assert mirror.get(url, got.etag, got.last_modified, LIMIT) == NotModified()
        assert site.asked[-1].headers["if-modified-since"] == got.last_modified
        assert mirror.get(f"{site.url}/nothing", None, None, LIMIT) == Absent()


def test_the_pace_is_kept_also_after_pauses(folder):
    time = Time()
    with StaticSite(folder) as site:
        mirror = web(site.url, rate=4.0, time=time)
        for _ in range(5):
            mirror.get(f"{site.url}/pith/A/bundle.json", None, None, LIMIT)
        assert time.now == pytest.approx(1.0)
        time.now += 100
        mirror.get(f"{site.url}/pith/A/bundle.json", None, None, LIMIT)
        assert time.now == pytest.approx(101.0)


@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Service Unavailable"])
def test_a_server_that_asks_for_patience_gets_it(folder, status):
    time = Time()
    with StaticSite(folder) as site:
        busy = (reply(b"", status, "Retry-After: 7\r\n"),)
        site.faults["pith/A/bundle.json"] = [busy, busy]
        got = web(site.url, time=time).get(f"{site.url}/pith/A/bundle.json", None, None, LIMIT)
    assert isinstance(got, Fetched)
    assert [seconds for seconds in time.slept if seconds >= 1] == [7.0, 7.0]


def test_nobody_is_asked_for_ever(folder):
    time = Time()
    with StaticSite(folder) as site:
        site.faults["x"] = (reply(b"", "503 Busy", "Retry-After: 5\r\n"),)
        with pytest.raises(TransientError):
            web(site.url, time=time).get(f"{site.url}/x", None, None, LIMIT)
        assert len(site.asked) == TRIES
        site.faults["x"] = (reply(b"", "503 Busy", "Retry-After: 4000\r\n"),)
        with pytest.raises(TransientError) as caught:
            web(site.url, time=time).get(f"{site.url}/x", None, None, LIMIT)
        assert caught.value.retry_after == 4000
        assert len(site.asked) == TRIES + 1
    assert time.now < 60


def test_a_redirect_within_the_server_is_followed(folder):
    with StaticSite(folder) as site:
        site.faults["old"] = (reply(b"", "302 Found", "Location: /pith/A/bundle.json\r\n"),)
        got = web(site.url).get(f"{site.url}/old", None, None, LIMIT)
    assert isinstance(got, Fetched)


@pytest.mark.parametrize(
    "target",
    [
        "https://elsewhere.example.org/x",
        "http://127.0.0.1:1/x",
        "//elsewhere.example.org/x",
        "file:///etc/passwd",
        "https://127.0.0.1/x",
        "",
        "/old",
    ],
)
def test_a_redirect_elsewhere_is_not_followed(folder, target):
    with StaticSite(folder) as site:
        site.faults["old"] = (reply(b"", "302 Found", f"Location: {target}\r\n"),)
        with pytest.raises(ProtocolError):
            web(site.url).get(f"{site.url}/old", None, None, LIMIT)


def test_an_oversized_answer_is_refused(folder):
    with StaticSite(folder) as site:
        site.faults["x"] = (reply(bytes(LIMIT + 1)),)
        with pytest.raises(ProtocolError) as caught:
            web(site.url).get(f"{site.url}/x", None, None, LIMIT)
        assert caught.value.too_long


@pytest.mark.parametrize(
    "steps",
    [(reply(b"half", length=400),), (RESET,), (), (b"HTTP/1.0 200 OK\r\n",)],
)
def test_an_answer_cut_short_is_tried_again_later(folder, steps):
    with ScriptedServer(always(*steps)) as server, pytest.raises((TransientError, ProtocolError)):
        web(server.url).get(f"{server.url}/x", None, None, LIMIT)


@pytest.mark.parametrize("status", ["403 Forbidden", "400 Bad Request", "206 Partial Content"])
def test_an_odd_status_is_no_file(folder, status):
    server = ScriptedServer(always(reply(b"words", status)))
    with server, pytest.raises(ProtocolError):
        web(server.url).get(f"{server.url}/x", None, None, LIMIT)


def test_304_to_a_plain_question_is_no_answer(folder):
    server = ScriptedServer(always(reply(b"", "304 Not Modified")))
    with server, pytest.raises(ProtocolError):
        web(server.url).get(f"{server.url}/x", None, None, LIMIT)


def test_a_server_that_is_away_is_tried_again_later():
    url = f"http://127.0.0.1:{dead_port()}"
    with pytest.raises(TransientError):
        web(url).get(f"{url}/x", None, None, LIMIT)


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "ftp://example.org/x", "https://u:p@example.org/x", "x", ""]
)
def test_only_https_or_this_machine_is_asked(url):
    with pytest.raises(ConfigError):
        checked_url(url, "it")
    with pytest.raises(ProtocolError):
        web("https://mirror.example.org").get(url, None, None, LIMIT)


def test_a_stranger_cannot_send_us_to_this_machine(folder):
    with StaticSite(folder) as site, pytest.raises(ProtocolError, match="this machine"):
        web("https://mirror.example.org", local=False).get(f"{site.url}/x", None, None, LIMIT)
    assert site.asked == []


def test_validators_that_are_odd_are_not_sent_back(folder):
    with ScriptedServer(always(reply(b"x", headers="ETag: \xe9\r\n"))) as server:
        got = web(server.url).get(f"{server.url}/x", None, None, LIMIT)
    assert isinstance(got, Fetched)
    assert got.etag is None
