"""What is wrong with a value of the configuration, in the words of `anchord config explain`."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from anchord.app.config_keys import keys
from anchord.app.toml_text import value_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

_WHERE = re.compile(r" - at (`key` in )?`\$\.?(?P<path>[^`]*)`$")
_STEP = re.compile(r"[^.\[\]]+|\[(?:\d+|\.\.\.)\]")
_ANY = "[...]"
"""What msgspec says instead of the name of a table."""
_FIELD = re.compile(r"^Object (?P<what>contains unknown|missing required) field `(?P<name>[^`]*)`")
_QUOTED = re.compile(r"'[^']*'")
_SHOWN = 60


def refusal(error: msgspec.ValidationError, raw: Mapping[str, Any]) -> str:
    """Return which key is wrong, what was expected, what came, and where to read on.

    Args:
        error: what msgspec says of the whole configuration.
        raw: the configuration it was said of.
    """
    text, found = str(error), _WHERE.search(str(error))
    steps = _STEP.findall(found["path"]) if found else []
    name = ".".join(step for step in steps if not step.startswith("["))
    field = _FIELD.match(text)
    if field:
        path = _joined(_shown(steps), field["name"])
        if field["what"].startswith("missing"):
            return f"{path} must be given: `anchord config explain {_joined(name, field['name'])}`"
        return f"{path} is no key{_meant(name, field['name'])}"
    key = next((one for one in keys() if one.name == name), None)
    if key is None or found is None:
        return f"{text}; see config/anchord.toml for every key"
    expected = key.type
    if steps[-1].startswith("["):
        expected = expected.removeprefix("list; each: ")
    got = _quoted(text) if found[1] else _got(raw, steps)
    return f"{_shown(steps)}: expected {expected}; got {got}: `anchord config explain {name}`"


def _joined(table: str, name: str) -> str:
    return f"{table}.{name}" if table else name


def _shown(steps: list[str]) -> str:
    """Return a path as people count: `sources (number 1).kind`."""
    said = ""
    for step in steps:
        if step == _ANY:
            continue
        if step.startswith("["):
            said += f" (number {int(step[1:-1]) + 1})"
        else:
            said = _joined(said, step)
    return said


def _meant(table: str, name: str) -> str:
    """Return the key that was likely meant, and where every key is told."""
    before = f"{table}." if table else ""
    there = {
        one.name.removeprefix(before).partition(".")[0]
        for one in keys()
        if one.name.startswith(before)
    }
    near = difflib.get_close_matches(name, sorted(there), 1)
    hint = f": did you mean {near[0]}?" if near else ""
    return f"{hint or ';'} see config/anchord.toml for every key"


def _quoted(text: str) -> str:
    """Return the name of a key that msgspec quotes."""
    quoted = _QUOTED.search(text)
    return quoted[0][:_SHOWN] if quoted else "another key"


def _got(raw: Any, steps: list[str]) -> str:
    """Return what came; of tables and lists only that, since there may be a secret in them."""
    for step in steps:
        if step == _ANY:
            return "something else"
        raw = raw[int(step[1:-1])] if step.startswith("[") else raw[step]
    if isinstance(raw, dict | list):
        return "a table" if isinstance(raw, dict) else "a list"
    return value_text(raw)[:_SHOWN]
