"""Bundles with forged parts: refused when they come in, because they would spoil what is ours."""

from __future__ import annotations

import json

import pytest
from support.parties import FakeSigner
from support.workplace import Workplace, sample

from anchord.core.canonical import pith_number

NAME = "2507.00001"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("anchored"))
    place.anchor(sample(1))
    return place


@pytest.fixture
def bundle(place):
    return json.loads(place.run("export", NAME, "--bundle", "-o", "-").stdout_bytes)


def other_key(key):
    raw = FakeSigner("thief").public_key
    import base64

    bare = {name: text for name, text in key.items() if not name.startswith(("finger", "public"))}
    return {**bare, "public_key_b64": base64.b64encode(raw).decode()}


def changed(event, **payload):
    return {**event, "payload": {**event["payload"], **payload}}


FORGERIES = {
    "event": lambda b: b["events"].append(changed(b["events"][1], confirmations=7)),
    "subject": lambda b: b["events"].append(changed(b["events"][0], canonical_sha256="0" * 64)),
    "key": lambda b: b.update(public_keys=[other_key(b["public_keys"][0])]),
    "alias": lambda b: b.update(
        source_aliases=[{"alias_kind": "arxiv", "alias_value": "9999.99999"}]
    ),
    "receipt": lambda b: b.update(receipt={"kind": "pith_receipt"}),
    "no list": lambda b: b.update(events=["x"]),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_bundle_with_a_forged_part_is_refused_and_the_record_stays_proved(
    place, bundle, tmp_path, name
):
    FORGERIES[name](bundle)
    path = tmp_path / "forged.json"
    path.write_text(json.dumps(bundle))
    told = place.json("add", str(path), code=1)
    assert (told["refused"], len(told["refusals"])) == (1, 1)
    assert place.json("verify", NAME)["result"] == "proved"


def test_a_bundle_with_what_nobody_can_check_is_kept(place, bundle, tmp_path):
    bundle["events"].append({"event_type": "note", "event_id": bundle["events"][0]["event_id"]})
    path = tmp_path / "noted.json"
    path.write_text(json.dumps(bundle))
    assert place.json("add", str(path))["refused"] == 0
    assert place.json("verify", NAME)["result"] == "proved"
    assert "note" in place.run("export", NAME, "--bundle", "-o", "-").stdout


@pytest.mark.parametrize("name", ["pith_number", "short_pith_number", "record_id"])
def test_every_name_stated_beside_a_record_must_be_its_own(place, tmp_path, name):
    mine, other = sample(5), sample(6)
    values = {
        "pith_number": pith_number(other.digest, other.year),
        "short_pith_number": "pith:AAAAAAAA",
        "record_id": "sha256:" + other.digest.hex(),
    }
    path = tmp_path / "stated.json"
    stated = {"canonical_record": json.loads(mine.canonical), name: values[name]}
    path.write_text(json.dumps(stated))
    assert place.json("add", str(path), code=1)["refused"] == 1
