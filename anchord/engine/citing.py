"""Who cites a record: what stands of the citations in the documents of other records.

The store knows whose documents name a record; whether a citation was signed, and stands, follows
from those documents and the keyring. Only what bears on that is looked at: citations, and what
takes them back. What else a document says can neither make one stand nor fall.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from anchord.core.bundle import bundle_beside
from anchord.core.citing import cites
from anchord.core.claims import CITATION
from anchord.core.event import WITHDRAWN
from anchord.core.merge import MergedEvent, merge
from anchord.core.model import Record
from anchord.core.number import pith_number, record_id
from anchord.core.record_view import MOST_CITING, Citing
from anchord.engine.export import kept_documents
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.core.model import StoredRecord
    from anchord.core.trust import Keys
    from anchord.ports.store import Store

CitedBy = tuple[tuple[Citing, ...], int]
"""The first `MOST_CITING` by name and event, and how many there are."""
_BEARING = frozenset((CITATION, WITHDRAWN))
_REMEMBERED = 20_000
"""Citations; beyond that all is forgotten, and found again."""


class Citations:
    """Finds who cites records. Threads may share it.

    Args:
        keys: the keyring.
    """

    def __init__(self, keys: Keys) -> None:
        self._keys = keys
        self._known: dict[tuple[bytes, ...], tuple[MergedEvent, ...]] = {}
        self._remembered = 0

    def of(self, store: Store, records: Sequence[StoredRecord]) -> dict[int, CitedBy]:
        """Return by row id who cites each of some records; those that nobody does are left out."""
        places = {key: ids for key, ids in store.faces.citing(records).items() if ids}
        if not places:
            return {}
        every = sorted({one for ids in places.values() for one in ids})
        citers, documents = store.lookup.records(every), store.lookup.documents(every)
        standing = {one: self._standing(citers[one], documents.get(one, ())) for one in every}
        found = {}
        for record in records:
            lists = ((citers[one], standing[one]) for one in places.get(record.id, ()))
            mine = sorted(
                (citing for citer, events in lists for citing in _about(record, citer, events)),
                key=lambda citing: (citing.name, citing.event_id),
            )
            if mine:
                found[record.id] = (tuple(mine[:MOST_CITING]), len(mine))
        return found

    def _standing(
        self, record: StoredRecord, documents: Sequence[bytes]
    ) -> tuple[MergedEvent, ...]:
        """Return the citations that stand in a record's documents; those last seen are kept."""
        name = (record.digest, *(sha256(raw).digest() for raw in documents))
        found = self._known.get(name)
        if found is None:
            found = self._judged(record, documents)
            self._remembered += 1 + len(found)
            if self._remembered > _REMEMBERED:
                self._known, self._remembered = {}, 0
            self._known[name] = found
        return found

    def _judged(self, record: StoredRecord, documents: Sequence[bytes]) -> tuple[MergedEvent, ...]:
        events = [event for raw in kept_documents(documents) for event in _bearing(raw, record)]
        merged = merge(record.digest, _number(record), None, events, self._keys)
        return tuple(one for one in merged.standing if one.proved.event_type == CITATION)


def _about(
    record: StoredRecord, citer: StoredRecord, events: Sequence[MergedEvent]
) -> Iterator[Citing]:
    for one in events:
        if cites(one.event, record.digest, record.source_id, record.source_version):
            yield Citing(
                name=_number(citer) or record_id(citer.digest),
                relation=one.proved.claim.word if one.proved.claim is not None else "",
                event_id=one.proved.event_id,
                created_at=one.proved.created_at,
                signer_id=one.proved.signer_id,
            )


def _bearing(raw: bytes, record: StoredRecord) -> list[dict[str, Any]]:
    bare = Record(digest=record.digest, scheme=record.scheme, year=record.year)
    try:
        events = bundle_beside(raw, bare).events
    except RefusedError:
        return []
    return [event for event in events if event.get("event_type") in _BEARING]


def _number(record: StoredRecord) -> str | None:
    return None if record.year is None else pith_number(record.digest, record.year)
