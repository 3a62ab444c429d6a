"""What others say about a record: who wrote it, what cites it, what came of repeating it.

The registry names these events and publishes no rule for them; the payloads are anchord's
(docs/protocol.md, Events). They are signed by the same rule as anchord's own, by whoever makes
them: anchord reads, merges and shows them, and never makes one.

`author_claim` (target `author`): `author` {`name`, `orcid`?}, `position`? in the list of authors.
`citation` (target `citation`): `relation`, and the other work, either as `cited` (this record
cites it) or as `citing` (it cites this record).
`replication` (target `replication`): `kind`, and the work that reports it as `report`.
A work is named by one or more of `pith_number`, `record_id`, `doi`, `arxiv`, `url`; `title` helps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from anchord.core.canonical import pith_suffix, record_id
from anchord.errors import VerificationError

AUTHOR_CLAIM = "author_claim"
CITATION = "citation"
REPLICATION = "replication"
TARGETS = {AUTHOR_CLAIM: "author", CITATION: "citation", REPLICATION: "replication"}
"""Event type -> the target a key must be permitted to sign."""
RELATIONS = (
    "supports", "refutes", "extends", "uses_method", "depends_on", "replaces", "compares", "cites",
)  # fmt: skip
KINDS = ("replication", "falsification", "formal_bridge")

_MAX_TEXT = 300
_ORCID = re.compile(r"(?:[0-9]{4}-){3}[0-9]{3}[0-9X]")
_FORMS = {
    "pith_number": re.compile(r"pith:[0-9]{4}:[A-Z2-7]{26}"),
    "record_id": re.compile(r"sha256:[0-9a-f]{64}"),
    "doi": re.compile(r"10\.[0-9]{4,9}/[^\s\x00-\x1f\x7f]+"),
    "arxiv": re.compile(r"[A-Za-z0-9][A-Za-z0-9./-]*"),
    "url": re.compile(r"https?://[^\s\x00-\x1f\x7f]+"),
}
"""How a work can be named, the most exact name first."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one event of others says."""

    word: str
    """Relation of a citation, kind of a replication; empty for an author claim."""
    text: str
    """All of it in words."""
    facts: tuple[tuple[str, str], ...] = ()
    """(about, content): two events of one signer with one `about` and two contents cannot both be
    true."""


class _Author(msgspec.Struct):
    name: str
    orcid: str | None = None


class _AuthorClaim(msgspec.Struct):
    author: _Author
    position: int | None = None


class _Work(msgspec.Struct):
    pith_number: str | None = None
    record_id: str | None = None
    doi: str | None = None
    arxiv: str | None = None
    url: str | None = None
    title: str | None = None


class _Citation(msgspec.Struct):
    relation: str
    cited: _Work | None = None
    citing: _Work | None = None


class _Replication(msgspec.Struct):
    kind: str
    report: _Work


def read_claim(event_type: str, event_id: str, payload: Mapping[str, Any], digest: bytes) -> Claim:
    """Return what an `author_claim`, `citation` or `replication` says about the record `digest`.

    Raises:
        VerificationError: a field is missing, malformed, or contradicts the others.
    """
    try:
        return _READERS[event_type](dict(payload), digest)
    except (msgspec.ValidationError, ValueError) as error:
        raise VerificationError(
            f"{event_type} {event_id:.80} says nothing: {error!s:.300}"
        ) from None


def _author_claim(payload: dict[str, Any], _digest: bytes) -> Claim:
    stated = msgspec.convert(payload, _AuthorClaim)
    name, orcid, place = stated.author.name, stated.author.orcid, stated.position
    _text(name, "the author's name")
    if orcid is not None and not _is_orcid(orcid):
        raise ValueError(f"orcid {orcid!r:.40}, whose last character does not follow from the rest")
    if place is not None and place < 1:
        raise ValueError(f"position {place}: the first author is 1")
    words = [name, *([f"ORCID {orcid}"] if orcid else []), *([f"author {place}"] if place else [])]
    facts: tuple[tuple[str, str], ...] = ()
    if orcid is not None and place is not None:
        # A person stands once in a list of authors, and a place holds one person.
        facts = ((f"author {place}", orcid), (f"ORCID {orcid}", str(place)))
    return Claim(word="", text=", ".join(words), facts=facts)


def _citation(payload: dict[str, Any], digest: bytes) -> Claim:
    stated = msgspec.convert(payload, _Citation)
    _one_of(stated.relation, RELATIONS, "relation")
    other = stated.cited or stated.citing
    if other is None or (stated.cited is not None and stated.citing is not None):
        raise ValueError("expected the other work, either as `cited` or as `citing`")
    name = _named(other, digest)
    way = "cited" if stated.cited is not None else "citing"
    text = f"it {stated.relation} {name}" if way == "cited" else f"{name} {stated.relation} it"
    facts: tuple[tuple[str, str], ...] = ()
    if stated.relation in ("supports", "refutes"):
        facts = ((f"whether it is supported or refuted, {way} {name}", stated.relation),)
    return Claim(word=stated.relation, text=text, facts=facts)


def _replication(payload: dict[str, Any], digest: bytes) -> Claim:
    stated = msgspec.convert(payload, _Replication)
    _one_of(stated.kind, KINDS, "kind")
    name = _named(stated.report, digest)
    facts: tuple[tuple[str, str], ...] = ()
    if stated.kind != "formal_bridge":
        facts = ((f"the outcome in {name}", stated.kind),)
    return Claim(word=stated.kind, text=f"{stated.kind} in {name}", facts=facts)


_READERS: dict[str, Callable[[dict[str, Any], bytes], Claim]] = {
    AUTHOR_CLAIM: _author_claim,
    CITATION: _citation,
    REPLICATION: _replication,
}


def _named(work: _Work, digest: bytes) -> str:
    """Return the most exact name of a work."""
    stated = {name: getattr(work, name) for name in _FORMS}
    names = {name: text for name, text in stated.items() if text is not None}
    if not names:
        raise ValueError(f"a work without a name: expected one of {', '.join(_FORMS)}")
    for name, text in names.items():
        if len(text) > _MAX_TEXT or not _FORMS[name].fullmatch(text):
            raise ValueError(f"{name} {text!r:.80}, which is none")
    number = work.pith_number or ""
    if work.record_id == record_id(digest) or number.endswith(":" + pith_suffix(digest)):
        raise ValueError("the other work is this record itself")
    if work.title is not None:
        _text(work.title, "a title")
    kind, text = next(iter(names.items()))
    return f"arXiv:{text}" if kind == "arxiv" else f"doi:{text}" if kind == "doi" else text


def _text(text: str, what: str) -> None:
    if not text.strip() or len(text) > _MAX_TEXT:
        raise ValueError(f"{what} has {len(text)} characters: expected 1 to {_MAX_TEXT}")


def _one_of(text: str, allowed: tuple[str, ...], what: str) -> None:
    if text not in allowed:
        raise ValueError(f"{what} {text!r:.40}: expected one of {', '.join(allowed)}")


def _is_orcid(text: str) -> bool:
    """Tell whether the check character follows (ISO/IEC 7064, MOD 11-2).

    https://support.orcid.org/hc/en-us/articles/360006897674
    """
    if not _ORCID.fullmatch(text):
        return False
    total = 0
    for digit in text.replace("-", "")[:-1]:
        total = (total + int(digit)) * 2
    return "0123456789X"[(12 - total % 11) % 11] == text[-1]
