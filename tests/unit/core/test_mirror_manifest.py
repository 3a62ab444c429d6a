"""Manifests of mirrors: the registry's is read, ours comes back, and none leads astray."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.mirror_manifest import (
    fill,
    is_absolute,
    own_entry,
    place_of,
    read_manifest,
    render_manifest,
    resolve,
    within,
)
from anchord.core.tree_index import safe_path
from anchord.errors import RefusedError

SUFFIX = "K56UTYOFHT674D4F5JVLPUOFGA"


def manifest(**changes):
    entry = {"name": "a", "bundle_pattern": "pith/{suffix}/bundle.json", "status": "mirror"}
    return json.dumps(
        {
            "manifest_type": "pith_mirror_manifest",
            "manifest_version": "1.0",
            "mirrors": [{**entry, **changes}],
        }
    ).encode()


@pytest.mark.shared_data
def test_the_registrys_own_manifest_is_read(shared_data):
    raw = (shared_data / "pith-mirrors.json").read_bytes()
    found = read_manifest(raw)
    assert found.merge_version == "pith-open-graph-merge-v1"
    (mirror,) = found.mirrors
    assert (mirror.name, mirror.status) == ("Pith Resolver", "primary")
    address = resolve(fill(mirror.bundle_pattern, suffix=SUFFIX), "https://elsewhere.example.org/")
    assert address == f"https://pith.science/pith/{SUFFIX}/bundle.json"
    assert mirror.public_key["key_id"] == "pith-v1-2026-05"
    assert found.raw == json.loads(raw), "unknown keys stay"


def test_ours_is_a_manifest_like_the_registrys():
    for base in (None, "https://mirror.example.org/pith"):
        entry = own_entry(
            name="m", base_url=base, status="mirror", public_key={"key_id": "k"}, numbered="pith"
        )
        raw = render_manifest([entry], "anchord-merge-v1", "2026-01-01T00:00:00Z")
        (mirror,) = read_manifest(raw).mirrors
        served = base or "https://somewhere.example.org"
        address = resolve(fill(mirror.bundle_pattern, suffix=SUFFIX), served + "/")
        assert address == f"{served}/pith/{SUFFIX}/bundle.json"
        address = resolve(fill(mirror.record_pattern, digest="ab" * 32), served + "/")
        assert address == f"{served}/record/{'ab' * 32}/bundle.json"
        assert within(resolve(mirror.index, served + "/"), served) == "index.json"


@pytest.mark.parametrize(
    "pattern",
    [
        "file:///etc/{suffix}",
        "ftp://example.org/{suffix}",
        "//example.org/{suffix}",
        "javascript:{suffix}",
        "../{suffix}",
        "pith/../../{suffix}",
        "pith/./{suffix}",
        "pith/%2e%2e/{suffix}",
        "https://example.org/../{suffix}",
        "https://example.org/%2e%2e/{suffix}",
        "https://user:word@example.org/{suffix}",
        "https://example.org/{suffix}?query",
        "https://example.org/{suffix}#part",
        "https://{suffix}.example.org/x",
        "pith\\{suffix}",
        "pith/{suffix}/{other}",
        "pith/{suffix\n}",
        "no gap at all",
        "pith/bundle.json",
    ],
)
def test_patterns_that_lead_elsewhere_are_refused(pattern):
    with pytest.raises(RefusedError):
        read_manifest(manifest(bundle_pattern=pattern))


@pytest.mark.parametrize("name", ["state_pattern", "index", "log", "base_url", "proof_pattern"])
def test_every_address_is_looked_at(name):
    with pytest.raises(RefusedError, match=name):
        read_manifest(manifest(**{name: "file:///etc/passwd"}))


@pytest.mark.parametrize(
    "raw",
    [
        b"[]",
        b"{}",
        b"no json",
        manifest(bundle_pattern=None),
        manifest(name=5),
        manifest().replace(b'"1.0"', b'"2.0"'),
        manifest().replace(b"pith_mirror_manifest", b"another"),
    ],
)
def test_what_is_no_manifest_is_refused(raw):
    with pytest.raises(RefusedError):
        read_manifest(raw)


def test_two_mirrors_of_one_name_are_refused():
    document = json.loads(manifest())
    document["mirrors"] *= 2
    with pytest.raises(RefusedError, match="own name"):
        read_manifest(json.dumps(document).encode())


def test_relative_addresses_begin_where_the_manifest_belongs():
    for at in ("https://h.example.org/a/pith-mirrors.json",
               "https://h.example.org/a/.well-known/pith-mirrors.json"):  # fmt: skip
        place = place_of(at)
        assert resolve("index.json", place) == "https://h.example.org/a/index.json"
        assert resolve("/index.json", place) == "https://h.example.org/index.json"
    assert resolve("/index.json", None) == "index.json"


def test_a_path_below_a_base_is_no_neighbour_of_it():
    assert within("https://h.example.org/ab/x", "https://h.example.org/a") is None
    assert within("https://h.example.org/a/x", "https://h.example.org/a/") == "x"


@given(st.text(max_size=40))
def test_whatever_is_accepted_stays_in_its_folder_or_is_http(text):
    try:
        (mirror,) = read_manifest(manifest(bundle_pattern=text + "{suffix}")).mirrors
    except RefusedError:
        return
    found = resolve(fill(mirror.bundle_pattern, suffix=SUFFIX), None)
    if is_absolute(found):
        assert found.startswith(("http://", "https://"))
    else:
        assert safe_path(found)
