"""Audits of trees and folders on disk: keys, headers, samples, processes, links, increments."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import asdict
from support.audited_tree import ARCHIVE, AuditedTree
from support.tampering import Members, fields_of, read, write

from anchord.adapters.trees.folder import FolderTree
from anchord.core.audit import AuditOptions, AuditReport
from anchord.core.keyring import REGISTRY_KEY, make_keyring
from anchord.engine.audit.tree import audit_tree
from anchord.engine.header_view import HeaderView
from anchord.errors import ConfigError, NetworkError, RefusedError


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> AuditedTree:
    return AuditedTree(tmp_path_factory.mktemp("tree"))


@pytest.fixture
def folder(tree: AuditedTree, tmp_path: Path) -> Path:
    root = tmp_path / "public"
    for name, data in tree.files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(data)
    return root


def audit(tree: AuditedTree, folder: Path, **options: int) -> AuditReport:
    view = HeaderView([tree.chain], "bitcoin-regtest", 6)
    outcome, facts = audit_tree(
        FolderTree(folder), make_keyring([REGISTRY_KEY]), (tree.key, ARCHIVE.public()), view,
        AuditOptions(**{"now": 1_785_000_000, **options}), lambda _what, _done, _total: None,
    )  # fmt: skip
    return outcome.report(**asdict(facts))


def test_a_folder_says_what_the_same_files_in_memory_say(tree: AuditedTree, folder: Path) -> None:
    here, there = audit(tree, folder), tree.audit(tree.files, now=1_785_000_000)
    assert here.coverage == there.coverage
    assert here.completeness == there.completeness
    assert here.result == "sound"
    assert here.coverage.records == 3
    assert here.coverage.files >= len(tree.files) - 1
    assert here.coverage.inclusions > 3


def test_processes_find_the_same_as_one(tree: AuditedTree, folder: Path) -> None:
    bundle = next(folder.glob("pith/*/bundle.json"))
    bundle.write_bytes(bundle.read_bytes().replace(b'"confirmations":', b'"confirmation5":'))
    one, two = audit(tree, folder), audit(tree, folder, jobs=2)
    assert one == two
    assert one.result == "broken"


def test_a_record_is_anchored_only_where_a_header_says_so(tree: AuditedTree) -> None:
    blind = tree.audit(tree.files, headers=False)
    assert (blind.result, blind.completeness.anchored) == ("not proved", {"submitted": 3})
    assert blind.coverage.headers_missing > 0
    assert blind.chain is None
    tree.chain.fail_with = NetworkError("gone")
    try:
        away = tree.audit(tree.files)
    finally:
        tree.chain.fail_with = None
    assert (away.result, away.completeness.anchored) == ("not proved", {"submitted": 3})


def test_a_block_that_is_another_one_breaks_what_rests_on_it(tree: AuditedTree) -> None:
    kept = list(tree.chain.headers)
    try:
        tree.chain.reorg(12)
        report = tree.audit(tree.files)
    finally:
        tree.chain.headers[:] = kept
    assert report.result == "broken"
    assert report.counts["header-differs"] > 0
    assert report.completeness.sound < 3


def test_a_sample_is_the_same_for_one_seed_and_says_what_it_left_out(tree: AuditedTree) -> None:
    one, again = tree.audit(tree.files, sample=1, seed=3), tree.audit(tree.files, sample=1, seed=3)
    assert one == again
    assert (one.coverage.records, one.coverage.records_counted) == (1, 3)
    assert one.result == "sound"
    assert "1 of 3 records" in (one.sampled or "")


def test_since_a_checkpoint_only_what_is_new_is_verified(tree: AuditedTree) -> None:
    kept = tree.older["log/checkpoint"]
    report = tree.audit(tree.files, since=kept)
    whole = tree.audit(tree.files)
    assert report.result == "sound"
    assert (report.coverage.records, report.coverage.records_counted) == (1, 3)
    assert report.coverage.signatures < whole.coverage.signatures
    assert report.checkpoint == whole.checkpoint
    assert report.sampled is not None


def test_the_newest_checkpoint_of_an_audit_is_the_start_of_the_next(tree: AuditedTree) -> None:
    note = tree.audit(tree.files).checkpoint
    assert note is not None
    report = tree.audit(tree.files, since=note.encode())
    assert (report.result, report.coverage.records) == ("sound", 0)


def test_a_checkpoint_nobody_signed_begins_nothing(tree: AuditedTree) -> None:
    note = tree.files["log/checkpoint"].replace(b"\n\n", b"\nmore\n\n")
    report = tree.audit(tree.files, since=note)
    assert report.result == "broken"
    assert report.coverage.records == 3


def test_without_the_signers_key_nothing_is_sound(tree: AuditedTree) -> None:
    for files in (tree.files, tree.folder):
        report = tree.audit(files, given=())
        assert report.result == "not proved"
        assert report.coverage.events == 0
        assert "anchored" not in report.completeness.anchored


def test_an_index_that_is_gone_is_missed(tree: AuditedTree) -> None:
    bare = {name: data for name, data in tree.files.items() if name != "index.json"}
    assert tree.audit(bare).counts["index-missing"] == 1
    without = {name: data for name, data in bare.items() if not name.startswith("index/")}
    assert tree.audit(without).result == "broken"


def test_links_that_lead_out_and_files_nobody_may_read_are_findings(
    tree: AuditedTree, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text("{}", "utf-8")
    (folder / "pith" / "out.json").symlink_to(secret)
    (folder / "pith" / "nowhere.json").symlink_to(tmp_path / "absent")
    (folder / "pith" / "loop").symlink_to(folder)
    os.mkfifo(folder / "pith" / "pipe.json")
    report = audit(tree, folder)
    named = {one.subject for one in report.findings if one.code == "file-unreadable"}
    assert named == {f"pith/{name}" for name in ("out.json", "nowhere.json", "loop", "pipe.json")}
    assert report.result == "broken"


def test_a_tree_reads_nothing_outside_of_itself(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret", "utf-8")
    (folder / "inside").symlink_to(tmp_path)
    tree = FolderTree(folder)
    for path in ("../secret", "inside/secret", "/etc/passwd", "pith/../../secret"):
        with pytest.raises(RefusedError, match="leads out"):
            tree.read(path, 100)
    (folder / "again").symlink_to(folder / "index.json")
    assert tree.read("again", 1 << 20) == (folder / "index.json").read_bytes()
    assert tree.read("absent/file", 100) is None
    with pytest.raises(RefusedError, match="more than 5 bytes"):
        tree.read("index.json", 5)
    with pytest.raises(ConfigError, match="no folder"):
        FolderTree(folder / "absent")


def test_paths_come_in_the_order_of_their_text(tmp_path: Path) -> None:
    for name in ("a/b", "a-b", "a.b/c", "a/b-c/d", "b", "a0", "a/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    found = list(FolderTree(tmp_path).walk())
    assert found == sorted(found)
    assert len(found) == 7


def test_a_folder_of_bundles_is_audited_by_itself(tree: AuditedTree) -> None:
    report = tree.audit(tree.folder)
    assert (report.kind, report.result, report.checkpoint) == ("bundles", "sound", None)
    assert report.coverage.records == 2
    assert report.completeness.stored == {"stored": 2}


def test_an_item_alone_is_audited_by_its_bundles(tree: AuditedTree) -> None:
    files = {name: data for name, data in tree.folder.items() if len(name) < 60}
    report = tree.audit(files)
    assert (report.result, report.coverage.records) == ("sound", 2)
    assert report.completeness.anchored == {"anchored": 2}


def test_a_bundle_that_is_not_what_was_packed_is_told_by_the_event(tree: AuditedTree) -> None:
    files = dict(tree.folder)
    name = next(name for name in files if len(name) == 69)
    document = json.loads(files[name])
    kept = [one for one in document["events"] if one["event_type"] != "item_stored"]
    assert len(kept) < len(document["events"])
    report = tree.audit({**files, name: files[name]})
    assert "item-member-differs" not in report.counts


def test_two_bundles_of_one_record_are_noted(tree: AuditedTree) -> None:
    name = next(name for name in tree.folder if len(name) == 69)
    report = tree.audit({**tree.folder, "again.json": tree.folder[name]})
    assert report.counts["bundle-repeated"] == 1


def test_json_that_is_no_bundle_is_noted_and_nothing_to_audit_is_not_sound(
    tree: AuditedTree,
) -> None:
    report = tree.audit({"some.json": b'{"a":1}'})
    assert (report.result, report.counts) == ("not proved", {"file-unknown": 1})
    assert tree.audit({}).result == "not proved"


ODD = (None, [], {}, 7, "x", [1], [{}], {"a": {}}, -1, True, "2024-08-01T00:00:00Z", [[]])


def test_no_bundle_however_odd_stops_an_audit(tree: AuditedTree) -> None:
    path = tree.bundle_path(tree.records[0])
    document = read(tree.files[path])
    number = 0
    for _, holder, place in list(fields_of(document, ())):
        keep = holder[place]
        odd = ODD[number % len(ODD)]
        holder[place] = (keep[0], odd) if isinstance(holder, Members) else odd
        number += 1
        files = {"one.json": write(document).encode(), path: write(document).encode()}
        assert tree.audit(files).coverage.records_counted in (1, 2)
        holder[place] = keep
    assert number > 150


def test_a_file_whose_name_is_no_text_is_audited_like_others(
    tree: AuditedTree, tmp_path: Path
) -> None:
    name = os.fsdecode(b"caf\xe9.json")
    (tmp_path / name).write_bytes(tree.bundle(tree.records[0]))
    (tmp_path / os.fsdecode(b"\xff.bin")).write_bytes(b"1")
    report = audit(tree, tmp_path)
    assert (report.result, report.coverage.records) == ("sound", 1)
    assert audit(tree, tmp_path, sample=1).result == "sound"
