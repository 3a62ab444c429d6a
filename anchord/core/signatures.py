"""Many signatures of one key: the key is made once, and only what fails is named."""

from __future__ import annotations

from collections.abc import Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anchord.core.keyring import PublicKey


class Verifier:
    """Verifies Ed25519 signatures (RFC 8032) over 32-byte digests with one key.

    Args:
        key: whose signatures they should be.
    """

    def __init__(self, key: PublicKey) -> None:
        try:
            self._key: Ed25519PublicKey | None = Ed25519PublicKey.from_public_bytes(key.public_key)
        except ValueError:
            self._key = None

    def wrong(self, digests: Sequence[bytes], signatures: Sequence[bytes]) -> list[int]:
        """Return the places of the pairs that were not made by the key."""
        if self._key is None:
            return list(range(len(digests)))
        verify, failed = self._key.verify, []
        for place, (digest, signature) in enumerate(zip(digests, signatures, strict=True)):
            try:
                verify(signature, digest)
            except (InvalidSignature, ValueError):
                failed.append(place)
            else:
                if len(digest) != 32:
                    failed.append(place)
        return failed
