"""Which calendars still owe a path to Bitcoin."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchord.core.proof import Timestamp


def unattested(timestamp: Timestamp) -> list[tuple[str, bytes]]:
    """Return (uri, commitment) of pending attestations with no Bitcoin attestation behind them."""
    found: list[tuple[str, bytes]] = []
    stack = [timestamp]
    while stack:
        node = stack.pop()
        stack.extend(node.ops.values())
        uris = [item.uri for item in node.attestations if item.kind == "pending" and item.uri]
        if uris and not _reaches_bitcoin(node):
            found.extend((uri, node.message) for uri in uris)
    return sorted(found)


def _reaches_bitcoin(timestamp: Timestamp) -> bool:
    stack = [timestamp]
    while stack:
        node = stack.pop()
        if any(item.kind == "bitcoin" for item in node.attestations):
            return True
        stack.extend(node.ops.values())
    return False
