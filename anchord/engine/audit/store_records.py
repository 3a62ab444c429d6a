"""Auditing records: canonical bytes, digest, and the columns that follow from them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from anchord.core.canonical import read_record
from anchord.core.finding import Part
from anchord.core.model import Scheme
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.core.model import StoredRecord
    from anchord.engine.audit.store_view import View


class _Metadata(msgspec.Struct, frozen=True):
    submitted_at: str = ""


class _Source(msgspec.Struct, frozen=True):
    kind: str | None = None
    id: str | None = None
    version: int | None = None


class _Body(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    source: _Source = _Source()


_SHORT = 256
_decode = msgspec.json.Decoder(_Body).decode
_NAMES = ("year", "source_kind", "source_id", "source_version")


def check_record(view: View, record: StoredRecord) -> None:
    """Hold one record's row against its canonical bytes, and against where it stands."""
    body = view.chunk.bodies.get(record.id)
    if body is None:
        _check_bare(view, record)
    elif sha256(body).digest() != record.digest:
        what = f"its canonical bytes have SHA-256 {sha256(body).hexdigest()}, its row says "
        view.find("digest-differs", Part.RECORD, record.id, what + record.digest.hex())
    elif record.scheme is Scheme.SHA256 or not _says(record, body):
        _check_columns(view, record, body)
    if record.batch_id is not None and record.batch_id not in view.places[record.id]:
        what = f"it is said to stand in batch {record.batch_id}, and is no member of it"
        view.find("record-misplaced", Part.RECORD, record.id, what)


def _check_bare(view: View, record: StoredRecord) -> None:
    if record.scheme is not Scheme.SHA256:
        what = f"scheme {record.scheme} has canonical bytes, and they are not there"
        view.find("body-missing", Part.RECORD, record.id, what)
    elif any(getattr(record, name) is not None for name in _NAMES):
        what = "it is a bare digest, and its row names a year or a source: nothing says so"
        view.find("record-columns-differ", Part.RECORD, record.id, what)


def _says(record: StoredRecord, body: bytes) -> bool:
    """Tell quickly whether bytes say what the row does; the law decides where they seem not to.

    That the bytes are canonical need not be asked again: they are those of the digest.
    """
    try:
        found = _decode(body)
    except msgspec.MsgspecError:
        return False
    at, source = found.metadata.submitted_at, found.source
    year = at[:4] if at[4:5] == "-" and at[:4].isdigit() and at[:4].isascii() else None
    texts = (source.kind or "") + (source.id or "")
    return (
        (record.year, record.source_kind, record.source_id, record.source_version)
        == (year, source.kind, source.id, source.version)
        and texts.isprintable()
        and len(texts) <= _SHORT
    )


def _check_columns(view: View, record: StoredRecord, body: bytes) -> None:
    if record.scheme is Scheme.SHA256:
        what = "its row says it is a bare digest, and canonical bytes are there"
        view.find("record-columns-differ", Part.RECORD, record.id, what)
        return
    try:
        read = read_record(body, scheme=record.scheme)
    except RefusedError as error:
        view.find("body-refused", Part.RECORD, record.id, str(error))
        return
    if read.digest != record.digest:
        what = f"its bytes are not canonical by scheme {record.scheme}"
        view.find("body-refused", Part.RECORD, record.id, what)
    for name in _NAMES:
        said, found = getattr(record, name), getattr(read, name)
        if said != found:
            what = f"its row says {name} {said!r:.80}, its canonical bytes {found!r:.80}"
            view.find("record-columns-differ", Part.RECORD, record.id, what)
