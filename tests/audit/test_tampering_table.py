"""Whatever is changed in a published tree, an audit finds it and names it.

The suite tries a part of the rows; `make tampering` tries all of them, and every byte.
"""

from __future__ import annotations

import json

import pytest
from support.audited_tree import STRANGER, AuditedTree
from support.tampering import (
    ANEW,
    BARE,
    CHANGE,
    DROP,
    REORDER,
    REPEAT,
    REPLAY,
    SWAP,
    TREE,
    flips,
    item_rows,
    judge,
    not_covered,
    places,
    rows,
    speaks_of,
    table,
)

PARTS = {"record", "event", "bundle", "checkpoint", "tile", "item manifest"}
"""What must be in the table."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> AuditedTree:
    return AuditedTree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> AuditedTree:
    return AuditedTree(tmp_path_factory.mktemp("small"), small=True)


def test_what_nobody_touched_is_sound(tree: AuditedTree) -> None:
    for files in (tree.files, tree.older, tree.folder, tree.reindexed(tree.files)):
        report = tree.audit(files)
        assert (report.result, report.reasons) == ("sound", ())
        # The archive's signer has a log of its own, which is not in this tree.
        assert {one.code for one in report.findings} <= {"log-elsewhere"}


def test_the_table_has_every_part_and_operation(tree: AuditedTree) -> None:
    found = {(row.part, row.operation) for row in (*rows(tree), *item_rows(tree))}
    assert {part for part, _ in found} >= PARTS
    for part in PARTS - {"record", "tile"}:
        assert {operation for one, operation in found if one == part} >= {
            CHANGE, DROP, REPEAT, REPLAY if part != "bundle" else SWAP,
        }  # fmt: skip
    assert {operation for _, operation in found} >= {CHANGE, DROP, REPEAT, REORDER, SWAP, REPLAY}


@pytest.mark.parametrize("start", [0, 20])
def test_every_change_of_a_field_is_found_and_named(tree: AuditedTree, start: int) -> None:
    seen = dict.fromkeys((TREE, ANEW, BARE), 0)
    for one in table(tree, every=47, start=start):
        seen[one.row.where] += 1
        if one.row.where == TREE:
            assert (one.severity, one.named) == ("broken", True), one
        elif not not_covered(one.row):
            assert one.severity or one.result != "sound", one
            assert one.named or one.result != "sound" or one.severity == "warning", one
    assert min(seen.values()) > 10


def test_what_a_stranger_says_in_our_name_is_never_sound(tree: AuditedTree) -> None:
    for row in (*rows(tree), *item_rows(tree)):
        if row.operation == REPLAY:
            for placed in places(row):
                one = judge(tree, placed)
                assert one.result != "sound", one
                assert one.severity == "broken" or placed.where == BARE, one


def test_one_bit_of_any_byte_is_found_and_its_file_is_named(small: AuditedTree) -> None:
    size = sum(map(len, small.files.values()))
    assert size < 40_000
    looked = set()
    for path, place, report in flips(small, step=149):
        assert report.result == "broken", (path, place)
        assert speaks_of(report, path), (path, place, report.findings)
        looked.add(path)
    assert len(looked) > 10


def test_a_file_that_is_cut_longer_gone_or_another_is_found(small: AuditedTree) -> None:
    paths = list(small.files)
    for path, other in zip(paths, [*paths[1:], paths[0]], strict=True):
        raw = small.files[path]
        for data in (raw[:-1], raw[: len(raw) // 2], raw + b"\n", raw + raw, b""):
            report = small.audit({**small.files, path: data})
            assert (report.result, speaks_of(report, path)) == ("broken", True), path
        gone = {name: data for name, data in small.files.items() if name != path}
        report = small.audit(gone)
        assert (report.result, speaks_of(report, path)) == ("broken", True), path
        if raw != small.files[other]:
            swapped = {**small.files, path: small.files[other], other: raw}
            report = small.audit(swapped)
            named = speaks_of(report, path) or speaks_of(report, other)
            assert (report.result, named) == ("broken", True), path


def test_a_file_nobody_signed_for_is_found_among_ours_and_noted_elsewhere(
    small: AuditedTree,
) -> None:
    bundle = next(raw for path, raw in small.files.items() if path.endswith("bundle.json"))
    for path in ("pith/AAAAAAAAAAAAAAAAAAAAAAAAAA/bundle.json", "keys/more.txt", "log/more",
                 "index/zz.jsonl", ".well-known/more.json"):  # fmt: skip
        report = small.audit({**small.files, path: bundle})
        assert (report.result, speaks_of(report, path)) == ("broken", True), path
    beside = small.audit({**small.files, "robots.txt": b"User-agent: *"})
    assert beside.result == "sound"
    assert beside.counts == {"file-unlisted": 1}


def test_an_older_tree_in_place_of_the_new_one_is_found_with_the_kept_checkpoint(
    tree: AuditedTree,
) -> None:
    kept = tree.files["log/checkpoint"]
    assert tree.audit(tree.older).result == "sound"
    report = tree.audit(tree.older, since=kept)
    assert (report.result, report.counts["log-shrunk"]) == ("broken", 1)


def test_a_log_that_was_begun_anew_is_found_with_the_kept_checkpoint(
    tree: AuditedTree, small: AuditedTree
) -> None:
    kept = tree.older["log/checkpoint"]
    report = small.audit(small.files, since=kept, given=(small.key, tree.key))
    assert report.result == "broken"
    assert {"log-shrunk", "log-rewritten", "log-replaced", "checkpoint-signature-wrong"} & set(
        report.counts
    )


def test_a_whole_tree_by_a_stranger_proves_nothing(tree: AuditedTree) -> None:
    report = tree.audit(tree.files, given=(STRANGER.public(),))
    assert report.result == "not proved"
    assert any("only the evidence states" in why for why in report.reasons)
    assert report.completeness.anchored.get("anchored", 0) == 0
    assert (report.coverage.events, report.coverage.inclusions) == (0, 0)


def test_an_event_that_was_taken_out_everywhere_is_missed_by_the_log(tree: AuditedTree) -> None:
    path = tree.bundle_path(tree.records[0])
    document = json.loads(tree.files[path])
    ours = {one["event_id"] for item in document["inclusion"] for one in item["events"]}
    gone = next(event for event in document["events"] if event["event_id"] in ours)
    document["events"].remove(gone)
    for item in document["inclusion"]:
        item["events"] = [x for x in item["events"] if x["event_id"] != gone["event_id"]]
    document["inclusion"] = [item for item in document["inclusion"] if item["events"]]
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    files = tree.reindexed({**tree.files, path: data, f".well-known/{path}": data})
    report = tree.audit(files)
    assert report.result == "broken"
    missing = [one for one in report.findings if one.code == "event-missing"]
    assert [one.subject for one in missing] == [gone["event_id"]]
