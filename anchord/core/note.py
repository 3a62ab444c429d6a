"""Signed notes: text with signature lines below, byte for byte as Go's `sumdb/note` has them.

https://pkg.go.dev/golang.org/x/mod/sumdb/note and C2SP signed-note
(https://c2sp.org/signed-note): the text ends in a newline; after an empty line come lines of an
em dash, the key's name, and base64 of 4 bytes of key hash and the signature. Here every signature
is Ed25519 over the text (type byte 1). Signatures of keys nobody asked about are kept and ignored.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from hashlib import sha256

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from anchord.errors import RefusedError, SignatureError

MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100
"""The limits of Go's package."""
_ED25519 = b"\x01"
_KEY_HASH = 4
_DASH = "\u2014 "
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")


class SignatureLine(msgspec.Struct, frozen=True):
    """One signature below a text."""

    name: str
    key_hash: bytes
    """4 bytes; with the name they tell which key it claims to be of."""
    signature: bytes


class Note(msgspec.Struct, frozen=True):
    """A note as it was read; none of its signatures is checked yet."""

    text: str
    """With its final newline."""
    lines: tuple[SignatureLine, ...]


class Opened(msgspec.Struct, frozen=True):
    """A note that at least one known key has signed."""

    text: str
    verified: tuple[SignatureLine, ...]
    unknown: tuple[SignatureLine, ...]
    """Of keys that were not asked about: not checked."""


class Verifier(msgspec.Struct, frozen=True):
    """A public key that notes may be signed with."""

    name: str
    public_key: bytes
    """32 raw bytes of an Ed25519 key."""

    @property
    def key_hash(self) -> bytes:
        """The 4 bytes that signature lines begin with."""
        return key_hash(self.name, self.public_key)

    @property
    def vkey(self) -> str:
        """The key as text: `name+hash+base64`, what Go calls a verifier key."""
        encoded = base64.b64encode(_ED25519 + self.public_key).decode("ascii")
        return f"{self.name}+{self.key_hash.hex()}+{encoded}"

    def check(self, text: str, signature: bytes) -> None:
        """Prove that this key signed a text.

        Raises:
            SignatureError: it did not.
        """
        try:
            key = Ed25519PublicKey.from_public_bytes(self.public_key)
            key.verify(signature, text.encode("utf-8"))
        except (InvalidSignature, ValueError):
            raise SignatureError(
                f"the note's signature by {self.name!r:.100} (key hash {self.key_hash.hex()}) does "
                "not hold: the text or the signature was changed"
            ) from None


def key_hash(name: str, public_key: bytes) -> bytes:
    """Return the first 4 bytes of SHA-256 over name, newline, type byte and key."""
    return sha256(name.encode("utf-8") + b"\n" + _ED25519 + public_key).digest()[:_KEY_HASH]


def make_verifier(name: str, public_key: bytes) -> Verifier:
    """Return a verifier of a name and an Ed25519 key.

    Raises:
        RefusedError: a name that notes cannot have, or no key of 32 bytes.
    """
    check_name(name)
    if len(public_key) != 32:
        raise RefusedError(f"expected an Ed25519 key of 32 bytes, got {len(public_key)}")
    return Verifier(name, public_key)


def parse_vkey(text: str) -> Verifier:
    """Return the verifier that a verifier key states.

    Raises:
        RefusedError: not `name+hash+base64`, another algorithm, or a hash of another key.
    """
    parts = text.split("+", 2)
    if len(parts) != 3 or not re.fullmatch(r"[0-9A-Fa-f]{8}", parts[1], re.ASCII):
        raise RefusedError(f"expected a verifier key (name+8 hex digits+base64), got {text!r:.120}")
    name, stated, encoded = parts
    raw = decode_base64(encoded)
    if raw[:1] != _ED25519 or len(raw) != 33:
        raise RefusedError(
            "expected a verifier key of an Ed25519 key (type byte 1, 32 bytes), got "
            f"{len(raw)} bytes that begin with {raw[:1].hex() or 'nothing'}"
        )
    verifier = make_verifier(name, raw[1:])
    if verifier.key_hash.hex() != stated.lower():
        raise RefusedError(
            f"the verifier key states hash {stated}, its name and key give "
            f"{verifier.key_hash.hex()}: it was changed or copied badly"
        )
    return verifier


def check_name(name: str) -> None:
    """Refuse a name that no key of a note can have.

    Raises:
        RefusedError: empty, or with a space, a plus or a control character.
    """
    bad = not name or "+" in name or any(letter.isspace() for letter in name)
    if bad or _CONTROL.search(name) or _surrogate(name):
        raise RefusedError(
            "expected a key name without spaces, plus signs and control characters, got "
            f"{name!r:.100}"
        )


def parse(raw: bytes) -> Note:
    """Return a note's text and signature lines.

    Raises:
        RefusedError: not a signed note, or beyond the limits.
    """
    if len(raw) > MAX_NOTE_BYTES:
        raise RefusedError(f"expected a note of at most {MAX_NOTE_BYTES} bytes, got {len(raw)}")
    try:
        whole = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RefusedError(f"expected a signed note in UTF-8: {error}") from None
    if found := _CONTROL.search(whole):
        raise RefusedError(f"a signed note holds the control character {found[0]!r}")
    text, separator, signatures = whole.rpartition("\n\n")
    if not separator or not signatures.endswith("\n"):
        raise RefusedError(
            "expected a signed note: text, an empty line, and signature lines that end in newlines"
        )
    lines = signatures[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise RefusedError(f"expected at most {MAX_SIGNATURES} signatures, got {len(lines)}")
    return Note(text + "\n", tuple(_line(line) for line in lines))


def open_note(raw: bytes, verifiers: Iterable[Verifier]) -> Opened:
    """Return a note that a known key has signed; every signature by a known key must hold.

    Raises:
        RefusedError: not a signed note.
        SignatureError: a known key's signature does not hold or stands there twice, or there is
            none of a known key.
    """
    found = parse(raw)
    known = {(one.name, one.key_hash): one for one in verifiers}
    verified: list[SignatureLine] = []
    unknown: list[SignatureLine] = []
    for line in found.lines:
        verifier = known.get((line.name, line.key_hash))
        if verifier is None:
            unknown.append(line)
            continue
        if any((line.name, line.key_hash) == (one.name, one.key_hash) for one in verified):
            raise SignatureError(f"the note has two signatures by one key of {line.name!r:.100}")
        verifier.check(found.text, line.signature)
        verified.append(line)
    if not verified:
        names = ", ".join(f"{one.name}+{one.key_hash.hex()}" for one in unknown[:5])
        asked = ", ".join(f"{name}+{digest.hex()}" for name, digest in known) or "none"
        raise SignatureError(
            f"the note is signed by {names:.300}, expected a signature by {asked:.300}"
        )
    return Opened(found.text, tuple(verified), tuple(unknown))


def write(text: str, lines: Sequence[SignatureLine]) -> bytes:
    """Return the bytes of a signed note.

    Raises:
        RefusedError: the text or a line is none that a note can have.
    """
    if not text.endswith("\n") or _CONTROL.search(text) or _surrogate(text):
        raise RefusedError("expected a text that ends in a newline, without control characters")
    for line in lines:
        check_name(line.name)
    below = "".join(f"{_DASH}{line.name} {_encoded(line)}\n" for line in lines)
    raw = f"{text}\n{below}".encode()
    parse(raw)  # what is written can be read
    return raw


def decode_base64(text: str) -> bytes:
    """Return what standard base64 stands for, in its one canonical spelling only.

    Raises:
        RefusedError: other characters, missing padding, or bits that mean nothing.
    """
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, ValueError):
        raise RefusedError(f"expected standard base64, got {text!r:.100}") from None
    if base64.b64encode(raw).decode("ascii") != text:
        raise RefusedError(f"expected canonical base64, got {text!r:.100}")
    return raw


def _line(line: str) -> SignatureLine:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not encoded:
        raise RefusedError(f"expected a signature line (em dash, name, base64), got {line!r:.120}")
    check_name(name)
    raw = decode_base64(encoded)
    if len(raw) <= _KEY_HASH:
        raise RefusedError(f"a signature line of {name!r:.100} holds only {len(raw)} bytes")
    return SignatureLine(name, raw[:_KEY_HASH], raw[_KEY_HASH:])


def _encoded(line: SignatureLine) -> str:
    return base64.b64encode(line.key_hash + line.signature).decode("ascii")


def _surrogate(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
