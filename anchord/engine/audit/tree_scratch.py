"""What two sides say, set against each other without holding either in memory.

Files and the lines of the index, entries of the log and events of the bundles: millions on either
side, in different orders. They go into a private SQLite database that lives in a file SQLite
deletes as it opens it, so it is gone however this process ends; SQLite sorts with bounded memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -16384;
CREATE TABLE listed (path TEXT NOT NULL, size INTEGER NOT NULL, sha256 BLOB NOT NULL);
CREATE TABLE hashed (path TEXT NOT NULL, size INTEGER NOT NULL, sha256 BLOB NOT NULL);
CREATE TABLE entries (place INTEGER PRIMARY KEY, digest BLOB NOT NULL, signature BLOB NOT NULL);
CREATE TABLE events (digest BLOB NOT NULL, signature BLOB, subject TEXT NOT NULL);
CREATE TABLE skipped (digest BLOB NOT NULL, path TEXT NOT NULL);
CREATE TABLE bare (digest BLOB NOT NULL, subject TEXT NOT NULL);
CREATE TABLE bundles (digest BLOB NOT NULL, path TEXT NOT NULL);
CREATE TABLE stated (item TEXT, file TEXT, member TEXT, sha256 BLOB);
CREATE TABLE members (item TEXT, file TEXT, member TEXT, sha256 BLOB);
"""


class FileLine(NamedTuple):
    """One file, as it was found or as it is listed. Size -1: it was not hashed in this audit."""

    path: str
    size: int
    sha256: bytes


class Scratch:
    """Both sides of every comparison of one audit."""

    def __init__(self) -> None:
        self._base = sqlite3.connect("", isolation_level=None)
        self._base.executescript(_SCHEMA)
        self._base.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._base.close()

    # ------------------------------------------------------------------ files

    def list_files(self, lines: Iterable[FileLine]) -> None:
        """Take in what the index lists."""
        self._base.executemany("INSERT INTO listed VALUES (?, ?, ?)", lines)

    def hash_files(self, lines: Iterable[FileLine]) -> None:
        """Take in what was found."""
        self._base.executemany("INSERT INTO hashed VALUES (?, ?, ?)", lines)

    def differing(self) -> Iterator[tuple[FileLine | None, FileLine | None]]:
        """Yield (listed, found) where the two are not the same; None: not there."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_listed ON listed (path)")
        self._base.execute("CREATE INDEX IF NOT EXISTS by_hashed ON hashed (path)")
        rows = self._base.execute(
            "SELECT l.path, l.size, l.sha256, h.path, h.size, h.sha256 FROM listed l"
            " LEFT JOIN hashed h ON h.path = l.path WHERE h.path IS NULL"
            " OR (h.size >= 0 AND (h.size <> l.size OR h.sha256 <> l.sha256))"
            " UNION ALL SELECT NULL, NULL, NULL, h.path, h.size, h.sha256 FROM hashed h"
            " LEFT JOIN listed l ON l.path = h.path WHERE l.path IS NULL ORDER BY 1, 4"
        )
        for row in rows:
            yield _line(row[:3]), _line(row[3:])

    def copies(self, prefix: str) -> Iterator[tuple[str, bool]]:
        """Yield (path, whether it is gone) of files under `prefix` unlike those without it."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_hashed ON hashed (path)")
        rows = self._base.execute(
            "SELECT c.path, o.path IS NULL FROM hashed c LEFT JOIN hashed o"
            " ON o.path = substr(c.path, ?) WHERE substr(c.path, 1, ?) = ?"
            " AND (o.path IS NULL OR (o.size >= 0 AND c.size >= 0 AND o.sha256 <> c.sha256))"
            " ORDER BY 1",
            (len(prefix) + 1, len(prefix), prefix),
        )
        for path, gone in rows:
            yield path, bool(gone)

    # ------------------------------------------------------------------ the log

    def add_entries(self, first: int, entries: bytes) -> None:
        """Take in entries of the log (32 bytes of digest, 64 of signature) from a place on."""
        self._base.executemany(
            "INSERT INTO entries VALUES (?, ?, ?)",
            (
                (first + n, entries[at : at + 32], entries[at + 32 : at + 96])
                for n, at in enumerate(range(0, len(entries), 96))
            ),
        )

    def add_events(self, events: Iterable[tuple[bytes, bytes | None, str]]) -> None:
        """Take in (digest, signature or None, subject) of events of the log's signer."""
        self._base.executemany("INSERT INTO events VALUES (?, ?, ?)", events)

    def unlogged(self) -> Iterator[tuple[bytes, str, bool]]:
        """Yield (digest, subject, whether another signature is logged) of events not in the log."""
        self._index_log()
        rows = self._base.execute(
            "SELECT e.digest, e.subject, l.digest IS NOT NULL FROM events e"
            " LEFT JOIN entries l ON l.digest = e.digest"
            " WHERE e.signature IS NOT NULL AND (l.digest IS NULL OR e.signature <> l.signature)"
            " ORDER BY e.subject, e.digest"
        )
        for digest, subject, other in rows:
            yield digest, subject, bool(other)

    def unseen(self) -> Iterator[tuple[int, bytes]]:
        """Yield (place, digest) of entries whose event is in no bundle."""
        self._index_log()
        yield from self._base.execute(
            "SELECT place, digest FROM entries l WHERE NOT EXISTS"
            " (SELECT 1 FROM events e WHERE e.digest = l.digest) ORDER BY place"
        )

    def add_skipped(self, events: Iterable[tuple[bytes, str]]) -> None:
        """Take in (digest, path) of events in bundles that were only hashed."""
        self._base.executemany("INSERT INTO skipped VALUES (?, ?)", events)

    def skipped_unlogged(self) -> Iterator[str]:
        """Yield paths of bundles that were only hashed, with an event in no entry of the log."""
        self._index_log()
        rows = self._base.execute(
            "SELECT DISTINCT s.path FROM skipped s WHERE NOT EXISTS"
            " (SELECT 1 FROM entries l WHERE l.digest = s.digest)"
        )
        yield from (row[0] for row in rows)

    def repeated_entries(self) -> Iterator[tuple[int, bytes]]:
        """Yield (place, digest) of entries that stood in the log before."""
        self._index_log()
        yield from self._base.execute(
            "SELECT place, digest FROM entries l WHERE EXISTS (SELECT 1 FROM entries o"
            " WHERE o.digest = l.digest AND o.place < l.place) ORDER BY place"
        )

    def digests_from(self, place: int) -> Iterator[bytes]:
        """Yield the digests of entries from a place on."""
        rows = self._base.execute("SELECT digest FROM entries WHERE place >= ?", (place,))
        yield from (row[0] for row in rows)

    def add_bare(self, events: Iterable[tuple[bytes, str]]) -> None:
        """Take in (digest, subject) of events that a bundle does not prove to be in the log."""
        self._base.executemany("INSERT INTO bare VALUES (?, ?)", events)

    def unproved(self) -> Iterator[tuple[str, int]]:
        """Yield (subject, events) of bundles that lack proofs of events that are in the log."""
        self._index_log()
        yield from self._base.execute(
            "SELECT b.subject, count(DISTINCT b.digest) FROM bare b"
            " JOIN entries l ON l.digest = b.digest GROUP BY b.subject ORDER BY b.subject"
        )

    def _index_log(self) -> None:
        self._base.execute("CREATE INDEX IF NOT EXISTS by_entry ON entries (digest)")
        self._base.execute("CREATE INDEX IF NOT EXISTS by_event ON events (digest)")

    # ------------------------------------------------------------------ bundles

    def add_bundles(self, bundles: Iterable[tuple[bytes, str]]) -> None:
        """Take in (record's digest, path) of bundles."""
        self._base.executemany("INSERT INTO bundles VALUES (?, ?)", bundles)

    def has_bundle(self, digest: bytes) -> bool:
        """Tell whether there is a bundle of a record."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_record ON bundles (digest)")
        row = self._base.execute("SELECT 1 FROM bundles WHERE digest = ?", (digest,))
        return row.fetchone() is not None

    def state_members(self, members: Iterable[tuple[str, str, str, bytes]]) -> None:
        """Take in (item, file, member, SHA-256) that storage events sign for."""
        self._base.executemany("INSERT INTO stated VALUES (?, ?, ?, ?)", members)

    def add_members(self, members: Iterable[tuple[str, str, str, bytes]]) -> None:
        """Take in (item, file, member, SHA-256) of what is in a ZIP."""
        self._base.executemany("INSERT INTO members VALUES (?, ?, ?, ?)", members)

    def item_differences(self) -> Iterator[tuple[str, str, str, bytes, bytes | None]]:
        """Yield (item, file, member, stated, found) where a ZIP that is here has it otherwise."""
        self._base.execute("CREATE INDEX IF NOT EXISTS by_member ON members (item, file, member)")
        yield from self._base.execute(
            "SELECT s.item, s.file, s.member, s.sha256, m.sha256 FROM stated s"
            " LEFT JOIN members m ON (m.item, m.file, m.member) = (s.item, s.file, s.member)"
            " WHERE EXISTS (SELECT 1 FROM members z WHERE (z.item, z.file) = (s.item, s.file))"
            " AND (m.sha256 IS NULL OR m.sha256 <> s.sha256) ORDER BY 1, 2, 3"
        )

    def repeated_bundles(self) -> Iterator[tuple[str, str]]:
        """Yield (path, first path) of bundles whose record has another one."""
        yield from self._base.execute(
            "SELECT b.path, f.first FROM bundles b JOIN (SELECT digest, min(path) AS first"
            " FROM bundles GROUP BY digest HAVING count(*) > 1) f ON f.digest = b.digest"
            " WHERE b.path > f.first ORDER BY b.path"
        )


def _line(row: tuple[str | None, int, bytes]) -> FileLine | None:
    return None if row[0] is None else FileLine(row[0], row[1], row[2])
