"""Every key of the configuration: its name, type, default and meaning, read from the types.

The meaning is the docstring below a field. Python does not keep it, so it is read from the source.
"""

from __future__ import annotations

import ast
import inspect
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import inspect as types

from anchord.app.config import Config
from anchord.app.toml_text import value_text

if TYPE_CHECKING:
    from collections.abc import Iterator


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """One key."""

    name: str
    """With dots: `anchoring.min_answers`."""
    type: str
    """What may stand there, in words."""
    default: Any
    """The default as TOML knows values; None: there is none, the key must be given."""
    meaning: str
    of_table: str | None
    """The key whose tables hold this one; None: it stands alone and may be set by environment."""

    @property
    def default_text(self) -> str:
        """The default as it is written in the file; empty when there is none."""
        return "" if self.default is None else value_text(self.default)


@cache
def keys() -> tuple[Key, ...]:
    """Return every key, in the order of the configuration's types."""
    return tuple(_walk(Config, "", None))


def plain(value: Any) -> Any:
    """Return a part of a configuration as the dicts, lists and values that TOML knows."""
    return msgspec.to_builtins(value)


def flat(config: Config) -> dict[str, Any]:
    """Return the value of each key that stands alone, by name."""
    tree = plain(config)
    found = {}
    for key in keys():
        if key.of_table is None:
            value: Any = tree
            for part in key.name.split("."):
                value = value[part]
            found[key.name] = value
    return found


def _walk(kind: type[msgspec.Struct], before: str, of_table: str | None) -> Iterator[Key]:
    said = _docstrings(kind)
    for field in msgspec.structs.fields(kind):
        name = before + field.encode_name
        found = types.type_info(field.type)
        if isinstance(found, types.StructType):
            yield from _walk(found.cls, f"{name}.", of_table)
            continue
        yield Key(
            name=name,
            type=_words(found),
            default=_default(field),
            meaning=said.get(field.name, ""),
            of_table=of_table,
        )
        inner = _table(found)
        if inner is not None:
            yield from _walk(inner, f"{name}.", name)


def _table(found: types.Type) -> type[msgspec.Struct] | None:
    """Return what the tables below a key are made of."""
    inner = getattr(found, "item_type", None) or getattr(found, "value_type", None)
    return inner.cls if isinstance(inner, types.StructType) else None


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return plain(field.default_factory())
    return None if field.default is msgspec.NODEFAULT else plain(field.default)


def _words(found: types.Type) -> str:  # noqa: PLR0911 - one case a kind of value
    """Return a type in words."""
    match found:
        case types.BoolType():
            return "true or false"
        case types.IntType():
            return "whole number" + _bounds(found)
        case types.FloatType():
            return "number" + _bounds(found)
        case types.LiteralType(values=values):
            return "one of " + ", ".join(map(value_text, values))
        case types.EnumType(cls=cls):
            return "one of " + ", ".join(value_text(one.value) for one in _members(cls))
        case types.ListType(item_type=item) | types.VarTupleType(item_type=item):
            return "list of tables" if _table(found) else f"list; each: {_words(item)}"
        case types.DictType(key_type=types.EnumType() | types.LiteralType() as named):
            return f"table; each of its keys is {_words(named)}"
        case types.DictType():
            return "tables by name"
        case _:
            return "text"


def _members(cls: type[Enum]) -> list[Enum]:
    return list(cls)


def _bounds(found: types.IntType | types.FloatType) -> str:
    low, high = found.ge, found.le
    words = "" if low is None else f" from {low}"
    if found.gt is not None:
        words = f" above {found.gt}"
    return words if high is None else f"{words} up to {high}"


@cache
def _docstrings(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return field -> the string below it, on one line."""
    source = Path(inspect.getfile(kind)).read_text("utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            return dict(_documented(node))
    return {}


def _documented(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            yield field.target.id, " ".join(str(after.value.value).split())
