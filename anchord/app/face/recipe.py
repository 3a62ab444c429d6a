"""How to recompute a record's hash with a shell alone, as its page prints it.

The pipe is the registry's own. It asks for the document by its file name, so that it works with a
server that negotiates and with a tree of files alike.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.face.site import Site, place_of
from anchord.core.canonical import parse

if TYPE_CHECKING:
    from anchord.core.bundle import Bundle

_SAFE_INTEGER = 2**53
"""jq keeps numbers as doubles."""
_LAW = "json.dumps({}, sort_keys=True, separators=(',',':'), ensure_ascii=False).encode()"
_BASE = "BASE=${{BASE:-{}}}  # the address of this site"


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Lines for a shell, and what they print."""

    text: str
    expected: str
    needs: str
    """The programs it runs."""


def recipe(bundle: Bundle, site: Site) -> Recipe | None:
    """Return how to recompute a record's hash; None: the bundle has nothing but the hash."""
    if bundle.canonical is None:
        return None
    record = parse(bundle.canonical)
    expected = bundle.digest.hex()
    pick, needs, code = _code(record, expected)
    lines = [] if site.base_url is not None else [_BASE.format(site.local_url)]
    lines += [
        f"curl -sH 'Accept: application/ld+json' {_address(bundle, site)} \\",
        *([pick] if pick else []),
        f'  | python3 -c "{code}"',
        f"# expect: {expected}",
    ]
    return Recipe(text="\n".join(lines), expected=expected, needs=needs)


def _code(record: Any, expected: str) -> tuple[str, str, str]:
    """Return jq's line, the programs needed, and the code that hashes."""
    lawful = hashlib.sha256(_lawful(record)).hexdigest() == expected
    if lawful and _survives_jq(record):
        law = _LAW.format("json.loads(sys.stdin.read())")
        code = f"import sys,json,hashlib; b={law}; print(hashlib.sha256(b).hexdigest())"
        return "  | jq -c '.canonical_record' \\", "curl, jq and python3", code
    read = "r=json.loads(sys.stdin.buffer.read())['canonical_record']"
    if lawful:
        law = _LAW.format("r")
        code = f"import sys,json,hashlib; {read}; b={law}; print(hashlib.sha256(b).hexdigest())"
        return "", "curl and python3", code
    code = (
        f"import sys,json,hashlib,rfc8785; {read}; "
        "print(hashlib.sha256(rfc8785.dumps(r)).hexdigest())"
    )
    return "", "curl and python3 with the package rfc8785", code


def _address(bundle: Bundle, site: Site) -> str:
    path = place_of(bundle) + ".json"
    return f'"$BASE/{path}"' if site.base_url is None else f"{site.base_url}/{path}"


def _lawful(record: Any) -> bytes:
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _survives_jq(value: Any) -> bool:
    """Tell whether jq writes a value as it read it: fractions and long integers it does not."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, float) or (isinstance(item, int) and abs(item) >= _SAFE_INTEGER):
            return False
    return True
