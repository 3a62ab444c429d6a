"""A published tree with everything in it, held in memory, and audits of it that are quick."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from anchord.core.audit import AuditOptions, AuditReport
from anchord.core.canonical import pith_suffix
from anchord.core.event import CAPTURED, ITEM_STORED, event_digest, signer_block
from anchord.core.item_name import (
    DAY_S,
    DayFile,
    ManifestLine,
    day_manifest_body,
    manifest_line,
    signed_day_manifest,
)
from anchord.core.keyring import REGISTRY_KEY, PublicKey, make_keyring
from anchord.core.model import Document, Record
from anchord.core.signed_document import signed
from anchord.core.tree_index import (
    INDEX,
    index_body,
    line_of,
    render_shard,
    shard_name,
    stated_shards,
)
from anchord.engine.audit.tree import audit_tree
from anchord.engine.header_view import HeaderView
from anchord.errors import RefusedError
from support.evidence import bundle_with, sign, stored_event, withdrawal
from support.parties import START, FakeChain, FakeSigner
from support.trees import publish_tree, tree_files
from support.workplace import Workplace, sample

ARCHIVE = FakeSigner("archive-2024", "archive.example.org")
"""Signs storage events beside the registry; auditors are given its key."""
STRANGER = FakeSigner("stranger-2024", "stranger.example.org")
"""Signs what nobody asked for; no auditor has its key."""
DAY = "2024-08-01"
ITEM = f"registry-example-{DAY}"
ZIP = "bundles-000000001-000000002.zip"


class MemoryTree:
    """Files in memory, as the audit reads them."""

    name = "a tree in memory"

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def walk(self) -> Iterator[str]:
        yield from sorted(self.files)

    def read(self, path: str, limit: int) -> bytes | None:
        raw = self.files.get(path)
        if raw is not None and len(raw) > limit:
            raise RefusedError(f"{path} has more than {limit} bytes")
        return raw

    def hash(self, path: str) -> tuple[int, bytes] | None:
        raw = self.files.get(path)
        return None if raw is None else (len(raw), hashlib.sha256(raw).digest())


class AuditedTree:
    """A tree of two records that have been through everything, and who may check it.

    Args:
        folder: an empty one to work in.
        small: one plain record, published once, so that every byte of it can be looked at.
    """

    def __init__(self, folder: Path, *, small: bool = False) -> None:
        (folder / "place").mkdir()
        self._place = Workplace(folder / "place")
        self._folder = folder / "tree"
        self.records = (sample(1), sample(2))
        self._place.anchor(*([self.records[0]] if small else map(_document, self.records)))
        publish_tree(self._place, self._folder)
        self.older = tree_files(self._folder)
        """The tree as it was before that."""
        if not small:
            self._place.anchor(sample(3))
        publish_tree(self._place, self._folder)
        self.files = tree_files(self._folder)
        """The whole tree, after a third record was published."""

    @property
    def chain(self) -> FakeChain:
        return self._place.chain

    @cached_property
    def key(self) -> PublicKey:
        """The registry's public key, as an auditor is given it."""
        with self._place.app() as app:
            found = next(key for key in app.keyring if key.own)
        return msgspec.structs.replace(found, own=False, active=False)

    def audit(
        self,
        files: Mapping[str, bytes],
        *,
        given: Sequence[PublicKey] | None = None,
        headers: bool = True,
        **options: Any,
    ) -> AuditReport:
        """Audit some files with the keys of both signers."""
        keys = (self.key, ARCHIVE.public()) if given is None else given
        view = HeaderView([self.chain] if headers else [], "bitcoin-regtest", 6)
        asked = AuditOptions(**{"now": START + 10 * DAY_S, **options})
        ring = make_keyring([REGISTRY_KEY])
        outcome, facts = audit_tree(
            MemoryTree(files), ring, keys, view, asked, lambda _what, _done, _total: None
        )
        return outcome.report(**msgspec.structs.asdict(facts))

    def sign(self, digest: bytes) -> bytes:
        """Sign as the registry: what only the holder of its key can do."""
        with self._place.app() as app:
            return app.signer.sign(digest)

    def reindexed(self, files: Mapping[str, bytes]) -> dict[str, bytes]:
        """Return files with an index over them that the registry itself signs anew."""
        return self._index(files, self.key.key_id, self.key.public_key, self.key.signer_id, self)

    def reindexed_by(self, files: Mapping[str, bytes], signer: FakeSigner) -> dict[str, bytes]:
        """Return files with an index over them by somebody else."""
        return self._index(files, signer.key_id, signer.public_key, signer.signer_id, signer)

    def _index(
        self, files: Mapping[str, bytes], key_id: str, raw: bytes, signer_id: str, by: Any
    ) -> dict[str, bytes]:
        found = {
            path: data
            for path, data in files.items()
            if path != INDEX and not path.startswith("index/")
        }
        lines: dict[str, list[Any]] = {}
        for path, data in found.items():
            lines.setdefault(shard_name(path), []).append(line_of(path, data))
        shards = []
        for name, some in lines.items():
            found[name], shard = render_shard(name, some)
            shards.append(shard)
        body = index_body(shards, signer_block(key_id, raw, signer_id), START)
        found[INDEX] = signed(body, by.sign(event_digest(body)))
        assert stated_shards(found[INDEX])
        return found

    # ------------------------------------------------------------------ a bare folder

    @cached_property
    def folder(self) -> dict[str, bytes]:
        """A plain folder: two bundles, and the item that holds them as they were before."""
        packed = {
            f"{record.digest.hex()}.json": self.bundle(record).rstrip(b"\n")
            for record in self.records
        }
        lines = b"".join(
            manifest_line(
                ManifestLine(
                    record=json.loads(data)["pith_number"], path=name, size=len(data),
                    sha256=hashlib.sha256(data).hexdigest(),
                    event_ids=[event["event_id"] for event in json.loads(data)["events"]],
                )
            )
            for name, data in packed.items()
        )  # fmt: skip
        contents = {ZIP: zipped(packed), ZIP.replace(".zip", ".manifest.jsonl"): lines}
        files = {f"manifest-{DAY}.json": self.day_manifest(contents), **contents}
        for record in self.records:
            old = json.loads(self.bundle(record))
            raw = packed[f"{record.digest.hex()}.json"]
            event = stored_event(
                record, ARCHIVE, ITEM_STORED, identifier=ITEM, file=ZIP,
                member_sha256=hashlib.sha256(raw).hexdigest(),
            )  # fmt: skip
            old["events"].append(event)
            old["events"].sort(key=lambda one: (one["created_at"], one["event_id"]))
            files[f"{record.digest.hex()}.json"] = _compact(old)
        return files

    def day_manifest(self, contents: Mapping[str, bytes], by: Any = None) -> bytes:
        """Return the signed manifest of a day."""
        files = [
            DayFile(
                name=name, size=len(data), md5=hashlib.md5(data).hexdigest(),  # noqa: S324
                sha1=hashlib.sha1(data).hexdigest(),  # noqa: S324
                sha256=hashlib.sha256(data).hexdigest(), members=2 if name == ZIP else 0,
            )
            for name, data in contents.items()
        ]  # fmt: skip
        signer = by or self
        key = self.key if by is None else by
        block = signer_block(key.key_id, key.public_key, key.signer_id)
        body = day_manifest_body(ITEM, START // DAY_S, files, block, START)
        return signed_day_manifest(body, signer.sign(event_digest(body)))

    def bundle(self, record: Record) -> bytes:
        """Return a record's bundle."""
        return self.files[self.bundle_path(record)]

    def bundle_path(self, record: Record) -> str:
        """Return where a record's bundle lies in the tree."""
        return f"pith/{pith_suffix(record.digest)}/bundle.json"


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a ZIP as anchord packs them, near enough."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as file:
        for name, data in members.items():
            file.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


def _document(record: Record) -> Document:
    """Return what came in for a record beside its own events."""
    capture = stored_event(record, ARCHIVE, CAPTURED)
    lost = stored_event(record, ARCHIVE, CAPTURED, sha256="ef" * 32, capture_url=(
        "https://web.archive.org/web/20240801100000/https://arxiv.org/abs/2507.10392v1"
    ), captured_at="2024-08-01T10:00:00Z")  # fmt: skip
    taken = withdrawal(record, ARCHIVE, lost["event_id"])
    body = {**{k: v for k, v in taken.items() if k not in ("event_id", "signature_b64")},
            "target": "storage"}  # fmt: skip
    raw = bundle_with(record, [capture, lost, sign(body, ARCHIVE)], [ARCHIVE])
    return Document(record=record, raw=raw)


def _compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
