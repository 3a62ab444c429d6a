"""Good inputs, made once: what honest parties would send, by anchord's own writers."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from functools import cache
from pathlib import Path

import msgspec

from anchord.adapters.backups import tarball
from anchord.adapters.signers.file import create_key_dir
from anchord.core import log, note, tlog_proof
from anchord.core.checkpoint import Checkpoint, text
from anchord.core.event import event_digest, signer_block
from anchord.core.inclusion import IncludedEvent, Inclusion
from anchord.core.item_name import DayFile, day_manifest_body, identifier, signed_day_manifest
from anchord.core.key_document import to_document
from anchord.core.mirror_manifest import own_entry, render_manifest
from anchord.core.signed_document import signed
from anchord.core.tree_index import index_body, line_of, render_shard, shard_name
from anchord.core.trust import Keys
from support.authorities import LocalAuthority
from support.crowd import KEYRING, OWN, POWERLESS, RECORD, VALID
from support.evidence import bundle_with, mined, waiting
from support.parties import START, FakeChain
from support.shared import SHARED
from support.workplace import CONFIG

KEYS = Keys(KEYRING)
DIGEST = RECORD.digest
ORIGIN = "registry.example.org/log"
BLOCK = signer_block(OWN.key_id, OWN.public_key, OWN.signer_id)
NONCE = 0x80FF00FF00FF00FF


@cache
def scratch() -> Path:
    """Return a folder that is gone when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="anchord-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def shared(pattern: str, most: int = 40) -> list[bytes]:
    """Return real files of the data folder, where there is one; short ones only."""
    found = sorted(path for path in SHARED.glob(pattern) if path.is_file())
    return [path.read_bytes() for path in found[:most] if path.stat().st_size <= 60_000]


@cache
def proofs() -> tuple[bytes, ...]:
    """Return `.ots` files."""
    return (mined(DIGEST, FakeChain()), waiting(DIGEST))


def vectors() -> list[bytes]:
    """Return `.ots` files of others, good and bad."""
    return shared("ots-vectors/**/*.ots", 60)


@cache
def included() -> bytes:
    """Return what a bundle has of a log, as it stands in one."""
    spans = log.inclusion_ranges(1, 4)
    hashes = tuple(log.root(b"".join(_leaves(4)[start:stop])) for start, stop in spans)
    part = Inclusion(checkpoint().decode(), (IncludedEvent("sha256:" + "ab" * 32, 1, hashes),))
    return msgspec.json.encode(
        {"events": [{"event_id": "sha256:" + "ab" * 32}], "inclusion": [part]}
    )


@cache
def bundles() -> tuple[bytes, ...]:
    """Return bundles: of everything, of one event, of events that count for nothing."""
    return (
        bundle_with(RECORD, [VALID["anchored"]], [OWN]),
        bundle_with(RECORD, [VALID["capture"], VALID["created"], VALID["replication"]]),
        bundle_with(RECORD, list(POWERLESS.values())[:6]),
    )


@cache
def events() -> tuple[bytes, ...]:
    """Return single events."""
    return tuple(json.dumps(event).encode() for event in (*VALID.values(), *POWERLESS.values()))


@cache
def records() -> tuple[bytes, ...]:
    """Return records, alone and in what states their hash."""
    canonical = RECORD.canonical or b""
    around = {"canonical_record": json.loads(canonical), "canonical_sha256": DIGEST.hex()}
    lines = [line for raw in shared("*.jsonl") for line in raw.splitlines()[:20]]
    return (canonical, json.dumps(around).encode(), *lines)


@cache
def checkpoint(size: int = 4) -> bytes:
    """Return a signed checkpoint of a log of `size` entries."""
    said = text(Checkpoint(origin=ORIGIN, size=size, root=log.root(b"".join(_leaves(size)))))
    key_hash = note.make_verifier(ORIGIN, OWN.public_key).key_hash
    return note.write(said, [note.SignatureLine(ORIGIN, key_hash, OWN.sign_note(said.encode()))])


VERIFIER = note.make_verifier(ORIGIN, OWN.public_key)


def _leaves(size: int) -> list[bytes]:
    return [log.leaf_hash(bytes([number])) for number in range(size)]


@cache
def log_proof() -> bytes:
    """Return a tlog-proof of entry 1."""
    spans = log.inclusion_ranges(1, 4)
    hashes = tuple(log.root(b"".join(_leaves(4)[start:stop])) for start, stop in spans)
    return tlog_proof.write(
        tlog_proof.LogProof(index=1, hashes=hashes, note=checkpoint(), extra=b"x")
    )


@cache
def tree() -> tuple[bytes, bytes, object]:
    """Return a signed index, one of its shards, and what the index says of that."""
    paths = [f"pith/{number}/bundle.json" for number in range(20)]
    by_name: dict[str, list[object]] = {}
    for path in paths:
        by_name.setdefault(shard_name(path), []).append(line_of(path, path.encode()))
    found = [render_shard(name, lines) for name, lines in by_name.items()]  # type: ignore[arg-type]
    body = index_body([shard for _, shard in found], BLOCK, START)
    raw, shard = found[0]
    return signed(body, OWN.sign(event_digest(body))), raw, shard


@cache
def day_manifest() -> bytes:
    """Return the signed manifest of a day."""
    file = DayFile(
        name="bundles-000000001-000000002.zip",
        size=10, md5="0" * 32, sha1="1" * 40, sha256="2" * 64, members=2,
    )  # fmt: skip
    day = START // 86_400
    body = day_manifest_body(identifier("anchord-test", day, 1), day, [file], BLOCK, START)
    return signed_day_manifest(body, OWN.sign(event_digest(body)))


@cache
def mirror_manifest() -> bytes:
    """Return a manifest of mirrors."""
    entry = own_entry(
        name="m", base_url="https://mirror.example.org", status="mirror",
        public_key={"key_id": "k"}, numbered="pith",
    )  # fmt: skip
    return render_manifest([entry], "anchord-merge-v1", "2026-01-01T00:00:00Z")


@cache
def authority() -> LocalAuthority:
    """Return a time-stamping authority."""
    folder = scratch() / "authority"
    folder.mkdir()
    return LocalAuthority(folder)


@cache
def stamped() -> tuple[bytes, bytes]:
    """Return an authority's answer about DIGEST, and the token in it."""
    answer = authority().answer(DIGEST)
    return answer, authority().token(DIGEST).raw


def certificates() -> bytes:
    """Return the authority's root in PEM."""
    return authority().root_file.read_bytes()


@cache
def key_document() -> bytes:
    """Return a public key document."""
    return json.dumps(to_document(OWN.public())).encode()


@cache
def headers() -> bytes:
    """Return a chain of headers, genesis first."""
    return b"".join(FakeChain(height=20).headers)


@cache
def checksums() -> bytes:
    """Return a list as `sha256sum` writes it."""
    digest = hashlib.sha256(b"x").hexdigest()
    return (
        f"{digest}  a file\n{digest} *binary\n\\{digest}  a\\nb\n"
        f"SHA256 (bsd style) = {digest}\n# a comment\n"
    ).encode()


@cache
def keyring_toml() -> bytes:
    """Return a keyring file."""
    folder = scratch() / "keys"
    create_key_dir(folder, "registry.example.org", None, START)
    return (folder / "keyring.toml").read_bytes()


@cache
def backup() -> bytes:
    """Return a backup: a tar with its manifest first."""
    folder, files = scratch(), {"anchord.toml": CONFIG.encode(), "anchord.db": b"SQLite format 3"}
    sources = {name: folder / f"backup-{name}" for name in files}
    for name, data in files.items():
        sources[name].write_bytes(data)
    manifest = tarball.Manifest(
        format=tarball.FORMAT, created_at="2024-08-01T12:00:00Z", anchord="0", schema="0004",
        config="anchord.toml", store="anchord.db", keys="keys", events=0, checkpoint=0,
        files=[tarball.entry_of(name, path) for name, path in sources.items()],
    )  # fmt: skip
    target = folder / "backup.tar"
    with target.open("wb") as out:
        tarball.write(out, manifest, sources, lambda _what, _done, _total: None)
    return target.read_bytes()


@cache
def packed_tree(mode: str = "w:gz") -> bytes:
    """Return a packed folder with a bundle, an index and a link in it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in (("tree/x.bundle.json", bundles()[0]), ("tree/index.json", tree()[0])):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        link = tarfile.TarInfo("tree/link")
        link.type, link.linkname = tarfile.SYMTYPE, "x.bundle.json"
        archive.addfile(link)
    return out.getvalue()
