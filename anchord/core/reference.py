"""What a person types to name a record.

One text can look like two things: eight letters may be a word, hex, or the beginning of a Pith
Number. Rules: 64 hex digits are a digest; a text with a dot or slash where arXiv has them is an
arXiv id; any other 8 to 26 characters of A-Z and 2-7 are the beginning of a Pith Number's suffix,
whatever they spell. A digest is therefore never understood from fewer than 64 hex digits.
"""

from __future__ import annotations

import re

import msgspec

from anchord.core.number import prefix_range
from anchord.errors import RefusedError

__all__ = ["FORMS", "Reference", "parse_reference", "prefix_range"]

MAX_REFERENCE = 500
FORMS = (
    "a SHA-256 in hex (64 digits, also after sha256:), a Pith Number (pith:2025:...), at least 8 "
    "characters of its suffix (A-Z, 2-7), a record's page (https://.../pith/...), an arXiv id "
    "(2507.10392, hep-th/9804177v3) or its DOI"
)
"""What is understood, for messages."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """What was named. Exactly one of `digest`, `prefix` and `source_id` is set."""

    digest: bytes | None = None
    year: str | None = None
    """Year of a Pith Number, where one was typed."""
    prefix: str | None = None
    """Beginning of the digest in base32, 8 to 26 upper-case characters."""
    source_id: str | None = None
    """arXiv id without version."""
    source_version: int | None = None


_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII | re.IGNORECASE)
_PAGE = re.compile(
    r"https?://[^/\s]+/(?:\.well-known/)?pith/([^/?#\s]+)(?:[/?#]\S*)?", re.ASCII | re.IGNORECASE
)
_NUMBER = re.compile(r"(?:pith:(?:([0-9]{4}):)?)?([a-z2-7]{8,26})", re.ASCII | re.IGNORECASE)
_ARXIV = re.compile(
    r"""(?: arxiv: | https?://(?:[a-z]+\.)?arxiv\.org/(?:abs|pdf|html|format|src)/
          | (?:doi: | https?://(?:dx\.)?doi\.org/)? 10\.48550/arxiv\. )?
        ( [0-9]{4}\.[0-9]{4,5} | [a-z][a-z-]{1,19} (?:\.[a-z]{2})? / [0-9]{7} )
        (?: v ([1-9][0-9]{0,3}) )?
        (?: \.pdf )?
    """,
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


def parse_reference(text: str) -> Reference:
    """Return what `text` names; case and surrounding white space do not matter.

    Raises:
        RefusedError: it is none of the forms understood, which the message lists.
    """
    bare = text.strip()[: MAX_REFERENCE + 1]
    page = _PAGE.fullmatch(bare)
    if page:
        bare = page[1]
    if found := _DIGEST.fullmatch(bare):
        return Reference(digest=bytes.fromhex(found[1]))
    if found := _ARXIV.fullmatch(bare):
        version = int(found[2]) if found[2] else None
        return Reference(source_id=_plain_id(found[1]), source_version=version)
    if found := _NUMBER.fullmatch(bare):
        return Reference(year=found[1], prefix=found[2].upper())
    raise RefusedError(f"expected {FORMS}, got {bare!r:.80}")


def _plain_id(arxiv_id: str) -> str:
    """Return the id as records state it: lower case, without the old ids' subject class.

    arXiv: math.GT/0309136 and math/0309136 are one paper (info.arxiv.org/help/arxiv_identifier).
    """
    archive, slash, number = arxiv_id.lower().partition("/")
    return archive.partition(".")[0] + slash + number if slash else arxiv_id
