"""`openapi.json`: what `anchord serve` answers, as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.1).

Schemas are those of the package, and `tests/face` asks a server everything that stands here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anchord import __version__
from anchord.app.face.schemas import FOLDER as SCHEMAS
from anchord.app.face.schemas import components, schema_files
from anchord.app.face.site import Site
from anchord.ports.face import ANCHORED_WORDS, STORED_WORDS

MOST_ROWS, ROWS = 200, 50
"""Records of one page of a list: most, and unless asked otherwise."""
LONGEST_REFERENCE = 500
ANY = "any"
"""In place of a word of the strip by which a list is filtered: all."""
_NUMBERED = {"type": "string", "pattern": "^[A-Z2-7]{26}$", "minLength": 26, "maxLength": 26}
_UNNUMBERED = {"type": "string", "pattern": "^[0-9a-f]{64}$", "minLength": 64, "maxLength": 64}

_DOCUMENTS = (
    ("bundle.json", "application/json", "bundle", "All evidence in one file"),
    ("state.json", "application/json", "state", "What the events come to"),
    ("graph.json", "application/ld+json", "graph", "Claims that stand, as JSON-LD"),
    ("events.json", "application/ld+json", "events", "Every event and what the merge makes of it"),
    ("badge.svg", "image/svg+xml", None, "A picture of what holds"),
    ("proof.ots", "application/vnd.opentimestamps.ots", None, "The OpenTimestamps proof"),
    ("certificate.pdf", "application/pdf", None, "One page of what was verified, for people"),
)

_DESCRIPTION = """\
Every path answers GET and HEAD. Believe signed events, after checking them, and not this server: \
`bundle.json` has all that is needed.

A published tree has the files of records and those of the site at the same paths, and what is \
told here of `/lookup`, `/records`, `/audit.json`, health and `certificate.pdf`, and of asking for \
a form by `Accept`, holds for a server alone.

Not told as paths, since they are for people and may change: `/` (how complete the registry is), \
`/events`, `/parked` and `/audit`, pages of HTML; nor `/events.stream`, which does not end: events \
as they are signed, as server-sent events whose id is the place in the ledger, from `?after=<id>` \
or `Last-Event-ID` on.
"""


def openapi(site: Site) -> bytes:
    """Return `openapi.json`; without an address of the site the server is where the file is."""
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": site.name,
            "version": __version__,
            "summary": "Records, their receipts and proofs; to be read only",
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": site.base_url or "./"}],
        "paths": _paths(),
        "components": {
            "schemas": {**components(), "problem": _PROBLEM},
            "responses": _RESPONSES,
            "headers": _HEADERS,
        },
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    return text.encode("utf-8") + b"\n"


def _paths() -> dict[str, Any]:
    return {
        **_record_paths("pith", "suffix", _NUMBERED, "the 26 characters of its Pith Number"),
        **_record_paths("record", "digest", _UNNUMBERED, "the SHA-256 of its canonical bytes"),
        "/.well-known/pith/{suffix}/bundle.json": _get(
            "well_known_bundle", "The same bundle, where mirrors look for it",
            [_in_path("suffix", _NUMBERED, "the 26 characters of its Pith Number")],
            {"200": _answer({"application/json": "bundle"}), **_kept("404")},
        ),
        "/lookup": _get(
            "lookup", "From any name of a record to the record",
            [_in_query("ref", {"type": "string", "minLength": 1, "maxLength": LONGEST_REFERENCE},
                       "A Pith Number or 8 or more characters of it, a SHA-256, an arXiv id, a DOI",
                       required=True)],
            {"303": _LEADS, "300": _answer({"application/json": "matches", "text/html": None}),
             **_kept("400", "404")},
        ),
        **_list_paths(),
        **_about_paths(),
    }  # fmt: skip


def _record_paths(
    folder: str, name: str, schema: dict[str, Any], words: str
) -> dict[str, dict[str, Any]]:
    where = f"/{folder}/{{{name}}}"
    asked = [_in_path(name, schema, words)]
    whole = {"application/ld+json": "record-document"}
    elsewhere = {"303": _LEADS, **_kept("404")}
    found = {
        where: _get(
            f"{folder}_page", "The record: a page, or JSON-LD where that is asked for", asked,
            {"200": _answer({"text/html": None, **whole}), **elsewhere},
        ),
        f"{where}.json": _get(
            f"{folder}_json", "The record as JSON-LD", asked, {"200": _answer(whole), **elsewhere}
        ),
    }  # fmt: skip
    for file, kind, schema_name, summary in _DOCUMENTS:
        operation = f"{folder}_{file.replace('.', '_')}"
        away = {"503": _PROBLEMS["503"]} if file == "certificate.pdf" else {}
        found[f"{where}/{file}"] = _get(
            operation, summary, asked, {"200": _answer({kind: schema_name}), **elsewhere, **away}
        )
    return found


def _list_paths() -> dict[str, dict[str, Any]]:
    asked = [
        _in_query("q", {"type": "string", "maxLength": LONGEST_REFERENCE}, "A name, as in lookup"),
        _in_query("anchored", {"enum": [ANY, *ANCHORED_WORDS]}, "Only with this word"),
        _in_query("stored", {"enum": [ANY, *STORED_WORDS]}, "Only with this word"),
        _in_query("source", {"type": "string", "maxLength": 256,
                             "pattern": "^[^\\x00-\\x1f\\x7f]*$"}, "Only of this kind of source"),
        _in_query("cursor", {"type": "string", "pattern": "^[0-9]{1,18}$", "maxLength": 18},
                  "Where to go on, from `next`; without it, at the newest"),
        _in_query("limit", {"type": "integer", "minimum": 1, "maximum": MOST_ROWS,
                            "default": ROWS}, "Most records of one answer"),
    ]  # fmt: skip
    rows = {"application/json": "record-list"}
    return {
        "/records.json": _get(
            "records_json", "Records, the newest first; an answer may hold fewer than there are",
            asked, {"200": _answer(rows), **_kept("400")},
        ),
        "/records": _get(
            "records", "The same, as a page unless JSON is asked for", asked,
            {"200": _answer({"text/html": None, **rows}), "303": _LEADS, **_kept("400")},
        ),
    }  # fmt: skip


def _about_paths() -> dict[str, dict[str, Any]]:
    found = {}
    for path, kind, schema, summary in (
        ("pith-mirrors.json", "application/json", "mirror-manifest", "How mirrors find bundles"),
        ("pith-signing-key.json", "application/json", "key-document", "The key that signs here"),
        ("context.jsonld", "application/ld+json", None, "What the keys of JSON-LD mean"),
        ("openapi.json", "application/json", None, "This document"),
        ("llms.txt", "text/plain", None, "What an agent should know"),
        ("robots.txt", "text/plain", None, "What crawlers may do"),
        ("pith.sty", "text/plain", None, "The LaTeX package"),
    ):
        name = path.replace(".", "_").replace("-", "_")
        found[f"/{path}"] = _get(name, summary, [], {"200": _answer({kind: schema}), **_kept()})
    for path in ("pith-mirrors.json", "pith-signing-key.json"):
        same = found[f"/{path}"]["get"]
        found[f"/.well-known/{path}"] = {
            "get": {**same, "operationId": f"well_known_{same['operationId']}"}
        }
    found["/keys/{key_id}.json"] = _get(
        "key", "A public key of the keyring",
        [_in_path("key_id", {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"}, "Its id")],
        {"200": _answer({"application/json": "key-document"}), **_kept("404")},
    )  # fmt: skip
    names = [path.removeprefix(SCHEMAS + "/") for path in schema_files()]
    found["/schemas/{file}"] = _get(
        "schema", "The JSON Schema of a document",
        [_in_path("file", {"type": "string", "enum": names}, "Its file")],
        {"200": _answer({"application/schema+json": None}), **_kept()},
    )  # fmt: skip
    return {**found, **_health_paths()}


def _health_paths() -> dict[str, Any]:
    healthy = {"description": "It lives", "content": {"text/plain": {}}}
    ready = {"application/json": {"schema": _READY}}
    return {
        "/audit.json": _get(
            "audit_json", "The newest audit that the operator shows", [],
            {"200": _answer({"application/json": "audit-report"}), **_kept("404")},
        ),
        "/healthz": _get("healthz", "Whether the process lives", [], {"200": healthy}),
        "/readyz": _get(
            "readyz", "Whether store, public keys and tree can be read", [],
            {"200": {"description": "They can", "content": ready},
             "503": {"description": "They cannot", "content": ready}},
        ),
    }  # fmt: skip


# ---------------------------------------------------------------------- parts


def _get(
    name: str, summary: str, asked: list[dict[str, Any]], responses: dict[str, Any]
) -> dict[str, Any]:
    return {
        "get": {
            "operationId": name,
            "summary": summary,
            **({"parameters": asked} if asked else {}),
            "responses": dict(sorted(responses.items())),
        }
    }


def _in_path(name: str, schema: dict[str, Any], words: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _in_query(
    name: str, schema: dict[str, Any], words: str, *, required: bool = False
) -> dict[str, Any]:
    found = {"name": name, "in": "query", "description": words, "schema": schema}
    return {**found, "required": True} if required else found


def _answer(kinds: Mapping[str, str | None]) -> dict[str, Any]:
    return {
        "description": "As asked",
        "headers": {"ETag": {"$ref": "#/components/headers/ETag"}},
        "content": {
            kind: {"schema": {"$ref": f"#/components/schemas/{schema}"}} if schema else {}
            for kind, schema in kinds.items()
        },
    }


def _kept(*statuses: str) -> dict[str, Any]:
    """Return the answers that any question may have, and those that this one may have."""
    return {status: _PROBLEMS[status] for status in ("304", *statuses, "503")}


_READY = {
    "type": "object",
    "required": ["ready", "missing"],
    "properties": {
        "ready": {"type": "boolean"},
        "missing": {"type": "array", "items": {"type": "string"}},
    },
}
_PROBLEM = {
    "title": "Problem details (RFC 9457)",
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
_TOLD = {
    "application/problem+json": {"schema": {"$ref": "#/components/schemas/problem"}},
    "text/html": {},
}
_RESPONSES = {
    "NotModified": {"description": "What If-None-Match names is still so"},
    "Leads": {
        "description": "The one record that is meant is there",
        "headers": {"Location": {"schema": {"type": "string"}, "required": True}},
    },
    "Unclear": {"description": "A parameter is not what it must be", "content": _TOLD},
    "Absent": {"description": "There is no such thing here", "content": _TOLD},
    "Busy": {"description": "Not now; ask again later", "content": _TOLD},
}
_HEADERS = {"ETag": {"schema": {"type": "string"}, "description": "Of these very bytes"}}
_LEADS = {"$ref": "#/components/responses/Leads"}
_PROBLEMS = {
    "304": {"$ref": "#/components/responses/NotModified"},
    "400": {"$ref": "#/components/responses/Unclear"},
    "404": {"$ref": "#/components/responses/Absent"},
    "503": {"$ref": "#/components/responses/Busy"},
}
