"""The page of the newest audit: the report that the operator names, laid out as the other pages."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

import msgspec

from anchord.adapters.disk import read_small
from anchord.app.face.plots import thinned
from anchord.app.face.rendering import render
from anchord.app.report import contents, json_document, pictures
from anchord.app.report.reading import MAX_BYTES, read_document
from anchord.app.web.overview import MOST_ROWS
from anchord.core.standing import DAY_S
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from pathlib import Path

    from anchord.app.face.site import Site
    from anchord.app.report.contents import Audited
    from anchord.app.web.face import Face

SHOWN = 50
"""Findings of one code that are written out; the JSON has up to 1,000."""
_NONE = "No report is shown here: the operator names one in web.audit_report."
_ABSENT = "The report that web.audit_report names is not there yet."


class AuditPage:
    """Keeps the page of the report as it lies there. Threads may share it.

    Args:
        face: tells where the report is.
    """

    def __init__(self, face: Face) -> None:
        self._face = face
        name = face.loaded.config.web.audit_report
        self._path: Path | None = face.loaded.resolve(name) if name else None
        self._lock = threading.Lock()
        self._kept: tuple[tuple[int, ...], Audited] | None = None
        self._drawn: tuple[Audited, bytes] | None = None

    def answer(self) -> tuple[bytes, int]:
        """Return the page and its HTTP status."""
        if self._path is None:
            return self._page(_NONE), 200
        with self._lock:
            try:
                return self._newest(self._read(self._path)), 200
            except FileNotFoundError:
                return self._page(_ABSENT), 404
            except OSError as error:
                return self._page(f"The report cannot be read: {error.strerror}."), 503
            except RefusedError as error:
                return self._page(f"The report cannot be shown: {error}."), 503

    def document(self) -> bytes | None:
        """Return the report as JSON; None: there is none that can be shown."""
        if self._path is None:
            return None
        with self._lock, contextlib.suppress(OSError, RefusedError):
            return json_document.render(self._read(self._path)).encode("utf-8")
        return None

    def _read(self, path: Path) -> Audited:
        found = path.stat()
        mark = (found.st_ino, found.st_size, found.st_mtime_ns)
        if self._kept is None or self._kept[0] != mark:
            if found.st_size > MAX_BYTES:
                raise RefusedError(
                    f"it has {found.st_size:,} bytes, at most {MAX_BYTES:,} are read"
                )
            self._kept = (mark, _for_strangers(read_document(read_small(path, MAX_BYTES))))
        return self._kept[1]

    def _newest(self, audited: Audited) -> bytes:
        if self._drawn is None or self._drawn[0] is not audited:
            self._drawn = (audited, self._page("", audited))
        return self._drawn[1]

    def _page(self, trouble: str, audited: Audited | None = None) -> bytes:
        return page_of(self._face.site, trouble, audited)


def _for_strangers(audited: Audited) -> Audited:
    """Return the report without where on the operator's machine the audited store is."""
    name = audited.report.source.rstrip("/").rpartition("/")[2]
    return msgspec.structs.replace(
        audited, report=msgspec.structs.replace(audited.report, source=name)
    )


def page_of(site: Site, trouble: str, audited: Audited | None) -> bytes:
    """Return the page of an audit; None: that there is none, and why."""
    parts = {} if audited is None else _parts(audited)
    return render(
        "audit.html", root="", site=site, here="audit", trouble=trouble, audited=audited,
        rows=contents, shown=SHOWN, **parts,
    )  # fmt: skip


def _parts(audited: Audited) -> dict[str, object]:
    report = audited.report
    found = report.completeness
    backlog = found.backlog
    return {
        "report": report,
        "backlog": pictures.backlog(backlog, report.created_at // DAY_S),
        "ages": pictures.ages(contents.age_rows(report)),
        "days": [backlog[at] for at in reversed(thinned(backlog, MOST_ROWS))],
        "cohorts": contents.group_rows(found.by_cohort)[::-1],
        "sources": contents.group_rows(found.by_source),
        "groups": contents.groups(report),
    }
