"""What must be the same from one pass to the next on one store: the chain, and roughly the clock.

Checked before a pass does anything, because both are set outside the store, by a person or a
machine, and both go wrong silently.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from anchord.core.storage import CaptureState
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.engine.parts import Parts
    from anchord.engine.storing import StoringParts
    from anchord.ports.store import Store

_LONGEST_BREAK = 24
"""Times the longest wait between two questions: what is asked rarely, is asked this rarely."""
_DAY_S = 86_400
_LONGEST_CAPTURE_WAIT_S = 3 * _DAY_S
"""Of a capture that is not stored: its last failure's."""


def check_chain(store: Store, configured: str) -> None:
    """Refuse to go on on another chain than the one the store's events speak of.

    Raises:
        ConfigError: headers.network was changed under an existing store.
    """
    payload = store.ledger.anchored_payload()
    if payload is None:
        return
    chain = json.loads(payload)["chain"]
    if chain != configured:
        raise ConfigError(
            f"this store's events are anchored in {chain!r}, but headers.network means "
            f"{configured!r}: set headers.network back, or make a new store for the other "
            "network with `anchord init` in another folder; nothing was sent or signed"
        )


def heal_clock(parts: Parts, now: int) -> int:
    """Bring forward what a clock that ran ahead put off for years; return how much there was.

    No wait of our own choosing is longer than this allows; for a submission the allowance doubles
    with each round, as the waits do.
    """
    policy = parts.policy
    longest_s = max(_LONGEST_BREAK * policy.poll_max_s, policy.resubmit_after_s, _DAY_S)
    latest = now + 2 * longest_s
    healed = parts.store.calls.bring_forward(now, latest)
    return healed + parts.store.tokens.bring_forward(now, latest)


def heal_captures(storing: StoringParts, now: int) -> int:
    """Bring forward captures that a clock that ran ahead put off; return how many there were.

    Called once per process, before anything is looked up. Within a process the clock never goes
    back, so none is put off too far later.
    """
    table, policy = storing.parts.store.storage.captures, storing.capture_policy
    soon = max(_LONGEST_CAPTURE_WAIT_S, *policy.check_after_s)
    stored = frozenset({CaptureState.STORED})
    healed = table.bring_forward(frozenset(CaptureState) - stored, now, now + 2 * soon)
    late = max(soon, *policy.confirm_after_s, 0)
    return healed + table.bring_forward(stored, now, now + 2 * late)
