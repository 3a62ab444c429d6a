"""The four words of a record's strip, as pages and badges show them.

They are the state's words, with one more for whoever only looks: a chain made for tests proves
nothing, so "anchored" never stands by itself where the block is of one. Documents name the chain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anchord.core.event import ANCHORED
from anchord.core.merge import BITCOIN

FOR_TESTS = "anchored in a test chain"


def strip_words(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the words by facet.

    Args:
        state: of the record, see `core.state`.
    """
    current = state["current"]
    found = dict(current["completeness"])
    chains = [one["payload"].get("chain") for one in current["timestamps"]
              if one["event_type"] == ANCHORED]  # fmt: skip
    if chains and BITCOIN not in chains:
        found["anchored"] = FOR_TESTS
    return found
