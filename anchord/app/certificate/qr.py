"""The digest as a QR code: what a phone reads is `sha256:` and 64 hex digits."""

from __future__ import annotations

import segno

from anchord.core.canonical import record_id

QUIET = 4
"""Light modules around a code, as ISO/IEC 18004 asks for."""


def modules(digest: str) -> list[list[bool]]:
    """Return the dark modules of the code, row by row, without the quiet zone."""
    code = segno.make(record_id(bytes.fromhex(digest)), error="m", micro=False)
    return [[bool(module) for module in row] for row in code.matrix]


def runs(digest: str) -> tuple[int, list[tuple[int, int, int]]]:
    """Return the code's width, and its dark stretches as (column, row, length)."""
    matrix = modules(digest)
    found = []
    for y, row in enumerate(matrix):
        start = None
        for x, dark in enumerate([*row, False]):
            if dark and start is None:
                start = x
            elif not dark and start is not None:
                found.append((start, y, x - start))
                start = None
    return len(matrix), found


def svg_path(digest: str) -> tuple[int, str]:
    """Return the side of the code with its quiet zone, and an SVG path of its dark modules."""
    width, stretches = runs(digest)
    parts = [f"M{x + QUIET} {y + QUIET}h{n}v1h-{n}z" for x, y, n in stretches]
    return width + 2 * QUIET, "".join(parts)
