"""TOML that may be of strangers (a backup of theirs, say): read under limits.

Python's parser recurses into nested values, and takes time that grows with the square of the parts
of a dotted key (https://toml.io/en/v1.0.0#keys). Neither happens in a file that people write.
"""

from __future__ import annotations

import tomllib
from typing import Any

from anchord.errors import RefusedError

MAX_DOTS = 200
"""Most dots in a line."""


def parse(raw: bytes) -> dict[str, Any]:
    """Return what a TOML file says; a byte order mark, as some editors write it, is passed over.

    Raises:
        RefusedError: not UTF-8, not TOML, nested too deeply, or a line with too many dots.
    """
    try:
        text = raw.decode("utf-8-sig")
        if any(line.count(".") > MAX_DOTS for line in text.split("\n")):
            raise RefusedError(
                f"cannot be read as TOML: a line has more than {MAX_DOTS} dots; break it up"
            )
        return tomllib.loads(text)
    except ValueError as error:
        raise RefusedError(f"cannot be read as TOML: {error!s:.300}") from None
    except RecursionError:
        raise RefusedError("cannot be read as TOML: values are nested too deeply") from None
