"""Every real, generated and regtest proof says what the index says it says."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from support import ots_oracle
from support.shared import SHARED

from anchord.core import proof
from anchord.core.attestation import MAX_HEIGHT
from anchord.errors import RefusedError

pytestmark = pytest.mark.shared_data

FOLDER = SHARED / "ots-vectors"
INDEX: dict[str, Any] = json.loads((FOLDER / "index.json").read_text()) if FOLDER.is_dir() else {}


def _rows(*groups: str) -> list[Any]:
    rows = [row for group in groups for row in INDEX.get(group, [])]
    return [pytest.param(row, id=row["name"]) for row in rows]


def _refused(row: dict[str, Any]) -> bool:
    return row["expected"] == "malformed" or row["name"] == "generated/height-4MB-varint.ots"


def _told(found: list[proof.Found]) -> set[tuple[Any, ...]]:
    return {_tell(item.message, item.attestation) for item in found}


def _tell(message: bytes, item: proof.Attestation) -> tuple[Any, ...]:
    if item.uri is not None:
        return "pending", item.uri, message.hex()
    if item.kind == "bitcoin":
        return "bitcoin", item.height, message[::-1].hex()
    if item.height is not None:
        return item.kind, item.height
    return "unknown", item.tag.hex(), item.payload.hex()


def _expected(row: dict[str, Any]) -> tuple[Any, ...]:
    kind = row.get("kind", "pending" if "pending" in row else "bitcoin")
    if kind == "pending":
        return "pending", row.get("uri", row.get("pending")), row["commitment"]
    if kind == "bitcoin":
        return "bitcoin", row["height"], row["merkle_root_display"]
    if kind == "unknown":
        return "unknown", row["tag"], row["payload_hex"]
    return kind.removesuffix("BlockHeaderAttestation").lower(), row["height"]


def test_the_index_was_read() -> None:
    counts = {group: len(INDEX[group]) for group in ("vectors", "generated", "regtest")}
    assert counts == {"vectors": 35, "generated": 20, "regtest": 4}


@pytest.mark.parametrize("row", _rows("vectors", "regtest"))
def test_vectors_attest_what_the_index_says(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["name"]).read_bytes()
    if _refused(row):
        with pytest.raises(RefusedError):
            proof.parse_detached(raw)
        return
    detached = proof.parse_detached(raw)
    assert detached.algorithm == row["digest_algorithm"]
    assert detached.digest.hex() == row["digest"]
    assert detached.timestamp.message == detached.digest
    found = proof.attestations(detached.timestamp)
    assert len(found) == len(row["attestations"])
    assert _told(found) == {_expected(item) for item in row["attestations"]}


@pytest.mark.parametrize("row", _rows("vectors", "generated", "regtest"))
def test_what_parses_is_written_as_the_library_writes_it(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["name"]).read_bytes()
    if _refused(row):
        with pytest.raises(RefusedError):
            proof.parse_detached(raw)
        return
    detached = proof.parse_detached(raw)
    written = proof.serialise_detached(detached.digest, detached.timestamp, detached.algorithm)
    if row.get("roundtrip_byte_identical") is not None:
        assert (written == raw) == row["roundtrip_byte_identical"]
    assert proof.parse_detached(written) == detached
    if row["name"] != "generated/duplicate-op-fork.ots":  # the library loses half of it
        their_tree = ots_oracle.read_file(raw).timestamp
        assert written.endswith(detached.digest + ots_oracle.written(their_tree))


@pytest.mark.parametrize("row", _rows("vectors"))
def test_digests_are_those_of_the_stamped_files(row: dict[str, Any]) -> None:
    if not row.get("stamped_file_matches") or row["digest_algorithm"] == "ripemd160":
        return
    content = (FOLDER / row["stamped_file"]).read_bytes()
    assert hashlib.new(row["digest_algorithm"], content).hexdigest() == row["digest"]


def test_two_forks_with_the_same_operation_both_survive() -> None:
    raw = (FOLDER / "generated/duplicate-op-fork.ots").read_bytes()
    found = proof.attestations(proof.parse_detached(raw).timestamp)
    assert len({item.attestation.uri for item in found}) == 2
    assert len(list(ots_oracle.read_file(raw).timestamp.all_attestations())) == 1


@pytest.mark.parametrize("padded", ["height-non-canonical-varint", "height-zero-padded-varint"])
def test_padded_heights_are_read_and_written_short(padded: str) -> None:
    raw = (FOLDER / f"generated/{padded}.ots").read_bytes()
    (item,) = proof.attestations(proof.parse_detached(raw).timestamp)
    assert item.attestation.kind == "bitcoin"
    assert 0 <= (item.attestation.height or 0) <= MAX_HEIGHT


def test_all_real_pending_proofs_round_trip_byte_for_byte() -> None:
    lines = (FOLDER / "pending-real.jsonl").read_text().splitlines()
    assert len(lines) == 312
    for line in lines:
        row = json.loads(line)
        raw = base64.b64decode(row["ots_b64"])
        detached = proof.parse_detached(raw)
        assert detached.digest.hex() == row["digest"]
        assert proof.serialise_detached(detached.digest, detached.timestamp) == raw
        found = proof.attestations(detached.timestamp)
        assert [item.attestation.uri for item in found] == [
            item.uri for _, item in _library_order(raw)
        ]
        uris = sorted(item.attestation.uri or "" for item in found)
        assert uris == sorted(row["calendars"])


def _library_order(raw: bytes) -> list[tuple[bytes, Any]]:
    """The file's own order is the library's here: files round-trip and hold one URI per branch."""
    return list(ots_oracle.read_file(raw).timestamp.all_attestations())


def test_the_real_upgrade_answer_completes_the_real_pending_proof(shared_data: Path) -> None:
    (row,) = INDEX["calendar_answers"]
    answer = (FOLDER / row["file"]).read_bytes()
    commitment = bytes.fromhex(row["commitment"])
    assert proof.check_upgrade_answer(answer, commitment) == [row["attests"]["height"]]
    pending = proof.parse_detached((FOLDER / row["merges_into"]).read_bytes()).timestamp
    whole = proof.attach(pending, proof.parse_timestamp(answer, commitment))
    upgraded = proof.parse_detached(
        (FOLDER / "mixed/incomplete-upgraded-428648.txt.ots").read_bytes()
    )
    assert whole == upgraded.timestamp
    root = row["attests"]["merkle_root_display"]
    assert ("bitcoin", row["attests"]["height"], root) in _told(proof.attestations(whole))


@pytest.mark.parametrize("row", _rows("vectors", "regtest"))
def test_every_cut_proof_is_refused(row: dict[str, Any]) -> None:
    raw = (FOLDER / row["name"]).read_bytes()
    for length in range(min(len(raw), 1500)):
        with pytest.raises(RefusedError):
            proof.parse_detached(raw[:length])
