"""From what a person typed to the records it names; nothing is ever guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.canonical import pith_number
from anchord.core.reference import parse_reference
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.adapters.store.sql import SqlStore
    from anchord.core.model import StoredRecord

MOST = 20


def find_records(store: SqlStore, text: str) -> list[StoredRecord]:
    """Return all records `text` may mean, at most MOST.

    Raises:
        RefusedError: none, or no form of reference anchord understands.
    """
    found = store.records.find(parse_reference(text), MOST)
    if not found:
        raise RefusedError(
            f"no record {text.strip()!r:.100} in this store: understood are Pith Numbers, "
            "8 or more characters of one, SHA-256 digests, arXiv ids and DOIs"
        )
    return found


def one_record(store: SqlStore, text: str) -> StoredRecord:
    """Return the one record `text` names.

    Raises:
        RefusedError: none, or several.
    """
    found = find_records(store, text)
    if len(found) > 1:
        names = ", ".join(name_of(record) for record in found[:5])
        raise RefusedError(f"{text.strip()!r:.100} means {len(found)} records: name one of {names}")
    return found[0]


def name_of(record: StoredRecord) -> str:
    """Return the Pith Number, or the digest."""
    if record.year is None:
        return "sha256:" + record.digest.hex()
    return pith_number(record.digest, record.year)
