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
        verify = self._key.verify
        failed = [place for place, digest in enumerate(digests) if len(digest) != 32]
        pairs = zip(signatures, digests, strict=True)
        place = -1
        while True:
            try:
                # One handler for many calls: what is right, nearly all, costs the call alone.
                for signature, digest in pairs:
                    place += 1
                    verify(signature, digest)
                return sorted(set(failed))
            except (InvalidSignature, ValueError):
                failed.append(place)
