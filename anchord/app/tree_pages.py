"""The pages of a published tree: what `anchord serve` answers about the same records, as files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anchord.app.face.files import about_files, files_of
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

    def record(self, view: RecordView, moment: int) -> Iterator[tuple[str, bytes]]:
        """Yield the files of one record, as a server answers them."""
        self._tally.take(view, moment)
        return files_of(view, self._site)

    def shared(self) -> Iterator[tuple[str, bytes]]:
        """Yield assets, schemas, and what programs read first."""
        return about_files(self._site)

    def front(self) -> Iterator[tuple[str, bytes]]:
        """Yield the first page; it has counted all records by now."""
        yield FRONT, front_page(self._tally, self._site)
