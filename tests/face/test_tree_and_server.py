"""The published tree and the server give the same bytes for the same record."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.evidence import body_of, bundle_with, mined, sign, withdrawal
from support.face_places import SPEAKER, FacePlace, Serving, plain_server
from support.trees import tree_files
from support.workplace import bare, sample

from anchord.core.model import Adoption, Document

OWN = re.compile(
    r"index\.json|index\.html|pages\.json|index/.*|log/.*|README\.txt|(\.well-known/)?pith-mirrors\.json"
)
"""Each publication's own word about itself, and what a server has a dashboard for."""
RESOLVER = re.compile(r"(pith|record)/[^/]+\.json")
COMMANDS = re.compile(r'<code data-copy="Copy the commands">(.*?)</code>', re.DOTALL)


class Both:
    """One store, published and served."""

    def __init__(self, folder: Path) -> None:
        (folder / "work").mkdir()
        self.face = FacePlace(folder / "work")
        place = self.face.place
        adopted = bare(hashlib.sha256(b"adopted").digest())
        place.add(Adoption(record=adopted, ots=mined(adopted.digest, place.chain)))
        place.add(taken_back())
        place.write_headers()
        place.step()
        place.add(sample(10))
        self.tree = folder / "tree"
        self.face.publish(self.tree)
        self.files = tree_files(self.tree)


def taken_back() -> Document:
    """Return a record whose one citation was withdrawn by who had signed it."""
    record = sample(9)
    claim = {"relation": "cites", "cited": {"doi": "10.1000/182"}}
    said = sign(body_of(record, SPEAKER, claim, event_type="citation", target="citation"), SPEAKER)
    undone = withdrawal(record, SPEAKER, said["event_id"], "citation")
    return Document(record=record, raw=bundle_with(record, [said, undone], [SPEAKER]))


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Both:
    return Both(tmp_path_factory.mktemp("both"))


@pytest.fixture(scope="module")
def server(both) -> Iterator[str]:
    with Serving(both.face.place.config) as serving:
        yield serving.url


@pytest.fixture(scope="module")
def mirror(both) -> Iterator[str]:
    with plain_server(both.tree) as url:
        yield url


def fetched(url: str) -> bytes | None:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        error.close()
        return None


def test_every_file_of_the_tree_is_what_the_server_answers(both, server):
    asked = [path for path in both.files if not OWN.fullmatch(path)]
    kinds = {path.rpartition("/")[2] for path in asked if path.startswith(("pith/", "record/"))}
    assert {"index.html", "bundle.json", "state.json", "events.json", "graph.json", "badge.svg",
            "proof.ots"} < kinds  # fmt: skip
    differing = [path for path in asked if fetched(f"{server}/{path}") != both.files[path]]
    assert differing == []


def test_what_is_compared_has_one_of_everything(both):
    documents = [json.loads(data) for path, data in both.files.items() if RESOLVER.fullmatch(path)]
    assert any(one["cited_by_count"] for one in documents)
    words = {word for one in documents for word in one["completeness"].values()}
    assert {"anchored", "submitted", "not anchored", "stored", "attested", "refs"} <= words
    states = [json.loads(both.files[path]) for path in both.files if path.endswith("/state.json")]
    assert any(one["current"]["withdrawn"] for one in states)
    assert any(one["unverified_event_count"] for one in states)


def test_pages_and_documents_are_at_their_short_addresses_too(both, server):
    for path, data in both.files.items():
        folder, _, name = path.rpartition("/")
        if name == "index.html" and folder:
            assert fetched(f"{server}/{folder}") == data
            assert fetched(f"{server}/{folder}/") == data


def test_the_recipe_of_every_page_works_as_printed_with_server_and_tree(both, server, mirror):
    told = 0
    for path, data in both.files.items():
        printed = COMMANDS.search(data.decode()) if path.endswith("/index.html") else None
        if printed is None:
            continue
        told += 1
        commands = html.unescape(printed[1])
        for base in (server, mirror):
            found = shell(commands, base)
            (expected,) = re.findall(r"^# expect: ([0-9a-f]{64})$", commands, re.MULTILINE)
            assert found == expected, (path, commands)
    assert told >= 6


def shell(commands: str, base: str) -> str:
    """Return what commands print in a shell of their own."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/bash", "-eu", "-o", "pipefail"], input=commands, text=True, capture_output=True,
        env={"PATH": path, "BASE": base, "no_proxy": "127.0.0.1"}, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, (commands, done.stderr)
    return done.stdout.strip()


def test_publishing_again_leaves_every_page_as_it_is(both):
    before = {path: (both.tree / path).stat() for path in both.files}
    both.face.publish(both.tree)
    for path, stat in before.items():
        after = (both.tree / path).stat()
        assert (after.st_ino, after.st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns), path
