"""Pages in a published tree: beside the evidence, led to by a first page, gone without a trace."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import urljoin

import pytest
from support.trees import index_lines, publish_tree, tree_files
from support.workplace import Workplace, bare, sample

from anchord.app.face.front import MOST_NAMED
from anchord.core.canonical import pith_suffix
from anchord.core.tree_index import safe_path

LINK = re.compile(r'(?:href|src)="([^"]*)"')


@pytest.fixture
def place(tmp_path):
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path / "work")


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "tree"


def test_the_index_lists_pages_as_it_lists_evidence(place, tree):
    place.anchor(sample(1), bare(hashlib.sha256(b"a file").digest()))
    place.add(sample(2))
    publish_tree(place, tree, pages=True)
    files = tree_files(tree)
    assert set(index_lines(tree)) == {
        path for path in files if not re.match("index(/|.json)", path)
    }
    assert all(map(safe_path, files))
    assert "index.html" in index_lines(tree)


def test_pages_change_nothing_of_the_evidence(place, tree, tmp_path):
    place.anchor(*[sample(number) for number in range(5)])
    publish_tree(place, tree, pages=True)
    publish_tree(place, tmp_path / "plain")
    whole = tree_files(tree)
    for path, data in tree_files(tmp_path / "plain").items():
        if not path.startswith("index"):
            assert whole[path] == data, path


def test_every_link_of_the_tree_leads_to_a_file_of_it(place, tree):
    place.anchor(sample(1), bare(hashlib.sha256(b"a file").digest()))
    publish_tree(place, tree, pages=True)
    files = tree_files(tree)
    told = 0
    for path, data in files.items():
        for link in LINK.findall(data.decode()) if path.endswith(".html") else ():
            if re.match("[a-z]+:|#", link):
                continue
            told += 1
            found = urljoin(f"file:///{path}", link).removeprefix("file:///").partition("#")[0]
            assert {found, found.strip("/") + "/index.html", found + "index.html"} & set(files), (
                path, link,
            )  # fmt: skip
    assert told > 10


def test_the_first_page_names_the_newest_records_and_counts_all(place, tree):
    with place.app() as app:
        for number in range(MOST_NAMED + 10):
            app.store.add([sample(number)], place.clock.advance(1))
    publish_tree(place, tree, pages=True)
    page = (tree / "index.html").read_text("utf-8")
    assert f"{MOST_NAMED + 10} records" in page
    named = re.findall(r'href="pith/([A-Z2-7]{26})/index.html"', page)
    expected = [pith_suffix(sample(number).digest) for number in range(10, MOST_NAMED + 10)]
    assert named == expected[::-1]


def test_a_tree_of_evidence_becomes_one_with_pages_and_nothing_else_is_touched(place, tree):
    place.anchor(sample(1))
    publish_tree(place, tree)
    before = {path: (tree / path).stat() for path in tree_files(tree)}
    done = publish_tree(place, tree, pages=True)
    assert (done.updated, done.strays) == (0, 0)
    for path, stat in before.items():
        if not path.startswith("index"):
            assert (tree / path).stat().st_mtime_ns == stat.st_mtime_ns, path


def test_publishing_again_writes_nothing(place, tree):
    place.anchor(sample(1))
    place.add(sample(2))
    publish_tree(place, tree, pages=True)
    place.clock.advance(100_000)
    done = publish_tree(place, tree, pages=True)
    assert (done.new, done.updated, done.index) == (0, 0, "same")


def test_what_a_record_gains_shows_on_its_page(place, tree):
    place.add(sample(1))
    publish_tree(place, tree, pages=True)
    page = tree / "pith" / pith_suffix(sample(1).digest) / "index.html"
    assert "not anchored" in page.read_text("utf-8")
    place.step()
    place.mine()
    place.step(1000)
    publish_tree(place, tree, pages=True)
    assert "not anchored" not in page.read_text("utf-8")
    index_lines(tree)


def test_assets_of_an_earlier_anchord_go_and_files_of_others_stay(place, tree):
    place.anchor(sample(1))
    publish_tree(place, tree, pages=True)
    old, other = tree / "assets/pith-01234567.css", tree / "assets/logo.png"
    for path in (old, other):
        path.write_text("x")
    done = publish_tree(place, tree, pages=True)
    assert not old.exists()
    assert (done.strays, list(done.stray_files)) == (1, ["assets/logo.png"])
    assert len(list((tree / "assets").iterdir())) > 2


def test_without_pages_those_of_before_are_named_and_keep_their_style(place, tree):
    place.anchor(sample(1))
    publish_tree(place, tree, pages=True)
    done = publish_tree(place, tree)
    assert any(path.endswith("/index.html") for path in done.stray_files)
    assert any(path.startswith("assets/") for path in done.stray_files)
    assert list((tree / "assets").glob("pith-*.css"))


def test_a_first_page_of_somebody_else_stays(place, tree):
    tree.mkdir()
    (tree / "index.html").write_text("<title>Ours</title>")
    place.anchor(sample(1))
    publish_tree(place, tree, pages=True, force=True)
    assert (tree / "index.html").read_text() == "<title>Ours</title>"
    assert "index.html" not in index_lines(tree)
    (tree / "index.html").unlink()
    publish_tree(place, tree, pages=True)
    assert "index.html" in index_lines(tree)
