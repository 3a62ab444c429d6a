"""The rosette of a certificate: fine closed curves whose numbers come from the digest.

It is an ornament, of the kind engraved on bonds; two records have different ones. It proves
nothing.
"""

from __future__ import annotations

import math

POINTS = 180
STRANDS = 5

Curve = list[tuple[float, float]]


def curves(digest: str) -> list[Curve]:
    """Return closed curves within the unit circle, each a list of corners."""
    raw = bytes.fromhex(digest)
    rings = (
        (0.80, 0.19, 9 + raw[0] % 7, raw[1]),
        (0.55, 0.22, 5 + raw[2] % 6, raw[3]),
        (0.26, 0.20, 3 + raw[4] % 4, raw[5]),
    )
    return [
        _curve(middle, swing, lobes, turn / 256 + strand / STRANDS)
        for middle, swing, lobes, turn in rings
        for strand in range(STRANDS)
    ]


def _curve(middle: float, swing: float, lobes: int, turn: float) -> Curve:
    found = []
    for step in range(POINTS):
        angle = math.tau * step / POINTS
        radius = middle + swing * math.cos(lobes * angle + math.tau * turn)
        found.append((radius * math.cos(angle), radius * math.sin(angle)))
    return found


def svg_paths(digest: str) -> list[str]:
    """Return an SVG path a ring, outer first, in a square of side 200 around the origin."""
    parts = [
        "M" + "L".join(f"{100 * x:.1f} {100 * y:.1f}" for x, y in curve) + "z"
        for curve in curves(digest)
    ]
    return ["".join(parts[at : at + STRANDS]) for at in range(0, len(parts), STRANDS)]
