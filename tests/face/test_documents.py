"""The documents of a record: what stands and what does not, whoever wrote it, wherever they are."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from support.evidence import bundle_with
from support.schema_samples import EVENTS, OURS, RECORD, bundle, keys
from support.schemas import assert_valid
from support.workplace import bare

from anchord.app.face.context import CONTEXT
from anchord.app.face.documents import events, resolver
from anchord.app.face.files import RECORD_FILES, about_files, files_of
from anchord.app.face.graph import graph
from anchord.app.face.schemas import schema_files
from anchord.app.face.site import ROOT, Site
from anchord.core.canonical import digest_of
from anchord.core.record_view import Citing, RecordView
from anchord.engine.viewing import view_of

HERE, THERE = Site(), Site(base_url="https://pith.example.org", name="ours")


@pytest.fixture(scope="module")
def view() -> RecordView:
    return view_of(bundle(), keys())


def test_every_event_is_there_once_with_what_the_merge_makes_of_it(view: RecordView) -> None:
    document = json.loads(events(view, HERE))
    found = [(one["event_id"], one["status"]) for one in document["events"]]
    merged = view.merged
    assert len(found) == document["event_count"] == merged.event_count
    statuses = {status: {name for name, one in found if one == status} for _, status in found}
    assert statuses["standing"] == {one.proved.event_id for one in merged.standing}
    assert statuses["withdrawn"] == set(merged.withdrawn)
    assert statuses["contradicted"] == {name for one in merged.equivocations for name in one.fallen}
    assert statuses["invalid"] == {one.event_id for one in merged.invalid}
    assert statuses["unverified"] == {one.event_id for one in merged.unverified}
    assert all(one["reason"] or one["status"] == "standing" for one in document["events"])
    said = sorted(json.dumps(one["event"], sort_keys=True) for one in document["events"])
    assert said == sorted(json.dumps(one, sort_keys=True) for one in view.bundle.events)


def test_documents_do_not_depend_on_the_order_in_which_events_came() -> None:
    found = json.loads(bundle())["events"]
    made = set()
    for seed in range(3):
        random.Random(seed).shuffle(found)
        view = view_of(bundle_with(RECORD, found, [OURS]), keys())
        made.add((resolver(view, HERE), graph(view, HERE), events(view, HERE)))
    assert len(made) == 1


def test_a_graph_holds_what_stands_and_no_more(view: RecordView) -> None:
    nodes = json.loads(graph(view, HERE))["@graph"]
    names = [node["@id"] for node in nodes]
    assert len(set(names)) == len(names)
    standing = {one.proved.event_id for one in view.merged.standing}
    shown = set(names[1:])
    assert names[0] == view.bundle.number
    assert shown & set(view.merged.withdrawn) == set()
    for kind in ("author", "citation", "replication", "captured", "item"):
        assert EVENTS[kind]["event_id"] in shown & standing, kind


def test_a_graph_ties_a_record_to_who_cites_it() -> None:
    citing = Citing(
        name="pith:2001:" + "A" * 26, relation="extends", event_id="sha256:" + "0" * 64,
        created_at="2024-08-01T12:00:00Z", signer_id="example.org",
    )  # fmt: skip
    view = view_of(bundle(), keys(), cited_by=[citing], cited_by_count=7)
    node = json.loads(graph(view, HERE))["@graph"][-1]
    assert (node["citing"], node["cited"]) == (citing.name, view.bundle.number)
    assert json.loads(resolver(view, HERE))["cited_by_count"] == 7


def test_the_canonical_record_of_the_resolver_hashes_to_the_digest(view: RecordView) -> None:
    record = json.loads(resolver(view, HERE))["canonical_record"]
    law = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert digest_of(law.encode()) == view.bundle.digest


@pytest.mark.parametrize("number", [10**30, -(10**25), 1e300, 0.1])
def test_numbers_of_strangers_may_be_of_any_size(number: Any) -> None:
    strange = {"event_type": "odd", "event_id": "x", "payload": {"n": number}, "created_at": 7}
    view = view_of(bundle_with(RECORD, [strange], [OURS]), keys())
    (event,) = json.loads(events(view, HERE))["events"]
    assert event["event"]["payload"]["n"] == number
    for one in RECORD_FILES:
        assert one.make(view, HERE)


def test_a_record_of_a_bare_digest_has_all_its_documents() -> None:
    record = bare(bytes(range(32)), "a file")
    view = view_of(bundle_with(record, [], [OURS]), keys())
    made = dict(files_of(view, HERE))
    place = f"record/{record.digest.hex()}"
    assert set(made) == {one.path(place) for one in RECORD_FILES}
    assert_valid("record-document", made[f"{place}.json"])
    assert json.loads(made[f"{place}.json"])["canonical_record"] is None


def test_the_same_view_gives_the_same_bytes_and_only_addresses_depend_on_the_site(
    view: RecordView,
) -> None:
    assert dict(files_of(view, HERE)) == dict(files_of(view_of(bundle(), keys()), HERE))
    there = json.dumps(json.loads(resolver(view, THERE))).replace(f"{THERE.base_url}/", "../")
    assert json.loads(there) == json.loads(resolver(view, HERE))
    moved = graph(view, THERE).replace(f'"{THERE.base_url}/'.encode(), f'"{ROOT}'.encode())
    assert moved == graph(view, HERE)


def test_every_key_of_the_documents_has_a_meaning(view: RecordView) -> None:
    context = CONTEXT["@context"]
    for name, term in context.items():
        if isinstance(term, dict):
            prefix = term["@id"].partition(":")[0]
            assert prefix in context or prefix == "urn", name
    # What strangers sign is a JSON value: none of its keys becomes a word of the graph.
    for name in ("payload", "event", "work", "canonical_record", "receipt"):
        assert context[name]["@type"] == "@json"


def test_what_is_there_once_has_each_schema_and_names_no_host_of_its_own() -> None:
    made = dict(about_files(HERE))
    assert set(schema_files()) <= set(made)
    assert {"openapi.json", "llms.txt", "context.jsonld", "pith.sty"} <= set(made)
    assert json.loads(made["openapi.json"])["servers"] == [{"url": "./"}]
    stated = dict(about_files(THERE))
    assert json.loads(stated["openapi.json"])["servers"] == [{"url": THERE.base_url}]
    assert f"{THERE.base_url}/openapi.json" in stated["llms.txt"].decode()


def test_references_in_the_description_of_the_api_lead_somewhere() -> None:
    document = json.loads(dict(about_files(HERE))["openapi.json"])

    def walk(value: Any) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            target = value.get("$ref")
            if isinstance(target, str):
                found: Any = document
                for step in target.removeprefix("#/").split("/"):
                    found = found[step]
            for item in value.values():
                walk(item)

    walk(document)
