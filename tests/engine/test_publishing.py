"""A published tree: all of the store, nothing private, true at every moment, written once."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from support.evidence import mined
from support.trees import index_lines, publish_tree, tree_files
from support.workplace import Workplace, bare, sample

from anchord.adapters.outputs.tree import TreeOutput
from anchord.core.canonical import pith_suffix
from anchord.core.mirror_manifest import fill, read_manifest, resolve
from anchord.core.model import Adoption
from anchord.core.proof import parse_detached
from anchord.core.state import state_bytes
from anchord.core.tlog_tile import read_entry_bundle
from anchord.core.trust import Keys
from anchord.engine.export import record_bundle
from anchord.errors import ConfigError, FatalError, LedgerError, StoreBusyError

FILE = hashlib.sha256(b"a file").digest()


@pytest.fixture
def place(tmp_path):
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path / "work")


@pytest.fixture
def tree(tmp_path):
    return tmp_path / "tree"


def folder(record):
    return f"record/{record.digest.hex()}" if record.year is None else (
        f"pith/{pith_suffix(record.digest)}"
    )  # fmt: skip


def test_every_record_is_there_whatever_it_holds_so_far(place, tree):
    anchored, file = sample(1), bare(FILE)
    foreign = bare(hashlib.sha256(b"adopted").digest())
    place.anchor(anchored, file)
    place.add(Adoption(record=foreign, ots=mined(foreign.digest, place.chain)))
    place.add(sample(2))
    place.step()
    place.add(sample(3))
    done = publish_tree(place, tree)
    assert (done.records, done.index) == (5, "new")
    for record in (anchored, file, foreign, sample(2), sample(3)):
        bundle = json.loads((tree / folder(record) / "bundle.json").read_bytes())
        assert bundle["canonical_sha256"] == record.digest.hex()
        state = json.loads((tree / folder(record) / "state.json").read_bytes())
        assert state["canonical_sha256"] == record.digest.hex()
        has = (tree / folder(record) / "proof.ots").exists()
        assert has == (record.digest != sample(3).digest)
    for record in (anchored, sample(3)):
        known = tree / ".well-known" / folder(record) / "bundle.json"
        assert known.samefile(tree / folder(record) / "bundle.json")


def test_files_are_what_an_export_and_a_state_would_say(place, tree):
    place.anchor(sample(1), bare(FILE))
    publish_tree(place, tree)
    with place.app() as app:
        for chunk in app.store.records.walk():
            for record in chunk:
                raw = record_bundle(app.store, app.keyring, record)
                at = tree / folder(record)
                assert (at / "bundle.json").read_bytes() == raw + b"\n"
                assert (at / "state.json").read_bytes() == state_bytes(raw, Keys(app.keyring))
                assert parse_detached((at / "proof.ots").read_bytes()).digest == record.digest


def test_anchored_only_leaves_out_what_no_block_holds(place, tree):
    place.anchor(sample(1))
    place.add(sample(2))
    place.step()
    place.add(sample(3))
    assert publish_tree(place, tree, anchored_only=True).records == 1
    assert [path.name for path in (tree / "pith").iterdir()] == [pith_suffix(sample(1).digest)]


def test_the_index_lists_every_file_and_its_signature_covers_them_all(place, tree):
    place.anchor(*[sample(number) for number in range(30)], bare(FILE))
    publish_tree(place, tree)
    files = tree_files(tree)
    lines = index_lines(tree)
    assert set(lines) == {path for path in files if not path.startswith("index")}
    for path, line in lines.items():
        assert (line["size"], line["sha256"]) == (
            len(files[path]), hashlib.sha256(files[path]).hexdigest(),
        )  # fmt: skip
    index = json.loads(files["index.json"])
    signature = base64.b64decode(index.pop("signature_b64"))
    body = json.dumps(index, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    document = json.loads(files["pith-signing-key.json"])
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(document["public_key_hex"]))
    key.verify(signature, hashlib.sha256(body).digest())


def test_the_manifest_leads_to_the_files(place, tree):
    place.anchor(sample(1), bare(FILE))
    publish_tree(place, tree)
    raw = (tree / "pith-mirrors.json").read_bytes()
    assert (tree / ".well-known" / "pith-mirrors.json").read_bytes() == raw
    (mirror,) = read_manifest(raw).mirrors
    suffix, digest = pith_suffix(sample(1).digest), FILE.hex()
    for pattern in (mirror.bundle_pattern, mirror.state_pattern, mirror.well_known_pattern,
                    mirror.record_pattern, mirror.proof_pattern, mirror.index):  # fmt: skip
        assert (tree / resolve(fill(pattern, suffix=suffix, digest=digest), None)).is_file()
    key = json.loads((tree / "pith-signing-key.json").read_bytes())
    assert mirror.public_key == key
    assert json.loads((tree / f"keys/{key['key_id']}.json").read_bytes()) == key


def test_publishing_again_writes_nothing(place, tree):
    place.anchor(sample(1), bare(FILE))
    publish_tree(place, tree)
    before = {path: (tree / path).stat() for path in tree_files(tree)}
    place.clock.advance(100_000)
    done = publish_tree(place, tree)
    assert (done.new, done.updated, done.index) == (0, 0, "same")
    for path, stat in before.items():
        after = (tree / path).stat()
        assert (after.st_ino, after.st_mtime_ns) == (stat.st_ino, stat.st_mtime_ns), path


def test_only_what_changed_is_written(place, tree):
    place.anchor(*[sample(number) for number in range(10)])
    publish_tree(place, tree)
    place.add(sample(11))
    done = publish_tree(place, tree)
    # Bundle, its second name, and state: nothing else is new, and nothing of the old is touched.
    assert (done.new, done.updated, done.index) == (3, 0, "updated")
    index_lines(tree)


def test_a_bundle_that_grew_is_replaced_under_both_names(place, tree):
    place.add(sample(1))
    publish_tree(place, tree)
    place.step()
    publish_tree(place, tree)
    at = f"pith/{pith_suffix(sample(1).digest)}/bundle.json"
    assert b"timestamp_submitted" in (tree / at).read_bytes()
    assert (tree / ".well-known" / at).samefile(tree / at)
    index_lines(tree)


def test_a_file_system_without_hard_links_gets_copies(place, tree, monkeypatch):
    def refused(*_args, **_kwargs):
        raise PermissionError("no links here")

    monkeypatch.setattr("pathlib.Path.hardlink_to", refused)
    place.anchor(sample(1))
    publish_tree(place, tree)
    at = f"pith/{pith_suffix(sample(1).digest)}/bundle.json"
    assert (tree / ".well-known" / at).read_bytes() == (tree / at).read_bytes()
    assert publish_tree(place, tree).index == "same"
    index_lines(tree)


def test_what_belongs_to_nothing_is_named_and_stays(place, tree):
    place.anchor(sample(1))
    publish_tree(place, tree)
    stray = tree / "pith" / "AAAAAAAAAAAAAAAAAAAAAAAAAA" / "bundle.json"
    stray.parent.mkdir()
    stray.write_text("old")
    (tree / "CNAME").write_text("mirror.example.org")
    (tree / "pith" / ".bundle.json.1.part").write_text("half")
    for _ in range(2):
        done = publish_tree(place, tree)
        assert (done.strays, list(done.stray_files)) == (1, [stray.relative_to(tree).as_posix()])
    assert stray.exists()
    assert not (tree / "pith" / ".bundle.json.1.part").exists(), "a dead publisher's"


def test_the_log_is_published_as_tlog_tiles(place, tree):
    for number in range(4):
        place.anchor(*[sample(10 * number + n) for n in range(3)], bare(bytes([number]) * 32))
        publish_tree(place, tree)
    with place.app() as app:
        last = app.store.log.last()
        assert last is not None
        entries = app.store.log.entries(0, last.size)
        leaves = app.store.log.leaf_hashes(0, last.size)
        sizes = [one.size for one in app.store.log.checkpoints()]
    assert (tree / "log/checkpoint").read_bytes() == last.note
    assert (tree / f"log/tile/0/000.p/{last.size}").read_bytes() == leaves
    bundle = (tree / f"log/tile/entries/000.p/{last.size}").read_bytes()
    assert read_entry_bundle(bundle, last.size) == entries
    assert len(bundle) == last.size * (2 + 96)
    proved = 0
    for size in sizes:
        note = (tree / f"log/checkpoints/{size}").read_bytes()
        assert (tree / f"log/tile/0/000.p/{size}").read_bytes() == leaves[: 32 * size]
        proof = tree / f"log/checkpoints/{size}.ots"
        if proof.exists():
            proved += 1
            found = parse_detached(proof.read_bytes())
            assert found.digest == hashlib.sha256(note).digest()
    assert proved >= 3
    index_lines(tree)


def test_a_tile_that_became_full_takes_the_place_of_its_beginnings(place, tree):
    place.anchor(*[bare(hashlib.sha256(b"%d" % n).digest()) for n in range(65)])
    publish_tree(place, tree)
    with place.app() as app:
        first = app.store.log.last().size
    assert first < 256
    assert (tree / f"log/tile/0/000.p/{first}").exists()
    place.anchor(*[bare(hashlib.sha256(b"x%d" % n).digest()) for n in range(65)])
    done = publish_tree(place, tree)
    assert done.strays == 0
    assert len((tree / "log/tile/0/000").read_bytes()) == 256 * 32
    assert not (tree / "log/tile/0/000.p").exists()
    assert not (tree / "log/tile/entries/000.p").exists()
    with place.app() as app:
        assert (tree / "log/tile/1/000.p/1").read_bytes() == app.store.log.nodes(1, 0, 1)
    assert set(index_lines(tree)) == {
        path for path in tree_files(tree) if not path.startswith("index")
    }


# ---------------------------------------------------------------------- refusals


def test_a_folder_with_something_else_in_it_is_refused(place, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="--force"):
        TreeOutput(other)
    (other / "index.json").write_text('{"type": "another"}')
    with pytest.raises(ConfigError, match="--force"):
        TreeOutput(other)
    with TreeOutput(other, force=True):
        pass
    assert (other / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("where", [".", "keys", "keys/below", ".."])
def test_keys_and_store_are_never_published(place, where):
    private = [place.folder / "keys", place.folder / "anchord.db"]
    with pytest.raises(ConfigError, match="must not be served"):
        TreeOutput(place.folder / where, force=True, private=private)


def test_no_private_key_is_in_a_tree(place, tree):
    place.anchor(sample(1))
    publish_tree(place, tree)
    secrets = [path.read_bytes() for path in (place.folder / "keys").glob("*.pem")]
    assert secrets
    for path, data in tree_files(tree).items():
        assert b"PRIVATE" not in data, path
        assert not any(secret[40:70] in data for secret in secrets), path


def test_two_publishers_do_not_mix(place, tree):
    with TreeOutput(tree), pytest.raises(StoreBusyError):
        TreeOutput(tree)


def test_no_pass_runs_meanwhile(place, tree):
    place.add(sample(1))
    with place.app() as app, app.store.exclusive(), pytest.raises(StoreBusyError):
        publish_tree(place, tree)
    assert not (tree / "index.json").exists()


def test_a_damaged_store_leaves_the_old_index(place, tree):
    place.anchor(sample(1), sample(2))
    publish_tree(place, tree)
    before = tree_files(tree)
    with place.app() as app, app.store._engine.begin() as connection:
        connection.execute(sa.text("UPDATE events SET event_id = zeroblob(32) WHERE seq = 3"))
    with pytest.raises((LedgerError, FatalError)):
        publish_tree(place, tree)
    assert tree_files(tree) == before
    index_lines(tree)


# ---------------------------------------------------------------------- dying


SIGNED = {"index.json", "pith-mirrors.json", ".well-known/pith-mirrors.json"}
"""Files with a moment in them."""


class _Died(BaseException):
    """The process is gone."""


def dying_after(renames, monkeypatch):
    real, left = os.replace, [renames]

    def replace(written, target):
        left[0] -= 1
        if left[0] < 0:
            raise _Died
        real(written, target)

    monkeypatch.setattr("os.replace", replace)


def test_whenever_it_dies_files_are_whole_and_the_next_time_mends_it(place, tmp_path, monkeypatch):
    place.anchor(sample(1))
    publish_tree(place, tmp_path / "old")
    old, listed = tree_files(tmp_path / "old"), index_lines(tmp_path / "old")
    place.anchor(sample(2), bare(FILE))
    publish_tree(place, tmp_path / "whole")
    whole = tree_files(tmp_path / "whole")
    deaths = 0
    for renames in range(0, 90, 5):
        tree = tmp_path / f"tree-{renames}"
        shutil.copytree(tmp_path / "old", tree)
        dying_after(renames, monkeypatch)
        try:
            publish_tree(place, tree)
        except _Died:
            deaths += 1
            left = {path: data for path, data in tree_files(tree).items() if ".part" not in path}
            # Whatever lies there is the old file or the new one, and the old index is not wrong
            # about what did not change.
            for path, data in left.items():
                assert data in (old.get(path), whole.get(path)) or path in SIGNED, path
            for path, line in listed.items():
                assert left[path] in (old[path], whole.get(path)) or path in SIGNED
                if left[path] == old[path]:
                    assert hashlib.sha256(left[path]).hexdigest() == line["sha256"]
        monkeypatch.undo()
        publish_tree(place, tree)
        lines, files = index_lines(tree), tree_files(tree)
        assert set(lines) == {path for path in files if not path.startswith("index")}
        for path, line in lines.items():
            assert hashlib.sha256(files[path]).hexdigest() == line["sha256"]
        assert not [path for path in files if ".part" in path or ".publishing" in path]
    assert 5 < deaths < 18


def test_what_a_killed_publisher_left_is_cleared(place, tree):
    place.anchor(sample(1))
    (tree / ".publishing").mkdir(parents=True)
    (tree / ".publishing.lock").touch()
    (tree / ".publishing" / "put-00.jsonl").write_text("garbage\n")
    (tree / "index").mkdir()
    half = [tree / ".index.json.99.part", tree / "index" / ".00.jsonl.99.part"]
    for path in half:
        path.write_text("{")
    publish_tree(place, tree)
    assert not [path for path in half if path.exists()]
    assert not (tree / ".publishing").exists()
    assert set(index_lines(tree)) == {
        path for path in tree_files(tree) if not path.startswith("index")
    }
