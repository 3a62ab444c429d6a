"""The Wayback Machine is asked as its documents say, and its keys stay where they belong."""

from __future__ import annotations

import hashlib
import json
import urllib.parse
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.http_server import (
    RESET,
    SILENCE,
    Asked,
    ScriptedServer,
    always,
    dead_port,
    reply,
)

from anchord import __version__
from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.wayback import INDEX_TIMEOUT_S, JOBS_PER_READ, WAYBACK_URL, Wayback
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    IndexPage,
    Memento,
    NotThere,
    Reported,
    Running,
    SystemStatus,
)
from anchord.errors import ConfigError
from anchord.ports.archive import CaptureArchive

ACCESS, SECRET = "accessKEY0123456", "secretKEY9876543"
KEYS = Keys(ACCESS, SECRET)
CONTACT = "https://example.org/archiving; archive@example.org"
URL = "https://example.org/abs/2601.00001v2?part=1&view=a%20b"
JOB = "spn2-" + "a" * 40
STAMP, DATE = "20260827142259", "Thu, 27 Aug 2026 14:22:59 GMT"
JSON = "Content-Type: application/json\r\n"
HTML = "Content-Type: text/html\r\n"
MEMENTO = (
    f"Memento-Datetime: {DATE}\r\nX-Archive-Src: spn2-a.warc.gz\r\n"
    f'Link: <{URL}>; rel="original"\r\n{HTML}'
)
TIMEOUT_S = 0.4


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def _wayback(url: str, **options: int) -> CaptureArchive:
    return Wayback(
        url, KEYS, contact=CONTACT, timeout_s=TIMEOUT_S, index_timeout_s=TIMEOUT_S, **options
    )


def _form(asked: Asked) -> dict[str, str]:
    return dict(urllib.parse.parse_qsl(asked.body.decode(), strict_parsing=True))


# ---------------------------------------------------------------------- requests


@pytest.mark.parametrize(
    ("within_s", "plain", "fields"),
    [
        (None, False, {"skip_first_archive": "1", "js_behavior_timeout": "0"}),
        (
            86_400,
            False,
            {
                "skip_first_archive": "1",
                "js_behavior_timeout": "0",
                "if_not_archived_within": "86400",
            },
        ),
        (None, True, {"skip_first_archive": "1", "force_get": "1"}),
    ],
)
def test_a_submit_is_a_form_with_flags_only_where_they_are_on(
    within_s: int | None, plain: bool, fields: dict[str, str]
) -> None:
    body = json.dumps({"url": URL, "job_id": JOB}).encode()
    with ScriptedServer(always(reply(body, headers=JSON))) as server:
        answer = _wayback(server.url).submit(URL, within_s=within_s, plain=plain)
    assert answer == Accepted(job_id=JOB)
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/save")
    assert _form(asked) == {"url": URL} | fields
    assert asked.headers["accept"] == "application/json"
    assert asked.headers["authorization"] == f"LOW {ACCESS}:{SECRET}"
    assert asked.headers["content-type"] == "application/x-www-form-urlencoded"
    assert asked.headers["user-agent"] == f"anchord/{__version__} (+{CONTACT})"


def test_jobs_are_read_in_one_call() -> None:
    jobs = [f"spn2-{n}" for n in range(JOBS_PER_READ + 1)]
    body = json.dumps([{"job_id": job, "status": "pending"} for job in reversed(jobs)]).encode()
    with ScriptedServer(always(reply(body, headers=JSON))) as server:
        archive = _wayback(server.url)
        assert archive.statuses([]) == {}
        found = archive.statuses(jobs)
    assert found == {job: Running(job_id=job) for job in jobs[:JOBS_PER_READ]}
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("POST", "/save/status")
    assert _form(asked) == {"job_ids": ",".join(jobs[:JOBS_PER_READ])}
    assert asked.headers["authorization"] == f"LOW {ACCESS}:{SECRET}"


def test_the_account_is_never_read_from_a_cache() -> None:
    body = b'{"available": 3, "processing": 0}'
    with ScriptedServer(always(reply(body, headers=JSON))) as server:
        archive = _wayback(server.url)
        answers = [archive.account(), archive.account()]
    assert answers == [AccountStatus(available=3, processing=0)] * 2
    paths = {asked.path for asked in server.asked}
    assert len(paths) == 2
    assert all(path.startswith("/save/status/user?_t=") for path in paths)
    assert all(asked.headers["authorization"] for asked in server.asked)


def test_the_system_is_read() -> None:
    with ScriptedServer(always(reply(b'{"status":"ok"}', headers=JSON))) as server:
        assert _wayback(server.url).system() == SystemStatus(ok=True, message="")
    assert [asked.path for asked in server.asked] == ["/save/status/system"]


def test_the_index_is_asked_for_plain_rows_without_the_key() -> None:
    with ScriptedServer(always(reply(b"[]", headers=JSON))) as server:
        archive = _wayback(server.url)
        assert archive.index(URL, first="2026", last=STAMP) == IndexPage(rows=())
        key = "org%2Cexample%29%2F+19980109140106%21"
        archive.index("https://example.org/", first="1", last="2", prefix=True, resume=key)
    page, following = server.asked
    path, _, query = page.path.partition("?")
    assert (page.method, path) == ("GET", "/cdx/search/cdx")
    assert dict(urllib.parse.parse_qsl(query, strict_parsing=True)) == {
        "url": URL,
        "output": "json",
        "fl": "urlkey,timestamp,original,mimetype,statuscode,digest,length",
        "from": "2026",
        "to": STAMP,
        "limit": "5000",
        "gzip": "false",
        "showResumeKey": "true",
    }
    assert following.path.endswith(f"&matchType=prefix&resumeKey={key}")
    assert all("authorization" not in asked.headers for asked in server.asked)


def test_the_index_may_take_a_minute() -> None:
    assert INDEX_TIMEOUT_S >= 60


def test_a_memento_is_fetched_raw_without_the_key() -> None:
    body = b"the page of 2601.00001v2"
    with ScriptedServer(always(reply(body, headers=MEMENTO))) as server:
        memento = _wayback(server.url).replay(STAMP, URL + "#top", "2601.00001v2")
    assert memento == Memento(
        timestamp=STAMP,
        http_status=200,
        sha256=hashlib.sha256(body).digest(),
        size=len(body),
        x_archive_src="spn2-a.warc.gz",
        contains=True,
    )
    (asked,) = server.asked
    assert (asked.method, asked.path) == ("GET", f"/web/{STAMP}id_/{URL}")
    assert "authorization" not in asked.headers
    assert asked.headers["accept-encoding"] == "identity"


def test_a_redirect_is_an_answer_and_not_followed() -> None:
    headers = "Location: /elsewhere\r\nX-Archive-Redirect-Reason: found capture at 2017\r\n"
    with ScriptedServer(always(reply(b"", "302 Found", headers))) as server:
        assert isinstance(_wayback(server.url).replay(STAMP, URL, None), NotThere)
    assert server.connections == 1


# ---------------------------------------------------------------------- faults

CALLS = ["submit", "statuses", "account", "system", "index", "replay"]


def _call(archive: CaptureArchive, name: str) -> object:
    if name == "submit":
        return archive.submit(URL, within_s=60, plain=False)
    if name == "statuses":
        return archive.statuses([JOB])
    if name == "index":
        return archive.index(URL, first="1", last="2")
    if name == "replay":
        return archive.replay(STAMP, URL, None)
    return getattr(archive, name)()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((RESET,), "no-answer"),
        ((SILENCE,), "no-answer"),
        ((b"",), "no-answer"),
        ((reply(b"cut", length=100),), "no-answer"),
        ((b"HTTP/1.0 200 OK\r\n", SILENCE), "no-answer"),
        ((b"SSH-2.0-OpenSSH_9.6\r\n",), {"no-answer", "unknown-answer"}),
        ((reply(b"x", "429 Too Many Requests", f"{HTML}Retry-After: 7\r\n"),), "http-429"),
    ],
)
def test_every_fault_is_a_refusal(
    name: str, steps: tuple[bytes, ...], code: str | set[str]
) -> None:
    with ScriptedServer(always(*steps)) as server:
        answer = _call(_wayback(server.url), name)
    assert isinstance(answer, Refused)
    assert answer.code in ({code} if isinstance(code, str) else code)
    assert answer.retry_after_s == (7 if code == "http-429" else None)
    assert server.connections == 1, "a call tries once"


@pytest.mark.parametrize("name", CALLS)
def test_a_refused_connection_is_told_from_other_silence(name: str) -> None:
    answer = _call(_wayback(f"http://127.0.0.1:{dead_port()}"), name)
    assert isinstance(answer, Refused)
    assert answer.code == "connection-refused"


def test_the_proxys_refused_connection_is_not_the_archives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{dead_port()}")
    answer = _wayback(WAYBACK_URL).account()
    assert isinstance(answer, Refused)
    assert answer.code == "no-answer"


def test_a_memento_that_may_be_cut_short_is_none() -> None:
    unframed = f"HTTP/1.1 200 OK\r\n{MEMENTO}Connection: close\r\n\r\nthe page of 2601".encode()
    cut = f"HTTP/1.1 200 OK\r\n{MEMENTO}Content-Length: 99\r\n\r\nthe page".encode()
    for answer in (unframed, cut):
        with ScriptedServer(always(answer)) as server:
            found = _wayback(server.url).replay(STAMP, URL, None)
        assert isinstance(found, Refused)
        assert found.code == "no-answer"


@pytest.mark.parametrize("status", ["200 OK", "404 Not Found"])
def test_a_memento_over_the_limit_is_not_half_a_memento(status: str) -> None:
    with ScriptedServer(always(reply(b"x" * 1_001, status, MEMENTO))) as server:
        too_large = _wayback(server.url, max_replay_bytes=1_000).replay(STAMP, URL, None)
        fits = _wayback(server.url, max_replay_bytes=1_001).replay(STAMP, URL, None)
    assert isinstance(too_large, Refused)
    assert too_large.code == "too-large"
    assert isinstance(fits, Memento)
    assert fits.size == 1_001


@pytest.mark.parametrize(
    "url",
    [
        "http://web.example.org",
        "https://web.example.org",
        "https://a:b@web.archive.org",
        "x",
        "https://web.archive.org.example.org",
        "https://web.archive.org:444",
        "http://web.archive.org",
    ],
)
def test_the_keys_go_to_the_archive_and_to_loopback_only(url: str) -> None:
    with pytest.raises(ConfigError):
        _wayback(url)


@pytest.mark.parametrize("contact", ["", "a\r\nX-Evil: 1", "(me)", "Ärger@example.org", " a"])
def test_a_contact_is_what_a_header_carries(contact: str) -> None:
    with pytest.raises(ConfigError):
        Wayback(WAYBACK_URL, KEYS, contact=contact)


# ---------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    "keys",
    [Keys(ACCESS, SECRET + "\r\nX: 1"), Keys(ACCESS + ":", SECRET), Keys("", SECRET),
     Keys(ACCESS, "geh€im-geheim")],
)  # fmt: skip
def test_keys_that_no_header_carries_are_refused_without_being_told(keys: Keys) -> None:
    with pytest.raises(ConfigError) as caught:
        Wayback(WAYBACK_URL, keys, contact=CONTACT)
    assert not any(key and key in str(caught.value) for key in (keys.access, keys.secret))


def _echoes(asked: Asked) -> Iterator[bytes]:
    """Answer with all that was sent, as pages for debugging do."""
    told = f"{asked.path} {asked.headers}"
    yield reply(told.encode(), "500 Internal Server Error", HTML)


def _echoes_json(asked: Asked) -> Iterator[bytes]:
    told = asked.headers.get("authorization", "none")
    message = {"status": told, "status_ext": None, "message": told, "job_id": JOB, "x": told}
    success = {**message, "status": "success", "timestamp": STAMP, "original_url": f"/{SECRET}"}
    value = success if asked.path.endswith("/status") else message
    yield reply(json.dumps(value).encode(), headers=JSON)


@pytest.mark.parametrize("script", [_echoes, _echoes_json])
@pytest.mark.parametrize("name", CALLS)
def test_keys_that_are_echoed_are_not_kept(name: str, script: object) -> None:
    with ScriptedServer(script) as server:  # type: ignore[arg-type]
        archive = _wayback(server.url)
        answer = _call(archive, name)
    held = repr(answer)
    if isinstance(answer, dict) and isinstance(answer.get(JOB), Reported):
        held += answer[JOB].raw.decode() + answer[JOB].original_url
    for text in (held, repr(archive), str(archive), repr(vars(archive)), repr(KEYS)):
        assert SECRET not in text
        assert ACCESS not in text


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    raw=st.binary(max_size=200)
    | st.binary(max_size=100).map(lambda body: reply(body, headers=JSON))
)
def test_any_bytes_on_the_wire_give_a_value(raw: bytes) -> None:
    with ScriptedServer(always(raw)) as server:
        archive = _wayback(server.url)
        for name in ("submit", "statuses", "index", "replay"):
            answer = _call(archive, name)
            assert not isinstance(answer, Accepted | Memento)
            assert SECRET not in repr(answer)


@given(
    url=st.text(st.characters(exclude_categories=()), max_size=40).map(
        lambda text: f"https://example.org/{text}"
    )
)
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_address_gives_a_value(url: str) -> None:
    with ScriptedServer(always(reply(b"", "404 Not Found", HTML))) as server:
        archive = _wayback(server.url)
        assert isinstance(archive.replay(STAMP, url, None), NotThere | Refused)
        assert isinstance(archive.submit(url, within_s=None, plain=True), Refused)
        assert isinstance(archive.index(url, first="1", last="2"), Refused)
