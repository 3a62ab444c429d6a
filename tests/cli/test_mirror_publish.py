"""`anchord mirror publish`: a folder brought up to date, and what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.json_documents import shapes
from support.trees import index_lines, tree_files
from support.workplace import Workplace, run, sample

from anchord.core.mirror_manifest import read_manifest

JSON = (Path(__file__).resolve().parents[2] / "docs/json.md").read_text("utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a workplace that all tests here publish from."""
    place = Workplace(tmp_path_factory.mktemp("work"))
    place.anchor(sample(1), sample(2))
    place.add(sample(3))
    return place


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "tree"


def listed(name):
    """Return the keys that docs/json.md lists for a command, with their types."""
    section = re.search(rf"^## anchord {name}\n(.*?)(?=^## |\Z)", JSON, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| `(\S+)` \| ([^|]+) \| [^|]+ \|$", section[1], re.MULTILINE)
    return {key: set(kinds.split(" or ")) for key, kinds in rows}


def agree(documents, name):
    printed, wanted = shapes(documents), listed(name)
    assert sorted(printed) == sorted(wanted)
    assert all(kinds <= wanted[key] for key, kinds in printed.items())


def test_what_scripts_get_is_what_is_listed(place, tree):
    first = place.json("mirror", "publish", str(tree))
    assert (first["records"], first["anchored"], first["index"]) == (3, 2, "new")
    (tree / "record").mkdir()
    (tree / "record" / "stray").write_text("nobody's")
    second = place.json("mirror", "publish", str(tree))
    assert (second["index"], second["stray_files"]) == ("same", ["record/stray"])
    agree([first, second], "mirror publish")
    dry = place.json("mirror", "pull", str(tree), "--dry-run")
    next(tree.glob("pith/*/bundle.json")).write_text("{")
    agree([dry, place.json("mirror", "pull", str(tree), code=1)], "mirror pull")


def test_people_are_told_what_was_done(place, tree):
    result = place.run("mirror", "publish", str(tree))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "3 records (2 anchored)" in result.stderr
    assert place.run("mirror", "publish", str(tree), "--quiet").stderr == ""


def test_a_base_url_makes_addresses_whole(place, tree):
    words = ("--base-url", "https://mirror.example.org/graph/", "--status", "primary")
    place.json("mirror", "publish", str(tree), *words, "--name", "ours")
    (mirror,) = read_manifest((tree / "pith-mirrors.json").read_bytes()).mirrors
    assert (mirror.name, mirror.status, mirror.mirror_type) == ("ours", "primary", "https")
    assert mirror.base_url == "https://mirror.example.org/graph"
    assert mirror.index == "https://mirror.example.org/graph/index.json"


@pytest.mark.parametrize(
    "url", ["http://mirror.example.org", "mirror.example.org", "https://a@b.example.org", ""]
)
def test_a_base_url_that_nobody_may_ask_is_refused(place, tree, url):
    assert place.run("mirror", "publish", str(tree), "--base-url", url).exit_code == 2
    assert not tree.exists()


def test_anchored_only_is_for_what_a_block_holds(place, tree):
    assert place.json("mirror", "publish", str(tree), "--anchored-only")["records"] == 2


def test_a_folder_of_something_else_needs_force(place, tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "CNAME").write_text("mirror.example.org")
    result = place.run("mirror", "publish", str(tmp_path / "site"))
    assert (result.exit_code, "--force" in result.stderr) == (2, True)
    assert place.run("mirror", "publish", str(tmp_path / "site"), "--force").exit_code == 0
    assert (tmp_path / "site" / "CNAME").read_text() == "mirror.example.org"
    index_lines(tmp_path / "site")


def test_the_workplace_itself_is_never_published(place):
    result = place.run("mirror", "publish", str(place.folder), "--force")
    assert result.exit_code == 2
    assert not (place.folder / "index.json").exists()


def test_a_tree_tells_strangers_how_to_check_it(place, tree):
    place.run("mirror", "publish", str(tree))
    text = (tree / "README.txt").read_text("utf-8")
    for name in ("bundle.json", "state.json", "proof.ots", "index.json", "pith-mirrors.json"):
        assert name in text
    manifest = json.loads((tree / "pith-mirrors.json").read_bytes())
    assert manifest["merge_version"] == "anchord-merge-v1"
    assert "README.txt" in index_lines(tree)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert not [path for path in tree_files(tree) if path.endswith(".pem")]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\x1b[2J", "x" * 101])
def test_a_name_that_breaks_other_peoples_tables_is_refused(place, tree, name):
    result = place.run("mirror", "publish", str(tree), "--name", name)
    assert (result.exit_code, "--name: expected" in result.stderr) == (2, True)


def test_pages_are_written_unless_they_are_left_out(place, tree, tmp_path):
    place.json("mirror", "publish", str(tree))
    assert sum(path.endswith("/index.html") for path in tree_files(tree)) == 3
    assert "index.html" in index_lines(tree)
    place.json("mirror", "publish", str(tmp_path / "plain"), "--no-pages")
    plain = tree_files(tmp_path / "plain")
    assert {path.rpartition(".")[2] for path in plain if path.startswith("pith/")} == {
        "json",
        "ots",
    }
    assert not [path for path in plain if path.endswith((".html", ".css", ".svg"))]


def test_pages_are_called_and_placed_as_the_servers_are(place, tree):
    config = place.folder / "called.toml"
    web = '\n[web]\nname = "The registry"\nbase_url = "https://registry.example.org/"\n'
    config.write_text(place.config.read_text("utf-8") + web, "utf-8")
    command = ("-c", str(config), "mirror", "publish", str(tree), "--quiet")
    assert run(*command).exit_code == 0
    page = (tree / "index.html").read_text("utf-8")
    assert "<title>The registry: " in page
    assert '<link rel="canonical" href="https://registry.example.org/">' in page
    (mirror,) = read_manifest((tree / "pith-mirrors.json").read_bytes()).mirrors
    assert mirror.base_url == "https://registry.example.org"
    assert run(*command, "--base-url", "https://mirror.example.org").exit_code == 0
    assert 'href="https://mirror.example.org/"' in (tree / "index.html").read_text("utf-8")


def test_a_published_tree_is_pulled_with_its_pages_as_without(place, tree, tmp_path):
    place.json("mirror", "publish", str(tree))
    (tmp_path / "other").mkdir()
    pulled = Workplace(tmp_path / "other").json("mirror", "pull", str(tree), "--only-this")
    (mirror,) = pulled["mirrors"]
    assert (pulled["new"], mirror["fetched"], mirror["refused"]) == (3, 3, 0)
