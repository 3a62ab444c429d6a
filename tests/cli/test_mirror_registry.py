"""Pulling from a mirror in the registry's shape: the seed records, byte for byte."""

from __future__ import annotations

import json

import pytest
from support.registry import registry_bundle, seeds
from support.static_site import StaticSite
from support.workplace import Workplace

from anchord.app.cli.references import one_record
from anchord.core.key_document import to_document
from anchord.core.keyring import REGISTRY_KEY

NUMBERS = [seed["pith_number"] for seed in seeds()]
WORDS = ("mirror", "pull")


def suffix_of(number):
    return number.rpartition(":")[2]


@pytest.fixture
def site(tmp_path):
    """Serve the seed records as the registry does: absolute addresses, and no index."""
    folder = tmp_path / "registry"
    with StaticSite(folder) as site:
        entry = {
            "name": "Pith Resolver",
            "mirror_type": "https",
            "base_url": site.url,
            "bundle_pattern": f"{site.url}/pith/{{suffix}}/bundle.json",
            "state_pattern": f"{site.url}/pith/{{suffix}}/state.json",
            "well_known_pattern": f"{site.url}/.well-known/pith/{{suffix}}/bundle.json",
            "public_key": to_document(REGISTRY_KEY),
            "status": "primary",
            "novel": {"kept": 1},
        }
        manifest = {
            "manifest_type": "pith_mirror_manifest",
            "manifest_version": "1.0",
            "merge_version": "pith-open-graph-merge-v1",
            "mirrors": [entry],
        }
        for seed in seeds():
            at = folder / "pith" / suffix_of(seed["pith_number"])
            at.mkdir(parents=True)
            record, digest = seed["canonical_record"], seed["canonical_sha256"]
            (at / "bundle.json").write_bytes(registry_bundle(record, digest, seed["pith_number"]))
        (folder / "pith-mirrors.json").write_text(json.dumps(manifest))
        site.folder = folder
        yield site


@pytest.fixture
def place(tmp_path):
    (tmp_path / "work").mkdir()
    return Workplace(tmp_path / "work")


def pull(place, site, code=0):
    named = [word for number in NUMBERS for word in ("--record", number)]
    return place.json(*WORDS, site.url, "--rate", "1000", *named, code=code)


def state_of(site, number, **changes):
    """Return a state as the registry publishes it for its own bundle."""
    path = site.folder / "pith" / suffix_of(number)
    bundle = json.loads((path / "bundle.json").read_bytes())
    state = {
        "state_type": "pith_open_graph_state",
        "state_version": "1.0",
        "pith_number": number,
        "merge_version": "pith-open-graph-merge-v1",
        "event_count": len(bundle["events"]),
        # A record_created counts with its receipt, and the registry alone can make one.
        "valid_event_count": len(bundle["events"]) - 1,
        "invalid_event_count": 0,
        "equivocation_count": 0,
        "current": {
            "canonical_record": bundle["canonical_record"],
            "source_aliases": bundle["source_aliases"],
        },
    }
    state.update(changes)
    (path / "state.json").write_text(json.dumps(state))


def test_the_seed_records_come_from_a_mirror_as_the_registry_writes_them(place, site):
    for number in NUMBERS:
        state_of(site, number)
    found = pull(place, site)
    assert found["differences"] == []
    (mirror,) = found["mirrors"]
    assert (mirror["fetched"], mirror["states"], found["new"]) == (4, 4, 4)
    for number in NUMBERS:
        served = (site.folder / "pith" / suffix_of(number) / "bundle.json").read_bytes()
        with place.app() as app:
            kept = app.store.records.documents(one_record(app.store, number).id)
        assert kept == [served]


@pytest.mark.parametrize(
    ("changes", "kind", "code", "word"),
    [
        ({"event_count": 9}, "state-differs", 0, "event_count 9"),
        ({"valid_event_count": 7}, "state-differs", 0, "valid_event_count 7"),
        ({"equivocation_count": 1}, "state-differs", 0, "equivocation_count 1"),
        ({"current": {"canonical_record": {"a": 1}}}, "state-false", 1, "canonical_record"),
        ({"pith_number": "pith:1998:" + "A" * 26}, "state-false", 1, "A" * 26),
    ],
)
def test_what_the_registrys_state_says_otherwise_is_told(place, site, changes, kind, code, word):
    state_of(site, NUMBERS[0], **changes)
    found = pull(place, site, code=code)
    assert kind in found["counts"]
    assert any(word in one["what"] for one in found["differences"])


def test_a_state_that_is_no_state_is_told(place, site):
    (site.folder / "pith" / suffix_of(NUMBERS[0]) / "state.json").write_text("[1,")
    assert pull(place, site, code=1)["counts"] == {"state-false": 1}


def test_a_record_created_about_another_record_is_refused(place, site):
    path = site.folder / "pith" / suffix_of(NUMBERS[0]) / "bundle.json"
    bundle = json.loads(path.read_bytes())
    created = next(one for one in bundle["events"] if one["event_type"] == "record_created")
    created["payload"]["canonical_sha256"] = "00" * 32
    path.write_text(json.dumps(bundle))
    found = pull(place, site, code=1)
    assert found["counts"] == {"bundle-refused": 1}
    assert found["new"] == 3
