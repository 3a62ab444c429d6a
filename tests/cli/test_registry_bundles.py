"""Bundles of the registry: they come in, and what they said goes out byte for byte."""

from __future__ import annotations

import base64
import json

import pytest
from support.parties import FakeSigner
from support.registry import real_receipts, registry_bundle, seeds
from support.workplace import Workplace, bare

from anchord.adapters.signers.keyring import load_keyring
from anchord.adapters.sources.pith import read_object
from anchord.core.bundle import read_bundle
from anchord.core.keyring import REGISTRY_KEY
from anchord.core.model import Scheme
from anchord.core.receipt import check_receipt, receipts
from anchord.core.trust import Keys, Trust
from anchord.errors import SignatureError

MORE = {"resolver": {"url": "https://pith.example.org", "hits": 12.0}, "attestations": [1, None]}
"""Keys that anchord does not know."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Workplace(tmp_path_factory.mktemp("registry"))


def seed_bundle(seed, **more):
    return registry_bundle(
        seed["canonical_record"], seed["canonical_sha256"], seed["pith_number"], **MORE, **more
    )


def slices(raw: bytes) -> list[bytes]:
    """Return the raw values that have to survive: each event, each key that is not known."""
    text, found, decoder = raw.decode(), [], json.JSONDecoder()
    for name in ('{"event_type"', '"resolver":', '"attestations":'):
        at = text.find(name)
        while at >= 0:
            start = at if name[0] == "{" else at + len(name)
            end = decoder.raw_decode(text, start)[1]
            found.append(text[start:end].encode())
            at = text.find(name, end)
    return found


def test_the_four_seed_records_come_in_as_bundles_of_the_registry(place, tmp_path):
    assert len(seeds()) == 4
    for number, seed in enumerate(seeds()):
        raw = seed_bundle(seed)
        path = tmp_path / f"{number}.json"
        path.write_bytes(raw)
        assert place.json("add", str(path))["refused"] == 0
        out = place.run("bundle", seed["pith_number"]).stdout_bytes
        assert len(slices(raw)) == 4
        assert b"1.50e0" in b"".join(slices(raw))
        assert all(one in out for one in slices(raw))
        bundle = read_bundle(out)
        assert bundle.digest.hex() == seed["canonical_sha256"]
        assert json.loads(out)["source_aliases"] == json.loads(raw)["source_aliases"]
        state = json.loads(place.run("state", seed["pith_number"]).stdout_bytes)
        assert (state["event_count"], state["invalid_event_count"]) == (2, 0)


def test_an_exported_bundle_comes_in_elsewhere_and_goes_out_the_same(place, tmp_path):
    seed = seeds()[0]
    place.anchor(*_documents(seed_bundle(seed)))
    out = place.run("bundle", seed["pith_number"]).stdout_bytes
    assert b"timestamp_anchored" in out
    assert b'"inclusion"' in out
    other = Workplace(_folder(tmp_path / "other"))
    path = tmp_path / "out.json"
    for raw in (seed_bundle(seed), out, out.rstrip()):
        path.write_bytes(raw)
        assert other.json("add", str(path))["refused"] == 0
    assert other.run("bundle", seed["pith_number"]).stdout_bytes == out


def _folder(path):
    path.mkdir()
    return path


def _documents(raw):
    return [read_object(raw, Scheme.PITH_JSON_V1)]


def test_a_fresh_anchord_has_the_key_of_the_registry(place):
    key = load_keyring(place.folder / "keys").get("pith-v1-2026-05")
    assert key == REGISTRY_KEY
    assert "pith-v1-2026-05" in [one["key_id"] for one in place.json("key", "list")]


@pytest.mark.shared_data
def test_the_key_of_a_fresh_anchord_is_the_published_one(place, shared_data):
    published = json.loads((shared_data / "pith-signatures.json").read_text("utf-8"))["public_key"]
    found = place.json("key", "public", "pith-v1-2026-05")
    assert {name: found[name] for name in published} == published


@pytest.mark.shared_data
def test_the_real_signatures_of_the_registry_verify_after_import_and_export(
    place, tmp_path, shared_data
):
    stated = real_receipts(shared_data)
    assert len(stated) == 7
    for digest, suffix, receipt in stated:
        raw = registry_bundle(None, digest, f"pith:2024:{suffix}", receipt, **MORE)
        path = tmp_path / "signed.json"
        path.write_bytes(raw)
        assert place.json("add", str(path))["refused"] == 0, digest
        out = place.run("bundle", digest).stdout_bytes
        assert all(one in out for one in slices(raw))
        bundle = read_bundle(out)
        (one,) = receipts(bundle)
        keyring = load_keyring(place.folder / "keys")
        assert check_receipt(one, bundle.digest, Keys(keyring)).trust is Trust.KEYRING
        state = json.loads(place.run("state", digest).stdout_bytes)
        assert (state["valid_event_count"], state["invalid_event_count"]) == (2, 0)
        assert state["current"]["completeness"]["anchored"] == "not anchored"


@pytest.mark.shared_data
def test_a_receipt_of_another_record_or_by_another_key_is_refused(place, tmp_path, shared_data):
    (digest, suffix, receipt), (_, _, other), *_ = real_receipts(shared_data)
    thief = FakeSigner("thief")
    forged = {**receipt, "signature_b64": base64.b64encode(thief.sign(bytes(32))).decode()}
    for wrong in (other, forged):
        path = tmp_path / "forged.json"
        path.write_bytes(registry_bundle(None, digest, f"pith:2024:{suffix}", wrong))
        told = place.json("add", str(path), code=1)
        assert (told["refused"], "false" in json.dumps(told)) == (1, True)
        with pytest.raises(SignatureError):
            check_receipt(wrong, bytes.fromhex(digest), Keys(load_keyring(place.folder / "keys")))


def test_a_bundle_of_a_hash_alone_comes_in_as_it_was_exported(place, tmp_path):
    place.add(bare(bytes(range(32))))
    out = place.run("bundle", bytes(range(32)).hex()).stdout_bytes
    path = tmp_path / "bare.json"
    path.write_bytes(out)
    other = Workplace(_folder(tmp_path / "other"))
    assert other.json("add", str(path))["refused"] == 0
    assert other.run("bundle", bytes(range(32)).hex()).stdout_bytes == out
