"""The JSON Schemas of the documents: files of this package, as they are served and published."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

FOLDER = "schemas"
"""Where they are below the root."""
PREFIX = "urn:anchord:schema:"
_SUFFIX = ".schema.json"


@cache
def schema_files() -> Mapping[str, bytes]:
    """Return the schemas by their paths below the root."""
    folder = files("anchord.app.face").joinpath(FOLDER)
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(_SUFFIX)}
    return MappingProxyType({f"{FOLDER}/{name}": found[name] for name in sorted(found)})


def components() -> dict[str, Any]:
    """Return the schemas as an OpenAPI document has them: by name, pointing at each other there."""
    found = {}
    for path, raw in schema_files().items():
        name = path.removeprefix(FOLDER + "/").removesuffix(_SUFFIX)
        schema = {
            key: value
            for key, value in json.loads(raw).items()
            if key not in ("$schema", "$id", "$comment")
        }
        found[name] = _pointed(schema, name)
    return found


def _pointed(value: Any, name: str) -> Any:
    """Return a schema's part with its references, and without what says whose a property is."""
    if isinstance(value, list):
        return [_pointed(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: _pointed(item, name) for key, item in value.items() if key not in _OURS}
    target = value.get("$ref")
    if isinstance(target, str):
        urn, _, pointer = target.partition("#")
        found["$ref"] = f"#/components/schemas/{urn.removeprefix(PREFIX) or name}{pointer}"
    return found


_OURS = ("x-grade", "$comment")
