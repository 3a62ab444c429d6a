"""From what stands in an address to the records it means; nothing is ever guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.app.face.files import PAGE, RECORD_FILES, RESOLVER
from anchord.core.reference import MAX_REFERENCE, Reference, parse_reference
from anchord.engine.export import stem_of
from anchord.engine.publishing_about import folder_of
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.core.model import StoredRecord

MOST_MATCHES = 20
PROOF, CERTIFICATE = "proof.ots", "certificate.pdf"
_FILES = (PROOF, CERTIFICATE, *(one.name for one in RECORD_FILES if one.name != RESOLVER), PAGE)


class Asked(msgspec.Struct, frozen=True):
    """A record, as an address names it, and which of its files."""

    name: str
    file: str | None
    """None: the record itself, in the form that is asked for."""

    def path(self, place: str) -> str:
        """Return where the same is of the record at `place`."""
        if self.file == RESOLVER:
            return f"{place}.json"
        return place if self.file is None else f"{place}/{self.file}"


def read_asked(rest: str) -> Asked:
    """Return what an address means, behind its `pith/` or `record/`."""
    for file in _FILES:
        if rest.endswith("/" + file):
            return Asked(rest.removesuffix("/" + file), file)
    if rest.endswith(".json"):
        return Asked(rest.removesuffix(".json"), RESOLVER)
    return Asked(rest.removesuffix("/"), None)


def find(store: SqlReadingStore, text: str) -> list[StoredRecord]:
    """Return all records that `text` may mean, at most MOST_MATCHES."""
    try:
        reference = parse_reference(text)
    except RefusedError:
        # Ids of other sources than arXiv have no form of their own.
        if not text.isprintable() or not 0 < len(text) <= MAX_REFERENCE:
            return []
        reference = Reference(source_id=text)
    return store.records.find(reference, MOST_MATCHES)


def place_of_record(record: StoredRecord) -> str:
    """Return where a record's page is below the root."""
    return place_of_digest(record.digest, numbered=record.year is not None)


def place_of_digest(digest: bytes, *, numbered: bool) -> str:
    """Return where the page of a record with this digest is below the root."""
    return folder_of(stem_of(digest, numbered=numbered))
