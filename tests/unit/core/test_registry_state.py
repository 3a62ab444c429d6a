"""What anchord computes from the registry's own bundles is what the registry publishes.

The copies of a real bundle and a real state are cut: the receipt's signature and the snapshot's
payload are not in them. A stand-in key signs the receipt here, for the registry's signer; that its
real signatures verify is tested with those there are (tests/cli/test_registry_bundles.py).
"""

from __future__ import annotations

import base64
import json

import pytest
from support.parties import FakeSigner
from support.registry import registry_bundle
from support.shared import SHARED

from anchord.core.bundle import read_bundle
from anchord.core.bundle_text import render_bundle
from anchord.core.canonical import canonical_bytes, read_record
from anchord.core.event import event_id
from anchord.core.keyring import REGISTRY_KEY, REGISTRY_TARGETS, make_keyring
from anchord.core.state import state_of
from anchord.core.trust import Keys

pytestmark = pytest.mark.shared_data

STAND_IN = FakeSigner("stand-in", "pith.science")
KEYS = Keys(
    make_keyring(
        [REGISTRY_KEY, STAND_IN.public(signer_type="pith_registry", targets=REGISTRY_TARGETS)]
    )
)


def receipt(digest: bytes) -> dict[str, str]:
    return {
        "kind": "pith_receipt",
        "key_id": STAND_IN.key_id,
        "algorithm": "ed25519",
        "signed_at": "2026-05-18T01:05:52Z",
        "signature_b64": base64.b64encode(STAND_IN.sign(digest)).decode(),
    }


def cut(text: str, name: str) -> str:
    """Return the JSON value of a key, as it stands in a text that is cut further on."""
    start = text.index(f'"{name}":') + len(name) + 3
    return text[start : json.JSONDecoder().raw_decode(text, start)[1]]


@pytest.fixture(scope="module")
def published():
    return (SHARED / "pith-state-cut.txt").read_text("utf-8")


@pytest.fixture(scope="module")
def computed(published):
    record = json.loads(cut(published, "canonical_record"))
    digest = read_record(json.dumps(record).encode()).digest
    snapshot = {
        **{name: json.loads(cut(published, name)) for name in ("event_id", "target")},
        "created_at": "2026-05-18T01:05:52Z",
        "signer": json.loads(cut(published, "signer")),
        "event_type": "graph_snapshot",
        "subject_pith_number": json.loads(cut(published, "pith_number")),
        "payload": {"graph_snapshot": {}},
    }
    raw = json.loads(
        registry_bundle(record, digest.hex(), snapshot["subject_pith_number"], receipt(digest))
    )
    raw["source_aliases"] = json.loads(cut(published, "source_aliases"))
    raw["events"] = [raw["events"][0], snapshot]
    return state_of(json.dumps(raw).encode(), KEYS)


def test_the_counts_are_those_of_the_registry(published, computed):
    names = [
        "event_count", "valid_event_count", "invalid_event_count", "equivocation_count",
    ]  # fmt: skip
    stated = {name: json.loads(cut(published, name)) for name in names}
    assert stated == dict(zip(names, (2, 2, 0, 0), strict=True))
    assert {name: computed[name] for name in names} == stated


def test_the_named_keys_are_those_of_the_registry(published, computed):
    for name in ("state_type", "state_version", "pith_number"):
        assert computed[name] == json.loads(cut(published, name))
    assert computed["merge_version"] == "anchord-merge-v1"


def test_record_and_aliases_are_the_same_bytes(published, computed):
    for name in ("canonical_record", "source_aliases"):
        assert canonical_bytes(computed["current"][name]).decode() == cut(published, name)


def test_the_snapshot_is_there_with_the_fields_of_the_registry(published, computed):
    (found,) = computed["current"]["graph_snapshots"]
    head = published[published.index('"graph_snapshots":[') + 19 : published.index(',"payload"')]
    assert json.dumps(found, separators=(",", ":")).startswith(head + ',"payload":')
    assert list(found) == ["event_id", "target", "created_at", "signer", "payload"]


def test_what_counts_as_the_registry_counts_it_is_never_called_signed(computed):
    assert len(computed["unsigned_events"]) == 2
    assert computed["current"]["completeness"] == {
        "attested": "not attested", "anchored": "not anchored", "stored": "not stored",
        "refs": "refs pending",
    }  # fmt: skip


def test_the_published_bundle_reads_and_is_written_with_its_keys_in_its_order(shared_data):
    text = (shared_data / "pith-bundle-cut.txt").read_text("utf-8").strip()
    head, _, _ = text.partition(',"receipt":')
    names = ["bundle_type", "bundle_version", "pith_number", "short_pith_number"]
    names += ["canonical_record", "canonical_sha256", "source", "source_aliases", "events"]
    rest = json.dumps(
        {
            "event_id": event_id(bytes(32)),
            "created_at": "2026-07-04T16:09:46Z",
            "signer": {"key_id": REGISTRY_KEY.key_id},
        }
    )[1:]
    raw = f"{head}}},{rest}]}}".encode()
    assert list(json.loads(raw)) == names
    bundle = read_bundle(raw)
    assert bundle.number == "pith:1998:K56UTYOFHT674D4F5JVLPUOFGA"
    record = read_record(cut(text, "canonical_record").encode())
    again = render_bundle(record, "2026-01-01T00:00:00Z", [], [], [raw])
    assert [name for name in json.loads(again) if name in names] == names
    for name in ("source_aliases", "canonical_sha256", "pith_number", "short_pith_number"):
        assert f'"{name}":{cut(text, name)}' in again.decode()
    assert raw[raw.index(b'{"event_type"') : -2] in again
