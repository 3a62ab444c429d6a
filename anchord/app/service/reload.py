"""What a reload takes over from a changed configuration, and what must wait for a new start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from anchord.app.config import Config, Loaded

FIXED = (
    ("store", "url"),
    ("signer", "key_dir"),
    ("signer", "signer_id"),
    ("ledger", "origin"),
    ("headers", "network"),
    ("service", "metrics"),
)
"""What the service holds on to from its start: whose records these are, who signs, its address."""


def renewed(old: Loaded, new: Loaded) -> tuple[Loaded, list[str]]:
    """Return the new configuration with what cannot change taken from the old one.

    Also returns the names of keys that were changed in vain.
    """
    config, kept = new.config, []
    for section, key in FIXED:
        before = getattr(getattr(old.config, section), key)
        if getattr(getattr(config, section), key) != before:
            part = msgspec.structs.replace(getattr(config, section), **{key: before})
            config = msgspec.structs.replace(config, **{section: part})
            kept.append(f"{section}.{key}")
    return msgspec.structs.replace(new, config=config), kept


def changed(old: Config, new: Config) -> list[str]:
    """Return the names of the keys whose values differ."""
    found = []
    for field in msgspec.structs.fields(old):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after:
            continue
        if not isinstance(before, msgspec.Struct):  # a list of tables
            found.append(field.name)
            continue
        found += [
            f"{field.name}.{one.name}"
            for one in msgspec.structs.fields(before)
            if getattr(before, one.name) != getattr(after, one.name)
        ]
    return found
