"""The schemas of anchord/app/face/schemas take what is right and refuse what is not, key by key."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support import schema_samples as samples
from support.registry import real_receipts, registry_bundle
from support.schemas import FOLDER, PREFIX, assert_valid, faults, schemas, validator
from support.trees import publish_tree, tree_files
from support.workplace import Workplace, bare, sample

from anchord.app.report.contents import Audited
from anchord.app.report.json_document import render
from anchord.core.audit import AuditOptions
from anchord.core.keyring import REGISTRY_KEY, make_keyring
from anchord.core.state import state_bytes, state_of
from anchord.core.trust import Keys
from anchord.engine.audit.outcome import Outcome

PROTOCOL = (Path(__file__).resolve().parents[1] / "docs/protocol.md").read_text("utf-8")
NAMES = sorted(schemas())
EXAMPLES = re.findall(r"<!-- example: ([\w-]+) -->\n+```json\n(.*?)\n```", PROTOCOL, re.DOTALL)


# The schemas themselves


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_one_by_the_metaschema_and_named_after_its_file(name: str) -> None:
    schema = schemas()[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == PREFIX + name
    assert (FOLDER / f"{name}.schema.json").is_file()


def properties(schema: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every property that a schema describes, with the way to it; conditions are none."""
    if isinstance(schema, list):
        for number, item in enumerate(schema):
            yield from properties(item, f"{where}/{number}")
    elif isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("if", "then", "else", "anyOf", "oneOf", "not"):
                continue
            if key == "properties":
                for name, inner in value.items():
                    yield f"{where}/{name}", inner
            yield from properties(value, f"{where}/{key}")


@pytest.mark.parametrize("name", NAMES)
def test_every_property_says_whose_it_is_and_where_that_stands(name: str) -> None:
    found = list(properties(schemas()[name]))
    assert found
    for where, schema in found:
        assert schema.get("x-grade") in ("fact", "ours"), where
        assert schema.get("$comment"), where
        published = "registry" in schema["$comment"]
        assert published or schema["x-grade"] == "ours", f"{where}: a fact without its publisher"


def test_references_lead_somewhere() -> None:
    for name in NAMES:
        text = json.dumps(schemas()[name])
        for target in set(re.findall(r'"\$ref": "([^"]+)"', text)):
            urn, _, path = target.partition("#")
            schema: Any = schemas()[urn.removeprefix(PREFIX) if urn else name]
            for step in filter(None, path.split("/")):
                schema = schema[step]


def test_the_protocol_lists_every_schema() -> None:
    section = PROTOCOL.partition("Schemas (Draft 2020-12)")[2]
    found = re.findall(r"\(\.\./anchord/app/face/schemas/([\w-]+)\.schema\.json\)", section)
    assert set(found) == set(NAMES)


# What anchord writes, and what its page shows


@pytest.mark.parametrize(("name", "text"), EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_every_worked_example_validates(name: str, text: str) -> None:
    if name == "record":
        return  # a record may be any JSON
    if name == "inclusion":  # a part of a bundle
        part = schemas()["bundle"]["properties"]["inclusion"]["items"]
        validator("bundle").evolve(schema=part).validate(json.loads(text))
        return
    schema = "event" if name.startswith("event-") else name
    assert_valid(schema, text)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("schemas"))
    place.anchor(sample(1), sample(2), bare(bytes(range(32)), "a file"))
    place.add(sample(3))
    place.step()
    return place


def test_every_bundle_event_and_key_of_a_store_validates(place: Workplace) -> None:
    out = place.folder / "out"
    assert place.run("export", "--all", "--bundle", "-o", str(out)).exit_code == 0
    files = list(out.iterdir())
    assert len(files) == 4
    for file in files:
        assert_valid("bundle", file.read_bytes())
    (document,) = json.loads(files[0].read_bytes())["public_keys"]
    assert_valid("key-document", document)
    with place.app() as app:
        for file in files:
            assert_valid("state", state_bytes(file.read_bytes(), Keys(app.keyring)))


def test_every_document_of_a_published_tree_validates(place: Workplace, tmp_path: Path) -> None:
    done = publish_tree(place, tmp_path / "tree")
    files = tree_files(tmp_path / "tree")
    seen = Counter(_tree_schema(path) for path in files)
    assert (seen["bundle"], seen["state"]) == (done.records + 3, done.records), "3 are well known"
    for path, data in files.items():
        schema = _tree_schema(path)
        for document in data.splitlines() if schema == "tree-index-line" else [data]:
            if schema is not None:
                assert_valid(schema, document)


def _tree_schema(path: str) -> str | None:
    """Return the schema of a published file; None for proofs, checkpoints and tiles."""
    if not path.endswith((".json", ".jsonl")):
        return None
    named = {
        "index.json": "tree-index",
        "bundle.json": "bundle",
        "state.json": "state",
        "pith-mirrors.json": "mirror-manifest",
    }
    inner = "tree-index-line" if path.startswith("index/") else "key-document"
    return named.get(path.rpartition("/")[2], inner)


@pytest.mark.parametrize("name", sorted(samples.EVENTS))
def test_every_kind_of_event_validates_as_the_verifier_reads_it(name: str) -> None:
    event = samples.EVENTS[name]
    assert_valid("event", event)
    assert samples.reads(event), "the sample is none: the verifier refuses it"


def test_a_bundle_and_a_state_of_all_kinds_validate() -> None:
    raw = samples.bundle()
    assert_valid("bundle", raw)
    keys = samples.keys()
    state = state_of(raw, keys)
    assert_valid("state", state)
    current = state["current"]
    for kind in ("timestamps", "storage", "author_claims", "citations", "replications", "other"):
        assert current[kind], f"the sample has no {kind}"
    assert state["unverified_events"] or state["invalid_events"]


def test_an_audit_of_nothing_validates() -> None:
    report = Outcome(AuditOptions(now=0)).report(
        source="an empty folder", kind="bundles", sampled=None, checkpoint=None, chain=None
    )
    assert_valid("audit-report", render(Audited(report=report)))


# The registry's own documents


@pytest.mark.shared_data
def test_the_registrys_mirror_manifest_validates(shared_data: Path) -> None:
    assert_valid("mirror-manifest", (shared_data / "pith-mirrors.json").read_bytes())


@pytest.mark.shared_data
def test_the_registrys_key_document_validates(shared_data: Path) -> None:
    manifest = json.loads((shared_data / "pith-mirrors.json").read_bytes())
    for mirror in manifest["mirrors"]:
        assert_valid("key-document", mirror["public_key"])
    assert_valid(
        "key-document",
        json.loads((shared_data / "pith-signatures.json").read_bytes())["public_key"],
    )


@pytest.mark.shared_data
def test_the_registrys_bundle_validates_after_its_cut_was_closed(shared_data: Path) -> None:
    """What stands before the cut is the registry's; what closes it has the keys it publishes."""
    text = (shared_data / "pith-bundle-cut.txt").read_text("utf-8").strip()
    head = text.removesuffix('"2026-<CUT>')
    assert head != text
    signed = json.loads((shared_data / "pith-signatures.json").read_bytes())["signatures"][0]
    end = {"signed_at": "2026-07-04T16:09:46Z", "signature_b64": signed["signature_b64"]}
    signer = {
        "key_id": REGISTRY_KEY.key_id,
        "public_key_fingerprint": "8d4b5ee74e4693bcd1df2446408b0d54",
        "signer_id": "pith.science",
        "signer_type": "pith_registry",
    }
    tail = {"event_id": "sha256:" + "0" * 64, "created_at": end["signed_at"], "signer": signer}
    closed = (
        f'{head}"{end["signed_at"]}","signature_b64":"{end["signature_b64"]}"}}}},'
        f"{json.dumps(tail)[1:-1]}}}]}}"
    )
    assert_valid("bundle", closed)
    assert faults("bundle", closed.replace('"pith_receipt"', '"receipt"'))


@pytest.mark.shared_data
def test_bundles_with_the_registrys_real_receipts_validate(shared_data: Path) -> None:
    number = "pith:2025:" + "A" * 26
    record = json.loads(sample(1).canonical or b"")
    receipts = real_receipts(shared_data)
    assert len(receipts) > 3
    for digest, _, receipt in receipts:
        raw = registry_bundle(record, digest, number, receipt)
        assert_valid("bundle", raw)
        assert faults("bundle", raw.replace(b'"signed_at"', b'"signed"'))


@pytest.mark.shared_data
def test_the_registrys_state_validates_after_its_cut_was_closed(shared_data: Path) -> None:
    text = (shared_data / "pith-state-cut.txt").read_text("utf-8").strip()
    head, cut, _ = text.partition("{ ...")
    assert cut
    closed = head + "{}}}]}}"
    assert_valid("state", closed)
    assert faults("state", closed.replace('"equivocation_count":0,', ""))


def test_the_registrys_key_as_anchord_writes_it_validates() -> None:
    from anchord.core.key_document import to_document

    assert len(make_keyring([REGISTRY_KEY])) == 1
    assert_valid("key-document", to_document(REGISTRY_KEY))


# What is broken is refused


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every key of every object in a document; of lists, the first item's."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*way, key)
            yield from places(inner, (*way, key))
    elif isinstance(value, list) and value:
        yield from places(value[0], (*way, 0))


def parent(document: Any, way: tuple[Any, ...]) -> Any:
    for step in way[:-1]:
        document = document[step]
    return document


def other_types(value: Any) -> list[Any]:
    """Return values of every other type of JSON; `null` has a meaning in some places."""
    all_types: list[Any] = ["a word", 7, 1.5, True, [7], {"a": 7}]
    known = bool if isinstance(value, bool) else type(value)
    return [one for one in all_types if type(one) is not known]


def loose(document: str, way: tuple[Any, ...]) -> samples.Loose:
    """Return what is allowed at one place of a sample."""
    name = "/".join(str(step) for step in way if not isinstance(step, int))
    for pattern, allowed in samples.LOOSE.items():
        if re.fullmatch(pattern, f"{document}:{name}"):
            return allowed
    return samples.Loose()


@pytest.mark.parametrize("title", sorted(samples.DOCUMENTS))
def test_a_document_is_refused_when_any_of_its_keys_has_another_type(title: str) -> None:
    schema, document = samples.DOCUMENTS[title]
    assert_valid(schema, document)
    for way in places(document):
        if loose(title, way).any_type:
            continue
        for wrong in other_types(parent(document, way)[way[-1]]):
            broken = copy.deepcopy(document)
            parent(broken, way)[way[-1]] = wrong
            assert faults(schema, broken), f"{title} with {wrong!r} at {way} was taken"


@pytest.mark.parametrize("title", sorted(samples.DOCUMENTS))
def test_a_document_is_refused_when_any_of_its_keys_is_missing(title: str) -> None:
    schema, document = samples.DOCUMENTS[title]
    for way in places(document):
        broken = copy.deepcopy(document)
        del parent(broken, way)[way[-1]]
        found = faults(schema, broken)
        if loose(title, way).optional:
            assert not found, f"{title} without {way} was refused: {found}"
        else:
            assert found, f"{title} without {way} was taken"


BENT = [
    ("event", "anchored", ("payload", "block_hash"), "AB" * 32),
    ("event", "anchored", ("payload", "block_height"), -1),
    ("event", "anchored", ("payload", "confirmations"), 0),
    ("event", "anchored", ("payload", "chain"), "dogecoin"),
    ("event", "anchored", ("payload", "protocol"), "opentimestamps2"),
    ("event", "anchored", ("payload", "proof_b64"), "AE9w="),
    ("event", "anchored", ("target",), "storage"),
    ("event", "anchored", ("created_at",), "2024-08-01 12:00:00"),
    ("event", "anchored", ("created_at",), "2024-13-01T12:00:00Z"),
    ("event", "anchored", ("created_at",), "2024-08-01T12:00:00Z\n"),
    ("event", "anchored", ("event_id",), "sha256:" + "0" * 63),
    ("event", "anchored", ("event_id",), "sha256:" + "0" * 64 + "\n"),
    ("event", "anchored", ("subject_pith_number",), "pith:2001:abc"),
    ("event", "anchored", ("subject_record_id",), "sha256:" + "0" * 64),
    ("event", "anchored", ("signature_b64",), "AAAA"),
    ("event", "anchored", ("signer", "public_key_fingerprint"), "zz" * 16),
    ("event", "withdrawn", ("target",), "graph"),
    ("event", "captured", ("payload", "http_status"), 404),
    ("event", "captured", ("payload", "grade"), "listed"),
    ("event", "captured", ("payload", "size"), 0),
    ("event", "captured", ("payload", "capture_url"), "https://web.archive.org/elsewhere"),
    ("event", "item", ("payload", "member"), "other.json"),
    ("event", "item", ("payload", "file"), "a/b.zip"),
    ("event", "citation", ("payload", "relation"), "mentions"),
    ("event", "citation", ("payload", "citing"), {"doi": "10.1000/1"}),
    ("event", "citation", ("payload", "cited"), {"title": "a work without a name"}),
    ("event", "replication", ("payload", "kind"), "confirmation"),
    ("event", "author", ("payload", "position"), 0),
    ("event", "author", ("payload", "author", "orcid"), "0000-0000"),
    ("bundle", "bundle", ("bundle_type",), "pith_open_graph_state"),
    ("bundle", "bundle", ("bundle_version",), "2.0"),
    ("bundle", "bundle", ("record_id",), "sha256:" + "0" * 64),
    ("bundle", "bundle", ("canonical_scheme",), "sha256"),
    ("bundle", "bundle", ("inclusion", 0, "checkpoint"), "no note"),
    ("bundle", "bundle", ("inclusion", 0, "events", 0, "hashes"), ["AAAA"]),
    ("bundle", "bundle", ("events", 0, "target"), ""),
    ("state", "state", ("merge_version",), "my-merge"),
    ("state", "state", ("valid_event_count",), -1),
    ("state", "state", ("current", "completeness", "anchored"), "pending"),
    ("key-document", "key", ("public_key_b64",), "AAAA"),
    ("key-document", "key", ("algorithm",), "rsa"),
    ("day-manifest", "day-manifest", ("surplus",), 1),
    ("day-manifest", "day-manifest", ("version",), 2),
    ("day-manifest", "day-manifest", ("files", 0, "sha1"), "0" * 39),
    ("tree-index", "tree-index", ("shards", 0, "name"), "index/../00.jsonl"),
    ("tree-index-line", "tree-index-line", ("path",), "/etc/passwd"),
    ("tree-index-line", "tree-index-line", ("mtime",), 1),
    ("mirror-manifest", "mirror-manifest", ("mirrors", 0, "bundle_pattern"), "bundle.json"),
    ("audit-report", "audit-report", ("result",), "fine"),
    ("audit-report", "audit-report", ("result",), "sound"),
    ("audit-report", "audit-report", ("reasons",), []),
    ("audit-report", "audit-report", ("coverage", "surplus"), 1),
    ("audit-report", "audit-report", ("findings", 0, "severity"), "bad"),
]


@pytest.mark.parametrize(("schema", "title", "way", "wrong"), BENT)
def test_a_value_that_cannot_be_is_refused(
    schema: str, title: str, way: tuple[Any, ...], wrong: Any
) -> None:
    broken = copy.deepcopy(samples.DOCUMENTS[title][1])
    parent(broken, way)[way[-1]] = wrong
    assert faults(schema, broken)


def test_types_and_keys_that_nobody_here_knows_are_taken() -> None:
    event = samples.unknown_event()
    assert_valid("event", event)
    document = json.loads(samples.bundle())
    document["events"].append(event)
    document["of_somebody_else"] = {"any": ["thing"]}
    assert_valid("bundle", document)
