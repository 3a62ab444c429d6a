"""The forms a report can have, by name and by a file's extension, and writing them to files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.app.report.contents import Audited

FORMATS = ("text", "json", "csv", "markdown", "html")
EXTENSIONS = {".txt": "text", ".json": "json", ".csv": "csv", ".md": "markdown", ".html": "html"}


def render(form: str, audited: Audited) -> bytes:
    """Return the report in one of `FORMATS`."""
    from anchord.app.report import json_document, markdown, page, table, text

    renderers: dict[str, Callable[[Audited], str]] = {
        "text": text.render,
        "json": json_document.render,
        "csv": table.render,
        "markdown": markdown.render,
        "html": page.render,
    }
    return renderers[form](audited).encode("utf-8")


def form_of(name: str) -> str:
    """Return the form a file's extension asks for.

    Raises:
        ConfigError: none does, or there is no such folder. Found before the audit, not after it.
    """
    path = Path(name)
    form = EXTENSIONS.get(path.suffix.lower())
    if form is None:
        known = ", ".join(EXTENSIONS)
        raise ConfigError(f"-o {name}: expected a name that ends in one of {known}")
    check_place(path, "-o")
    return form


def check_place(path: Path, option: str) -> None:
    """Make sure that a file can be written where it is named.

    Raises:
        ConfigError: its folder is not there, or it is a folder itself.
    """
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise ConfigError(f"{option} {path}: expected a file in a folder that exists")


def write_reports(audited: Audited, names: Sequence[str]) -> None:
    """Write the report to files, each whole or not at all.

    Raises:
        OSError: the disk refuses.
    """
    for name in names:
        write_whole(Path(name), render(form_of(name), audited))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file under another name and give it its own when all of it is there.

    If we crash in between, the old file stands, and beside it one that ends in `.part`.

    Raises:
        OSError: the disk refuses; nothing is left behind.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise
