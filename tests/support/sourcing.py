"""Sources to read from, and what reading them gave."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import sqlalchemy as sa
from msgspec.structs import replace

from anchord.adapters.sources.sql import SqlOptions, SqlSource
from anchord.core.model import Rejection
from anchord.engine import receiving
from anchord.engine.parts import Parts
from anchord.errors import AnchordError
from anchord.ports.source import Step


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def record_text(number: int) -> str:
    return json.dumps({"n": number}, separators=(",", ":"))


class ListSource:
    """A source that is a list: items, each a place to stop; errors in it are raised when met."""

    kind = "sql"

    def __init__(self, name: str = "list", every_s: int = 60, at_once: int = 2) -> None:
        self.name, self.every_s, self.at_once = name, every_s, at_once
        self.items: list[Any] = []
        self.looks: list[bytes | None] = []
        self.pause_after: int | None = None

    def place(self, cursor: bytes | None) -> str:
        return f"after {int(cursor or b'0')}"

    def look(self, cursor: bytes | None, now: int) -> Iterator[Step]:
        del now
        self.looks.append(cursor)
        start = int(cursor or b"0")
        for steps in itertools.count(1):
            part = self.items[start : start + self.at_once]
            if not part:
                return
            error = next((one for one in part if isinstance(one, AnchordError)), None)
            if error is not None:
                raise error
            start += len(part)
            yield Step(items=part, cursor=b"%d" % start, pause=steps == self.pause_after)


def with_sources(parts: Parts, *sources: Any) -> Parts:
    return replace(parts, sources=sources)


def to_the_end(parts: Parts, source: Any, now: int) -> list[Rejection]:
    """Look until there is no more; return what was refused."""
    refused: list[Rejection] = []
    for _ in range(1000):
        looked = receiving.look(parts, source, now, refused.append)
        assert looked.error is None, looked.error
        if not looked.paused:
            return refused
    raise AssertionError("the source never came to its end")


def digests(parts: Parts) -> set[str]:
    """Return what the store has."""
    chunks = parts.store.records.walk()
    return {record.digest.hex() for chunk in chunks for record in chunk}


class Database:
    """A foreign database with one table of papers."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._engine = sa.create_engine(url, poolclass=sa.pool.NullPool)

    def run(self, statement: str, *rows: dict[str, Any]) -> None:
        """Run one statement, for each row where there are any."""
        with self._engine.begin() as connection:
            connection.execute(sa.text(statement), list(rows) or None)

    def fill(self, numbers: Iterable[int]) -> None:
        """Put in papers of these numbers."""
        rows = [{"id": one, "sha": sha(record_text(one))} for one in numbers]
        if rows:
            self.run("INSERT INTO papers (id, canonical_sha256) VALUES (:id, :sha)", *rows)

    def source(self, name: str = "registry", password: Any = None, **options: Any) -> SqlSource:
        """Return a source over it: the whole table, where no query is given."""
        if "query" not in options:
            options.setdefault("table", "papers")
        return SqlSource(name, 60, self.url, password, SqlOptions(**options))


PAPERS = """
CREATE TABLE papers (id INTEGER PRIMARY KEY, canonical_sha256 TEXT, record TEXT, url TEXT)
"""
