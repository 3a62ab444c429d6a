"""Items go through a process of their own: it may die, hang or lie, and it tells no keys."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.http_server import RESET, SILENCE, ScriptedServer, always, dead_port, drip, reply
from support.item_service import ItemService, json_reply
from support.tls import self_signed

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.item import ArchiveOrg, Limits
from anchord.adapters.archives.item_child import Children
from anchord.adapters.archives.item_messages import AskAccount, Opening
from anchord.core.item import Fetched, Headroom, ItemSeen, Sent
from anchord.core.item_answer import Username
from anchord.core.storage import Refused
from anchord.errors import ConfigError

ACCESS, SECRET = "ACCESSkey/1234567", "SECRETkey+7654321"
KEYS = Keys(ACCESS, SECRET)
ID, NAME, BODY = "anchord-2026-11-30", "bundles-000000001-000000002.zip", b"bundle" * 1_000
METADATA = {"mediatype": "data", "title": "Tëst title", "collection": "test_collection"}
MD5 = hashlib.md5(BODY, usedforsecurity=False)


@pytest.fixture(scope="module")
def service_and_archive() -> Iterator[tuple[ItemService, ArchiveOrg]]:
    with ItemService() as service:
        archive = _archive(service.url)
        yield service, archive
        archive.close()


@pytest.fixture
def service(service_and_archive: tuple[ItemService, ArchiveOrg]) -> ItemService:
    service, _ = service_and_archive
    for memory in (service.said, service.items, service.files, service.routes, service.asked):
        memory.clear()
    return service


@pytest.fixture
def archive(service_and_archive: tuple[ItemService, ArchiveOrg]) -> ArchiveOrg:
    return service_and_archive[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.write_bytes(BODY)
    return path


def _archive(url: str, **options: Any) -> ArchiveOrg:
    contact = "+https://example.org/anchord; anchord@example.org"
    return ArchiveOrg(KEYS, contact=contact, api_url=url, s3_url=url, **options)


def _upload(archive: ArchiveOrg, path: Path, name: str = NAME) -> Sent | Refused:
    return archive.upload(ID, name, path, MD5.digest(), METADATA)


def _code(answer: object) -> str:
    assert isinstance(answer, Refused), answer
    return answer.code


# ---------------------------------------------------------------------- the good way


def test_a_file_is_sent_once_seen_fetched_and_never_sent_again(
    service: ItemService, archive: ArchiveOrg, path: Path
) -> None:
    assert _upload(archive, path) == Sent()
    seen = archive.describe(ID)
    assert isinstance(seen, ItemSeen)
    assert (seen.exists, seen.dark, seen.owned, seen.pending_tasks) == (True, False, True, False)
    file = seen.files[NAME]
    assert (file.size, file.md5) == (len(BODY), MD5.hexdigest())
    assert file.sha1 == hashlib.sha1(BODY, usedforsecurity=False).hexdigest()
    assert archive.fetch(ID, NAME) == Fetched(size=len(BODY), sha256=hashlib.sha256(BODY).digest())
    assert _upload(archive, path) == Sent(skipped=True)
    assert service.routes == ["metadata", "put", "metadata", "download", "metadata"]


def test_an_upload_says_what_the_service_must_know(
    service: ItemService, archive: ArchiveOrg, path: Path
) -> None:
    _upload(archive, path)
    put = next(asked for asked in service.asked if asked.method == "PUT")
    assert put.path == f"/{ID}/{NAME}"
    assert put.body == BODY
    sent = put.headers
    assert sent["host"] == "s3.us.archive.org"
    assert sent["authorization"] == f"LOW {ACCESS}:{SECRET}"
    assert sent["content-md5"] == MD5.hexdigest()
    assert sent["x-archive-queue-derive"] == "0"
    assert sent["x-archive-auto-make-bucket"] == "1"
    assert sent["x-archive-meta00-title"] == "uri(T%C3%ABst%20title)"
    assert sent["x-archive-meta00-external-identifier"] == archive.mark
    assert archive.mark == f"urn:anchord:{KEYS.fingerprint}"
    assert "example.org/anchord" in sent["user-agent"]
    assert "transfer-encoding" not in sent


def test_an_empty_file_can_be_sent(
    service: ItemService, archive: ArchiveOrg, tmp_path: Path
) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    md5 = hashlib.md5(usedforsecurity=False).digest()
    assert archive.upload(ID, path.name, path, md5, METADATA) == Sent()
    assert service.files[ID, path.name] == b""


def test_headroom_and_account_are_read_and_repeat_no_key(
    service: ItemService, archive: ArchiveOrg
) -> None:
    headroom = archive.headroom(ID)
    assert headroom == Headroom(
        over_limit=False, account_left=70, item_left=23, global_left=782, message="none for ***"
    )
    assert archive.account() == Username("someone@example.org")
    limit, auth = service.asked
    assert "bucket=" + ID in limit.path
    assert auth.headers["authorization"] == f"LOW {ACCESS}:{SECRET}"


def test_tasks_are_asked_for_only_when_some_are_pending(
    service: ItemService, archive: ArchiveOrg
) -> None:
    named = {"identifier": ID}
    service.items[ID] = {"metadata": named, "files": [], "pending_tasks": True}
    seen = archive.describe(ID)
    assert isinstance(seen, ItemSeen)
    assert (seen.pending_tasks, seen.failed_tasks) == (True, False)
    summary = {"queued": 0, "running": 0, "error": 1, "paused": 0}
    service.say("tasks", json_reply({"success": True, "value": {"summary": summary}}))
    seen = archive.describe(ID)
    assert isinstance(seen, ItemSeen)
    assert (seen.pending_tasks, seen.failed_tasks) == (True, True)
    service.say("tasks", reply(b"<html>", "500 Oops"))
    seen = archive.describe(ID)
    assert isinstance(seen, ItemSeen)
    assert (seen.pending_tasks, seen.failed_tasks) == (True, False)
    assert service.routes == ["metadata", "tasks"] * 3


def test_an_item_nobody_has_yet_may_be_one_whose_first_task_failed(
    service: ItemService, archive: ArchiveOrg
) -> None:
    for state, told in (("queued", (True, False)), ("error", (True, True)), ("", (False, False))):
        summary = {name: int(name == state) for name in ("queued", "running", "error", "paused")}
        service.say("tasks", json_reply({"success": True, "value": {"summary": summary}}))
        seen = archive.describe(ID)
        assert isinstance(seen, ItemSeen)
        assert not seen.exists
        assert (seen.pending_tasks, seen.failed_tasks) == told


# ---------------------------------------------------------------------- what must not be sent


def _listed(md5: str | None, **fields: Any) -> dict[str, Any]:
    file = {"name": NAME, "size": str(len(BODY)), "md5": md5}
    metadata = {"external-identifier": f"urn:anchord:{KEYS.fingerprint}"}
    return {"metadata": {"identifier": ID, **metadata}, "files": [file], **fields}


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (_listed("0" * 32), "name-taken"),
        (_listed("0" * 32, pending_tasks=True), "name-taken"),
        (_listed(MD5.hexdigest(), pending_tasks=True), "tasks-pending"),
        (_listed(None), "tasks-pending"),
        (_listed(MD5.hexdigest(), metadata={"identifier": ID}), "foreign"),
        ({"is_dark": True}, "dark"),
        ({"error": "x"}, "unknown-answer"),
    ],
)
def test_nothing_is_sent_where_it_could_overwrite_or_double(
    service: ItemService, archive: ArchiveOrg, path: Path, item: dict[str, Any], code: str
) -> None:
    service.items[ID] = item
    assert _code(_upload(archive, path)) == code
    assert service.routes == ["metadata"]


def test_a_spoiled_file_is_not_sent(
    service: ItemService, archive: ArchiveOrg, path: Path, tmp_path: Path
) -> None:
    path.write_bytes(BODY[:-1] + b"?")
    assert _code(_upload(archive, path)) == "spool-damaged"
    assert _code(_upload(archive, tmp_path / "absent")) == "spool-damaged"
    assert "put" not in service.routes


@pytest.mark.parametrize("identifier", ["", "abcd", "_abcde", "a/../b", "x" * 101, "abcde\n", "é"])
def test_a_bad_identifier_is_refused_without_asking(
    service: ItemService, archive: ArchiveOrg, path: Path, identifier: str
) -> None:
    answers = [
        archive.headroom(identifier),
        archive.describe(identifier),
        archive.upload(identifier, NAME, path, MD5.digest(), METADATA),
        archive.fetch(identifier, NAME),
    ]
    assert [_code(answer) for answer in answers] == ["InvalidBucketName"] * 4
    assert service.routes == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\nb", "ü.zip", "-x"])
def test_a_bad_file_name_is_refused_without_asking(
    service: ItemService, archive: ArchiveOrg, path: Path, name: str
) -> None:
    assert _code(_upload(archive, path, name)) == "bad-name"
    assert _code(archive.fetch(ID, name)) == "bad-name"
    assert service.routes == []


@pytest.mark.parametrize(
    "metadata", [{"Bad Name": "x"}, {"title": ""}, {"title": " \n"}, {"title": "x" * 9_000}]
)
def test_metadata_that_cannot_be_sent_is_a_fault_of_the_configuration(
    archive: ArchiveOrg, path: Path, metadata: dict[str, str]
) -> None:
    with pytest.raises(ConfigError, match="metadata"):
        archive.upload(ID, NAME, path, MD5.digest(), metadata)


@pytest.mark.parametrize(
    ("api", "s3"),
    [
        ("https://archive.org.example.org", "https://s3.us.archive.org"),
        ("http://archive.org", "https://s3.us.archive.org"),
        ("https://archive.org", "http://127.0.0.1:1"),
        ("http://127.0.0.1:1", "https://s3.us.archive.org"),
        ("https://example.org", "https://example.org"),
    ],
)
def test_keys_are_sent_to_the_archive_or_to_loopback_only(api: str, s3: str) -> None:
    with pytest.raises(ConfigError):
        ArchiveOrg(KEYS, contact="x", api_url=api, s3_url=s3)


# ---------------------------------------------------------------------- a bad network


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((RESET,), "no-answer"),
        ((b"HTTP/1.1 200 OK\r\n",), "no-answer"),
        ((b"not http at all\r\n\r\n",), "no-answer"),
        ((reply(b"", length=50),), "no-answer"),
        ((reply(b"<html>fine</html>"),), "unknown-answer"),
        ((reply(b"", "500 Oops"),), "http-500"),
        ((reply(b"", "302 Found", "Location: /elsewhere\r\n"),), "unknown-answer"),
        ((reply(b"", "307 Moved", "Location: http://example.org/\r\n"),), "elsewhere"),
        ((reply(b"", "307 Moved", "Location: https://evilarchive.org/\r\n"),), "elsewhere"),
    ],
)
def test_an_upload_without_a_plain_yes_is_refused(
    service: ItemService, archive: ArchiveOrg, path: Path, steps: Any, code: str
) -> None:
    service.say("put", *steps)
    assert _code(_upload(archive, path)) == code


def test_an_upload_follows_a_redirect_within_the_archive(
    service: ItemService, archive: ArchiveOrg, path: Path
) -> None:
    service.say(
        "put", reply(b"", "307 x", f"Location: https://s3-lb0.us.archive.org/{ID}/{NAME}\r\n")
    )
    assert _upload(archive, path) == Sent()
    assert service.files[ID, NAME] == BODY


def test_redirects_without_end_are_followed_a_few_times_only(
    service: ItemService, archive: ArchiveOrg
) -> None:
    again = reply(b"", "302 Found", f"Location: https://archive.org/metadata/{ID}\r\n")
    for _ in range(40):
        service.say("metadata", again)
    assert _code(archive.describe(ID)) == "no-answer"
    assert len(service.routes) <= 6


def test_a_big_error_with_a_dtd_is_neither_parsed_nor_read_to_its_end(
    service: ItemService, archive: ArchiveOrg, path: Path
) -> None:
    lol = b'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    service.say("put", reply(lol + b"<Error><Code>&b;</Code></Error>" * 100_000, "503 x"))
    assert _code(_upload(archive, path)) == "http-503"


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ((RESET,), "no-answer"),
        ((reply(b"{}", length=3),), "no-answer"),
        ((reply(b"{", "200 OK"),), "unknown-answer"),
        ((reply(b"", "429 Slow", "Retry-After: 77\r\n"),), "http-429"),
        ((reply(b"x", "302 Found", "Location: https://example.org/\r\n"),), "elsewhere"),
    ],
)
def test_an_unread_item_is_neither_there_nor_absent(
    service: ItemService, archive: ArchiveOrg, steps: Any, code: str
) -> None:
    service.say("metadata", *steps)
    answer = archive.describe(ID)
    assert _code(answer) == code
    assert isinstance(answer, Refused)
    assert answer.retry_after_s == (77 if code == "http-429" else None)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (reply(b"", "404 Not Found"), "not-served"),
        (reply(b"", "403 Forbidden"), "not-served"),
        (reply(BODY, length=len(BODY) + 1), "no-answer"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + BODY, "no-answer"),
        (reply(BODY, headers="Content-Encoding: gzip\r\n"), "unknown-answer"),
        (reply(b"", "503 x"), "http-503"),
        (reply(b"", "302 x", "Location: https://example.org/f\r\n"), "elsewhere"),
        (reply(b"", "302 x", "Location: http://127.0.0.1:1/f\r\n"), "elsewhere"),
    ],
)
def test_only_a_whole_download_has_a_hash(
    service: ItemService, archive: ArchiveOrg, answer: bytes, code: str
) -> None:
    service.files[ID, NAME] = BODY
    service.say("download", answer)
    assert _code(archive.fetch(ID, NAME)) == code


def test_a_download_follows_to_the_archives_nodes(
    service: ItemService, archive: ArchiveOrg
) -> None:
    service.files[ID, NAME] = BODY
    there = f"https://ia800308.us.archive.org/download/{ID}/{NAME}"
    service.say("download", reply(b"", "302 Found", f"Location: {there}\r\n"))
    assert archive.fetch(ID, NAME) == Fetched(size=len(BODY), sha256=hashlib.sha256(BODY).digest())


def test_nobody_listening_is_told_from_no_answer() -> None:
    archive = _archive(f"http://127.0.0.1:{dead_port()}")
    with contextlib.closing(archive):
        assert _code(archive.describe(ID)) == "connection-refused"


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context, _ = self_signed(tmp_path)
    with ScriptedServer(always(json_reply({})), tls=context) as server:
        archive = _archive(server.url)
        with contextlib.closing(archive):
            assert _code(archive.describe(ID)) == "certificate"


def test_the_archive_itself_is_asked_by_https_and_a_proxy_sees_no_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedServer(always(reply(b"", "403 Forbidden"))) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("https_proxy", raising=False)
        archive = ArchiveOrg(KEYS, contact="x")
        with contextlib.closing(archive):
            assert _code(archive.describe(ID)) == "no-answer"
            assert _code(archive.headroom(ID)) == "no-answer"
            assert _code(archive.account()) == "no-answer"
    asked = [(asked.method, asked.path) for asked in proxy.asked]
    assert asked == [
        ("CONNECT", "archive.org:443"),
        ("CONNECT", "s3.us.archive.org:443"),
        ("CONNECT", "s3.us.archive.org:443"),
    ]
    told = str([(asked.headers, asked.body) for asked in proxy.asked])
    assert ACCESS not in told
    assert SECRET not in told


# ---------------------------------------------------------------------- the process


@pytest.mark.parametrize("steps", [(SILENCE,), tuple(drip(json_reply({}), 0.1))])
def test_a_process_that_hangs_is_ended_and_replaced(path: Path, steps: Any) -> None:
    with ItemService() as service:
        archive = _archive(service.url)
        with contextlib.closing(archive):
            assert isinstance(archive.describe(ID), ItemSeen)
            before, patient = archive.processes(), archive._limits
            service.say("metadata", *steps)
            archive._limits = Limits(ask_s=1.0)
            assert _code(archive.describe(ID)) == "no-answer"
            assert archive.processes() == []
            archive._limits = patient
            assert _upload(archive, path) == Sent()
            assert archive.processes() != before


def test_a_process_that_crashes_writes_no_keys_to_disk(
    service: ItemService, archive: ArchiveOrg
) -> None:
    archive.describe(ID)
    assert archive.processes()
    for pid in archive.processes():
        limits = Path(f"/proc/{pid}/limits").read_text("ascii").splitlines()
        (core,) = [line.split() for line in limits if line.startswith("Max core file size")]
        assert core[4:6] == ["0", "0"]


def test_a_process_that_is_killed_is_replaced(
    service: ItemService, archive: ArchiveOrg, path: Path
) -> None:
    assert _upload(archive, path) == Sent()
    for pid in archive.processes():
        os.kill(pid, signal.SIGKILL)
        # Ended with all of its threads, and left for the archive to find out.
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert isinstance(archive.describe(ID), ItemSeen)


def test_a_process_killed_within_a_call_makes_the_call_a_refusal(
    service: ItemService, archive: ArchiveOrg
) -> None:
    archive.describe(ID)
    before = len(service.asked)
    service.say("metadata", SILENCE)
    answers: list[object] = []
    thread = threading.Thread(target=lambda: answers.append(archive.describe(ID)))
    thread.start()
    _until(lambda: len(service.asked) > before)
    for pid in archive.processes():
        os.kill(pid, signal.SIGKILL)
    thread.join(10)
    assert [_code(answer) for answer in answers] == ["no-answer"]
    assert isinstance(archive.describe(ID), ItemSeen)


@pytest.mark.parametrize("lie", [b"", b"\xff\xff\xff\xff", b"\0\0\0\2\x01\x02", b"\0\0\0\1"])
def test_a_process_that_lies_makes_the_call_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, lie: bytes
) -> None:
    liar = tmp_path / "liar"
    liar.write_text(f"#!{sys.executable}\nimport sys\nsys.stdout.buffer.write({lie!r})\n")
    liar.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(liar))
    archive = _archive("http://127.0.0.1:1")
    with contextlib.closing(archive):
        assert _code(archive.describe(ID)) == "no-answer"
        assert archive.processes() == []


def test_threads_do_not_wait_for_each_other(service: ItemService, archive: ArchiveOrg) -> None:
    service.say("metadata", SILENCE)
    thread = threading.Thread(target=archive.describe, args=(ID,))
    thread.start()
    _until(lambda: len(service.asked) == 1)
    assert isinstance(archive.headroom(ID), Headroom)
    for pid in archive.processes():
        os.kill(pid, signal.SIGKILL)
    thread.join(10)
    assert not thread.is_alive()


def test_closing_ends_every_process_and_the_calls_in_flight() -> None:
    with ItemService() as service:
        archive = _archive(service.url)
        service.say("metadata", SILENCE)
        answers: list[object] = []
        thread = threading.Thread(target=lambda: answers.append(archive.describe(ID)))
        thread.start()
        _until(lambda: len(service.asked) == 1)
        archive.headroom(ID)
        pids = archive.processes()
        assert len(pids) == 2
        archive.close()
        archive.close()
        thread.join(10)
        assert [_code(answer) for answer in answers] == ["no-answer"]
        assert {_state(pid) for pid in pids} == {""}
        assert _code(archive.describe(ID)) == "no-answer"


def test_an_archive_nobody_holds_any_more_leaves_no_process() -> None:
    with ItemService() as service:
        archive = _archive(service.url)
        archive.describe(ID)
        (pid,) = archive.processes()
        del archive
        gc.collect()
        assert _state(pid) == ""


_PARENT = """
import sys
from pathlib import Path
from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.item import ArchiveOrg
url, path, access, secret = sys.stdin.read().split()
archive = ArchiveOrg(Keys(access, secret), contact="x", api_url=url, s3_url=url)
archive.headroom("anchord-test")
print(archive.processes()[0], flush=True)
print(archive.describe("anchord-test"), flush=True)
"""


@pytest.mark.parametrize("within_a_call", [False, True])
def test_a_parent_killed_takes_its_process_along(within_a_call: bool) -> None:
    with ItemService() as service:
        if within_a_call:
            service.say("metadata", SILENCE)
        script = _PARENT if within_a_call else _PARENT + "import time; time.sleep(60)\n"
        with _python(script, service.url, "x") as parent:
            assert parent.stdout is not None
            pid = int(parent.stdout.readline())
            if within_a_call:
                _until(lambda: len(service.asked) == 2)
            else:
                parent.stdout.readline()
            assert _state(pid) != ""
            parent.kill()
            parent.wait()
            _until(lambda: _state(pid) in {"", "Z"})


# ---------------------------------------------------------------------- secrets


_TALKATIVE = """
import logging, sys, traceback
from pathlib import Path
logging.basicConfig(level=logging.DEBUG)
from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.item import ArchiveOrg
url, path, access, secret = sys.stdin.read().split()
keys = Keys(access, secret)
archive = ArchiveOrg(keys, contact="x", api_url=url, s3_url=url)
print(keys, repr(archive), vars(archive), archive.headroom("anchord-test"), archive.account())
path = Path(path)
for _ in range(7):
    print(archive.upload("anchord-test", path.name, path, bytes(16), {"title": "x"}))
    print(archive.describe("anchord-test"))
    print(archive.fetch("anchord-test", path.name))
for pid in archive.processes():
    for name in ("cmdline", "environ"):
        sys.stdout.write(Path(f"/proc/{pid}/{name}").read_bytes().decode("latin-1"))
try:
    archive.upload("anchord-test", "n", path, bytes(16), {"A": "x"})
except Exception:
    traceback.print_exc()
print("over")
"""


def test_no_key_is_in_anything_anybody_can_see(tmp_path: Path) -> None:
    """Also when the service repeats them, in errors of every kind, with all logging on."""
    path = tmp_path / "f.zip"
    path.write_bytes(b"x")
    quoted = ACCESS.replace("/", "%2F")
    xml = f"<Error><Code>X</Code><Message>{ACCESS} {quoted}</Message><Resource>{SECRET}</Resource>"
    told = [
        reply(xml.encode() + b"</Error>", "500 x"),
        reply(f"{ACCESS}:{SECRET}".encode(), "403 x"),
        json_reply({"error": f"{ACCESS} {SECRET}"}),
        reply(b"", "302 x", f"Location: https://example.org/{ACCESS}/{SECRET}\r\n"),
        RESET,
        f"HTTP/1.1 {ACCESS} {SECRET}\r\n\r\n".encode(),
    ]
    script = _TALKATIVE.replace("bytes(16)", repr(hashlib.md5(b"x").digest()))  # noqa: S324
    with ItemService() as service:
        for step in told:
            service.say("metadata", json_reply({}))
            for route in ("put", "metadata", "download"):
                service.say(route, step)
        environ = {**os.environ, "IA_ACCESS_KEY_ID": ACCESS, "MY_OWN_NOTE": f"is {SECRET}"}
        environ["CREDENTIALS_DIRECTORY"] = "/run/credentials/anchord"
        with _python(script, service.url, str(path), env=environ) as parent:
            out, err = parent.communicate(timeout=60)
    assert out.endswith("over\n"), err
    assert "ConfigError" in err
    for secret in (ACCESS, SECRET, quoted, "IA_ACCESS", "MY_OWN_NOTE", "CREDENTIALS_DIR"):
        assert secret not in out
        assert secret not in err


def test_a_stray_configuration_of_the_library_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = "[s3]\naccess = stray\nsecret = stray\n[general]\nhost = example.org\nsecure = false\n"
    for place in (".config/internetarchive/ia.ini", ".config/ia.ini", ".ia", "named.ini"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(stray + "[cookies]\nlogged-in-user = stray\n")
    (tmp_path / ".netrc").write_text("default login stray password stray\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("IA_CONFIG_FILE", str(tmp_path / "named.ini"))
    monkeypatch.setenv("IA_ACCESS_KEY_ID", "stray")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with ItemService() as service:
        archive = _archive(service.url)
        with contextlib.closing(archive):
            assert isinstance(archive.describe(ID), ItemSeen)
            assert isinstance(archive.headroom(ID), Headroom)
            assert isinstance(archive.account(), Username)
            assert _code(archive.fetch(ID, NAME)) == "not-served"
    assert "authorization" not in service.asked[-1].headers
    assert "stray" not in json.dumps([asked.headers for asked in service.asked]) + str(
        [asked.path for asked in service.asked]
    )


def test_the_library_is_loaded_in_the_child_only() -> None:
    script = (
        "import sys, socket; connect = socket.socket.connect\n"
        "from anchord.adapters.archives.item import ArchiveOrg\n"
        "from anchord.adapters.archives.credentials import Keys\n"
        "url, path, access, secret = sys.stdin.read().split()\n"
        "a = ArchiveOrg(Keys(access, secret), contact='x', api_url=url, s3_url=url)\n"
        "a.describe('anchord-test')\n"
        "print('internetarchive' in sys.modules, 'requests' in sys.modules,"
        " socket.socket.connect is connect)\n"
    )
    with ItemService() as service, _python(script, service.url, "x") as parent:
        assert parent.communicate(timeout=60) == ("False False True\n", "")


def test_no_question_is_longer_than_a_pipe_takes() -> None:
    children = Children(Opening(ACCESS, SECRET, "x", None, None), os.environ)
    children.close()
    assert repr(Opening(ACCESS, SECRET, "x", None, None)) == "Opening()"
    with pytest.raises(Exception, match="closed"):
        children.ask(AskAccount(), 1)


@contextlib.contextmanager
def _python(
    script: str, url: str, path: str, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    ) as parent:
        assert parent.stdin is not None
        parent.stdin.write(f"{url} {path} {ACCESS} {SECRET}")
        parent.stdin.close()
        parent.stdin = None
        try:
            yield parent
        finally:
            parent.kill()


def _state(pid: int) -> str:
    """Return a process's state letter; "" when there is none of that number."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _until(holds: Callable[[], bool], within_s: float = 10) -> None:
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)
