"""`llms.txt`: what an agent should know before it asks (https://llmstxt.org)."""

from __future__ import annotations

from anchord.app.face.site import Site

_TEXT = """\
# {name}

> Records with a Pith Number (`pith:<year>:<26 characters>`): the hash of a canonical record, \
signed receipts of its Bitcoin timestamp and of its copies at the Internet Archive, and who cites \
it. Ask for JSON; nothing here needs scraping, a login, or a key.

A record's address is `{base}/pith/<26 characters>`, or `{base}/record/<64 hex>` where it has no \
Pith Number. With `Accept: application/ld+json` it answers JSON-LD, otherwise a page. To recompute \
the hash of a record yourself:

    curl -sH 'Accept: application/ld+json' {host}/pith/<26 characters> \\
      | jq -c '.canonical_record' \\
      | python3 -c "import sys,json,hashlib; b=json.dumps(json.loads(sys.stdin.read()), \
sort_keys=True, separators=(',',':'), ensure_ascii=False).encode(); \
print(hashlib.sha256(b).hexdigest())"

Signed events alone say what holds: believe `bundle.json` after checking it, not this server. What \
a record does not say is unknown, not false. Answers carry an ETag: ask again with If-None-Match.

## API

- [openapi.json]({base}/openapi.json): every path, parameter and answer (OpenAPI 3.1)
- [context.jsonld]({base}/context.jsonld): what the keys mean
- [schemas]({base}/schemas/bundle.schema.json): JSON Schemas, `schemas/<document>.schema.json`
- `{base}/lookup?ref=<name>`: from a DOI, an arXiv id, a hash or a short form to the record
- `{base}/records.json`: all records, the newest first; `anchored=`, `stored=`, `source=`, `q=`

## Of each record

- `{base}/pith/<26 characters>.json`: the record, its hash, names, receipt and completeness
- `bundle.json`, in the folder of that name: all evidence in one file, with whole proofs and keys
- `state.json`: what the events come to, by the deterministic merge
- `graph.json`: claims, citations and replications that stand, as JSON-LD
- `events.json`: every event, each with whether it stands and why not
- `proof.ots`: the OpenTimestamps proof, for any client
- `badge.svg`: a picture for a page

## Optional

- [pith-mirrors.json]({base}/pith-mirrors.json): by which patterns a mirror finds bundles and states
- [pith-signing-key.json]({base}/pith-signing-key.json): the public key that signs here
- [pith.sty]({base}/pith.sty): LaTeX package that prints a linked badge
"""


def llms(site: Site) -> bytes:
    """Return `llms.txt`; without an address of the site its links are relative."""
    text = _TEXT.format(
        name=site.name, base=site.base_url or ".", host=site.base_url or "https://HOST"
    )
    return text.encode("utf-8")
