"""Trees by those who have some key or none: what they leave out, and whose name they use."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.audited_tree import ARCHIVE, STRANGER, AuditedTree, _compact
from support.evidence import body_of, sign, stored_event
from support.parties import START, FakeSigner
from support.workplace import sample

from anchord.core import checkpoint
from anchord.core.audit import AuditReport
from anchord.core.checkpoint import Checkpoint
from anchord.core.event import WITHDRAWN, signer_block
from anchord.core.finding import Severity
from anchord.core.key_document import to_document
from anchord.core.keyring import PublicKey
from anchord.core.log import leaf_hash
from anchord.core.note import SignatureLine, key_hash, write
from anchord.core.tlog_tile import entry_bundle

RIVAL = FakeSigner("rival-2024", "rival.example.org")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> AuditedTree:
    return AuditedTree(tmp_path_factory.mktemp("tree"))


def without(tree: AuditedTree, *folders: str) -> dict[str, bytes]:
    """Return the tree without the first record, and without some folders and files."""
    gone = tree.bundle_path(tree.records[0]).removesuffix("bundle.json")
    beside = (gone, f".well-known/{gone}", *folders)
    return {path: data for path, data in tree.files.items() if not path.startswith(beside)}


def rivals(tree: AuditedTree) -> dict[str, bytes]:
    """Return a tree of a rival: a record is left out, log and index are the rival's own."""
    files = without(tree, "log/")
    third = tree.bundle_path(sample(3))
    event = stored_event(sample(3), RIVAL)
    for path in [path for path in files if path.startswith("pith/")]:
        if path.endswith("bundle.json"):
            bundle = json.loads(files[path])
            del bundle["inclusion"]
            if path == third:
                bundle["events"].append(event)
                bundle["events"].sort(key=lambda one: (one["created_at"], one["event_id"]))
            files[path] = files[".well-known/" + path] = _compact(bundle)
    del files[third.replace("bundle.json", "state.json")]
    files.update(log_of(tree, event))
    return tree.reindexed_by(files, RIVAL)


def log_of(tree: AuditedTree, event: Mapping[str, Any]) -> dict[str, bytes]:
    """Return a log of one event, under the name of the tree's own."""
    origin = checkpoint.parse(tree.files["log/checkpoint"]).origin
    entry = bytes.fromhex(event["event_id"][7:]) + base64.b64decode(event["signature_b64"])
    text = checkpoint.text(Checkpoint(origin=origin, size=1, root=leaf_hash(entry)))
    name = key_hash(origin, RIVAL.public_key)
    note = write(text, [SignatureLine(origin, name, RIVAL.sign_note(text.encode()))])
    return {
        "log/checkpoint": note, "log/checkpoints/1": note,
        "log/tile/entries/000.p/1": entry_bundle([entry]), "log/tile/0/000.p/1": leaf_hash(entry),
    }  # fmt: skip


def audited(tree: AuditedTree, files: Mapping[str, bytes], key: PublicKey) -> AuditReport:
    return tree.audit(files, given=(tree.key, ARCHIVE.public(), key))


def test_a_key_that_may_not_sign_timestamps_signs_no_log(tree: AuditedTree) -> None:
    report = audited(tree, rivals(tree), RIVAL.public(targets=("storage", "author")))
    assert report.result == "broken"
    assert report.counts["checkpoint-signature-wrong"] == 1


def test_a_rivals_log_is_not_that_of_others_and_the_report_says_so(tree: AuditedTree) -> None:
    report = audited(tree, rivals(tree), RIVAL.public())
    said = {one.subject: one.severity for one in report.findings if one.code == "log-elsewhere"}
    assert report.result == "sound"
    assert said == {tree.key.signer_id: Severity.NOTE, ARCHIVE.signer_id: Severity.NOTE}


def test_a_log_whose_newest_checkpoint_is_by_a_revoked_key_is_not_proved(tree: AuditedTree) -> None:
    report = audited(tree, rivals(tree), RIVAL.public(revoked_at=START + 5))
    assert report.result == "not proved"
    assert any("revoked" in why for why in report.reasons)


def test_a_tree_without_its_index_log_and_manifest_is_no_plain_folder(tree: AuditedTree) -> None:
    for marks in ((), (".well-known/",), (".well-known/", "keys/", "pith-signing-key.json")):
        files = without(tree, "index", "log/", "pith-mirrors.json", *marks)
        report = tree.audit(files)
        assert report.kind == "tree"
        assert {"index-missing", "checkpoint-missing"} <= report.counts.keys()


def test_nothing_signed_is_nothing_proved(tree: AuditedTree) -> None:
    bundle = json.loads(tree.bundle(tree.records[0]))
    bundle["events"], bundle["public_keys"] = [], []
    del bundle["inclusion"]
    for given in ((), (tree.key,)):
        report = tree.audit({"one.json": _compact(bundle)}, given=given)
        assert report.result == "not proved"
        assert "nothing was proved" in report.reasons[0]


def test_keys_and_copied_ids_of_strangers_break_no_bundle(tree: AuditedTree) -> None:
    bundle = json.loads(tree.bundle(tree.records[0]))
    names = (tree.key.key_id, "x", "x")
    for name, by in zip(names, (STRANGER, STRANGER, RIVAL), strict=True):
        bundle["public_keys"].append(to_document(by.public(key_id=name)))
    copied = {key: bundle["events"][0][key] for key in ("event_id", "payload", "created_at")}
    bundle["events"].append({**copied, "event_type": "note"})
    report = tree.audit({"one.json": _compact(bundle)})
    assert (report.result, report.completeness.sound) == ("sound", 1)
    assert report.completeness.anchored == {"anchored": 1}
    assert report.counts["key-differs"] >= 1
    assert report.counts["event-repeated"] == 1


def test_a_name_in_the_log_says_nothing_of_who_signed(tree: AuditedTree, tmp_path: Path) -> None:
    """A line below a checkpoint that nobody checks makes its namesake's events no entries."""
    namesake = FakeSigner("namesake", ARCHIVE.signer_id)
    raw = tree.files["log/checkpoint"]
    origin = checkpoint.parse(raw).origin
    line = base64.b64encode(key_hash(origin, namesake.public_key) + b"\x01" * 64).decode()
    note = raw + f"\u2014 {origin} {line}\n".encode()
    files = {
        **tree.files, "log/checkpoint": note,
        f"keys/{namesake.key_id}.json": json.dumps(to_document(namesake.public())).encode(),
    }  # fmt: skip
    newest = f"log/checkpoints/{checkpoint.parse(raw).size}"
    report = tree.audit(tree.reindexed({**files, newest: note}))
    assert "event-not-logged" not in report.counts


def test_an_event_that_is_in_no_log_is_new_whatever_checkpoint_was_kept(tree: AuditedTree) -> None:
    """Somebody with the key signs beside the log, into a bundle that an earlier audit knew."""
    path = tree.bundle_path(tree.records[0])
    bundle = json.loads(tree.files[path])
    block = signer_block(tree.key.key_id, tree.key.public_key, tree.key.signer_id)
    for by, code in ((tree, "event-not-logged"), (STRANGER, "event-signature-wrong")):
        payload = {"withdraws": bundle["events"][0]["event_id"], "reason": "so"}
        body = body_of(tree.records[0], STRANGER, payload, signer=block, event_type=WITHDRAWN)
        more = {**bundle, "events": [*bundle["events"], sign(body, by)]}
        files = {**tree.files, path: _compact(more), f".well-known/{path}": _compact(more)}
        report = tree.audit(tree.reindexed(files), since=tree.older["log/checkpoint"])
        assert report.counts.get(code) == 1
        assert (report.coverage.records, report.coverage.records_counted) == (2, 3)
