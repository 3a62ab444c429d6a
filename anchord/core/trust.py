"""Which keys signatures are checked with, and how far each is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from anchord.core.keyring import Keyring, PublicKey, fingerprint
from anchord.errors import SignatureError


class Trust(StrEnum):
    """Why a key is believed, or that it is not."""

    KEYRING = "keyring"
    GIVEN = "given"
    CLAIMED = "claimed"
    """Only the bundle itself states it."""


class Keys:
    """The keys signatures are checked with, and how far each is trusted.

    Args:
        keyring: the own keyring, or the registry's published key alone.
        given: keys the person who asks has named.
        claimed: keys the evidence itself states.

    Raises:
        SignatureError: one key id stands for two different keys.
    """

    def __init__(
        self, keyring: Keyring, given: Iterable[PublicKey] = (), claimed: Iterable[PublicKey] = ()
    ) -> None:
        self._keys: dict[str, tuple[PublicKey, Trust]] = {}
        for trust, keys in (
            (Trust.GIVEN, given),
            (Trust.KEYRING, keyring),
            (Trust.CLAIMED, claimed),
        ):
            for key in keys:
                self._add(key, trust)

    def _add(self, key: PublicKey, trust: Trust) -> None:
        known, _ = self._keys.setdefault(key.key_id, (key, trust))
        if known.public_key != key.public_key:
            raise SignatureError(
                f"key {key.key_id!r} has fingerprint {fingerprint(known.public_key)} in one "
                f"place and {fingerprint(key.public_key)} in another: one of them is forged"
            )

    def find(self, key_id: str) -> tuple[PublicKey, Trust] | None:
        """Return a key and how far it is trusted."""
        return self._keys.get(key_id)
