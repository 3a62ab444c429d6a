"""One opened piece of input in, records and refusals out: a reader for each kind.

A reader judges each line or item alone and never holds more than one of them, except for single
documents, which are held whole under a cap.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterator
from typing import BinaryIO

import msgspec

from anchord.adapters.sources.checksums import read_checksum_line
from anchord.adapters.sources.kinds import Kind
from anchord.adapters.sources.ots import read_proof
from anchord.adapters.sources.pith import OBJECT_CAP, read_object, split_array
from anchord.adapters.sources.streams import lines
from anchord.core.model import Document, Incoming, Record, Rejection, Scheme
from anchord.core.proof import MAX_PROOF_BYTES
from anchord.errors import RefusedError

DOCUMENT_CAP = 64 * 1024 * 1024
"""Biggest single JSON document: an array of records is held whole."""
NAME_CAP = 64 * 1024
"""Longest line of a checksum list."""


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader needs to know about a piece of input."""

    where: str
    """How refusals name it."""
    label: str | None
    """How records name it; None for standard input."""
    scheme: Scheme


Reader = Callable[[BinaryIO, Piece], Iterator[Incoming]]


def read_lines(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Read JSON Lines; blank lines are passed over."""
    where, scheme = piece.where, piece.scheme
    for number, line in enumerate(lines(stream, OBJECT_CAP), 1):
        if line is None:
            yield Rejection(where=where, line=number, reason=_too_long(OBJECT_CAP))
        elif line and not line.isspace():
            try:
                yield read_object(line, scheme)
            except RefusedError as error:
                yield Rejection(where=where, line=number, reason=str(error))


def read_document(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Read one JSON document: a record, an object around one, a bundle, an array of them."""
    raw = stream.read(DOCUMENT_CAP + 1)
    if len(raw) > DOCUMENT_CAP:
        reason = (
            f"the document is over {DOCUMENT_CAP >> 20} MiB: write one record a line and name it "
            ".jsonl (JSON Lines, no limit), or add its bytes with --as file"
        )
        yield Rejection(where=piece.where, line=None, reason=reason)
        return
    try:
        if raw.lstrip()[:1] == b"[":
            yield from _read_items(raw, piece)
        else:
            yield read_object(raw, piece.scheme, piece.label)
    except RefusedError as error:
        yield Rejection(where=piece.where, line=None, reason=str(error))


def _read_items(raw: bytes, piece: Piece) -> Iterator[Incoming]:
    for line, text in split_array(raw):
        try:
            yield read_object(text, piece.scheme)
        except RefusedError as error:
            yield Rejection(where=piece.where, line=line, reason=str(error))


def read_bundle(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Read one bundle; a record that is not in a bundle is refused."""
    for item in read_document(stream, piece):
        if isinstance(item, Document | Rejection):
            yield item
        else:
            reason = "expected a bundle (bundle_type pith_open_graph_bundle), got a record"
            yield Rejection(where=piece.where, line=None, reason=reason)


def read_list(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Read a `sha256sum` list."""
    for number, line in enumerate(lines(stream, NAME_CAP), 1):
        if line is None:
            yield Rejection(where=piece.where, line=number, reason=_too_long(NAME_CAP))
            continue
        try:
            record = read_checksum_line(line)
        except RefusedError as error:
            yield Rejection(where=piece.where, line=number, reason=str(error))
        else:
            if record is not None:
                yield record


def read_ots(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Read one `.ots` file."""
    label = piece.label
    if label is not None and label.lower().endswith(".ots") and len(label) > 4:
        label = label[:-4]
    try:
        yield read_proof(stream.read(MAX_PROOF_BYTES + 1), label)
    except RefusedError as error:
        yield Rejection(where=piece.where, line=None, reason=str(error))


def read_file(stream: BinaryIO, piece: Piece) -> Iterator[Incoming]:
    """Hash a file of any size; one that changes meanwhile is refused, its digest means nothing."""
    before = _stamp(stream)
    digest = hashlib.file_digest(stream, "sha256").digest()  # type: ignore[arg-type]
    if _stamp(stream) != before:
        reason = "it changed while it was read: add it again when nobody writes to it"
        yield Rejection(where=piece.where, line=None, reason=reason)
        return
    yield Record(digest=digest, scheme=Scheme.SHA256, label=piece.label)


def _stamp(stream: BinaryIO) -> tuple[int, int] | None:
    """Return size and modification time; None for what is no file."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, io.UnsupportedOperation):
        return None
    return found.st_size, found.st_mtime_ns


def _too_long(cap: int) -> str:
    return f"the line is longer than {cap} bytes: expected one record a line"


READERS: dict[Kind, Reader] = {
    Kind.RECORD: read_document,
    Kind.RECORDS: read_lines,
    Kind.BUNDLE: read_bundle,
    Kind.LIST: read_list,
    Kind.OTS: read_ots,
    Kind.FILE: read_file,
}
