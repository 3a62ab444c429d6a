"""A record's page: one HTML file that follows from the bundle, the keyring and who cites it.

Server and published tree hand out the same bytes: nothing here knows the time, the request or the
store. All text of strangers goes through `words.shown` and Jinja2's autoescape.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.face import event_rows
from anchord.app.face.addresses import alias_address, paper_address, record_address
from anchord.app.face.claim_rows import claim_rows
from anchord.app.face.receipt_rows import receipts
from anchord.app.face.recipe import recipe
from anchord.app.face.rendering import render
from anchord.app.face.rows import relation_words
from anchord.app.face.site import ROOT, Site, place_of
from anchord.app.face.snippets import snippets, without_address
from anchord.app.face.storage_row import storage_row
from anchord.app.face.strip import FOR_TESTS, strip_words
from anchord.app.face.timestamp_row import timestamp_row
from anchord.app.face.titles import title_of
from anchord.app.face.words import moment, shown
from anchord.core.canonical import record_id, short_pith_number
from anchord.core.merge import BITCOIN
from anchord.core.mirror_manifest import WELL_KNOWN

if TYPE_CHECKING:
    from anchord.core.record_view import Citing, RecordView

_MOST_JSON = 20_000
"""Characters of a canonical record that a page shows."""
_MOST_ALIASES = 50
_UNUSUAL = re.compile(r"[^\n -~]")
_DONE = frozenset(("attested", "anchored", "stored", "refs"))


class _Name(msgspec.Struct, frozen=True, kw_only=True):
    """What a record is called."""

    kind: str
    short: str
    whole: str


def page(view: RecordView, site: Site) -> bytes:
    """Return `index.html` of a record, UTF-8."""
    bundle, merged = view.bundle, view.merged
    record = view.state["current"]["canonical_record"]
    fields = record if isinstance(record, dict) else {}
    title = title_of(view, fields)
    place = place_of(bundle)
    name = _name(view)
    anchored = merged.anchored
    return render(
        "record.html",
        root=ROOT,
        site=site,
        place=place,
        here=ROOT + place,
        address=None if site.base_url is None else f"{site.base_url}/{place}",
        name=name,
        digest=bundle.digest.hex(),
        title=None if title is None else shown(title),
        source=_source(fields),
        strip=_strip(view),
        anchored=anchored is not None,
        bitcoin=anchored is not None and anchored.claims is not None
        and anchored.claims.chain == BITCOIN,
        rows=(timestamp_row(merged, f"{ROOT}{place}/proof.ots"), storage_row(merged),
              *claim_rows(merged, ROOT)),
        citing=[_citing(one) for one in view.cited_by],
        citing_count=view.cited_by_count,
        receipts=receipts(view),
        aliases=_aliases(view),
        alias_count=len(bundle.aliases),
        snippets=snippets(view, site),
        without_address=without_address(site),
        agent=_agent(place, numbered=bundle.number is not None),
        recipe=recipe(bundle, site),
        canonical=_pretty(record),
        events=event_rows.groups(merged),
        events_summary=event_rows.summary(merged),
    )  # fmt: skip


def _name(view: RecordView) -> _Name:
    digest, number = view.bundle.digest, view.bundle.number
    if number is None:
        whole = record_id(digest)
        return _Name(kind="Record", short=whole[:19] + "\u2026", whole=whole)
    return _Name(kind="Pith Number", short=short_pith_number(digest), whole=number)


def _strip(view: RecordView) -> list[tuple[str, str]]:
    """Return the four words and their tones."""
    words = strip_words(view.state).values()
    tones = dict.fromkeys(_DONE, "good") | {"submitted": "wait", FOR_TESTS: "wait"}
    return [(word, tones.get(word, "idle")) for word in words]


def _source(record: dict[str, Any]) -> dict[str, Any] | None:
    """Return kind, id and version in words, the day and the field, and where the paper is."""
    source, metadata = record.get("source"), record.get("metadata")
    source = source if isinstance(source, dict) else {}
    metadata = metadata if isinstance(metadata, dict) else {}
    kind, name, version = source.get("kind"), source.get("id"), source.get("version")
    words = ":".join(part for part in (kind, name) if isinstance(part, str) and part)
    if words and type(version) is int:
        words += f" v{version}"
    at, field = metadata.get("submitted_at"), metadata.get("primary_cat")
    more = [at[:10] if isinstance(at, str) else "", field if isinstance(field, str) else ""]
    if not words and not any(more):
        return None
    return {
        "words": shown(words),
        "more": [shown(one, 60) for one in more if one],
        "href": paper_address(source, record),
    }


def _citing(one: Citing) -> dict[str, Any]:
    return {
        "name": shown(one.name, 80),
        "href": record_address(one.name, ROOT),
        "relation": relation_words(one.relation),
        "at": moment(one.created_at),
        "signer": shown(one.signer_id, 80),
    }


def _aliases(view: RecordView) -> list[dict[str, Any]]:
    stated = view.state["current"]["source_aliases"][:_MOST_ALIASES]
    return [
        {
            "kind": shown(one["alias_kind"], 60),
            "text": shown(one["alias_value"]),
            "href": alias_address(one["alias_kind"], one["alias_value"]),
        }
        for one in stated
    ]


def _agent(place: str, *, numbered: bool) -> list[tuple[str, str]]:
    """Return the documents of a record: path below the root, and what it is."""
    found = [
        (f"{place}.json", "resolver document: record, hash, names, receipt, completeness"),
        (f"{place}/bundle.json", "bundle: record, events, whole proofs, public keys"),
        (f"{place}/state.json", "merged state: what the events come to"),
        (f"{place}/graph.json", "graph: the record, what it cites, who cites it"),
        (f"{place}/events.json", "every signed event"),
    ]
    if numbered:
        found.append((f"{WELL_KNOWN}{place}/bundle.json", "the bundle, at its well-known place"))
    return found


def _pretty(record: Any) -> str | None:
    """Return the record as indented JSON; what a screen would not show is an escape."""
    if record is None:
        return None
    text = json.dumps(record, indent=2, ensure_ascii=False)
    if len(text) > _MOST_JSON:
        text = text[:_MOST_JSON] + "\n\u2026"
    return _UNUSUAL.sub(_visible, text)


def _visible(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]
