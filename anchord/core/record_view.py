"""What a record's page is made of: its bundle, what the bundle's events come to, who cites it.

All but the last follows from the bundle and the keyring alone, so a server, a published tree and
every mirror that knows the same show the same bytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from anchord.core.bundle import Bundle
from anchord.core.merge import Merged
from anchord.core.receipt import CheckedReceipt


class Citing(msgspec.Struct, frozen=True, kw_only=True):
    """Another record of the store, one of whose events cites this one."""

    name: str
    """Pith Number of the record that cites, or `sha256:` and its digest."""
    relation: str
    """One of `claims.RELATIONS`."""
    event_id: str
    created_at: str
    signer_id: str


class RecordView(msgspec.Struct, frozen=True, kw_only=True):
    """One record, as everybody may see it."""

    raw: bytes
    """`bundle.json`: the bundle and a line break."""
    bundle: Bundle
    merged: Merged
    state: dict[str, Any]
    """What `state.json` says, see `core.state`."""
    receipts: tuple[CheckedReceipt, ...] = ()
    """The registry's receipts in the bundle, and whether their signatures hold."""
    cited_by: tuple[Citing, ...] = ()
    """Ascending by name and event, at most `MOST_CITING`; only citations that stand."""
    cited_by_count: int = 0
    """How many there are, shown or not."""


MOST_CITING = 100
