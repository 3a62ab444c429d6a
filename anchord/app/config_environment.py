"""Keys of the configuration given by the environment: `ANCHORD__ANCHORING__MIN_ANSWERS=3`.

Two underscores stand for each dot. Text is taken as it is; everything else is written as in the
file: `true`, `12`, `["a", "b"]`, `[{ url = "...", uris = ["..."] }]`. A name that is no key is
refused, because a typing mistake would be silent. Secrets stay in files: an environment is
inherited, and shown by process lists.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from anchord.app.database_address import PASSFILE, holds_password
from anchord.core import stricttoml
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anchord.app.config_keys import Key

PREFIX = "ANCHORD__"


def variable(name: str) -> str:
    """Return the environment variable of a key."""
    return PREFIX + name.upper().replace(".", "__")


def given(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the keys that the environment gives, by name with dots.

    Raises:
        ConfigError: no such key, a value that cannot be read, or a secret.
    """
    wanted = sorted(name for name in environment if name.startswith(PREFIX))
    if not wanted:  # the keys are not even listed: most commands are not given any
        return {}
    from anchord.app.config_keys import keys

    known = {variable(key.name): key for key in keys()}
    found = {}
    for name in wanted:
        key = known.get(name)
        if key is None or key.of_table is not None:
            raise ConfigError(_unknown(name, known))
        found[key.name] = _value(key, name, environment[name])
    return found


def laid_over(raw: dict[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's tables with these values in them; `raw` is left as it is."""
    found = dict(raw)
    for name, value in values.items():
        *tables, last = name.split(".")
        at = found
        for table in tables:
            inner = at.get(table, {})
            if not isinstance(inner, dict):
                break  # the file's own mistake; it is told where types are checked
            at[table] = dict(inner)
            at = at[table]
        else:
            at[last] = value
    return found


def _unknown(name: str, known: dict[str, Key]) -> str:
    key = known.get(name)
    if key is not None:
        whole = variable(str(key.of_table))
        return f"{name} is part of a table: give the tables whole, as TOML, in {whole}"
    alone = [one for one, key in known.items() if key.of_table is None]
    near = difflib.get_close_matches(name, alone, 3, 0.7)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    what = f"the environment's {name} is no key of the configuration"
    return f"{what}{hint}; unset it, or see `anchord config show`"


def _value(key: Key, name: str, text: str) -> Any:
    if key.name == "store.url" and holds_password(text):
        raise ConfigError(
            f"{name} holds a password, and an environment is inherited and shown: {PASSFILE}"
        )
    if key.type == "text" or key.type.startswith("one of"):
        return text
    try:
        read = stricttoml.parse(f"value = {text}".encode(errors="surrogateescape"))
    except RefusedError:
        read = {}
    if read.keys() != {"value"}:
        raise ConfigError(
            f"{name} is {text!r:.80}: expected {key.type}, written as in the file, e.g. "
            f"{key.default_text or 'true'}"
        )
    return read["value"]
