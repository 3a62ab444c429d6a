"""What a tree or a server says about itself: its keys, and the manifest by which mirrors find it.

Pure functions, so that whoever serves the store and whoever publishes it say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from anchord.core.key_document import to_document
from anchord.core.keyring import Keyring, PublicKey, fingerprint
from anchord.core.mirror_manifest import own_entry, render_manifest
from anchord.errors import VerificationError

NUMBERED, UNNUMBERED = "pith", "record"
"""Folders of records with a Pith Number, and without."""
KEY = "pith-signing-key.json"
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}")
_DIGEST_LENGTH = 64


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may choose of a manifest."""

    name: str
    """Of the mirror, in its manifest."""
    merge_version: str
    base_url: str | None = None
    """Where it is served; None: addresses in the manifest are relative."""
    status: str = "mirror"
    indexed: bool = True
    """Whether the signed index and the log lie there."""


def folder_of(stem: str) -> str:
    """Return a record's folder; a stem is the suffix of a number, or a digest in hex."""
    return f"{UNNUMBERED if len(stem) == _DIGEST_LENGTH else NUMBERED}/{stem}"


def signing_key_document(
    keyring: Keyring, key_id: str, public_key: bytes | None = None
) -> dict[str, object]:
    """Return the document of the key that signs now.

    Args:
        keyring: all public keys.
        key_id: the active key's name.
        public_key: what the signer says its key is; None: nobody has opened it.

    Raises:
        VerificationError: the keyring has no such key, or another one of that name.
    """
    key = keyring.get(key_id)
    if key is None or public_key not in (None, key.public_key):
        raise VerificationError(
            f"key {key_id!r} signs, and the keyring has no such key or another one: look "
            "into keyring.toml of the key folder"
        )
    return to_document(key)


def signing_key(keyring: Keyring, key_id: str, public_key: bytes | None = None) -> bytes:
    """Return `pith-signing-key.json`, see `signing_key_document`.

    Raises:
        VerificationError: the keyring has no such key, or another one of that name.
    """
    return _pretty(signing_key_document(keyring, key_id, public_key))


def key_files(keyring: Keyring) -> Iterator[tuple[str, bytes]]:
    """Yield path and bytes of every key's document, `keys/<key id>.json`."""
    for key in keyring:
        yield f"keys/{_key_name(key)}.json", _pretty(to_document(key))


def mirror_manifest(about: About, keyring: Keyring, key_id: str, generated_at: str) -> bytes:
    """Return `pith-mirrors.json`.

    Args:
        about: what a person chose.
        keyring: all public keys.
        key_id: the active key's name.
        generated_at: UTC, as `core.moment.utc` writes it.

    Raises:
        VerificationError: the keyring has no such key.
    """
    entry: dict[str, Any] = own_entry(
        name=about.name, base_url=about.base_url, status=about.status,
        public_key=signing_key_document(keyring, key_id), numbered=NUMBERED,
    )  # fmt: skip
    if not about.indexed:
        del entry["index"], entry["log"]
    return render_manifest([entry], about.merge_version, generated_at)


def _key_name(key: PublicKey) -> str:
    """Return what a key's file is called: strangers name keys as they like."""
    return key.key_id if _PLAIN.fullmatch(key.key_id) else fingerprint(key.public_key)


def _pretty(document: dict[str, object]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
