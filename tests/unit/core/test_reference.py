"""Whatever a person types to name a record is understood in one way, or refused with the list."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchord.core.reference import Reference, parse_reference
from anchord.errors import RefusedError

HEX = "5b8e6a7417f84ecb0bacbdacc56518d2a4deccea0d5c9e7a1e718519261c9961"
SUFFIX = "LOHGU5AX7BHMWC5MXWWMKZIY2K"
NUMBER = Reference(year="2025", prefix=SUFFIX)
BARE = Reference(prefix=SUFFIX)
PAPER = Reference(source_id="2507.10392")
OLD = Reference(source_id="hep-th/9804177", source_version=3)

UNDERSTOOD = {
    HEX: Reference(digest=bytes.fromhex(HEX)),
    HEX.upper(): Reference(digest=bytes.fromhex(HEX)),
    f"sha256:{HEX}": Reference(digest=bytes.fromhex(HEX)),
    f"SHA256:{HEX}": Reference(digest=bytes.fromhex(HEX)),
    f"  {HEX}\n": Reference(digest=bytes.fromhex(HEX)),
    f"pith:2025:{SUFFIX}": NUMBER,
    f"PITH:2025:{SUFFIX.lower()}": NUMBER,
    "pith:2025:LOHGU5AX": Reference(year="2025", prefix="LOHGU5AX"),
    "pith:LOHGU5AX": Reference(prefix="LOHGU5AX"),
    f"pith:{SUFFIX}": BARE,
    SUFFIX: BARE,
    SUFFIX.lower(): BARE,
    SUFFIX[:12]: Reference(prefix=SUFFIX[:12]),
    "password": Reference(prefix="PASSWORD"),
    "deadbeef": Reference(prefix="DEADBEEF"),
    "22334455": Reference(prefix="22334455"),
    f"https://pith.science/pith/{SUFFIX}": BARE,
    f"https://pith.science/pith/{SUFFIX}/bundle.json": BARE,
    f"https://pith.science/.well-known/pith/{SUFFIX}/bundle.json": BARE,
    f"http://127.0.0.1:8080/pith/{SUFFIX}?x=1#top": BARE,
    f"https://mirror.example.org/pith/pith:2025:{SUFFIX}/": NUMBER,
    "2507.10392": PAPER,
    "0704.0001": Reference(source_id="0704.0001"),
    "2507.10392v12": Reference(source_id="2507.10392", source_version=12),
    "arXiv:2507.10392v1": Reference(source_id="2507.10392", source_version=1),
    "https://arxiv.org/abs/2507.10392": PAPER,
    "http://www.arxiv.org/pdf/2507.10392v2.pdf": Reference(
        source_id="2507.10392", source_version=2
    ),
    "https://export.arxiv.org/abs/hep-th/9804177v3": OLD,
    "hep-th/9804177v3": OLD,
    "arXiv:HEP-TH/9804177V3": OLD,
    "math.GT/0309136": Reference(source_id="math/0309136"),
    "10.48550/arxiv.2507.10392": PAPER,
    "10.48550/arXiv.hep-th/9804177v3": OLD,
    "doi:10.48550/arXiv.2507.10392": PAPER,
    "https://doi.org/10.48550/arXiv.2507.10392": PAPER,
    "https://dx.doi.org/10.48550/ARXIV.2507.10392": PAPER,
}
NONSENSE = [
    "",
    " ",
    "pith:",
    "pith:2025:",
    "pith:25:LOHGU5AX",
    "LOHGU5A",
    "LOHGU5AX1",
    SUFFIX + "A",
    HEX[:-1],
    HEX + "0",
    "sha256:" + HEX[:-2],
    "sha1:" + HEX,
    "2025:" + SUFFIX,
    "9804177",
    "2507.103",
    "2507.10392v0",
    "2507.10392v",
    "2507.10392 v1",
    "10.1000/182",
    "https://example.org/" + SUFFIX,
    "https://pith.science/pith/",
    "javascript:pith/" + SUFFIX,
    "\u0662\u0665\u0660\u0667.10392",
    "\u017f" * 8,
    "a b c d e f g h",
    "x" * 10_000,
]


@pytest.mark.parametrize("text", UNDERSTOOD)
def test_every_usual_form_is_understood(text: str) -> None:
    assert parse_reference(text) == UNDERSTOOD[text]


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused_with_what_is_understood(text: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse_reference(text)
    for form in ("SHA-256", "Pith Number", "arXiv", "DOI"):
        assert form in str(caught.value)
    assert len(str(caught.value)) < 500


@settings(deadline=None, max_examples=500, derandomize=True)
@given(st.one_of(st.text(max_size=80), st.text(alphabet="pith:/.v0123456789ABCabc-", max_size=40)))
def test_a_reference_names_exactly_one_thing(text: str) -> None:
    try:
        found = parse_reference(text)
    except RefusedError:
        return
    named = [found.digest, found.prefix, found.source_id]
    assert sum(item is not None for item in named) == 1
    assert found.prefix is None or 8 <= len(found.prefix) <= 26
    assert found.source_version is None or found.source_id is not None
    assert found.year is None or found.prefix is not None


@pytest.mark.shared_data
def test_every_real_record_is_named_by_its_number_url_and_source(shared_data: Path) -> None:
    for line in (shared_data / "pith-records.jsonl").read_text().splitlines():
        row = json.loads(line)
        suffix = row["pith_number"][10:]
        source = row["canonical_record"]["source"]
        assert parse_reference(row["pith_number"]).prefix == suffix
        assert parse_reference(row["url"]).prefix == suffix
        assert parse_reference(row["canonical_sha256"]).digest
        assert parse_reference(source["id"]).source_id == source["id"]
        assert parse_reference(f"{source['id']}v{source['version']}") == Reference(
            source_id=source["id"], source_version=source["version"]
        )
