"""Signed notes of checkpoints, as an audit reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.checkpoint import log_verifiers, open_checkpoint, parse
from anchord.core.finding import Part, Severity
from anchord.engine.audit.store_frame import RESTORE
from anchord.errors import RefusedError, SignatureError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.keyring import PublicKey
    from anchord.engine.audit.outcome import Outcome


class Notes:
    """Opens checkpoints with the keys that are known.

    Args:
        keys: keys of the keyring, and those that were given.
        outcome: where findings go.
    """

    def __init__(self, keys: Sequence[PublicKey], outcome: Outcome) -> None:
        self._keys, self._outcome = keys, outcome

    def read(self, raw: bytes, name: str, key_id: str | None = None) -> tuple[int, bytes] | None:
        """Return size and root of a checkpoint that a known key has signed.

        Args:
            raw: the signed note.
            name: which one, for findings.
            key_id: the key it is said to be signed with; None: any that is known.
        """
        try:
            origin = parse(raw).origin
            wanted = [key for key in self._keys if key_id in (None, key.key_id)]
            found = open_checkpoint(raw, log_verifiers(origin, wanted))
        except (RefusedError, SignatureError) as error:
            todo = f"give the key with --key if it is a right one; else {RESTORE}"
            self._outcome.find("checkpoint-signature-wrong", Severity.BROKEN, Part.CHECKPOINT,
                               name, str(error), todo)  # fmt: skip
            return None
        return found.size, found.root
