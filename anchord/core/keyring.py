"""Public keys, and whether a signature may be believed: the pure half of the keyring.

A key counts inside its validity window, before its revocation, and for the targets it is
permitted to sign (docs/protocol.md, Keys). Reading and writing the key folder is done by
`anchord.adapters.signers`; nothing here opens a file or knows the time.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anchord.core.moment import utc
from anchord.errors import RefusedError, SignatureError

ALGORITHM = "ed25519"
OWN_TARGETS = ("timestamp", "storage")
"""What anchord signs (docs/protocol.md, Events)."""
REGISTRY_TARGETS = ("record", "graph")
"""What the registry of the records signs."""


class PublicKey(msgspec.Struct, frozen=True, kw_only=True):
    """One Ed25519 public key and what it is believed for. Moments are Unix seconds."""

    key_id: str
    public_key: bytes
    """32 raw bytes."""
    signer_id: str
    """Who signs with it, e.g. a host name."""
    signer_type: str = "anchord"
    valid_from: int | None = None
    """First second it counts; None: not stated by whoever published it."""
    valid_until: int | None = None
    """Last second it counts; None: still in use."""
    revoked_at: int | None = None
    """Signatures made after this second do not count."""
    revocation_reason: str | None = None
    targets: tuple[str, ...] = OWN_TARGETS
    """Targets of events it may sign; "*" for all."""
    own: bool = False
    """The private half is (or was) in this key folder."""
    active: bool = False
    """The own key that signs now: at most one in a keyring."""


REGISTRY_KEY = PublicKey(
    key_id="pith-v1-2026-05",
    public_key=base64.b64decode("stVStoiQhXFxp4s2pdzPNoqVNBMojDU/fJ2db5S3CbM="),
    signer_id="pith.science",
    signer_type="pith_registry",
    targets=REGISTRY_TARGETS,
)
"""The key the Pith registry publishes at https://pith.science/pith-signing-key.json."""


@lru_cache(maxsize=64)
def fingerprint(public_key: bytes) -> str:
    """Return the first 16 bytes of the SHA-256 of the raw key, in hex."""
    return hashlib.sha256(public_key).digest()[:16].hex()


def fingerprint_b32(public_key: bytes) -> str:
    """Return the first 26 base32 characters of the SHA-256 of the raw key."""
    return base64.b32encode(hashlib.sha256(public_key).digest()).decode("ascii")[:26]


class Keyring(msgspec.Struct, frozen=True):
    """Own and foreign keys, by key_id."""

    keys: Mapping[str, PublicKey]

    def __iter__(self) -> Iterator[PublicKey]:
        return iter(self.keys.values())

    def __len__(self) -> int:
        return len(self.keys)

    def get(self, key_id: str) -> PublicKey | None:
        """Return the key of that name, or None."""
        return self.keys.get(key_id)

    def active(self) -> PublicKey | None:
        """Return the own key that signs now, or None."""
        return next((key for key in self if key.own and key.active), None)

    def verify(self, key_id: str, digest: bytes, signature: bytes, at: int, target: str) -> None:
        """Prove that `key_id` signed `digest` and was to be believed for `target` at `at`.

        Raises:
            SignatureError: 1. the key is unknown; 2. it may not sign that target; 3. `at` is
                outside its window; 4. it was revoked before `at`; 5. the signature is not its own.
        """
        key = self.get(key_id)
        if key is None:
            raise SignatureError(
                f"key {key_id!r} is not in the keyring: add it with `anchord key trust` "
                "if you believe whoever published it"
            )
        check_permitted(key, at, target)
        check_signature(key, digest, signature)


def make_keyring(keys: Iterator[PublicKey] | list[PublicKey]) -> Keyring:
    """Return a keyring of `keys`.

    Raises:
        RefusedError: two keys share an id or the raw key, or two are active.
    """
    by_id: dict[str, PublicKey] = {}
    by_raw: dict[bytes, str] = {}
    for key in keys:
        if key.key_id in by_id:
            raise RefusedError(f"key_id {key.key_id!r} appears twice: each key needs its own name")
        # One raw key under two names would let the second outlive the revocation of the first.
        if key.public_key in by_raw:
            other = by_raw[key.public_key]
            raise RefusedError(f"keys {other!r} and {key.key_id!r} are the same key: keep one")
        by_id[key.key_id] = key
        by_raw[key.public_key] = key.key_id
    active = [key.key_id for key in by_id.values() if key.active]
    if len(active) > 1:
        raise RefusedError(f"keys {', '.join(active)} are all active: exactly one may be")
    return Keyring(by_id)


def check_permitted(key: PublicKey, at: int, target: str) -> None:
    """Prove that `key` was to be believed for `target` at the second `at`.

    Raises:
        SignatureError: another target, outside the window, or revoked before.
    """
    name = f"key {key.key_id!r}"
    if target not in key.targets and "*" not in key.targets:
        raise SignatureError(f"{name} may sign {', '.join(key.targets) or 'nothing'}, not {target}")
    if key.valid_from is not None and at < key.valid_from:
        raise SignatureError(f"{name} is valid from {utc(key.valid_from)}, not yet at {utc(at)}")
    if key.valid_until is not None and at > key.valid_until:
        raise SignatureError(f"{name} was valid until {utc(key.valid_until)}, not at {utc(at)}")
    if key.revoked_at is not None and at > key.revoked_at:
        raise SignatureError(
            f"{name} was revoked at {utc(key.revoked_at)}, before {utc(at)}"
            f" ({key.revocation_reason or 'no reason given'})"
        )


@lru_cache(maxsize=64)
def _verifier(public_key: bytes) -> Ed25519PublicKey:
    """Return what verifies; making it costs a tenth of a signature."""
    return Ed25519PublicKey.from_public_bytes(public_key)


def check_signature(key: PublicKey, digest: bytes, signature: bytes) -> None:
    """Prove that `key` made `signature` over the 32 raw bytes of `digest` (RFC 8032, Ed25519).

    Raises:
        SignatureError: a wrong length, or a signature of something or somebody else.
    """
    if len(digest) != 32 or len(signature) != 64:
        raise SignatureError(
            "expected a digest of 32 bytes and a signature of 64, "
            f"got {len(digest)} and {len(signature)}"
        )
    try:
        _verifier(key.public_key).verify(signature, digest)
    except (InvalidSignature, ValueError):
        raise SignatureError(
            f"the signature over {digest.hex()} was not made by key {key.key_id!r}"
        ) from None
