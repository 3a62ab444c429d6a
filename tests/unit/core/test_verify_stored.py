"""Storage events: what they must say to be believed, whoever signed them."""

from __future__ import annotations

from typing import Any

import pytest
from support.evidence import body_of, sign, stored_event
from support.parties import FakeSigner
from support.workplace import sample

from anchord.core.event import CAPTURED, ITEM_STORED, WITHDRAWN
from anchord.core.trust import Keys
from anchord.core.verify_event import read_event, withdrawn
from anchord.errors import MementoMismatchError, VerificationError

SIGNER = FakeSigner()
RECORD = sample(1)
KEYS = Keys(SIGNER.keyring(), (), ())
TAIL = "/web/20240801110000/https://arxiv.org/abs/2507.10392v1"


def read(event: dict[str, Any]) -> Any:
    return read_event(event, RECORD.digest, event.get("subject_pith_number"), KEYS)


def test_a_right_capture_says_where_it_is_and_what_it_hashes_to() -> None:
    proved = read(stored_event(RECORD, SIGNER))
    assert proved.trust is not None
    assert proved.stored is not None
    assert proved.stored.where.endswith("/web/20240801110000/https://arxiv.org/abs/2507.10392v1")
    assert proved.stored.sha256 == "ab" * 32


def test_a_right_item_names_the_member_of_this_record() -> None:
    proved = read(stored_event(RECORD, SIGNER, ITEM_STORED))
    assert proved.stored is not None
    assert RECORD.digest.hex() in proved.stored.where
    assert proved.stored.sha256 == "cd" * 32


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("grade", "reported"), ("grade", "submitted"), ("grade", "indexed"), ("grade", ""),
        ("http_status", 404), ("http_status", 0), ("http_status", 301),
        ("sha256", "AB" * 32), ("sha256", "ab" * 31), ("sha256", ""),
        ("size", 0), ("x_archive_src", ""), ("archive", "archive.org"),
        ("captured_at", "2024-08-01T11:00:01Z"),
        ("captured_at", "2024-08-02T11:00:00Z"),
        ("capture_url", "https://web.archive.org/web/20240801110001/https://arxiv.org/abs/2507.10392v1"),
        ("capture_url", "https://web.archive.org/web/20240801110000/https://example.org/"),
        ("capture_url", "javascript:alert(1)//web/20240801110000/https://arxiv.org/abs/2507.10392v1"),
        ("capture_url", f"https://web.archive.org/web/20200101000000/example.org{TAIL}"),
        ("capture_url", f"https://example.org/web{TAIL}"),
        ("final_url", "https://example.org/other"), ("original_url", "https://example.org/"),
        ("original_url", "https://example.org\\@arxiv.org/abs/2507.10392v1"),
        ("original_url", "arxiv.org/abs/2507.10392v1"), ("original_url", ""),
    ],
)  # fmt: skip
def test_a_capture_that_cannot_be_true_is_refused_although_it_is_signed(
    field: str, value: Any
) -> None:
    with pytest.raises(MementoMismatchError):
        read(stored_event(RECORD, SIGNER, **{field: value}))


@pytest.mark.parametrize(
    "base",
    [
        "http://127.0.0.1:8080",
        "https://[::1]/wayback",
        "https://archive.example.org",
        "http://web.archive.org",
    ],
)
def test_a_capture_at_a_stand_in_is_told_as_one(base: str) -> None:
    url = base + TAIL
    proved = read(stored_event(RECORD, SIGNER, capture_url=url))
    assert proved.stored is not None
    assert proved.stored.where == f"{url} (a stand-in: not https://web.archive.org)"


def test_an_item_at_a_stand_in_is_told_as_one() -> None:
    proved = read(stored_event(RECORD, SIGNER, ITEM_STORED, archive="127.0.0.1:8081"))
    assert proved.stored is not None
    assert proved.stored.where.startswith("127.0.0.1:8081: ")
    assert proved.stored.where.endswith(" (a stand-in: not archive.org)")


def test_the_internet_archive_is_no_stand_in() -> None:
    for kind in (CAPTURED, ITEM_STORED):
        proved = read(stored_event(RECORD, SIGNER, kind))
        assert proved.stored is not None
        assert "stand-in" not in proved.stored.where


def test_a_capture_dated_after_its_event_is_refused() -> None:
    later = {
        "captured_at": "2024-08-01T15:00:00Z",
        "capture_url": "https://web.archive.org/web/20240801150000/https://arxiv.org/abs/2507.10392v1",
    }
    with pytest.raises(MementoMismatchError, match="after it was signed"):
        read(stored_event(RECORD, SIGNER, **later))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("member", "00" * 32 + ".json"), ("member_sha256", "x"), ("md5", "01" * 15),
        ("sha1", ""), ("sha256", "0"), ("size", 0), ("size", -1), ("identifier", "../x"),
        ("identifier", ""), ("file", ""), ("file", "a/b"), ("archive", ""),
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_true_is_refused_although_it_is_signed(
    field: str, value: Any
) -> None:
    with pytest.raises(MementoMismatchError):
        read(stored_event(RECORD, SIGNER, ITEM_STORED, **{field: value}))


@pytest.mark.parametrize("kind", [CAPTURED, ITEM_STORED])
def test_every_field_must_be_there(kind: str) -> None:
    whole = stored_event(RECORD, SIGNER, kind)
    for field in set(whole["payload"]) - {"canonical_sha256"}:
        with pytest.raises(VerificationError):
            read(stored_event(RECORD, SIGNER, kind, **{field: None}))


@pytest.mark.parametrize("kind", [CAPTURED, ITEM_STORED])
def test_a_storage_event_cannot_carry_the_target_of_another_facet(kind: str) -> None:
    payload = stored_event(RECORD, SIGNER, kind)["payload"]
    event = sign(body_of(RECORD, SIGNER, payload, event_type=kind, target="timestamp"), SIGNER)
    with pytest.raises(VerificationError, match="target"):
        read(event)


def test_a_withdrawal_takes_back_only_what_has_its_target() -> None:
    event = stored_event(RECORD, SIGNER)
    payload = {"withdraws": event["event_id"], "reason": "memento lost"}
    bodies = [
        body_of(RECORD, SIGNER, payload, event_type=WITHDRAWN, target=target)
        for target in ("storage", "timestamp")
    ]
    right, wrong = (sign(body, SIGNER) for body in bodies)
    assert withdrawn([read(event), read(right)]) == {event["event_id"]: right["event_id"]}
    assert withdrawn([read(event), read(wrong)]) == {}
