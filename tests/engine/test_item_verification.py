"""Auditors check a day manifest, and every file that lies beside it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.parties import START, FakeSigner
from support.running import anchord

from anchord.core.event import event_digest, signer_block
from anchord.core.item_name import DAY_S, DayFile, day_manifest_body, signed_day_manifest
from anchord.core.key_document import to_document
from anchord.core.trust import Keys
from anchord.engine.item_verification import is_day_manifest, verify_day_manifest

SIGNER = FakeSigner()
KEYS = Keys(SIGNER.keyring())
CONTENTS = {
    "bundles-000000001-000000002.zip": b"two bundles",
    "bundles-000000001-000000002.manifest.jsonl": b"{}\n{}\n",
}
NAME = "registry-example-2024-08-01"


def listed(name: str, data: bytes) -> DayFile:
    return DayFile(
        name=name, size=len(data), md5=hashlib.md5(data).hexdigest(),  # noqa: S324 - a checksum
        sha1=hashlib.sha1(data).hexdigest(), sha256=hashlib.sha256(data).hexdigest(),  # noqa: S324
        members=2 if name.endswith(".zip") else 0,
    )  # fmt: skip


def manifest(signer: FakeSigner = SIGNER) -> bytes:
    block = signer_block(signer.key_id, signer.public_key, signer.signer_id)
    files = [listed(name, data) for name, data in CONTENTS.items()]
    body = day_manifest_body(NAME, START // DAY_S, files, block, START)
    return signed_day_manifest(body, signer.sign(event_digest(body)))


def beside(contents: dict[str, bytes]) -> Callable[[str], tuple[int, bytes] | None]:
    def find(name: str) -> tuple[int, bytes] | None:
        data = contents.get(name)
        return None if data is None else (len(data), hashlib.sha256(data).digest())

    return find


def test_a_whole_day_is_proved() -> None:
    report = verify_day_manifest("m", manifest(), KEYS, beside(CONTENTS))
    assert report.result == "proved"
    assert [check.outcome for check in report.checks] == ["proved"] * 3


def test_a_file_that_is_not_there_leaves_the_day_unproved_and_says_where_to_get_it() -> None:
    some = dict(list(CONTENTS.items())[:1])
    report = verify_day_manifest("m", manifest(), KEYS, beside(some))
    assert report.result == "not proved"
    assert f"1 of 2 files are not beside it: download them from item {NAME}" in str(report.reason)


def test_one_changed_byte_fails_the_day() -> None:
    changed = {**CONTENTS, "bundles-000000001-000000002.zip": b"two bundlez"}
    report = verify_day_manifest("m", manifest(), KEYS, beside(changed))
    assert report.result == "failed"
    assert "bundles-000000001-000000002.zip" in str(report.reason)


def test_a_stranger_or_a_changed_manifest_fails() -> None:
    stranger = verify_day_manifest("m", manifest(FakeSigner("other")), KEYS, beside(CONTENTS))
    raw = json.loads(manifest())
    raw["files"][0]["size"] += 1
    changed = verify_day_manifest("m", json.dumps(raw).encode(), KEYS, beside(CONTENTS))
    assert stranger.result == changed.result == "failed"


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("manifest-2024-08-01.json", "proved"),
        ("days/manifest-2024-08-01.json", "proved"),
        ("downloaded.json", "proved"),
        ("manifest-2024-08-02.json", "failed"),
        ("manifest-2024-08-01-02.json", "failed"),
    ],
)
def test_a_manifest_of_another_item_fails_under_the_name_of_this_one(
    name: str, result: str
) -> None:
    assert verify_day_manifest(name, manifest(), KEYS, beside(CONTENTS)).result == result


def test_only_a_day_manifest_is_taken_for_one() -> None:
    assert is_day_manifest(manifest())
    assert is_day_manifest(json.dumps(json.loads(manifest()), indent=2).encode())
    for other in (b"", b"{", b"[]", b'{"type":"pith_open_graph_bundle"}', b"\xff", b'{"type":3}'):
        assert not is_day_manifest(other)


def test_the_command_verifies_a_folder_as_it_was_downloaded(tmp_path: Path) -> None:
    for name, data in CONTENTS.items():
        (tmp_path / name).write_bytes(data)
    file, key = tmp_path / "manifest-2024-08-01.json", tmp_path / "key.json"
    file.write_bytes(manifest())
    key.write_text(json.dumps(to_document(SIGNER.public())), "utf-8")
    whole = anchord("verify", file, "--key", key)
    assert whole.code == 0
    assert "every file it lists is here as it was signed for" in whole.out
    (tmp_path / "bundles-000000001-000000002.zip").write_bytes(b"other")
    assert anchord("verify", file, "--key", key).code == 1
