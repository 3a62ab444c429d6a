"""Addresses in pages: which text of strangers may be a link, and where works of a name are.

A link is plain http or https of a host that is named openly: no `javascript:`, no user before an
`@`, nothing a browser would read otherwise than a person.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from anchord.engine.publishing_about import folder_of

_MOST = 2048
"""What browsers and servers take for sure."""
_ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]_-]+(?:[/?#][!-~]*)?")
_ARXIV = re.compile(r"(?:[0-9]{4}\.[0-9]{4,5}|[a-z][a-z-]*(?:\.[A-Z]{2})?/[0-9]{7})(?:v[0-9]+)?")
"""https://info.arxiv.org/help/arxiv_identifier.html"""
_DOI = re.compile(r"10\.[0-9]{4,9}/[!-~]+")
_NUMBER = re.compile(r"pith:[0-9]{4}:([A-Z2-7]{26})")
_RECORD = re.compile(r"sha256:([0-9a-f]{64})")
_UNQUOTED = "%/:=&?~#+!$,;'@()*[]"


def web_address(text: Any) -> str | None:
    """Return text as an address that may be a link; None: it is only text."""
    if not isinstance(text, str) or len(text) > _MOST or any(ord(one) < 0x21 for one in text):
        return None
    address = quote(text, safe=_UNQUOTED)
    if not _ADDRESS.fullmatch(address):
        return None
    try:
        return address if urlsplit(address).hostname else None
    except ValueError:
        return None


def arxiv_address(name: Any) -> str | None:
    """Return where a paper of an arXiv id is."""
    if isinstance(name, str) and _ARXIV.fullmatch(name):
        return f"https://arxiv.org/abs/{name}"
    return None


def doi_address(name: Any) -> str | None:
    """Return where a work of a DOI is found."""
    if isinstance(name, str) and len(name) <= _MOST and _DOI.fullmatch(name):
        return "https://doi.org/" + quote(name, safe="/:;()._-")
    return None


def record_address(name: Any, root: str) -> str | None:
    """Return the page of a record, by its Pith Number or `sha256:` and digest.

    Args:
        name: as claims state it.
        root: from the page that links to the root.
    """
    if not isinstance(name, str):
        return None
    if found := _NUMBER.fullmatch(name):
        return root + folder_of(found[1])
    found = _RECORD.fullmatch(name)
    return root + folder_of(found[1]) if found else None


def work_address(work: Mapping[str, Any], root: str) -> str | None:
    """Return where a work that a claim names is, by its most exact name."""
    return (
        record_address(work.get("pith_number"), root)
        or record_address(work.get("record_id"), root)
        or doi_address(work.get("doi"))
        or arxiv_address(work.get("arxiv"))
        or web_address(work.get("url"))
    )


def alias_address(kind: str, text: str) -> str | None:
    """Return where the work of an alias is found, outside of this registry."""
    if kind in ("arxiv", "arxiv_version"):
        return arxiv_address(text)
    return doi_address(text) if kind == "doi" else None


def paper_address(source: Mapping[str, Any], record: Mapping[str, Any]) -> str | None:
    """Return where the paper itself is, as far as the record says.

    Args:
        source: `source` of the record.
        record: the canonical record.
    """
    kind, name, version = source.get("kind"), source.get("id"), source.get("version")
    exact = f"{name}v{version}" if type(version) is int else name
    if kind == "arxiv":
        return arxiv_address(exact)
    if kind == "doi":
        return doi_address(name)
    return web_address(source.get("url")) or web_address(record.get("url"))
