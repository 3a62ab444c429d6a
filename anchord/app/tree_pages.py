"""The pages of a published tree: what `anchord serve` answers about the same records, as files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anchord
from anchord.app.face.files import RECORD_FILES, about_files, files_of
from anchord.app.face.front import Tally, front_page
from anchord.engine.publishing import FRONT

if TYPE_CHECKING:
    from anchord.app.face.site import Site
    from anchord.core.record_view import RecordView


class TreePages:
    """Makes the pages of one publication, see `anchord.engine.publishing_records.Pages`.

    Args:
        site: where the tree is, and what it is called.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._tally = Tally()

    @property
    def program(self) -> str:
        """Differs wherever the same record could have other pages."""
        return f"{_sources()} {version('jinja2')} {self._site!r}"

    def names(self, folder: str) -> list[str]:
        """Return the paths of one record's files."""
        return [one.path(folder) for one in RECORD_FILES]

    def record(self, view: RecordView) -> Iterator[tuple[str, bytes]]:
        """Yield the files of one record, as a server answers them."""
        return files_of(view, self._site)

    def count(self, folder: str, state: Mapping[str, Any], moment: int) -> None:
        """Count a record for the first page."""
        self._tally.take(folder, state, moment)

    def shared(self) -> Iterator[tuple[str, bytes]]:
        """Yield assets, schemas, and what programs read first."""
        return about_files(self._site)

    def front(self) -> Iterator[tuple[str, bytes]]:
        """Yield the first page; it has counted all records by now."""
        yield FRONT, front_page(self._tally, self._site)


@cache
def _sources() -> str:
    """Return the hash of this program: a number of its version would not tell two states of it."""
    root = Path(anchord.__file__).parent
    hashed = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        if "__pycache__" not in path.parts:
            hashed.update(path.relative_to(root).as_posix().encode() + b"\0")
            hashed.update(hashlib.sha256(path.read_bytes()).digest())
    return hashed.hexdigest()
