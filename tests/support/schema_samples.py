"""One right document of each kind that a schema describes, and where each leaves freedom."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from typing import Any, NamedTuple

from anchord.app.face.documents import events, resolver
from anchord.app.face.graph import graph
from anchord.app.face.site import Site
from anchord.app.report.contents import Audited
from anchord.app.report.json_document import document
from anchord.app.thresholds import Judged
from anchord.app.web.lookup import row_of
from anchord.core.audit import AuditOptions
from anchord.core.canonical import pith_number
from anchord.core.claims import AUTHOR_CLAIM, CITATION, REPLICATION
from anchord.core.event import ITEM_STORED, SUBMITTED
from anchord.core.finding import Part, Severity
from anchord.core.item_name import DayFile, day_manifest_body, signed_day_manifest
from anchord.core.key_document import to_document
from anchord.core.keyring import make_keyring
from anchord.core.mirror_manifest import own_entry, render_manifest
from anchord.core.standing import Standing
from anchord.core.state import state_of
from anchord.core.tree_index import index_body, line_of, render_shard, shard_name
from anchord.core.trust import Keys
from anchord.core.verify_event import read_event
from anchord.engine.audit.outcome import Outcome
from anchord.engine.viewing import view_of
from anchord.errors import AnchordError
from anchord.ports.face import Listed
from support.evidence import (
    CAPTURE,
    anchored_payload,
    body_of,
    bundle_with,
    mined,
    sign,
    stored_event,
    waiting,
    withdrawal,
)
from support.parties import START, FakeChain, FakeSigner
from support.workplace import sample

RECORD = sample(1)
OURS = FakeSigner()
PERSON = FakeSigner("person-2024", "ada.example.org")
REGISTRY = FakeSigner("pith-2024", "pith.example.org")
_HASH = base64.b64encode(bytes(range(32))).decode()


class Loose(NamedTuple):
    """What a schema leaves open at one place of a sample."""

    optional: bool = False
    any_type: bool = False


FREE = Loose(optional=True, any_type=True)
OPTIONAL = Loose(optional=True)
NAMED = Loose(optional=True)
"""A key that is a name of something: there may be none."""


LOOSE = {
    r"(author|citation|replication):signature_b64": OPTIONAL,  # others' unsigned ones are unknown
    r"author:payload/(author/orcid|position)": OPTIONAL,
    r"(citation|replication):payload/\w+/title": OPTIONAL,
    r"witnessed:payload/(not_before|rfc3161)": OPTIONAL,
    r"created:payload/canonical_record/.*": FREE,
    r"snapshot:payload/canonical_sha256": FREE,
    r"snapshot:payload/graph_snapshot/.*": FREE,
    r"(bundle|state):(current/)?canonical_record": Loose(any_type=True),
    r"(bundle|state):(current/)?canonical_record/.*": FREE,
    r"bundle:source": Loose(any_type=True),
    r"bundle:source/.*": FREE,
    r"bundle:(public_keys|inclusion|canonical_scheme)": OPTIONAL,
    r"bundle:public_keys/algorithm": FREE,  # a key of a kind that nobody here knows
    r"((bundle:public_keys/)|(mirror-manifest:mirrors/public_key/)|key:)"
    r"(public_key_hex|rotates_at|url|notes|signer_id|signer_type|targets|valid_from|valid_until|"
    r"revoked_at|revocation_reason)": OPTIONAL,
    r"mirror-manifest:(notes|mirrors/(record_pattern|proof_pattern|index|log))": OPTIONAL,
    r"state:current/graph_snapshots/payload/canonical_sha256": FREE,
    r"state:current/graph_snapshots/payload/graph_snapshot/.*": FREE,
    r"state:current/citations/\w+": NAMED,
    r"state:current/(record_created|timestamps|storage|author_claims|citations/\w+|replications|"
    r"other)/payload/.*": FREE,
    r"audit-report:completeness/(anchored|stored|by_source|by_cohort)/[^/]+": NAMED,
    r"audit-report:counts/.*": NAMED,
    r"audit-report:seconds": Loose(any_type=True),
    r"record-document:(short_)?pith_number": OPTIONAL,
    r"record-document:canonical_record": Loose(any_type=True),
    r"record-document:(canonical_record|source|receipt)/.*": FREE,
    r"record-document:receipt": OPTIONAL,
    r"graph:@graph/(?!@id|@type).*": FREE,
    r"events:(short_)?pith_number": OPTIONAL,
    r"events:events/event/.*": FREE,
    r"events:events/reason": Loose(any_type=True),
}
"""(sample:way, without the numbers of list items) as a pattern -> what is open there."""


def keys() -> Keys:
    """Return a keyring with everybody whose events are in `bundle`."""
    claims = ("author", "citation", "replication", "review")
    return Keys(
        make_keyring(
            [
                OURS.public(own=True, active=True),
                PERSON.public(targets=claims, signer_type="person"),
                REGISTRY.public(targets=("record", "graph"), signer_type="pith_registry"),
            ]
        )
    )


def _claim(kind: str, target: str, /, **payload: Any) -> dict[str, Any]:
    body = body_of(RECORD, PERSON, payload, event_type=kind, target=target)
    body["signer"]["signer_type"] = "person"
    return sign(body, PERSON)


def _registry(kind: str, target: str, /, **payload: Any) -> dict[str, Any]:
    """Return an event as the registry's are: nobody knows how its id comes about."""
    body = body_of(RECORD, REGISTRY, payload, event_type=kind, target=target)
    body["signer"]["signer_type"] = "pith_registry"
    name = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {**body, "event_id": "sha256:" + name}


def _created() -> dict[str, Any]:
    receipt = {
        "kind": "pith_receipt",
        "key_id": REGISTRY.key_id,
        "algorithm": "ed25519",
        "signed_at": "2024-08-01T11:00:00Z",
        "signature_b64": base64.b64encode(REGISTRY.sign(RECORD.digest)).decode(),
    }
    record = json.loads(RECORD.canonical or b"")
    return _registry("record_created", "record", canonical_record=record, receipt=receipt)


def unknown_event() -> dict[str, Any]:
    """Return a signed event of a type that nobody here knows."""
    return _claim("reviewed", "review", stars=5)


@cache
def _events() -> dict[str, dict[str, Any]]:
    chain = FakeChain()
    ots = mined(RECORD.digest, chain)
    anchored = sign(body_of(RECORD, OURS, anchored_payload(ots, chain)), OURS)
    asked = {
        "protocol": "opentimestamps",
        "calendars": ["https://calendar.example.org"],
        "commitment": "ab" * 32,
        "proof_sha256": hashlib.sha256(waiting(RECORD.digest)).hexdigest(),
    }
    author = {"name": "Ada Example", "orcid": "0000-0002-1825-0097"}
    work = {"doi": "10.1000/182", "title": "A handbook"}
    return {
        "anchored": anchored,
        "submitted": sign(body_of(RECORD, OURS, asked, event_type=SUBMITTED), OURS),
        "withdrawn": withdrawal(RECORD, OURS, anchored["event_id"]),
        "captured": stored_event(RECORD, OURS),
        "item": stored_event(RECORD, OURS, ITEM_STORED),
        "author": _claim(AUTHOR_CLAIM, "author", author=author, position=1),
        "citation": _claim(CITATION, "citation", relation="supports", cited=work),
        "replication": _claim(REPLICATION, "replication", kind="falsification", report=work),
        "created": _created(),
        "snapshot": _registry("graph_snapshot", "graph", graph_snapshot={"nodes": [1]}),
    }


EVENTS = _events()


def reads(event: dict[str, Any]) -> bool:
    """Tell whether the verifier takes an event."""
    number = EVENTS["anchored"]["subject_pith_number"]
    try:
        read_event(event, RECORD.digest, number, keys())
    except AnchordError:
        return False
    return True


@cache
def bundle() -> bytes:
    """Return a bundle with events of all kinds: some stand, some do not."""
    stranger = FakeSigner("stranger-2024", "stranger.example.org")
    lost = stored_event(RECORD, OURS, captured_at="2024-08-01T10:00:00Z", capture_url=_older())
    forged = {**EVENTS["captured"], "created_at": "2024-08-01T12:00:01Z"}
    two_faced = [stored_event(RECORD, OURS, sha256=f"{n:064x}", **_THIRD) for n in (1, 2)]
    events = [event for name, event in EVENTS.items() if name != "withdrawn"]
    events += [
        unknown_event(), lost, withdrawal(RECORD, OURS, lost["event_id"], "storage"), forged,
        *two_faced, stored_event(RECORD, stranger),
    ]  # fmt: skip
    return bundle_with(RECORD, events, [OURS])


def _older() -> str:
    return CAPTURE["capture_url"].replace("20240801110000", "20240801100000")


_THIRD = {
    "captured_at": "2024-08-01T09:00:00Z",
    "capture_url": _older().replace("20240801100000", "20240801090000"),
}


def _bundle() -> dict[str, Any]:
    document = json.loads(bundle())
    document["events"] = [EVENTS["anchored"]]
    document["canonical_scheme"] = "pith-json-v1"
    note = f"registry.example.org\n12\n{_HASH}\n\n\u2014 registry.example.org {_HASH}\n"
    proof = {"event_id": EVENTS["anchored"]["event_id"], "index": 3, "hashes": [_HASH]}
    document["inclusion"] = [{"checkpoint": note, "events": [proof]}]
    document["public_keys"] = [_key()]
    return document


def _key() -> dict[str, Any]:
    moments = dict.fromkeys(("valid_from", "valid_until", "revoked_at"), START)
    document = to_document(OURS.public(revocation_reason="lost", **moments))
    return {**document, "url": "https://registry.example.org/key.json", "notes": "a key"}


def _witnessed() -> dict[str, Any]:
    """Return the shape of an anchored event with both further witnesses; nothing in it holds."""
    event = json.loads(json.dumps(EVENTS["anchored"]))
    token = {"url": "https://tsa.example.org", "token_b64": _HASH, "commitment": "ab" * 32}
    event["payload"]["not_before"] = {"block_height": 99, "block_hash": "cd" * 32}
    event["payload"]["rfc3161"] = [{**token, "time": "2024-08-01T11:00:00Z"}]
    return event


def _day() -> dict[str, Any]:
    hashes = {"md5": "01" * 16, "sha1": "02" * 20, "sha256": "03" * 32}
    file = DayFile(name="bundles.zip", size=9, members=1, **hashes)
    signer = EVENTS["anchored"]["signer"]
    body = day_manifest_body("registry-example-2024-08-01", START // 86_400, [file], signer, START)
    signature = OURS.sign(hashlib.sha256(body).digest())
    return json.loads(signed_day_manifest(body, signature))


def _index() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an index and a line of it."""
    line = line_of("pith/ABC/bundle.json", b"{}")
    data, shard = render_shard(shard_name(line.path), [line])
    body = index_body([shard], EVENTS["anchored"]["signer"], START)
    signature = base64.b64encode(OURS.sign(hashlib.sha256(body).digest())).decode()
    return {**json.loads(body), "signature_b64": signature}, json.loads(data)


def _manifest() -> dict[str, Any]:
    entry = own_entry(
        name="a mirror", base_url="https://mirror.example.org", status="mirror",
        public_key=_key(), numbered="pith",
    )  # fmt: skip
    return json.loads(render_manifest([entry], "anchord-merge-v1", "2024-08-01T12:00:00Z"))


def _audit() -> dict[str, Any]:
    outcome = Outcome(AuditOptions(now=1_800_000_000))
    standing = Standing("arxiv", 1_799_000_000, "anchored", 1_799_100_000, "not stored", None)
    outcome.stand(standing, 3)
    outcome.stand(standing._replace(anchored="not anchored", anchored_at=None))
    outcome.find("signature-wrong", Severity.BROKEN, Part.EVENT, "sha256:00", "what", "todo")
    outcome.know("test-2024", "in the keyring")
    report = outcome.report(
        source="a store", kind="store", sampled="ten of them", checkpoint="a note", chain="bitcoin"
    )
    held = Judged(asked="max-age 24h", holds=False, words="the oldest waits for 9 days")
    return {**document(Audited(report=report, thresholds=(held,))), "seconds": 1.5}


def _served() -> dict[str, tuple[str, dict[str, Any]]]:
    few = bundle_with(RECORD, [EVENTS["anchored"]], [OURS])
    view, site = view_of(few, keys()), Site()
    listed = Listed(
        id=1, name=RECORD_NAME, digest=RECORD.digest, source_kind="arxiv", source_id="2507.00001",
        source_version=1, label="a file", added_at=START, anchored="anchored", stored="stored",
    )  # fmt: skip
    row = row_of(listed, site, "")
    found = {
        "record-document": json.loads(resolver(view, site)),
        "graph": json.loads(graph(view, site)),
        "events": json.loads(events(view, site)),
        "record-list": {"records": [row], "next": "records.json?cursor=1"},
        "matches": {"reference": "LOHGU5AX", "matches": [row, row]},
    }
    return {name: (name, document) for name, document in found.items()}


RECORD_NAME = pith_number(RECORD.digest, RECORD.year or "")

DOCUMENTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: ("event", event) for name, event in EVENTS.items()},
    "witnessed": ("event", _witnessed()),
    "bundle": ("bundle", _bundle()),
    "state": ("state", json.loads(json.dumps(state_of(bundle(), keys())))),
    "key": ("key-document", _key()),
    "day-manifest": ("day-manifest", _day()),
    "tree-index": ("tree-index", _index()[0]),
    "tree-index-line": ("tree-index-line", _index()[1]),
    "mirror-manifest": ("mirror-manifest", _manifest()),
    "audit-report": ("audit-report", _audit()),
    **_served(),
}
"""Title -> name of the schema, and a document that says as much as it can."""
