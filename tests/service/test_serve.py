"""`anchord serve`: files of a published tree as they are, and nothing that lies elsewhere."""

from __future__ import annotations

import contextlib
import email.utils
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.workplace import Workplace, sample

from anchord.app.config import load
from anchord.app.web.application import HEADERS
from anchord.app.web.health import Readiness

SECRET = b"nobody may read this"


class Served:
    """A running `anchord serve` over a workplace's published tree."""

    def __init__(self, place: Workplace, tree: Path) -> None:
        self.place, self.tree = place, tree
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.notices.bind(str(place.folder / "notify"))
        self.notices.settimeout(30)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "anchord", "-c", str(place.config), "serve", "--bind",
             "127.0.0.1:0", "--tree", str(tree)],
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "NOTIFY_SOCKET": str(place.folder / "notify"),
                 "ANCHORD__WEB__METRICS": "true", "ANCHORD__WEB__RECORDS": "false"},
        )  # fmt: skip
        assert self.process.stderr is not None
        found = re.search(r"serves http://127\.0\.0\.1:([0-9]+)", self.process.stderr.readline())
        assert found is not None
        self.port = int(found[1])

    def ask(
        self, path: str, method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request with the path as it is."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(link):
            link.putrequest(method, path, skip_accept_encoding=True)
            for name, value in headers.items():
                link.putheader(name.replace("_", "-"), value)
            link.endheaders()
            answer = link.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.notices.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = Workplace(tmp_path_factory.mktemp("place"))
    place.anchor(sample(1))
    tree = place.folder / "public"
    assert place.run("mirror", "publish", str(tree)).exit_code == 0
    (place.folder / "secret").write_bytes(SECRET)
    (tree / "away").symlink_to(place.folder / "secret")
    (tree / "out").symlink_to(place.folder)
    (tree / ".hidden").write_bytes(SECRET)
    os.mkfifo(tree / "pipe")
    running = Served(place, tree)
    yield running
    running.close()


def test_every_file_of_a_tree_comes_as_it_is(served: Served) -> None:
    files = [one for one in served.tree.rglob("*") if one.is_file() and not one.is_symlink()]
    public = [one for one in files if not one.name.startswith(".")]
    assert len(public) > 5
    for path in public:
        status, headers, body = served.ask("/" + path.relative_to(served.tree).as_posix())
        assert (status, body) == (200, path.read_bytes())
        assert headers["content-length"] == str(len(body))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/README.txt", "text/plain; charset=utf-8"),
        ("/index.json", "application/json"),
        ("/pith-mirrors.json", "application/json"),
        ("/log/checkpoint", "text/plain; charset=utf-8"),
    ],
)
def test_types_do_not_depend_on_the_machine(served: Served, path: str, kind: str) -> None:
    status, headers, _ = served.ask(path)
    assert (status, headers["content-type"]) == (200, kind)


def test_a_folder_with_a_page_leads_to_it_whatever_the_host_is_called(served: Served) -> None:
    (page,) = served.tree.glob("pith/*/index.html")
    name = page.parent.name
    status, headers, body = served.ask(f"/pith/{name}")
    assert (status, headers["location"], body) == (307, f"./{name}/", b"")
    assert served.ask(f"/pith/{name}/")[::2] == (200, page.read_bytes())


def test_what_has_not_changed_is_not_sent_again(served: Served) -> None:
    tag = served.ask("/index.json")[1]["etag"]
    assert served.ask("/index.json", If_None_Match=tag)[::2] == (304, b"")
    assert served.ask("/index.json", If_None_Match='"another"')[0] == 200


def test_what_was_published_anew_is_sent_whatever_its_date_says(served: Served) -> None:
    """Same length, same date: as when a tree is published twice in a moment."""
    path, other = served.tree / "README.txt", served.tree / "README.txt.new"
    before, old = served.ask("/README.txt")[1], path.stat()
    data = path.read_bytes()
    date = email.utils.formatdate(old.st_mtime + 60, usegmt=True)
    assert served.ask("/README.txt", If_Modified_Since=date)[::2] == (200, data)
    try:
        other.write_bytes(data[::-1])
        os.utime(other, ns=(old.st_atime_ns, old.st_mtime_ns))
        other.replace(path)
        status, headers, body = served.ask("/README.txt", If_None_Match=before["etag"])
        assert (status, body) == (200, data[::-1])
        assert headers["etag"] != before["etag"]
        path.write_bytes(data)
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
        assert served.ask("/README.txt", If_None_Match=headers["etag"])[::2] == (200, data)
    finally:
        path.write_bytes(data)


def test_a_head_is_the_answer_without_its_body(served: Served) -> None:
    _, whole, body = served.ask("/index.json")
    status, headers, nothing = served.ask("/index.json", "HEAD")
    assert (status, nothing, headers["content-length"]) == (200, b"", str(len(body)))
    assert headers["etag"] == whole["etag"]


def test_a_part_of_a_file_is_the_whole_file(served: Served) -> None:
    whole = served.ask("/index.json")[2]
    status, headers, body = served.ask("/index.json", Range="bytes=0-9,20-29")
    assert (status, body, headers["accept-ranges"]) == (200, whole, "none")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", ["/index.json", "/healthz", "/readyz", "/metrics"])
def test_nothing_can_be_written(served: Served, method: str, path: str) -> None:
    assert served.ask(path, method)[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        "/../secret", "/..%2fsecret", "/%2e%2e/secret", "/log/../../secret", "//secret",
        "/..\\secret", "/%2e%2e%5csecret", "/away", "/out/secret", "/out/anchord.toml", "/.hidden",
        "/%2ehidden", "/pipe", "/log", "/log/", "/pith", "/pith/", "/secret%00",
        "/%00", "/" + "a" * 3000, "/anchord.db", "/keys/keyring.toml", "/index.json/",
        "/index.json/x", "/%ff%fe",
    ],
)  # fmt: skip
def test_nothing_but_files_of_the_tree_is_found(served: Served, path: str) -> None:
    status, headers, body = served.ask(path)
    assert (status, SECRET in body) == (404, False)
    assert headers["content-type"] == "application/problem+json", "no listing, no page"


def test_a_page_is_at_the_address_of_its_folder_too(served: Served) -> None:
    pages = list(served.tree.rglob("index.html"))
    assert len(pages) == 2
    for page in pages:
        folder = page.parent.relative_to(served.tree).as_posix().removeprefix(".")
        at = f"/{folder}/".replace("//", "/")
        for path in (at, at + "index.html"):
            status, headers, body = served.ask(path)
            assert (status, body) == (200, page.read_bytes())
            assert "script-src 'self'" in headers["content-security-policy"]
            assert "script-src 'unsafe" not in headers["content-security-policy"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["..", ".", "%2e%2e", "", "out", "secret", "log", "%2f"]),
                min_size=1, max_size=8))  # fmt: skip
def test_no_way_leads_out(served: Served, parts: list[str]) -> None:
    assert SECRET not in served.ask("/" + "/".join(parts))[2]


@pytest.mark.parametrize("path", ["/index.json", "/nothing", "/healthz", "/readyz", "/metrics"])
def test_every_answer_is_guarded_and_says_nothing_of_what_runs_here(
    served: Served, path: str
) -> None:
    _, headers, _ = served.ask(path)
    assert {name: headers[name] for name in HEADERS} == HEADERS
    assert "server" not in headers


def test_health_and_metrics_are_never_kept_by_anybody(served: Served) -> None:
    assert served.ask("/healthz")[::2] == (200, b"ok\n")
    status, headers, body = served.ask("/readyz")
    assert (status, json.loads(body)) == (200, {"ready": True, "missing": []})
    assert headers["cache-control"] == "no-store"
    status, headers, body = served.ask("/metrics")
    assert (status, headers["content-type"].split(";")[0]) == (200, "text/plain")
    assert b"anchord_" in body


def test_the_service_manager_is_told_and_a_signal_ends_it(served: Served) -> None:
    told = []
    while "READY=1" not in told:
        told.append(served.notices.recv(4096).decode())
    assert any(one.startswith("STATUS=serves http://127.0.0.1:") for one in told)
    served.process.send_signal(signal.SIGTERM)
    while told[-1] != "STOPPING=1":
        told.append(served.notices.recv(4096).decode())
    assert served.process.wait(30) == 0


def test_ready_means_that_store_and_tree_can_be_read(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    moments = iter(range(0, 1000, 10))
    tree = tmp_path / "public"
    health = Readiness(load(str(place.config)), tree, lambda: next(moments))
    assert health.missing() == ["tree"]
    tree.mkdir()
    assert health.missing() == []
    (tmp_path / "anchord.db").write_bytes(b"no store")
    assert health.missing() == ["store"]


def test_without_public_keys_no_record_can_be_shown(served: Served) -> None:
    loaded, moments = load(str(served.place.config)), iter(range(0, 100, 10))
    health = Readiness(loaded, None, lambda: next(moments))
    assert health.missing() == []
    keyring = served.place.folder / "keys" / "keyring.toml"
    whole = keyring.read_bytes()
    keyring.write_bytes(b"[")
    try:
        assert health.missing() == ["keys"]
    finally:
        keyring.write_bytes(whole)
    assert health.missing() == []


def test_a_probe_that_comes_soon_is_given_the_last_answer(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    tree = tmp_path / "public"
    health = Readiness(load(str(place.config)), tree, lambda: 0.0)
    assert health.missing() == ["tree"]
    tree.mkdir()
    assert health.missing() == ["tree"]


def test_a_tree_with_secrets_in_it_is_refused(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    refused = place.run("serve", "--tree", str(tmp_path))
    assert refused.exit_code == 2
    assert "lies in it" in refused.stderr


def test_an_address_that_is_taken_or_no_address_is_told(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = place.run("serve", "--bind", f"127.0.0.1:{port}")
    assert refused.exit_code == 2
    assert "web.bind" in refused.stderr
    assert "web.bind" in place.run("serve", "--bind", "example.org:80").stderr


def test_config_check_looks_at_the_tree(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    text = place.config.read_text("utf-8")
    said = {}
    for tree in ("public", "."):
        place.config.write_text(f'{text}\n[web]\ntree = "{tree}"\n', "utf-8")
        ran = place.run("config", "check", "--json")
        checks = {one["name"]: one["state"] for one in json.loads(ran.stdout)["checks"]}
        said[tree] = (ran.exit_code, checks["web.tree"])
    assert said == {"public": (0, "warn"), ".": (2, "fail")}
