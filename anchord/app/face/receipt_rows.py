"""The table "Receipt and verification": what the registry signed, and whether that holds."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.face.rows import Fact
from anchord.app.face.words import moment, shown
from anchord.core.keyring import fingerprint
from anchord.core.registry_events import CREATED

if TYPE_CHECKING:
    from anchord.core.receipt import CheckedReceipt
    from anchord.core.record_view import RecordView

_BUILDER = ("builder", "builder_version", "builder_id")
_SCHEMA = ("schema", "schema_version", "receipt_version")


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One receipt."""

    facts: tuple[Fact, ...]
    verdict: str
    tone: str
    """"good", "wait" or "bad"."""


def receipts(view: RecordView) -> tuple[Receipt, ...]:
    """Return what a page says of the registry's receipts."""
    created = [event for event in view.bundle.events if event.get("event_type") == CREATED]
    return tuple(_receipt(one, created, view) for one in view.receipts)


def _receipt(one: CheckedReceipt, created: list[dict[str, Any]], view: RecordView) -> Receipt:
    around = next((event for event in created if _inside(event) == one.receipt), {})
    payload: dict[str, Any] = around.get("payload") or {}
    record = view.state["current"]["canonical_record"]
    schema = record.get("schema_version") if isinstance(record, dict) else None
    facts = [
        *_first(one.receipt, around),
        *_named(_BUILDER, "Builder", one.receipt, payload),
        *_signature(one),
        *_named(_SCHEMA, "Schema", one.receipt, payload, {"schema": schema}),
    ]
    verdict, tone = _verdict(one)
    return Receipt(facts=tuple(facts), verdict=verdict, tone=tone)


def _inside(event: Mapping[str, Any]) -> Any:
    payload = event.get("payload")
    return payload.get("receipt") if isinstance(payload, dict) else None


def _first(receipt: Mapping[str, Any], created: Mapping[str, Any]) -> Iterator[Fact]:
    at = created.get("created_at")
    if isinstance(at, str):
        yield Fact(name="First computed", text=moment(at))
    signed_at = receipt.get("signed_at")
    if isinstance(signed_at, str) and signed_at != at:
        yield Fact(name="Signed", text=moment(signed_at))


def _named(names: tuple[str, ...], words: str, *places: Mapping[str, Any]) -> Iterator[Fact]:
    for place in places:
        for name in names:
            if isinstance(place.get(name), str) and place[name]:
                yield Fact(name=words, text=shown(place[name]))
                return


def _signature(one: CheckedReceipt) -> Iterator[Fact]:
    receipt = one.receipt
    kind, key_id = shown(receipt.get("algorithm", ""), 40), shown(receipt.get("key_id", ""), 100)
    yield Fact(name="Signature", text=f"{'Ed25519' if kind == 'ed25519' else kind}, key {key_id}")
    if one.public_key is not None:
        text = base64.b64encode(one.public_key).decode("ascii")
        yield Fact(name="Public key", text=text, code=True)
        yield Fact(name="Key fingerprint", text=fingerprint(one.public_key), code=True)
    value = receipt.get("signature_b64")
    if isinstance(value, str):
        yield Fact(name="Signature value", text=shown(value), code=True)


def _verdict(one: CheckedReceipt) -> tuple[str, str]:
    if one.holds:
        return "The signature holds: the key signed the 32 bytes of the canonical hash.", "good"
    if one.holds is None:
        return f"Not verified: {shown(one.why)}.", "wait"
    return f"The signature does not hold: {shown(one.why)}.", "bad"
