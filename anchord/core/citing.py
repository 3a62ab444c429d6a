"""Which record a citation is about: from the names that works are cited by to records.

A work is cited by what its citer knew of it (`anchord.core.claims`). Digest and Pith Number name
one record; an arXiv id or a DOI names a paper, and so every record made of that paper, of one
version where the citation says which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from anchord.core.claims import CITATION
from anchord.core.number import pith_suffix
from anchord.core.reference import Reference, parse_reference
from anchord.errors import RefusedError

_NAMED_BY = ("record_id", "pith_number", "arxiv", "doi", "url")
_WHOLE = 26
"""Letters of a whole suffix."""
_MAX_TEXT = 300


def names_of(digest: bytes, source_id: str | None) -> tuple[str, ...]:
    """Return the names under which a record may be cited, as `cited_names` has them."""
    mine = f"pith:{pith_suffix(digest)}"
    return (mine,) if source_id is None else (mine, _paper(source_id))


def cited_names(events: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return what some events say is cited: a superset, for nothing of it is checked here."""
    found: set[str] = set()
    for event in events:
        if event.get("event_type") == CITATION:
            found.update(name for name, _ in _works(event))
    return found


def cites(
    event: Mapping[str, Any], digest: bytes, source_id: str | None, source_version: int | None
) -> bool:
    """Tell whether a citation is about one record.

    Where it names a record, that decides; else one name of its paper does.

    Args:
        event: a valid one.
        digest: of the record.
        source_id: of its paper, where it has one.
        source_version: of that paper.
    """
    works, mine = list(_works(event)), names_of(digest, source_id)
    exact = [(name, one.digest) for name, one in works if one.source_id is None]
    if exact:
        return all(name in mine and found in (None, digest) for name, found in exact)
    versions = (None, source_version)
    return any(name in mine and one.source_version in versions for name, one in works)


def _works(event: Mapping[str, Any]) -> Iterator[tuple[str, Reference]]:
    """Yield the names of the cited work that can be a record's."""
    payload = event.get("payload")
    cited = payload.get("cited") if isinstance(payload, Mapping) else None
    if not isinstance(cited, Mapping):
        return
    for kind in _NAMED_BY:
        text = cited.get(kind)
        reference = _reference(kind, text) if isinstance(text, str) else None
        if reference is None:
            continue
        if reference.digest is not None:
            yield f"pith:{pith_suffix(reference.digest)}", reference
        elif reference.source_id is not None:
            yield _paper(reference.source_id), reference
        elif reference.prefix is not None and len(reference.prefix) == _WHOLE:
            yield f"pith:{reference.prefix}", reference


def _reference(kind: str, text: str) -> Reference | None:
    if len(text) > _MAX_TEXT or not text.isprintable():
        return None
    try:
        return parse_reference(f"arxiv:{text}" if kind == "arxiv" else text)
    except RefusedError:
        return Reference(source_id=text) if kind in ("arxiv", "doi") else None


def _paper(source_id: str) -> str:
    return f"paper:{source_id.lower()}"
