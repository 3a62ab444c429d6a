"""Records as everybody may see them, one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anchord.core.bundle import read_bundle
from anchord.core.receipt import checked_receipts
from anchord.core.record_view import Citing, RecordView
from anchord.core.state import merge_bundle, state_of_merged
from anchord.core.trust import Keys
from anchord.core.verify import read_proof
from anchord.engine.citing import Citations
from anchord.engine.export import record_bundle

if TYPE_CHECKING:
    from anchord.core.keyring import Keyring
    from anchord.core.model import StoredRecord
    from anchord.core.verify_event import ProofReader
    from anchord.ports.store import Store


def view_of(
    raw: bytes,
    keys: Keys,
    proofs: ProofReader = read_proof,
    cited_by: Sequence[Citing] = (),
    cited_by_count: int = 0,
) -> RecordView:
    """Return what a bundle shows.

    Args:
        raw: the bundle, without the line break of its file.
        keys: the keyring.
        proofs: reads the proofs inside; one that remembers saves time over many bundles.
        cited_by: the first of the citations of this record in other records' bundles.
        cited_by_count: how many there are.

    Raises:
        RefusedError, DigestMismatchError: no bundle.
    """
    bundle = read_bundle(raw)
    merged = merge_bundle(bundle, keys, proofs)
    return RecordView(
        raw=raw + b"\n", bundle=bundle, merged=merged, state=state_of_merged(bundle, merged),
        receipts=checked_receipts(bundle, keys),
        cited_by=tuple(cited_by), cited_by_count=cited_by_count,
    )  # fmt: skip


def record_view(
    store: Store,
    keyring: Keyring,
    record: StoredRecord,
    proofs: ProofReader = read_proof,
    citations: Citations | None = None,
) -> RecordView:
    """Return what the store has of a record.

    Args:
        store: where it is.
        keyring: public keys.
        record: the row.
        proofs: reads the proofs inside.
        citations: finds who cites it; one that remembers saves time over many records.

    Raises:
        LedgerError, FatalError: the store is damaged.
    """
    keys = Keys(keyring)
    raw = record_bundle(store, keyring, record)
    citations = citations or Citations(keys)
    cited_by, count = citations.of(store, [record]).get(record.id, ((), 0))
    return view_of(raw, keys, proofs, cited_by, count)
