"""What strangers' documents say leaves nothing open in the audit of a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.evidence import anchored_payload, body_of, bundle_with, mined, sign
from support.parties import FakeChain, FakeSigner
from support.workplace import Workplace, sample

from anchord.core.model import Document

STRANGER = FakeSigner("stranger", "elsewhere.example.org")


@pytest.mark.parametrize("height", [5_000, 40], ids=["beyond the tip", "another chain's"])
def test_a_block_that_only_a_stranger_names_leaves_nothing_open(
    tmp_path: Path, height: int
) -> None:
    record, chain = sample(1), FakeChain(height=height)
    payload = anchored_payload(mined(record.digest, chain), chain)
    event = sign(body_of(record, STRANGER, payload), STRANGER)
    place = Workplace(tmp_path)
    place.anchor(Document(record=record, raw=bundle_with(record, [event], [STRANGER])))
    found = place.run("audit", "--json", "--jobs", "1")
    report = json.loads(found.stdout)
    assert (found.exit_code, report["result"], report["reasons"]) == (0, "sound", [])
    assert report["completeness"]["anchored"] == {"anchored": 1}
    assert report["coverage"]["foreign_events"] == 1
