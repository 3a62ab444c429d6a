"""The rows of what others say: who wrote it, what it cites or is cited by, who repeated it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anchord.app.face.addresses import work_address
from anchord.app.face.rows import (
    MOST,
    Entry,
    Fact,
    Fates,
    Row,
    doubted_note,
    entry,
    fallen_name,
    of_type,
    relation_words,
    split,
    stated,
)
from anchord.app.face.words import dashed, plural, shown
from anchord.core.claims import AUTHOR_CLAIM, CITATION, KINDS, RELATIONS, REPLICATION

if TYPE_CHECKING:
    from anchord.core.merge import Merged, MergedEvent

_NAMES = (("pith_number", "Pith Number"), ("record_id", "Record"), ("doi", "DOI"),
          ("arxiv", "arXiv"), ("url", "Address"))  # fmt: skip


def claim_rows(merged: Merged, root: str) -> tuple[Row, Row, Row]:
    """Return the rows of author claims, citations and replications.

    Args:
        merged: what the record's events come to.
        root: from the page to the root.
    """
    fates = Fates(merged)
    authors = [_author(one, fates) for one in of_type(merged, AUTHOR_CLAIM)]
    order = {word: place for place, word in enumerate((*RELATIONS, *KINDS))}
    citations = sorted(of_type(merged, CITATION), key=lambda one: order[_word(one)])
    reports = sorted(of_type(merged, REPLICATION), key=lambda one: order[_word(one)])
    return (
        _row(merged, "Author claim", ("claim", "claims"), AUTHOR_CLAIM, authors),
        _row(merged, "Citations", ("citation", "citations"), CITATION,
             [_work(one, fates, root) for one in citations]),
        _row(merged, "Replications", ("report", "reports"), REPLICATION,
             [_work(one, fates, root) for one in reports]),
    )  # fmt: skip


def _row(
    merged: Merged, name: str, noun: tuple[str, str], event_type: str, entries: list[Entry]
) -> Row:
    standing, fallen = split(entries)
    return Row(
        name=name,
        state=plural(len(standing), *noun) if standing else "open",
        done=bool(standing),
        note=doubted_note(merged, event_type),
        entries=tuple(standing[:MOST]),
        folded=tuple(fallen[:MOST]),
        folded_name=fallen_name(fallen),
        more=max(len(standing) - MOST, 0) + max(len(fallen) - MOST, 0),
    )


def _word(one: MergedEvent) -> str:
    return one.proved.claim.word if one.proved.claim is not None else ""


def _author(one: MergedEvent, fates: Fates) -> Entry:
    payload = one.event["payload"]
    author = payload["author"]
    facts = []
    orcid = author.get("orcid")
    if orcid is not None:  # its check character was verified
        address = f"https://orcid.org/{orcid}"
        facts.append(Fact(name="ORCID", text=orcid, href=address))
    facts += stated(payload, "position", "Place among the authors")
    return entry(one, fates, shown(author["name"]), facts)


def _work(one: MergedEvent, fates: Fates, root: str) -> Entry:
    """Return a citation or a replication: both name one other work."""
    payload, word = one.event["payload"], _word(one)
    work = payload.get("cited") or payload.get("citing") or payload.get("report")
    if payload.get("citing"):
        word = f"{dashed(word)}, said of this record by"
    elif payload.get("cited"):
        word = f"This record {dashed(word)}"
    names = list(_names(work))
    head = shown(work["title"]) if work.get("title") else _headed(names[0])
    facts = names if work.get("title") else names[1:]
    return entry(one, fates, head, facts, href=work_address(work, root),
                 group=relation_words(word))  # fmt: skip


def _headed(name: Fact) -> str:
    """Return a name that says by itself what kind of name it is."""
    return {"DOI": "doi:", "arXiv": "arXiv:"}.get(name.name, "") + name.text


def _names(work: dict[str, Any]) -> Iterator[Fact]:
    for key, name in _NAMES:
        yield from stated(work, key, name)
