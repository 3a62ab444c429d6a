"""Which records' documents say that they cite something; kept as documents come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa

from anchord.adapters.store.connection import insert_many, one_of
from anchord.adapters.store.schema import citations, documents
from anchord.core.citing import cited_names, names_of
from anchord.ports.face import MOST_CITING_RECORDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.model import StoredRecord

_AT_ONCE = 100


def keep_citations(connection: sa.Connection, record_id: int, raw: bytes) -> None:
    """Note what a document of a record cites."""
    names = sorted(cited_names(_events(raw)))
    if not names:
        return
    query = sa.select(citations.c.cited).where(citations.c.record_id == record_id)
    mine = query.where(one_of(connection, citations.c.cited, names))
    known = set(connection.execute(mine).scalars())
    fresh = [(name, record_id) for name in names if name not in known]
    insert_many(connection, citations, ("cited", "record_id"), fresh)


def rebuild(connection: sa.Connection) -> None:
    """Look at all documents anew."""
    connection.execute(sa.delete(citations))
    after = 0
    query = sa.select(documents.c.id, documents.c.record_id, documents.c.raw)
    query = query.order_by(documents.c.id).limit(_AT_ONCE)
    while found := connection.execute(query.where(documents.c.id > after)).all():
        for after, record_id, raw in found:  # noqa: B007 - the last one is where to go on
            keep_citations(connection, record_id, raw)


def citing(connection: sa.Connection, cited: Sequence[StoredRecord]) -> dict[int, list[int]]:
    """Return which other records came in documents that name these as cited, by row id."""
    names = {one.id: names_of(one.digest, one.source_id) for one in cited}
    every = sorted({name for some in names.values() for name in some})
    found: dict[str, list[int]] = {}
    query = sa.select(citations.c.cited, citations.c.record_id).order_by(citations.c.record_id)
    for start in range(0, len(every), _NAMES_AT_ONCE):
        some = one_of(connection, citations.c.cited, every[start : start + _NAMES_AT_ONCE])
        for name, record_id in connection.execute(query.where(some)):
            found.setdefault(name, []).append(record_id)
    return {
        key: _together(key, [found.get(one, []) for one in mine]) for key, mine in names.items()
    }


_NAMES_AT_ONCE = 10_000


def _together(own: int, lists: Sequence[list[int]]) -> list[int]:
    every = {one for some in lists for one in some if one != own}
    return sorted(every)[:MOST_CITING_RECORDS]


class _Document(msgspec.Struct):
    events: list[Any] = []


def _events(raw: bytes) -> list[dict[str, Any]]:
    """Return the events of a document; it was read strictly before it came here."""
    try:
        found = msgspec.json.decode(raw, type=_Document).events
    except (msgspec.MsgspecError, RecursionError):
        return []
    return [one for one in found if isinstance(one, dict)]
