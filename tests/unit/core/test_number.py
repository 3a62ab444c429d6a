"""Names of a digest."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.canonical import (
    aliases,
    pith_number,
    pith_suffix,
    read_record,
    record_id,
    short_pith_number,
)
from anchord.core.model import Record, Scheme
from anchord.core.reference import prefix_range
from anchord.errors import RefusedError

LIMITED = settings(deadline=None, max_examples=200, derandomize=True)
digests = st.binary(min_size=32, max_size=32)


@LIMITED
@given(digests)
def test_a_suffix_is_the_start_of_the_base32_of_the_digest(digest: bytes) -> None:
    whole = base64.b32encode(digest).decode()
    assert pith_suffix(digest) == whole[:26]
    assert pith_number(digest, "1998") == f"pith:1998:{whole[:26]}"
    assert short_pith_number(digest) == f"pith:{whole[:8]}"
    assert record_id(digest) == f"sha256:{digest.hex()}"


@LIMITED
@given(digests, digests, st.integers(1, 51))
def test_a_prefix_range_holds_exactly_the_digests_with_that_prefix(
    digest: bytes, other: bytes, length: int
) -> None:
    prefix = base64.b32encode(digest).decode()[:length]
    low, high = prefix_range(prefix)
    assert prefix_range(prefix.lower()) == (low, high)
    assert low <= digest <= high
    assert (low <= other <= high) == base64.b32encode(other).decode().startswith(prefix)
    for edge in (low, high):
        assert base64.b32encode(edge).decode().startswith(prefix)
    below, above = int.from_bytes(low, "big") - 1, int.from_bytes(high, "big") + 1
    for outside in (below, above):
        if 0 <= outside < 2**256:
            text = base64.b32encode(outside.to_bytes(32, "big")).decode()
            assert not text.startswith(prefix)


@pytest.mark.parametrize("prefix", ["", "A" * 52, "AAAAAAA1", "AAAA AAA", "\u0131AAAAAAA", "a\xdf"])
def test_what_is_no_prefix_is_refused(prefix: str) -> None:
    with pytest.raises(RefusedError, match="base32"):
        prefix_range(prefix)


@pytest.mark.shared_data
def test_the_bundle_lists_these_aliases(shared_data: Path) -> None:
    text = (shared_data / "pith-bundle-cut.txt").read_text()
    start = text.index('"source_aliases":') + len('"source_aliases":')
    listed, _ = json.JSONDecoder().raw_decode(text, start)
    start = text.index('"canonical_record":') + len('"canonical_record":')
    value, _ = json.JSONDecoder().raw_decode(text, start)
    record = read_record(json.dumps(value).encode())
    assert aliases(record) == [(row["alias_kind"], row["alias_value"]) for row in listed]


def test_arxiv_aliases_stand_only_where_the_source_is_arxiv() -> None:
    digest = bytes(range(32))
    shorts = [("pith_short_12", "AAAQEAYEAUDA"), ("pith_short_16", "AAAQEAYEAUDAOCAJ")]
    shorts += [("pith_short_8", "AAAQEAYE")]

    def record(kind: str | None, source_id: str | None, version: int | None) -> Record:
        return Record(
            digest=digest,
            scheme=Scheme.PITH_JSON_V1,
            source_kind=kind,
            source_id=source_id,
            source_version=version,
        )

    assert aliases(record(None, None, None)) == shorts
    assert aliases(record("zenodo", "123", 1)) == shorts
    assert aliases(record("arxiv", None, 1)) == shorts
    assert aliases(record("arxiv", "2507.1", None)) == [
        ("arxiv", "2507.1"),
        ("doi", "10.48550/arxiv.2507.1"),
        *shorts,
    ]
    assert [kind for kind, _ in aliases(record("arxiv", "2507.1", 3))] == sorted(
        ["arxiv", "arxiv_version", "doi", "pith_short_8", "pith_short_12", "pith_short_16"]
    )
