"""The JSON-LD context of the documents, and what is named in them (https://www.w3.org/TR/json-ld11/).

Records are named by what they are, not by where somebody shows them: the `@id` of a record is its
Pith Number, or `sha256:` and its digest, so graphs of many mirrors are one graph. Words that
schema.org has are schema.org's, moments of signing are PROV's; the rest is the vocabulary of
docs/protocol.md. What strangers sign is carried as JSON values, whose keys never become words.
"""

from __future__ import annotations

import json
from typing import Any

from anchord.app.face.site import Site

CONTEXT_FILE = "context.jsonld"
_VOCABULARY = "urn:anchord:vocabulary:"
_JSON = "@json"


def _json(name: str) -> dict[str, str]:
    return {"@id": _VOCABULARY + name, "@type": _JSON}


def _link(name: str) -> dict[str, str]:
    return {"@id": name if ":" in name else _VOCABULARY + name, "@type": "@id"}


CONTEXT: dict[str, Any] = {
    "@context": {
        "@version": 1.1,
        "@vocab": _VOCABULARY,
        "schema": "https://schema.org/",
        "prov": "http://www.w3.org/ns/prov#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "title": "schema:name",
        "name": "schema:name",
        "about": _link("schema:about"),
        "author": _link("schema:author"),
        "orcid": _link("schema:sameAs"),
        "url": _link("schema:url"),
        "work": _json("work"),
        "created_at": {"@id": "prov:generatedAtTime", "@type": "xsd:dateTime"},
        "signer_id": "prov:wasAttributedTo",
        "citing": _link("citing"),
        "cited": _link("cited"),
        "report": _link("report"),
        "canonical_record": _json("canonical_record"),
        "source": _json("source"),
        "source_aliases": _json("source_aliases"),
        "receipt": _json("receipt"),
        "completeness": _json("completeness"),
        "anchored": _json("anchored"),
        "links": _json("links"),
        "payload": _json("payload"),
        "event": _json("event"),
        "cited_by": _link("cited_by"),
    }
}
"""What every key of the documents means."""


def context_bytes() -> bytes:
    """Return `context.jsonld`."""
    return json.dumps(CONTEXT, indent=1, ensure_ascii=False).encode("utf-8") + b"\n"


def address(site: Site, path: str, root: str) -> str:
    """Return where something is: absolute where the site has an address.

    Args:
        site: whose pages.
        path: below the root.
        root: from the document that says it to the root, "" or ending in "/".
    """
    return f"{root}{path}" if site.base_url is None else f"{site.base_url}/{path}"
