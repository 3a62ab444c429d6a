"""Checkpoints: a log's signed size and root, as C2SP tlog-checkpoint writes them.

https://c2sp.org/tlog-checkpoint: a signed note whose text is the log's origin, its size in decimal,
its root in base64, and lines nobody here interprets, which are kept.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable

import msgspec

from anchord.core import note
from anchord.core.event import TARGET
from anchord.core.keyring import PublicKey
from anchord.core.log import HASH, MAX_SIZE
from anchord.errors import RefusedError, SignatureError

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says."""

    origin: str
    """Which log it is of."""
    size: int
    """How many entries it covers: 0 to size - 1."""
    root: bytes
    extensions: tuple[str, ...] = ()
    """Further lines, as they came."""


def text(checkpoint: Checkpoint) -> str:
    """Return the text that is signed.

    Raises:
        RefusedError: no checkpoint can say this.
    """
    encoded = base64.b64encode(checkpoint.root).decode("ascii")
    lines = (checkpoint.origin, str(checkpoint.size), encoded, *checkpoint.extensions)
    written = "".join(f"{line}\n" for line in lines)
    if parse_text(written) != checkpoint:
        raise RefusedError(f"expected lines without breaks, got the origin {checkpoint.origin!r}")
    return written


def parse_text(text: str) -> Checkpoint:
    """Return what the text of a checkpoint says.

    Raises:
        RefusedError: not a checkpoint's text.
    """
    lines = text.split("\n")
    if len(lines) < 4 or lines[-1] or not all(lines[:-1]):
        raise RefusedError(
            "expected a checkpoint: origin, size and root, one a line, got "
            f"{len(lines) - 1} lines or an empty one"
        )
    origin, size, encoded, *extensions = lines[:-1]
    if not _SIZE.fullmatch(size) or int(size) > MAX_SIZE:
        raise RefusedError(f"expected a size in decimal without leading zeros, got {size!r:.40}")
    root = note.decode_base64(encoded)
    if len(root) != HASH:
        raise RefusedError(f"expected a root of {HASH} bytes, got {len(root)}")
    return Checkpoint(origin=origin, size=int(size), root=root, extensions=tuple(extensions))


def parse(raw: bytes) -> Checkpoint:
    """Return what a signed checkpoint says, without checking who signed it.

    Raises:
        RefusedError: not a signed note, or not of a checkpoint.
    """
    return parse_text(note.parse(raw).text)


def log_verifiers(origin: str, keys: Iterable[PublicKey]) -> list[note.Verifier]:
    """Return what checks the notes of a log: those of the keys that may sign timestamps.

    A key that is believed for something else (claims of an author, say) says nothing of a log.

    Raises:
        RefusedError: an origin that notes cannot have.
    """
    raw = dict.fromkeys(key.public_key for key in keys if signs_logs(key))
    return [note.make_verifier(origin, public_key) for public_key in raw]


def signs_logs(key: PublicKey) -> bool:
    """Tell whether checkpoints of a key count."""
    return TARGET in key.targets or "*" in key.targets


def open_checkpoint(raw: bytes, verifiers: Iterable[note.Verifier]) -> Checkpoint:
    """Return what a checkpoint says that a key of its own log has signed.

    Keys of other names (witnesses) may sign too; without the log's own signature they do not count.

    Raises:
        RefusedError: not a signed note, or not of a checkpoint.
        SignatureError: not signed by a known key of that log, or a signature does not hold.
    """
    opened = note.open_note(raw, verifiers)
    found = parse_text(opened.text)
    if found.origin not in {line.name for line in opened.verified}:
        names = ", ".join(line.name for line in opened.verified)
        raise SignatureError(
            f"the checkpoint of {found.origin!r:.100} is signed by {names:.200} only, expected a "
            "key of the log itself"
        )
    return found
