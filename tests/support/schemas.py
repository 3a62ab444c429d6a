"""The JSON Schemas of anchord/app/face/schemas, ready to validate with.

`assert_valid("bundle", document)` is all that most tests need.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "anchord/app/face/schemas"
PREFIX = "urn:anchord:schema:"
_SUFFIX = ".schema.json"


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Return every schema by its name."""
    return {
        file.name.removesuffix(_SUFFIX): json.loads(file.read_text("utf-8"))
        for file in sorted(FOLDER.glob("*" + _SUFFIX))
    }


@cache
def validator(name: str) -> Draft202012Validator:
    """Return what validates documents of one kind; references lead to the other schemas."""
    resources = [(one["$id"], Resource.from_contents(one)) for one in schemas().values()]
    return Draft202012Validator(schemas()[name], registry=Registry().with_resources(resources))


def faults(name: str, document: Any) -> list[str]:
    """Return what a schema says against a document, the deepest reasons of it."""
    parsed = json.loads(document) if isinstance(document, bytes | str) else _plain(document)
    return [_words(error) for error in validator(name).iter_errors(parsed)]


def assert_valid(name: str, document: Any) -> None:
    """Assert that a document (parsed, or as bytes or text) is what its schema says.

    Args:
        name: of the schema: `event`, `bundle`, `state`, `mirror-manifest`, ...
        document: to be validated.
    """
    found = faults(name, document)
    assert not found, f"not a {name}: " + "; ".join(found[:5])


def _plain(document: Any) -> Any:
    """Return a document as it is after JSON: tuples are lists."""
    return json.loads(json.dumps(document))


def _words(error: ValidationError) -> str:
    while error.context:
        error = max(error.context, key=lambda inner: len(inner.absolute_path))
    return f"{error.json_path}: {error.message:.200}"
