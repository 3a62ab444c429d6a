"""Faults by chance and by the clock, for simulated days: the same seed, the same weather."""

from __future__ import annotations

import math
import random

import msgspec

from anchord.sandbox.faults import KINDS, Fault, Option


class Spell(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault, from a second to a second after the beginning, with a probability."""

    kind: str
    """One of the kinds of the fault board that the service itself does."""
    start_s: float = 0
    stop_s: float = math.inf
    share: float = 1.0
    """Of the requests it could strike."""
    on: str | None = None
    """Only requests of this route."""
    options: dict[str, Option] = {}

    def blows(self, since_s: float) -> bool:
        """Tell whether this is its time."""
        return self.start_s <= since_s < self.stop_s


class Weather:
    """All spells over a service.

    Args:
        spells: what goes wrong when.
        seed: of the chances.
    """

    def __init__(self, spells: tuple[Spell, ...] = (), *, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311  chances that repeat are wanted
        self._spells = [
            (spell, Fault(spell.kind, None, spell.on, spell.options)) for spell in spells
        ]
        self._walls = [spell for spell in spells if spell.kind == "refused"]
        unknown = {spell.kind for spell in spells} - KINDS.keys()
        if unknown:
            raise ValueError(f"no such faults: {', '.join(sorted(unknown))}")

    def strikes(self, route: str, since_s: float) -> list[Fault]:
        """Return what strikes a request, drawn anew for each."""
        return [
            fault
            for spell, fault in self._spells
            if spell.blows(since_s)
            and spell.kind != "refused"
            and fault.strikes(route)
            and (spell.share >= 1 or self._random.random() < spell.share)
        ]

    def refuses(self, since_s: float) -> bool:
        """Tell whether connections are refused at this time."""
        return any(wall.blows(since_s) for wall in self._walls)
