"""What did not change is not made again, and the tree is the one a new publication would make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.evidence import body_of, bundle_with, sign
from support.face_places import SPEAKER, sample_number
from support.trees import index_lines, publish_tree, tree_files
from support.workplace import Workplace, sample

from anchord.app.tree_pages import TreePages
from anchord.core.canonical import pith_suffix
from anchord.core.key_document import to_document
from anchord.core.model import Document

MOMENTS = ("index", "pith-mirrors.json", ".well-known/pith-mirrors.json")


@pytest.fixture
def place(tmp_path):
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path / "work")


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "tree"


@pytest.fixture
def made(monkeypatch) -> list[str]:
    """The records whose pages were made, by the suffixes of their numbers."""
    found: list[str] = []
    real = TreePages.record

    def record(self, view):
        found.append(pith_suffix(view.bundle.digest))
        return real(self, view)

    monkeypatch.setattr(TreePages, "record", record)
    return found


def names(*numbers: int) -> set[str]:
    return {pith_suffix(sample(number).digest) for number in numbers}


def page_of(tree: Path, number: int) -> Path:
    return tree / "pith" / pith_suffix(sample(number).digest) / "index.html"


def holds(place: Workplace, tree: Path, fresh: Path) -> None:
    """Hold a tree that grew against one that is made at once."""
    publish_tree(place, fresh, pages=True)
    grown, once = tree_files(tree), tree_files(fresh)
    assert set(grown) == set(once)
    for path, data in grown.items():
        if not path.startswith(MOMENTS):
            assert data == once[path], path
    index_lines(tree)


def citing(number: int, cited: int) -> Document:
    """Return a record with a signed citation of another one."""
    record = sample(number)
    said = {"relation": "cites", "cited": {"pith_number": sample_number(sample(cited))}}
    event = sign(body_of(record, SPEAKER, said, event_type="citation", target="citation"), SPEAKER)
    return Document(record=record, raw=bundle_with(record, [event], [SPEAKER]))


def trust(place: Workplace) -> None:
    file = place.folder / "speaker.json"
    file.write_text(json.dumps(to_document(SPEAKER.public())), "utf-8")
    assert place.run("key", "trust", str(file), "--target", "citation").exit_code == 0


def test_only_what_changed_is_made(place, tree, tmp_path, made):
    place.anchor(sample(1), sample(2))
    publish_tree(place, tree, pages=True)
    assert set(made) == names(1, 2)
    made.clear()
    publish_tree(place, tree, pages=True)
    assert made == []
    place.add(sample(3))
    publish_tree(place, tree, pages=True)
    assert set(made) == names(3)
    made.clear()
    place.step()
    publish_tree(place, tree, pages=True)
    assert set(made) == names(3)
    holds(place, tree, tmp_path / "fresh")


def test_who_becomes_cited_has_another_page(place, tree, tmp_path, made):
    trust(place)
    place.anchor(sample(1), sample(2))
    publish_tree(place, tree, pages=True)
    before = page_of(tree, 1).read_bytes()
    made.clear()
    place.add(citing(7, 1))
    publish_tree(place, tree, pages=True)
    assert set(made) == names(1, 7)
    assert page_of(tree, 1).read_bytes() != before
    made.clear()
    assert publish_tree(place, tree, pages=True).updated == 0
    assert made == []
    holds(place, tree, tmp_path / "fresh")


def test_a_key_that_is_trusted_now_shows_on_every_page(place, tree, tmp_path, made):
    place.anchor(sample(1))
    place.add(citing(7, 1))
    publish_tree(place, tree, pages=True)
    made.clear()
    trust(place)
    publish_tree(place, tree, pages=True)
    assert set(made) == names(1, 7)
    holds(place, tree, tmp_path / "fresh")


def test_another_program_makes_all_pages_anew(place, tree, made, monkeypatch):
    place.anchor(sample(1))
    publish_tree(place, tree, pages=True)
    made.clear()
    monkeypatch.setattr("anchord.app.tree_pages._sources", lambda: "another")
    publish_tree(place, tree, pages=True)
    assert set(made) == names(1)


@pytest.mark.parametrize("name", ["index.html", "state.json", "bundle.json", "graph.json"])
@pytest.mark.parametrize("what", ["changed", "gone", "longer"])
def test_what_somebody_did_to_a_tree_is_never_signed(place, tree, tmp_path, name, what):
    place.anchor(sample(1), sample(2))
    publish_tree(place, tree, pages=True)
    whole = tree_files(tree)
    file = page_of(tree, 1).with_name(name)
    data = file.read_bytes()
    if what == "gone":
        file.unlink()
    else:
        file.write_bytes(data[:-2] + b"#\n" if what == "changed" else data + b" ")
    publish_tree(place, tree, pages=True)
    assert tree_files(tree) == whole
    index_lines(tree)


def test_a_memory_that_was_forged_is_not_believed(place, tree, made):
    place.anchor(sample(1))
    publish_tree(place, tree, pages=True)
    whole, pages = tree_files(tree), tree / "pages.json"
    page_of(tree, 1).write_bytes(b"forged")
    for shard in (tree / "index").iterdir():  # no signature, so nothing of it is believed
        shard.write_bytes(shard.read_bytes().replace(b'"size":', b'"size":1'))
    pages.write_bytes(pages.read_bytes().replace(b"{}", b'{"x":"y"}'))
    made.clear()
    publish_tree(place, tree, pages=True)
    assert set(made) == names(1)
    assert tree_files(tree) == whole


UNREADABLE = [
    b"",
    b"[]",
    b"{",
    b'{"made_by": 1}',
    b"[" * 200_000,
    b'{"x": ' * 200_000,
    b'{"made_by": "\xff"}',
]


@pytest.mark.parametrize("data", UNREADABLE, ids=lambda data: repr(data[:16]))
def test_a_memory_that_cannot_be_read_is_as_none(place, tree, monkeypatch, data):
    """An older program, or another one with our key, signed for it."""
    place.anchor(sample(1))
    with monkeypatch.context() as patched:
        patched.setattr("anchord.engine.publishing_memory.Memory.file", lambda _: data)
        publish_tree(place, tree, pages=True)
    assert (tree / "pages.json").read_bytes() == data
    publish_tree(place, tree, pages=True)
    assert json.loads((tree / "pages.json").read_bytes())["made_by"]
    index_lines(tree)


def test_a_publication_that_died_is_made_good(place, tree, tmp_path, monkeypatch):
    class _Died(BaseException):
        pass

    place.anchor(sample(1), sample(2))
    publish_tree(place, tree, pages=True)
    place.add(sample(3))
    place.step()
    place.mine()
    place.step(1000)

    def die(*_: object) -> None:
        raise _Died

    with monkeypatch.context() as patched:
        patched.setattr("anchord.engine.publishing._commit_index", die)
        with pytest.raises(_Died):
            publish_tree(place, tree, pages=True)
    publish_tree(place, tree, pages=True)
    holds(place, tree, tmp_path / "fresh")
