"""What findings about trees and bundles are called, and the words they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.keyring import fingerprint
from anchord.core.trust import Trust
from anchord.errors import (
    AttestationError,
    DigestMismatchError,
    LedgerError,
    MementoMismatchError,
    RefusedError,
    SignatureError,
)

if TYPE_CHECKING:
    from anchord.core.keyring import PublicKey
    from anchord.errors import AnchordError

KEY_TODO = "give them with --key if you believe who published them"

_ENDINGS = (
    (DigestMismatchError, "changed"),
    (SignatureError, "signature-wrong"),
    (AttestationError, "proof-wrong"),
    (MementoMismatchError, "storage-wrong"),
    (LedgerError, "log-wrong"),
    (RefusedError, "unreadable"),
)
_TRUST = {
    Trust.KEYRING: "in the keyring",
    Trust.GIVEN: "given",
    Trust.CLAIMED: "only the evidence states it",
}


def code_of(error: AnchordError, what: str) -> str:
    """Return the code of a finding: the thing, and how it does not hold."""
    ending = next((words for kind, words in _ENDINGS if isinstance(error, kind)), "wrong")
    return f"{what}-{ending}"


def key_words(key: PublicKey, trust: Trust) -> str:
    """Return who signed, by which key, and how far it is trusted."""
    return f"{fingerprint(key.public_key)}, {key.signer_id}, {_TRUST[trust]}"


def shown(path: str) -> str:
    """Return a path that every screen can show, whatever bytes its name has."""
    return path.encode("utf-8", "backslashreplace").decode("utf-8")[:300]
