"""Signed events: body, id, signature, and templates that render a million of them alike.

The rules are anchord's own (docs/protocol.md, Events): the body is the event without `event_id`
and `signature_b64`; the id is the SHA-256 of the body's canonical bytes; the signature is Ed25519
over the 32 raw bytes of that digest. Bodies hold strings, lists, objects and integers only, so
every canonical encoder agrees on their bytes.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.plain import plain_bytes
from anchord.errors import FatalError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SUBMITTED = "timestamp_submitted"
ANCHORED = "timestamp_anchored"
WITHDRAWN = "facet_withdrawn"
CAPTURED = "capture_stored"
ITEM_STORED = "item_stored"
TARGET = "timestamp"
"""Target of every event about the facet `anchored`."""
STORAGE = "storage"
"""Target of every event about the facet `stored`."""
TIMESTAMPS = (SUBMITTED, ANCHORED)
"""Event types about the facet `anchored`, withdrawals aside."""

NO_CHAIN = bytes(32)
"""What the first row of a ledger chains to."""

_SLOTS = (
    "canonical_sha256", "member", "member_sha256", "proof_b64", "proof_sha256", "withdraws",
)  # fmt: skip
"""Payload fields that differ from record to record; the rest is common to a series."""

_MARK = "\x00{}\x00"
_GAP = re.compile(rb'(?:"subject":)?(?<!\\)"\\u0000([a-z0-9_]+)\\u0000"')
"""A mark as JSON writes it, quotes included: within a string every quote is escaped, so nothing but
a whole string that is a mark can look like this. The subject's gap takes its key along."""
_MAX_INT = 2**53


def canonical_body(body: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of an event body.

    Raises:
        RefusedError: the body leaves the profile where all encoders agree.
    """
    plain = plain_bytes(body, _MAX_INT)
    if plain is not None:
        return plain
    _check_profile(body)
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise RefusedError("an event body holds a lone surrogate: expected valid text") from None


def _check_profile(value: Any) -> None:
    """Walk without recursion: strings, lists, objects, true/false/null, integers below 2^53."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if not all(isinstance(key, str) and key.isascii() for key in item):
                raise RefusedError("an event body has a key that is not ASCII text")
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, bool | str) or item is None:
            continue
        elif not (isinstance(item, int) and -_MAX_INT < item < _MAX_INT):
            raise RefusedError(
                f"an event body holds {type(item).__name__} {item!r:.40}: "
                "expected text or an integer below 2^53"
            )


def event_digest(body: bytes) -> bytes:
    """Return the 32 bytes that are signed; their hex after "sha256:" is the event id."""
    return hashlib.sha256(body).digest()


def event_id(digest: bytes) -> str:
    """Return the id as events state it."""
    return "sha256:" + digest.hex()


def chain_next(chain: bytes, digest: bytes, signature: bytes) -> bytes:
    """Return the ledger's row hash after one more event, outside the signed body."""
    return hashlib.sha256(chain + digest + signature).digest()


def signer_block(key_id: str, public_key: bytes, signer_id: str) -> dict[str, str]:
    """Return the `signer` object of anchord's events."""
    return {
        "key_id": key_id,
        "public_key_fingerprint": hashlib.sha256(public_key).digest()[:16].hex(),
        "signer_id": signer_id,
        "signer_type": "anchord",
    }


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """What all events of a series share."""

    event_type: str
    created_at: str
    """`YYYY-MM-DDTHH:MM:SSZ`."""
    signer: dict[str, str]
    payload: dict[str, Any]
    """The payload without the fields that differ by record."""
    slots: tuple[str, ...]
    """Names of the payload fields that differ by record, canonical_sha256 among them."""
    target: str = TARGET


class Template(msgspec.Struct, frozen=True):
    """A canonical body with gaps where the events of a series differ."""

    pattern: bytes
    """printf-style, one `%b` a gap."""
    order: tuple[str, ...]
    """Which value stands in which gap; "subject" is the whole key and value."""

    def render(self, columns: Mapping[str, Sequence[bytes]]) -> list[bytes]:
        """Return the canonical bodies of many events.

        Args:
            columns: by gap, one value (plain ASCII, unquoted) for each event.
        """
        pattern = self.pattern
        rows = zip(*[columns[name] for name in self.order], strict=True)
        return [pattern % row for row in rows]


def member_name(digest: bytes) -> str:
    """Return what a record's bundle is called within a ZIP of bundles."""
    return digest.hex() + ".json"


def subject(*, number: str | None, record_id: str) -> bytes:
    """Return the canonical key and value that name the subject."""
    if number is not None:
        return b'"subject_pith_number":"' + number.encode("ascii") + b'"'
    return b'"subject_record_id":"' + record_id.encode("ascii") + b'"'


def template(common: Common) -> Template:
    """Cut the canonical body of a series at its gaps.

    Raises:
        FatalError: a common field holds what marks a gap, so the cut would be ambiguous.
    """
    unknown = set(common.slots) - set(_SLOTS)
    if unknown or set(common.slots) & set(common.payload):
        raise FatalError(f"series payload and gaps collide: {sorted(unknown)}; this is a bug")
    body = {
        "created_at": common.created_at,
        "event_type": common.event_type,
        "payload": {**common.payload, **{name: _MARK.format(name) for name in common.slots}},
        "signer": common.signer,
        "subject": _MARK.format("subject"),
        "target": common.target,
    }
    fields = _GAP.split(canonical_body(body))
    order = tuple(name.decode("ascii") for name in fields[1::2])
    if sorted(order) != sorted((*common.slots, "subject")):
        raise FatalError("an event's common fields hold a mark of a gap: refusing to render")
    fixed = [part.replace(b"%", b"%%") for part in fields[0::2]]
    pieces = [fixed[0]]
    for name, part in zip(order, fixed[1:], strict=True):
        pieces += [b"%b" if name == "subject" else b'"%b"', part]
    return Template(b"".join(pieces), order)
