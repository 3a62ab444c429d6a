"""Auditing tokens of time-stamping authorities (RFC 3161): each against its batch and its events.

A token proves by itself what it is about, and who signed it. Whether its certificate leads to a
root that somebody trusts, `anchord verify --tsa-ca` asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.event import ANCHORED
from anchord.core.finding import Part, Severity
from anchord.core.receipt import strict_base64
from anchord.core.tsa import read_token
from anchord.core.witnessed import StatedToken
from anchord.engine.audit.store_frame import RESTORE
from anchord.engine.audit.store_series import object_of
from anchord.errors import VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from anchord.core.model import Batch, Series
    from anchord.engine.audit.outcome import Outcome


def check_tokens(
    batch: Batch, series: Sequence[Series], stored: Mapping[str, bytes], outcome: Outcome
) -> None:
    """Hold a batch's tokens against its root, and against what its events say of them.

    Args:
        batch: the batch.
        series: its series; those that were withdrawn had the same tokens.
        stored: its tokens, by the address they came from.
        outcome: where findings go.
    """
    for url, raw in stored.items():
        try:
            read_token(raw, batch.root)
        except VerificationError as error:
            what = f"it has to be a token over the batch's root {batch.root.hex()}: {error}"
            _broken(outcome, "token-wrong", batch, url, what)
    for one in series:
        for url, signed in _signed(one):
            if url not in stored:
                what = f"series {one.id} signed for a token, and none is stored"
                _broken(outcome, "token-missing", batch, url, what)
            elif stored[url] != signed:
                what = f"the token stored is not the one that series {one.id} signed for"
                _broken(outcome, "token-differs", batch, url, what)


def _signed(series: Series) -> Iterator[tuple[str, bytes]]:
    """Yield the tokens that a series' events carry; what is none, `core.verify_event` refuses."""
    if series.event_type != ANCHORED:
        return
    stated = object_of(series.payload).get("rfc3161")
    entries: list[Any] = stated if isinstance(stated, list) else []
    for entry in entries:
        try:
            token = msgspec.convert(entry, StatedToken)
            yield token.url, strict_base64(token.token_b64, "a token")
        except (msgspec.ValidationError, VerificationError):
            continue


def _broken(outcome: Outcome, code: str, batch: Batch, url: str, what: str) -> None:
    name = f"batch {batch.id}, token of {url:.100}"
    outcome.find(code, Severity.BROKEN, Part.BATCH, name, what, RESTORE)
