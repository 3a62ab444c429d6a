"""Proving a copy of a store: every page reads, every row chains, every checkpoint is ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from anchord.adapters.store.schema import REVISION
from anchord.adapters.store.vitals import ExaminedStore, integrity, revision_of
from anchord.engine.header_view import HeaderView
from anchord.engine.ledger_check import LedgerCheck
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anchord.core.keyring import Keyring
    from anchord.ports.store import Store


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """What a store was found to be."""

    schema: str
    events: int | None
    """Rows of the ledger; None: an older schema, only its pages were looked at."""
    checkpoint: int | None
    """Of them, how many the newest checkpoint covers."""


def prove(
    store: Path, keyring: Keyring, what: str, on_progress: Callable[[str, int, int], None]
) -> Proved:
    """Check a store's file; it is only read.

    A store of an older schema is read page by page only: its ledger is checked once it is migrated.

    Args:
        store: the file.
        keyring: keys that checkpoints may be signed with.
        what: how messages call it.
        on_progress: told (what, done, total).

    Raises:
        FatalError: it is damaged, or its ledger does not hold.
    """
    return prove_store(f"sqlite:///{store}", keyring, what, on_progress)


def prove_store(
    url: str, keyring: Keyring, what: str, on_progress: Callable[[str, int, int], None]
) -> Proved:
    """Check the store at an address, as `prove` does a file."""
    wrong = integrity(url)
    if wrong:
        raise FatalError(f"{what} is damaged: {'; '.join(wrong)[:300]}; use an older backup")
    schema = revision_of(url) or "none"
    if schema != REVISION:
        return Proved(schema=schema, events=None, checkpoint=None)
    opened = ExaminedStore(url)
    try:
        # Blocks are not looked at: headers may not be here, and time changes nothing in them.
        nobody = HeaderView([], None, 1)
        report = LedgerCheck(cast("Store", opened), keyring, nobody, on_progress).run()
    finally:
        opened.close()
    if report.faults:
        first = report.findings[0]
        raise FatalError(
            f"the ledger of {what} does not hold: {report.faults:,} fault(s), the first at "
            f"{first.subject}: {first.what}; use an older backup, and find out who changed it"
        )
    return Proved(schema=schema, events=report.rows, checkpoint=report.covered)
