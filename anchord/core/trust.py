"""Which keys signatures are checked with, and how far each is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

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

    What evidence states never stands in the way of what is trusted: a claimed key of the name of a
    trusted one is left out, and of two claimed keys of one name neither counts. Anybody can put a
    key document into a bundle, and must not spoil by it what others prove there.

    Args:
        keyring: the own keyring, or the registry's published key alone.
        given: keys the person who asks has named.
        claimed: keys the evidence itself states.

    Raises:
        SignatureError: one key id stands for two different keys in places that are trusted.
    """

    def __init__(
        self, keyring: Keyring, given: Iterable[PublicKey] = (), claimed: Iterable[PublicKey] = ()
    ) -> None:
        self._keys: dict[str, tuple[PublicKey, Trust]] = {}
        self._disputed: dict[str, str] = {}
        for trust, keys in (
            (Trust.GIVEN, given),
            (Trust.KEYRING, keyring),
            (Trust.CLAIMED, claimed),
        ):
            for key in keys:
                self._add(key, trust)
        self._narrow_renamed()

    def _narrow_renamed(self) -> None:
        """A trusted key of two names is one key: the second does not outlive the first."""
        known: dict[bytes, PublicKey] = {}
        for _ in range(2):  # what the last one says holds for the first, too
            for name, (key, trust) in self._keys.items():
                if trust is not Trust.CLAIMED:
                    narrow = _narrowed(known.get(key.public_key, key), key)
                    known[key.public_key] = narrow
                    self._keys[name] = (narrow, trust)

    def _add(self, key: PublicKey, trust: Trust) -> None:
        known, believed = self._keys.setdefault(key.key_id, (key, trust))
        if known.public_key != key.public_key:
            words = (
                f"key {key.key_id!r:.100} has fingerprint {fingerprint(known.public_key)} in one "
                f"place and {fingerprint(key.public_key)} in another: one of them is forged"
            )
            if trust is not Trust.CLAIMED:
                raise SignatureError(words)
            self._disputed.setdefault(key.key_id, words)
        elif trust is not Trust.CLAIMED:
            self._keys[key.key_id] = (_narrowed(known, key), believed)

    @property
    def disputed(self) -> tuple[str, ...]:
        """Names that the evidence gives to another key than is known, in words."""
        return tuple(self._disputed.values())

    def __iter__(self) -> Iterator[tuple[PublicKey, Trust]]:
        """Yield each key and how far it is trusted."""
        return (found for key_id in self._keys if (found := self.find(key_id)) is not None)

    def find(self, key_id: str) -> tuple[PublicKey, Trust] | None:
        """Return a key and how far it is trusted."""
        found = self._keys.get(key_id)
        if found is not None and found[1] is Trust.CLAIMED and key_id in self._disputed:
            return None
        return found


def _narrowed(first: PublicKey, second: PublicKey) -> PublicKey:
    """Return a key as two trusted places allow it together; the second, the keyring, has targets.

    A document published before a revocation must not undo it.
    """
    revoked = [key for key in (first, second) if key.revoked_at is not None]
    end = min(revoked, key=lambda key: key.revoked_at or 0, default=first)
    begins = [key.valid_from for key in (first, second) if key.valid_from is not None]
    ends = [key.valid_until for key in (first, second) if key.valid_until is not None]
    return msgspec.structs.replace(
        second,
        valid_from=max(begins, default=None),
        valid_until=min(ends, default=None),
        revoked_at=end.revoked_at,
        revocation_reason=end.revocation_reason,
    )
