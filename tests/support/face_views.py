"""Records as their pages see them: one with every kind of event, a hostile one, an empty one."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser
from typing import Any

from anchord.core.bundle_text import render_bundle
from anchord.core.canonical import read_record
from anchord.core.event import ITEM_STORED, WITHDRAWN
from anchord.core.model import Record, Scheme
from anchord.core.moment import utc
from anchord.core.record_view import Citing, RecordView
from anchord.engine.viewing import view_of
from support.crowd import (
    KEYS,
    OWN,
    POWERLESS,
    READER,
    RECORD,
    REGISTRY,
    STRANGER,
    VALID,
    claim,
)
from support.evidence import body_of, bundle_with, sign, stored_event
from support.parties import START

SCRIPT = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
TURNED = "\u202egnp.exe \u2066"
HOSTILE = f"{SCRIPT} {TURNED} " + "W" * 10_000
TITLE = "On  the Life of\n Records"


def rich(*, cited_by: int = 0) -> RecordView:
    """Return a record with every event that a merge can meet, sound and not."""
    events = [
        *VALID.values(),
        *POWERLESS.values(),
        claim("author_claim", "author", author={"name": "B.", "orcid": "0000-0002-1825-0097"}),
    ]
    citing = [
        Citing(
            name=f"pith:2019:{'B' * 26}" if place else "sha256:" + "ab" * 32,
            relation="uses_method",
            event_id="sha256:" + "0" * 64,
            created_at="2024-05-05T00:00:00Z",
            signer_id="reader.example.org",
        )
        for place in range(min(cited_by, 3))
    ]
    raw = bundle_with(RECORD, events, [OWN, READER, STRANGER])
    return view_of(raw, KEYS, cited_by=citing, cited_by_count=cited_by)


def of_events(*events: dict[str, Any]) -> RecordView:
    """Return the record of `support.crowd` with these events alone."""
    return view_of(bundle_with(RECORD, events, [OWN]), KEYS)


def receipt_for(digest: bytes, **more: str) -> dict[str, str]:
    """Return a receipt of the registry that holds."""
    signature = base64.b64encode(REGISTRY.sign(digest)).decode()
    return {
        "kind": "pith_receipt",
        "key_id": REGISTRY.key_id,
        "algorithm": "ed25519",
        "signed_at": "2024-05-18T01:05:52Z",
        "signature_b64": signature,
        **more,
    }


def titled(**beside: Any) -> RecordView:
    """Return a record whose title is TITLE; `beside` are more keys of its bundle."""
    record = paper(TITLE)
    bundle = json.loads(bundle_with(record, [], [REGISTRY]))
    return view_of(json.dumps({**bundle, **beside}).encode(), KEYS)


def paper(title: str, **fields: Any) -> Record:
    """Return a record as the registry writes them."""
    canonical = " ".join(title.lower().split()).encode()
    metadata = {
        "abstract_canon_sha256": "0" * 64,
        "cross_cats_sorted": [],
        "license": "",
        "primary_cat": "cs.SE",
        "submitted_at": "2017-04-17T00:00:00Z",
        "title_canon_sha256": hashlib.sha256(canonical).hexdigest(),
    }
    source = {"id": "1704.05008", "kind": "arxiv", "version": 2}
    value = {"metadata": metadata, "schema_version": "1.0", "source": source, **fields}
    return read_record(json.dumps(value).encode())


def bare() -> RecordView:
    """Return a record of which only the hash is known."""
    record = Record(digest=hashlib.sha256(b"x").digest(), scheme=Scheme.SHA256)
    return view_of(render_bundle(record, utc(START), [], []), KEYS)


def hostile(text: str = HOSTILE) -> RecordView:
    """Return a record that has `text` wherever a stranger can put any."""
    record = paper(text, note=text, url="javascript:alert(1)",
                   source={"id": text[:250], "kind": "javascript", "version": 1})  # fmt: skip
    short = text[:290]

    def said(kind: str, target: str, by: Any = READER, **payload: Any) -> dict[str, Any]:
        return sign(body_of(record, by, payload, event_type=kind, target=target), by)

    captured = stored_event(record, OWN)
    events = [
        captured,
        stored_event(record, OWN, ITEM_STORED, file="<b>x?#.zip"),
        said(WITHDRAWN, "storage", OWN, withdraws=captured["event_id"], reason=text),
        said("author_claim", "author", author={"name": short}),
        said("citation", "citation", relation="cites",
             cited={"url": 'http://example.org/"onclick=alert(1)', "title": short}),
        said("citation", "citation", relation="extends",
             citing={"url": "https://trusted@example.org/", "title": short}),
        said(text[:290], text[:290], OWN, word=text),
        {"event_type": text, "event_id": text, "target": text, "created_at": text,
         "payload": {"title": text}, "signer": {"signer_id": text, "key_id": text}},
        {"event_type": ["x"], "event_id": 7, "created_at": {"a": 1}, "signer": "me"},
    ]  # fmt: skip
    bundle = json.loads(bundle_with(record, events, [OWN, READER]))
    bundle["receipt"] = dict.fromkeys(("key_id", "algorithm", "signature_b64", "signed_at",
                                       "builder", "schema"), text)  # fmt: skip
    alias = {"alias_kind": text, "alias_value": text, "created_at": "x"}
    bundle["source_aliases"].append(alias)
    cited = Citing(name=text, relation=text, event_id=text, created_at=text, signer_id=text)
    return view_of(json.dumps(bundle).encode(), KEYS, cited_by=[cited], cited_by_count=1)


class Seen(HTMLParser):
    """What a browser finds in a page.

    Args:
        page: as it is handed out.
    """

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def shape(self) -> list[tuple[str, tuple[str, ...]]]:
        """Every element with the names of its attributes."""
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]

    @property
    def links(self) -> list[str]:
        """Where elements of any kind lead or load from."""
        names = ("href", "src", "action")
        return [found[name] for _, found in self.elements for name in names if name in found]

    @property
    def words(self) -> str:
        """The text, runs of white space as one space."""
        return " ".join(self.text.split())
