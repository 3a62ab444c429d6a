"""What strangers put beside an honest record's evidence neither breaks it nor speaks for it."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.evidence import anchored_payload, body_of, bundle_with, mined, sign, stored_event
from support.parties import START, FakeChain, FakeSigner
from support.workplace import Workplace, sample

from anchord.core.bundle import MAX_FOREIGN_BYTES, read_bundle
from anchord.core.bundle_check import check_document
from anchord.core.key_document import to_document
from anchord.core.keyring import PublicKey
from anchord.core.model import Document
from anchord.core.moment import utc
from anchord.core.reference import Reference
from anchord.core.state import state_of
from anchord.core.trust import Keys, Trust
from anchord.engine.certifying import certify_bundle
from anchord.engine.export import record_bundle
from anchord.engine.header_view import HeaderView
from anchord.engine.report import Report
from anchord.engine.verification import verify_bundle
from anchord.errors import RefusedError

RECORD = sample(1)
HONEST, STRANGER = FakeSigner(), FakeSigner("stranger", "elsewhere.example.org")
NAMESAKE = FakeSigner("namesake", HONEST.signer_id)
"""Calls itself what the honest signer is called."""
CHAIN = FakeChain(height=3)
EARLIER = anchored_payload(mined(RECORD.digest, CHAIN), CHAIN)
PAYLOAD = anchored_payload(mined(RECORD.digest, CHAIN), CHAIN)
ANCHORED = sign(body_of(RECORD, HONEST, PAYLOAD), HONEST)
WRONG_TIME = {**PAYLOAD, "block_time": utc(START - 999)}


def bundle(*events: dict[str, Any], by: FakeSigner = STRANGER, keys: list[Any] = []) -> bytes:  # noqa: B006
    """Return the honest bundle with somebody's events and keys beside it."""
    document = json.loads(bundle_with(RECORD, [ANCHORED, *events], [HONEST, by]))
    document["public_keys"] += keys
    return json.dumps(document).encode()


def verified(raw: bytes, *, given: tuple[PublicKey, ...] = ()) -> Report:
    view = HeaderView([CHAIN], "bitcoin-regtest", 1)
    return verify_bundle("it", raw, HONEST.keyring(), given, lambda *_: None, view)


def certified(raw: bytes) -> Any:
    view = HeaderView([CHAIN], "bitcoin-regtest", 1)
    return certify_bundle("it", raw, HONEST.keyring(), (), lambda *_: None, view)


@pytest.mark.parametrize(
    "event",
    [
        sign(body_of(RECORD, STRANGER, WRONG_TIME), STRANGER),
        sign(body_of(RECORD, STRANGER, {**PAYLOAD, "block_hash": "00" * 32}), STRANGER),
        sign(body_of(RECORD, STRANGER, anchored_payload(
            mined(RECORD.digest, other := FakeChain(height=6, time=START - 90_000)), other
        )), STRANGER),
        sign(body_of(RECORD, STRANGER, PAYLOAD), HONEST),
    ],
    ids=["another time", "another hash", "another chain's block", "a signature by another key"],
)  # fmt: skip
def test_a_false_event_by_a_key_nobody_trusts_fails_nothing(event: dict[str, Any]) -> None:
    report = verified(bundle(event))
    assert (report.result, report.reason) == ("proved", None)
    assert certified(bundle(event)).statement.trust is Trust.KEYRING


def test_a_false_event_fails_where_nothing_trusted_stands_beside_it() -> None:
    event = sign(body_of(RECORD, STRANGER, WRONG_TIME), STRANGER)
    assert verified(bundle_with(RECORD, [event], [STRANGER])).result == "failed"


def test_a_false_event_by_a_key_that_is_trusted_fails() -> None:
    event = sign(body_of(RECORD, STRANGER, WRONG_TIME), STRANGER)
    assert verified(bundle(event), given=(STRANGER.public(),)).result == "failed"


def test_keys_of_one_name_from_two_strangers_spoil_nothing() -> None:
    keys = [to_document(STRANGER.public(key_id=name)) for name in ("x", HONEST.key_id)]
    raw = bundle(by=HONEST, keys=[*keys, to_document(NAMESAKE.public(key_id="x"))])
    report = verified(raw)
    assert report.result == "proved"
    assert [check.outcome for check in report.checks if check.check == "key"] == ["not checked"] * 2
    with pytest.raises(RefusedError, match="forged"):
        check_document(Document(record=RECORD, raw=raw), HONEST.keyring())


def test_a_certificate_shows_no_copies_of_a_namesake() -> None:
    raw = bundle(stored_event(RECORD, NAMESAKE), by=NAMESAKE)
    assert certified(raw).copies == ()
    assert len(certified(bundle(stored_event(RECORD, HONEST))).copies) == 1


def test_a_certificate_is_by_the_trusted_signer_though_a_stranger_was_earlier() -> None:
    made = certified(bundle(sign(body_of(RECORD, NAMESAKE, EARLIER), NAMESAKE), by=NAMESAKE))
    assert (made.statement.key_id, made.statement.trust) == (HONEST.key_id, Trust.KEYRING)
    assert made.anchor.height == PAYLOAD["block_height"]


def test_what_a_stranger_did_not_sign_is_not_taken_in() -> None:
    event = sign(body_of(RECORD, STRANGER, PAYLOAD), HONEST)
    with pytest.raises(RefusedError, match="only the evidence states"):
        check_document(Document(record=RECORD, raw=bundle(event)), HONEST.keyring())


def test_what_strangers_say_leaves_a_bundle_that_can_be_read(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    long = MAX_FOREIGN_BYTES - 100_000
    place.anchor(document("a", 10), document("b", long), document("c", long), document("d", 20))
    with place.app() as app:
        (record,) = app.store.records.find(Reference(digest=RECORD.digest), 1)
        raw = record_bundle(app.store, app.keyring, record)
        keys = Keys(app.keyring)
    found = read_bundle(raw)
    names = {event["event_id"] for event in found.events}
    assert {"a", "d"} <= names
    assert len(names & {"b", "c"}) == 1
    assert state_of(found, keys)["current"]["timestamps"]


def test_a_foreign_bundle_that_fills_all_the_room_is_not_kept() -> None:
    with pytest.raises(RefusedError, match="at most"):
        check_document(document("a", MAX_FOREIGN_BYTES), HONEST.keyring())


def document(name: str, length: int) -> Document:
    """Return a stranger's bundle with one unsigned event of a certain length."""
    text = json.loads(bundle_with(RECORD, []))
    text["events"] = [{"event_id": name, "event_type": "note", "words": "w" * length}]
    return Document(record=RECORD, raw=json.dumps(text).encode())
