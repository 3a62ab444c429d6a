"""The pages of a published tree: what `anchord serve` answers about the same records, as files."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from anchord.app.face.files import about_files, files_of
from anchord.app.face.front import Tally, front_page
from anchord.engine.publishing import FRONT

if TYPE_CHECKING:
    from anchord.app.face.site import Site
    from anchord.app.wiring import App
    from anchord.core.record_view import RecordView
    from anchord.engine.publishing_records import Cited

_Citing = Callable[[Sequence[int]], Mapping[int, "Cited"]]


class TreePages:
    """Makes the pages of one publication, see `anchord.engine.publishing_records.Pages`.

    Args:
        site: where the tree is, and what it is called.
        citing: returns who cites records, by row id.
    """

    def __init__(self, site: Site, citing: _Citing) -> None:
        self._site, self._citing = site, citing
        self._tally = Tally()

    def citing(self, records: Sequence[int]) -> Mapping[int, Cited]:
        """Return who cites these records."""
        return self._citing(records)

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


@contextlib.contextmanager
def tree_pages(app: App, site: Site) -> Iterator[TreePages]:
    """Give what makes the pages of a store's tree."""
    del app
    yield TreePages(site, lambda _records: {})
