"""Writing TOML 1.0 (https://toml.io/en/v1.0.0): values on one line, in the order they are given."""

from __future__ import annotations

import json
import re
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def value_text(value: Any) -> str:
    """Return a value as it stands behind `=`.

    A TOML basic string has JSON's escapes, and escapes DEL too.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_text, value)) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{name_text(key)} = {value_text(one)}" for key, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    return str(value)


def name_text(name: str) -> str:
    """Return a key as it stands before `=`."""
    return name if _BARE.fullmatch(name) else value_text(name)
