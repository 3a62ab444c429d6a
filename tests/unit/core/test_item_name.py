"""Names that are never used twice, and a day's manifest that proves itself or is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parties import START, FakeSigner

from anchord.core import item_name
from anchord.core.event import canonical_body, event_digest, signer_block
from anchord.core.item_answer import is_identifier
from anchord.core.item_name import DAY_S, DayFile, ManifestLine, read_day_manifest
from anchord.core.keyring import make_keyring
from anchord.core.trust import Keys, Trust
from anchord.errors import AnchordError, RefusedError, SignatureError, VerificationError

DAY = START // DAY_S
SIGNER, STRANGER = FakeSigner(), FakeSigner("stranger", "elsewhere.example.org")
KEYS = Keys(SIGNER.keyring())
FILE = DayFile(
    name="bundles-000000001-000000002.zip",
    size=10,
    md5="0" * 32,
    sha1="1" * 40,
    sha256="2" * 64,
    members=2,
)


def made(
    signed_by: FakeSigner = SIGNER, files_of: tuple[DayFile, ...] = (FILE,), **changes: Any
) -> bytes:
    """Return a day manifest; `changes` are made before it is signed."""
    block = signer_block(signed_by.key_id, signed_by.public_key, signed_by.signer_id)
    name = item_name.identifier("anchord-test", DAY, 1)
    body = json.loads(item_name.day_manifest_body(name, DAY, files_of, block, START))
    raw = canonical_body({**body, **changes})
    return item_name.signed_day_manifest(raw, signed_by.sign(event_digest(raw)))


def signer(**changes: str) -> dict[str, str]:
    """Return the block of the right signer, changed."""
    return {**signer_block(SIGNER.key_id, SIGNER.public_key, SIGNER.signer_id), **changes}


days = st.integers(0, 60_000)
parts = st.integers(1, 120)


@given(first=st.tuples(days, parts), second=st.tuples(days, parts))
def test_another_day_or_part_has_another_name(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    for name in (lambda d, p: item_name.identifier("anchord", d, p), item_name.day_manifest_name):
        assert (name(*first) == name(*second)) == (first == second)


@given(day=days, part=parts)
def test_the_archive_takes_every_identifier(day: int, part: int) -> None:
    assert is_identifier(item_name.identifier("a", day, part))


def test_the_first_part_of_a_day_is_named_by_the_day_alone() -> None:
    assert item_name.identifier("anchord", DAY, 1) == "anchord-2024-08-01"
    assert item_name.identifier("anchord", DAY, 2) == "anchord-2024-08-01-02"
    assert item_name.day_manifest_name(DAY, 1) == "manifest-2024-08-01.json"
    assert item_name.day_manifest_name(DAY, 2) == "manifest-2024-08-01-02.json"


def test_a_zip_is_named_by_its_members_and_its_manifest_by_the_zip() -> None:
    name = item_name.zip_name(1, 1000)
    assert name == "bundles-000000001-000001000.zip"
    assert item_name.manifest_name(name) == "bundles-000000001-000001000.manifest.jsonl"


def test_the_day_is_filled_into_title_and_description_alone() -> None:
    stated = {"title": "of {day}", "description": "on {day}", "subject": "{day}"}
    assert item_name.metadata_of(stated, DAY) == {
        "title": "of 2024-08-01",
        "description": "on 2024-08-01",
        "subject": "{day}",
        "date": "2024-08-01",
    }


@given(every=st.integers(1, 50), count=st.integers(1, 200))
def test_the_first_is_sampled_and_then_one_in_so_many(every: int, count: int) -> None:
    chosen = [place for place in range(count) if item_name.sampled(place, every)]
    assert chosen[0] == 0
    assert len(chosen) == -(-count // every)


def test_a_line_of_a_manifest_is_one_line_of_json_without_what_is_not_known() -> None:
    line = ManifestLine(record="sha256:00", path="00.json", size=3, sha256="ab", event_ids=["x"])
    raw = item_name.manifest_line(line)
    assert raw.count(b"\n") == 1
    assert raw.endswith(b"\n")
    assert json.loads(raw) == {
        "record": "sha256:00", "path": "00.json", "size": 3, "sha256": "ab", "event_ids": ["x"],
    }  # fmt: skip


def test_a_day_manifest_proves_who_signed_it_and_what_it_lists() -> None:
    found = read_day_manifest(made(), KEYS)
    assert found.files == (FILE,)
    assert (found.identifier, found.day) == ("anchord-test-2024-08-01", "2024-08-01")
    assert (found.signer_id, found.trust) == (SIGNER.signer_id, Trust.KEYRING)


@given(data=st.data())
def test_a_day_manifest_with_any_byte_changed_is_refused(data: st.DataObject) -> None:
    raw = bytearray(made())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(AnchordError):
        read_day_manifest(bytes(raw), KEYS)


@pytest.mark.parametrize(
    ("error", "raw"),
    [
        (SignatureError, made(STRANGER)),
        (SignatureError, made(signer=signer(signer_id="other"))),
        (SignatureError, made(signer=signer(signer_type="other"))),
        (
            SignatureError,
            made(signer=signer(public_key_fingerprint="0" * 32)),
        ),
        (RefusedError, made(type="something else")),
        (RefusedError, made(version=2)),
        (RefusedError, made(files=[{"name": "x"}])),
        (RefusedError, b"[]"),
        (RefusedError, b"\xff"),
        (VerificationError, made(day="2024-08-02")),
        (VerificationError, made(created_at="yesterday")),
        (VerificationError, made(files_of=(FILE, FILE))),
    ],
)
def test_what_is_no_day_manifest_of_a_believed_key_is_refused(
    error: type[Exception], raw: bytes
) -> None:
    with pytest.raises(error):
        read_day_manifest(raw, KEYS)


def test_a_key_counts_only_while_it_is_valid_and_for_storage() -> None:
    for changes in ({"valid_until": START - 1}, {"revoked_at": START - 1}, {"targets": ("graph",)}):
        keys = Keys(make_keyring([SIGNER.public(**changes)]))
        with pytest.raises(SignatureError):
            read_day_manifest(made(), keys)
