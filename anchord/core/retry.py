"""When to try again: arithmetic only. The answer is stored as a time; nobody sleeps on it."""

from __future__ import annotations

_MAX_DOUBLINGS = 30


def next_attempt(
    now: int,
    attempts: int,
    *,
    shortest_s: float,
    longest_s: float,
    retry_after_s: float | None = None,
) -> int:
    """Return the moment of the next try, at least a second from now.

    Doubles from `shortest_s` with each try up to `longest_s`. What the other side asked for is
    respected when it is longer, up to a day, so that no server can park work for ever.

    Args:
        now: Unix seconds.
        attempts: tries made so far, the one just made included; at least 1.
        shortest_s: wait after the first try, seconds.
        longest_s: longest wait of our own choosing, seconds.
        retry_after_s: what the other side asked for, seconds.
    """
    doublings = min(max(attempts, 1) - 1, _MAX_DOUBLINGS)
    wait_s = min(shortest_s * 2**doublings, longest_s)
    if retry_after_s is not None:
        wait_s = max(wait_s, min(retry_after_s, 86_400.0))
    return now + max(int(wait_s), 1)
