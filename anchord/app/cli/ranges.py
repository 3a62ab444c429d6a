"""Numbers that options take: finite ones, and whole ones that a store can hold."""

from __future__ import annotations

import math
from typing import Any

import click

STORED_MAX = 2**63 - 1
"""Largest whole number that a database column holds."""


class Finite(click.FloatRange):
    """A number in a range; `nan`, which is in every range for click, and `inf` are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Read the number, or end with exit code 2."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"expected a finite number, got {value!s:.40}.", param, ctx)
        return number


def whole(least: int = 1) -> click.IntRange:
    """Return the type of a number that a store is asked for."""
    return click.IntRange(least, STORED_MAX)
