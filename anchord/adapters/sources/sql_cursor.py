"""How far a database was read: a value of its key, kept with its type.

A value goes back to the database as a bound parameter of the type it came with, never as text of a
statement.
"""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from anchord.errors import ConfigError

_READ: dict[str, Callable[[str], Any]] = {
    "int": int,
    "str": str,
    "float": float,
    "Decimal": decimal.Decimal,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "UUID": uuid.UUID,
    "bytes": bytes.fromhex,
}
_ORDERED = (int, float, decimal.Decimal, dt.date)
"""Types that every database orders as Python does; text is ordered by a collation."""


class Place(msgspec.Struct, frozen=True):
    """Where a source stands; this, as JSON, is its cursor."""

    of: str
    """Digest of what is asked for: another query begins anew."""
    since: int
    """When this reading began at the start, Unix seconds."""
    type: str = ""
    value: str = ""
    """The last key, written as text; with an empty `type` there is none yet."""
    ended: bool = False
    """This reading came to the end once; what is new since is read from there on."""

    def key(self) -> Any:
        """Return the last key; None: there is none."""
        return _READ[self.type](self.value) if self.type else None

    def at(self, key: Any) -> Place:
        """Return this place moved to a key.

        Raises:
            ConfigError: keys of that type cannot be kept, or it does not follow the last one.
        """
        kind, text = written(key)
        if kind == self.type and isinstance(key, _ORDERED) and key < self.key():
            raise ConfigError(
                f"the query gives {text} after {self.value}: expected rows in the order of the "
                "key; end it with ORDER BY and the key"
            )
        return msgspec.structs.replace(self, type=kind, value=text)


def written(key: Any) -> tuple[str, str]:
    """Return a key's type and its text.

    Raises:
        ConfigError: keys of that type cannot be kept.
    """
    if isinstance(key, memoryview | bytearray):
        key = bytes(key)
    kind = type(key).__name__
    if kind == "bytes":
        return kind, key.hex()
    if kind in ("datetime", "date"):
        return kind, key.isoformat()
    if kind in _READ:
        return kind, str(key)
    raise ConfigError(
        f"the key is of type {kind}: expected whole numbers, text, moments or UUIDs that only grow "
        "and are never empty"
    )


def read_place(cursor: bytes | None, of: str) -> Place | None:
    """Return the place a cursor means; None when it is none of this query."""
    if cursor is None:
        return None
    try:
        place = msgspec.json.decode(cursor, type=Place)
        place.key()
    except (msgspec.MsgspecError, ValueError, KeyError, ArithmeticError):
        return None
    return place if place.of == of else None


def words(cursor: bytes | None) -> str:
    """Return where a cursor stands, for people."""
    try:
        place = msgspec.json.decode(cursor or b"", type=Place)
    except msgspec.MsgspecError:
        return "at the start"
    where = f"after {place.value}" if place.type else "at the start"
    return f"{where}, to the end" if place.ended and place.type else where
