"""What every table of the configuration file is made of."""

from __future__ import annotations

from typing import Annotated

import msgspec

_DECADE_S = 315_360_000
"""More is a typing mistake, and dates that far away cannot be reckoned with."""
PositiveInt = Annotated[int, msgspec.Meta(ge=1, le=_DECADE_S)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_DECADE_S)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
Bytes = Annotated[int, msgspec.Meta(ge=1, le=1 << 40)]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file; an unknown key is an error, so a typing mistake is never silent."""
