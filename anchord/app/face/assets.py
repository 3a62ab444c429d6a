"""Style sheets, scripts and pictures of the pages: files of this package under names of their own.

The name has the beginning of the content's hash, so a browser may keep a file for ever, and a page
of yesterday never meets the style of today. Server and published tree use the same names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import PurePosixPath
from types import MappingProxyType

FOLDER = "assets"
"""Where they are below the root."""
_HASH_DIGITS = 8


def asset_path(name: str, content: bytes) -> str:
    """Return where a file is below the root, as `assets/<stem>-<8 hex of sha256>.<suffix>`."""
    path = PurePosixPath(name)
    digest = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]
    return f"{FOLDER}/{path.stem}-{digest}{path.suffix}"


def _read() -> dict[str, bytes]:
    folder = files("anchord.app.face").joinpath(FOLDER)
    found = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}
    return dict(sorted(found.items()))


_FILES = _read()
_PATHS = {name: asset_path(name, content) for name, content in _FILES.items()}
ASSETS: Mapping[str, bytes] = MappingProxyType(
    {_PATHS[name]: content for name, content in _FILES.items()}
)
"""Content of each file by its path below the root."""


def asset(name: str) -> str:
    """Return the path below the root of a file of this package, such as `pith.css`.

    Raises:
        KeyError: there is no such file; this is a bug.
    """
    return _PATHS[name]
