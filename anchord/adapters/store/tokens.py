"""RFC 3161 tokens of batches: intents, and what came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.parked import of_live_batch
from anchord.adapters.store.schema import tokens
from anchord.ports.log import AuthorityHealth, StoredToken

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.adapters.store.connection import Database


class Tokens:
    """The table of tokens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, now: int) -> list[StoredToken]:
        """Return intents whose time has come, oldest batch first; none of parked batches."""
        return self._many(
            sa.and_(tokens.c.next_attempt_at <= now, of_live_batch(tokens.c.batch_id))
        )

    def of_batch(self, batch_id: int) -> list[StoredToken]:
        """Return the tokens and intents of a batch, by address."""
        return self._many(tokens.c.batch_id == batch_id)

    def store(self, batch_id: int, url: str, raw: bytes, now: int) -> None:
        """Keep a token that was verified; one that is there stays, for events may name it."""
        values = {"raw": raw, "answered_at": now, "next_attempt_at": None, "last_error": None}
        self._change(batch_id, url, values)

    def postpone(self, batch_id: int, url: str, at: int | None, error: str) -> None:
        """Write down a failed try; `at` None: it was the last one."""
        tried = {"attempts": tokens.c.attempts + 1}
        self._change(batch_id, url, {"next_attempt_at": at, "last_error": error, **tried})

    def bring_forward(self, now: int, latest: int) -> int:
        """Make due at once what is put off beyond `latest`; writes nothing when nothing is."""
        late = tokens.c.next_attempt_at > latest
        with self._database.reading() as connection:
            if connection.execute(sa.select(tokens.c.url).where(late).limit(1)).first() is None:
                return 0
        with self._database.writing() as connection:
            change = sa.update(tokens).where(late).values(next_attempt_at=now)
            return connection.execute(change).rowcount

    def health(self) -> list[AuthorityHealth]:
        """Return how every authority that was ever asked behaves, by address."""
        waits = tokens.c.next_attempt_at.is_not(None)
        query = sa.select(
            tokens.c.url,
            sa.func.count(tokens.c.raw).label("kept"),
            sa.func.count(tokens.c.next_attempt_at).label("pending"),
            sa.func.max(tokens.c.answered_at).label("last_ok_at"),
            sa.func.min(tokens.c.next_attempt_at).label("next_attempt_at"),
        ).group_by(tokens.c.url)
        troubled = sa.select(tokens.c.url, tokens.c.last_error).where(
            waits, tokens.c.last_error.is_not(None)
        )
        with self._database.reading() as connection:
            errors = {
                row.url: row.last_error
                for row in connection.execute(troubled.order_by(tokens.c.batch_id))
            }
            return [
                AuthorityHealth(**row, last_error=errors.get(row["url"]))
                for row in connection.execute(query.order_by(tokens.c.url)).mappings()
            ]

    def intend(self, batch_id: int, urls: Sequence[str], now: int) -> None:
        """Write the intent to get a token from each authority; one that is there stays."""
        with self._database.writing() as connection:
            intend_tokens(connection, batch_id, urls, now)

    def _change(self, batch_id: int, url: str, values: dict[str, Any]) -> None:
        mine = sa.and_(tokens.c.batch_id == batch_id, tokens.c.url == url, tokens.c.raw.is_(None))
        with self._database.writing() as connection:
            connection.execute(sa.update(tokens).where(mine).values(values))

    def _many(self, where: sa.ColumnElement[bool]) -> list[StoredToken]:
        # Sorted here: asked for in this order, SQLite would read the table along its key instead.
        with self._database.reading() as connection:
            found = [
                StoredToken(**{n: getattr(row, n) for n in StoredToken.__struct_fields__})
                for row in connection.execute(sa.select(tokens).where(where))
            ]
        return sorted(found, key=lambda token: (token.batch_id, token.url))


def intend_tokens(connection: sa.Connection, batch_id: int, urls: Sequence[str], now: int) -> None:
    """Write the intents of one batch within a transaction."""
    known = set(
        connection.execute(sa.select(tokens.c.url).where(tokens.c.batch_id == batch_id)).scalars()
    )
    for url in dict.fromkeys(urls):
        if url not in known:
            connection.execute(
                sa.insert(tokens).values(
                    batch_id=batch_id, url=url, attempts=0, next_attempt_at=now
                )
            )
