"""The signed index of a published tree: every file with its size and SHA-256.

The rules are anchord's own (docs/mirrors.md). Lines lie in up to 256 shards, `index/<xx>.jsonl`,
xx being the first two hex digits of the SHA-256 of the file's path, so a mirror with millions of
files is read a shard at a time. `index.json` names the shards with their hashes and is signed as
day manifests are. Index files themselves stand in no shard.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from anchord.core.event import canonical_body
from anchord.core.moment import utc
from anchord.core.signed_document import SignerBlock, check_signed
from anchord.core.strictjson import UNREADABLE, parse
from anchord.core.trust import Keys, Trust
from anchord.errors import DigestMismatchError, RefusedError, VerificationError

INDEX = "index.json"
"""Where the signed index lies in a tree."""
TYPE = "anchord_tree_index"
VERSION = 1
MAX_INDEX_BYTES = 1 << 20
MAX_SHARD_BYTES = 256 << 20
"""About a million files a shard."""

_SAFE = re.compile(r"(?:[A-Za-z0-9_.-]{1,128}/){0,15}[A-Za-z0-9_.-]{1,128}")
_Hex64 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


def safe_path(path: str) -> bool:
    """Tell whether a path of a tree leads nowhere else: plain segments, none of dots alone."""
    return bool(_SAFE.fullmatch(path)) and not any(part in (".", "..") for part in path.split("/"))


def shard_name(path: str) -> str:
    """Return the shard in which a file's line stands."""
    return f"index/{sha256(path.encode('utf-8')).hexdigest()[:2]}.jsonl"


class IndexLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One file of a tree."""

    path: str
    size: _Count
    sha256: _Hex64


class Shard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One shard, as the signed index says."""

    name: str
    size: _Count
    sha256: _Hex64
    files: _Count


class TreeIndex(msgspec.Struct, frozen=True, kw_only=True):
    """An index whose signature was checked."""

    created_at: str
    shards: tuple[Shard, ...]
    signer_id: str
    key_id: str
    trust: Trust

    @property
    def files(self) -> int:
        """How many files it lists."""
        return sum(shard.files for shard in self.shards)


_encoder = msgspec.json.Encoder(order="sorted")
_line = msgspec.json.Decoder(IndexLine)


def line_of(path: str, data: bytes) -> IndexLine:
    """Return a file's line."""
    return IndexLine(path=path, size=len(data), sha256=sha256(data).hexdigest())


def render_shard(name: str, lines: Iterable[IndexLine]) -> tuple[bytes, Shard]:
    """Return a shard's bytes, its lines sorted by path, and what the index says of it."""
    ordered = sorted(lines, key=lambda line: line.path)
    data = b"".join([_encoder.encode(line) + b"\n" for line in ordered])
    digest = sha256(data).hexdigest()
    return data, Shard(name=name, size=len(data), sha256=digest, files=len(ordered))


def read_shard(raw: bytes, shard: Shard) -> list[IndexLine]:
    """Return a shard's lines, after it was held against the signed index.

    Raises:
        DigestMismatchError: it is not the one that was signed.
        RefusedError: it was signed so, and breaks the rules of a shard.
    """
    found = (len(raw), sha256(raw).hexdigest())
    if found != (shard.size, shard.sha256):
        raise DigestMismatchError(
            f"{shard.name}: expected {shard.size:,} bytes with sha256 {shard.sha256}, got "
            f"{found[0]:,} with {found[1]}: it was changed, or is of another publication"
        )
    try:
        lines = [_line.decode(text) for text in raw.splitlines()]
    except UNREADABLE as error:
        raise RefusedError(f"{shard.name}: expected one file a line: {error!s:.200}") from None
    _check_lines(shard, lines)
    return lines


def _check_lines(shard: Shard, lines: Sequence[IndexLine]) -> None:
    paths = [line.path for line in lines]
    if len(lines) != shard.files or any(a >= b for a, b in itertools.pairwise(paths)):
        raise RefusedError(f"{shard.name}: expected {shard.files} lines in order of their paths")
    for path in paths:
        if not safe_path(path) or shard_name(path) != shard.name:
            raise RefusedError(f"{shard.name}: the path {path!r:.120} does not belong into it")


def index_body(shards: Sequence[Shard], signer: Mapping[str, str], now: int) -> bytes:
    """Return the canonical body of an index, what is signed of it."""
    ordered = sorted(shards, key=lambda shard: shard.name)
    return canonical_body(
        {
            "type": TYPE,
            "version": VERSION,
            "created_at": utc(now),
            "shards": [msgspec.to_builtins(shard) for shard in ordered],
            "signer": dict(signer),
        }
    )


class _Stated(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    version: int
    created_at: str
    shards: tuple[Shard, ...]
    signer: SignerBlock
    signature_b64: str


def stated_shards(raw: bytes) -> tuple[Shard, ...]:
    """Return what an index says, believing nothing: for reading around a key that is not known.

    Raises:
        RefusedError: it is no index.
    """
    return _stated(parse(raw, max_bytes=MAX_INDEX_BYTES)).shards


def stated_key(raw: bytes) -> str:
    """Return the name of the key an index says it is signed with, believing nothing.

    Raises:
        RefusedError: it is no index.
    """
    return _stated(parse(raw, max_bytes=MAX_INDEX_BYTES)).signer.key_id


def read_index(raw: bytes, keys: Keys) -> TreeIndex:
    """Return what an index says, after its signature was checked.

    Raises:
        RefusedError: no index, or none that all readers would read alike.
        SignatureError: nobody believed signed it, or it was changed since.
        VerificationError: it contradicts itself.
    """
    document = parse(raw, max_bytes=MAX_INDEX_BYTES)
    stated = _stated(document)
    trust = check_signed(document, stated.signer, stated.created_at, keys, "index")
    return TreeIndex(
        created_at=stated.created_at,
        shards=stated.shards,
        signer_id=stated.signer.signer_id,
        key_id=stated.signer.key_id,
        trust=trust,
    )


def _stated(document: Any) -> _Stated:
    try:
        stated = msgspec.convert(document, _Stated)
    except msgspec.ValidationError as error:
        raise RefusedError(f"expected the index of a tree, got something else: {error}") from None
    if (stated.type, stated.version) != (TYPE, VERSION):
        raise RefusedError(
            f"expected type {TYPE!r}, version {VERSION}, got {stated.type!r:.40}, {stated.version}"
        )
    names = [shard.name for shard in stated.shards]
    if len(set(names)) != len(names):
        raise VerificationError("the index names a shard twice")
    if not all(re.fullmatch(r"index/[0-9a-f]{2}\.jsonl", name) for name in names):
        raise RefusedError("expected shards named index/<two hex digits>.jsonl")
    return stated
