"""Canonical bytes of plain JSON values, written by msgspec: many times as fast as the law.

The law (docs/protocol.md, 1) is `json.dumps(value, sort_keys=True, separators=(",", ":"),
ensure_ascii=False)`. Of the values let through here both write the same bytes: they differ in how
they write floats, in integers beyond 64 bits, and in types that are none of JSON. Keys are ASCII,
so nobody has to think about their order.
"""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")
_LEAVES = frozenset((str, bool, type(None)))


def plain_bytes(value: Any, below: int = 2**63) -> bytes | None:
    """Return the canonical bytes of a plain value; None: the law has to say what they are.

    Args:
        value: anything.
        below: integers let through are smaller than this, whatever their sign; at most 2^63.
    """
    if not _is_plain(value, below):
        return None
    try:
        return _encoder.encode(value)
    except (TypeError, ValueError, RecursionError):  # a lone surrogate, or nested too deeply
        return None


def _is_plain(value: Any, below: int) -> bool:
    """Tell whether a value is made of the very types that parsers of JSON make, floats aside."""
    stack = [value]
    try:
        for item in stack:  # grows on the way
            kind = type(item)
            if kind is dict:
                if not "".join(item).isascii():
                    return False
                stack += [one for one in item.values() if type(one) not in _LEAVES]
            elif kind is list:
                stack += [one for one in item if type(one) not in _LEAVES]
            elif kind is int:
                if not -below < item < below:
                    return False
            elif kind not in _LEAVES:
                return False
    except TypeError:  # a key that is no text
        return False
    return True
