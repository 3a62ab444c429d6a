"""How much memory what was read holds, so that steps stay small."""

from __future__ import annotations

from anchord.core.model import Adoption, Document, Incoming, Record

_BARE = 200


def weight(item: Incoming) -> int:
    """Return roughly how many bytes an item holds."""
    if isinstance(item, Document):
        return len(item.raw) + weight(item.record)
    if isinstance(item, Adoption):
        return len(item.ots) + _BARE
    if isinstance(item, Record) and item.canonical is not None:
        return len(item.canonical) + _BARE
    return _BARE
