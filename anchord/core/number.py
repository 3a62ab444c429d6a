"""Names of a digest: Pith Number, short forms, record id, aliases.

The rules are the registry's (docs/protocol.md, 2): a suffix is the first 26 characters of the
RFC 4648 base32 of the digest, 130 of its 256 bits.
"""

from __future__ import annotations

from functools import lru_cache

from anchord.core.model import Record
from anchord.errors import RefusedError

SHORT_LENGTHS = (8, 12, 16)
"""Short forms the registry lists as aliases; two records may share one."""

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_DIGEST_BITS = 256


_PAIRS = tuple(a + b for a in _ALPHABET for b in _ALPHABET)
"""Base32 of 10 bits: two characters at a time, four times as fast as the standard library."""
_SHIFTS = tuple(range(120, -1, -10))


@lru_cache(maxsize=64)
def pith_suffix(digest: bytes) -> str:
    """Return the 26 characters of a Pith Number that come from the digest."""
    bits = int.from_bytes(digest[:17], "big") >> 6
    return "".join([_PAIRS[(bits >> shift) & 1023] for shift in _SHIFTS])


def pith_number(digest: bytes, year: str) -> str:
    """Return "pith:YYYY:SUFFIX"; `year` is that of the record's `submitted_at`."""
    return f"pith:{year}:{pith_suffix(digest)}"


def short_pith_number(digest: bytes) -> str:
    """Return "pith:" and the first 8 characters: for people, not unique."""
    return f"pith:{pith_suffix(digest)[:8]}"


def record_id(digest: bytes) -> str:
    """Return "sha256:" and the digest in hex: the name of a record without a Pith Number."""
    return "sha256:" + digest.hex()


def aliases(record: Record) -> list[tuple[str, str]]:
    """Return (alias_kind, alias_value) of a record, ascending by kind.

    Kinds with "arxiv" and "doi" stand only where the record's source is arXiv.
    """
    found: list[tuple[str, str]] = []
    if record.source_kind == "arxiv" and record.source_id is not None:
        found.append(("arxiv", record.source_id))
        if record.source_version is not None:
            found.append(("arxiv_version", f"{record.source_id}v{record.source_version}"))
        found.append(("doi", f"10.48550/arxiv.{record.source_id}"))
    suffix = pith_suffix(record.digest)
    found += [(f"pith_short_{length}", suffix[:length]) for length in SHORT_LENGTHS]
    return sorted(found)


def prefix_range(prefix: str) -> tuple[bytes, bytes]:
    """Return the lowest and the highest digest whose base32 starts with `prefix`, both inclusive.

    Raises:
        RefusedError: not 1 to 51 characters of A-Z and 2-7 (either case).
    """
    letters = prefix.upper()
    free = _DIGEST_BITS - 5 * len(letters)
    if not prefix.isascii() or free <= 0 or not letters or letters.strip(_ALPHABET):
        raise RefusedError(
            f"expected 1 to 51 base32 characters (A-Z, 2-7), got {prefix!r:.80}: check for 0, 1, 8"
        )
    bits = 0
    for letter in letters:
        bits = bits << 5 | _ALPHABET.index(letter)
    low = bits << free
    return low.to_bytes(32, "big"), (low | (1 << free) - 1).to_bytes(32, "big")
