"""Certificates on demand: what is proved about a record, verified with headers of this machine.

A request must never make this server ask others, so only a file of block headers is looked at.
Making one takes a tenth of a second, so one is made at a time, and the last ones are kept.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from anchord.app.service.logs import tell
from anchord.app.web.problems import Problem
from anchord.app.wiring import SystemClock, chain_name
from anchord.errors import AnchordError, RefusedError, TransientError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.web.face import Face
    from anchord.core.model import StoredRecord
    from anchord.engine.header_view import HeaderView

_KEPT = 32
_PATIENCE_S = 0.5
"""Who waits holds a store that others wait for."""


_NO_HEADERS = "the block headers on this machine do not tell now, and this server asks nobody else"
_NOT_PROVED = "no certificate: what is here of this record does not prove it"


def _told(status: int, words: str, error: AnchordError) -> Problem:
    """Return what strangers are told; the log has what may name files of this machine."""
    tell(logging.WARNING, "certificate", f"a certificate was not made: {error}")
    return Problem(status, words)


class Certificates:
    """Makes certificates. Threads may share it.

    Args:
        face: whose records.
    """

    def __init__(self, face: Face) -> None:
        self._face = face
        self._turn, self._lock = threading.Lock(), threading.Lock()
        self._path = face.loaded.resolve(face.loaded.config.headers.file.path)
        self._made: OrderedDict[bytes, tuple[object, bytes]] = OrderedDict()

    def pdf(self, store: SqlReadingStore, record: StoredRecord, mark: object) -> bytes:
        """Return the certificate of a record as PDF.

        Args:
            store: lent after `mark` was asked for.
            record: of that store.
            mark: differs when the store or the keyring has changed.

        Raises:
            Problem: there is none, or not now; it says why.
        """
        key = (mark, self._headers_mark())
        if (data := self._known(record, key)) is not None:
            return data
        if not self._turn.acquire(timeout=_PATIENCE_S):
            raise Problem(503, "other certificates are being made: ask again", {"retry-after": "5"})
        try:
            # Whoever had the turn before may have made this one.
            if (data := self._known(record, key)) is None:
                data = self._make(store, record)
                self._keep(record, key, data)
        finally:
            self._turn.release()
        return data

    def _known(self, record: StoredRecord, key: object) -> bytes | None:
        with self._lock:
            known = self._made.get(record.digest)
        return known[1] if known is not None and known[0] == key else None

    def _keep(self, record: StoredRecord, key: object, data: bytes) -> None:
        with self._lock:
            self._made[record.digest] = (key, data)
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)

    def _make(self, store: SqlReadingStore, record: StoredRecord) -> bytes:
        from anchord.app.certificate import pdf
        from anchord.app.certificate.wording import page_of
        from anchord.engine.certifying import certify_record
        from anchord.engine.dossier import Expected

        keyring = self._face.readers.keyring()
        # Its address, which led to this record, is its digest or the beginning of it.
        asked_for = Expected(record.digest, "the name it was asked for by")
        try:
            with self._headers() as headers:
                made = certify_record(
                    store, record, keyring, (), lambda *_: asked_for, headers, record.digest.hex()
                )  # fmt: skip
        except TransientError as error:
            raise _told(503, _NO_HEADERS, error) from None
        except VerificationError as error:
            raise _told(404, _NOT_PROVED, error) from None
        except RefusedError as error:
            raise Problem(404, str(error)) from None
        return pdf.render(page_of(made), made.subject.digest)

    @contextlib.contextmanager
    def _headers(self) -> Iterator[HeaderView]:
        """Give the headers of this machine, at whatever height they end."""
        from anchord.adapters.headers.headerfile import HeaderFileSource
        from anchord.engine.header_view import HeaderView

        config = self._face.loaded.config
        network = config.headers.network
        source = HeaderFileSource(self._path, network, (), 1, 1.0, SystemClock())
        try:
            yield HeaderView([source], chain_name(network), config.anchoring.confirmations)
        finally:
            source.close()

    def _headers_mark(self) -> tuple[int, int]:
        """Return what differs when there are other headers."""
        try:
            found = self._path.stat()
        except OSError:
            return (0, 0)
        return (found.st_ino, found.st_mtime_ns)
