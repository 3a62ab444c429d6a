"""Shards of audits on their way: written by who audits, answered by workers, then deleted.

Each method is one short transaction that takes no turn among the writers: nothing that counts
depends on these rows, and a result need not wait for a pass.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa

from anchord.adapters.store.database import connect, mapped_errors
from anchord.adapters.store.schema_audit import audit_shards

if TYPE_CHECKING:
    from collections.abc import Iterator

_table = audit_shards.c


class Answer(NamedTuple):
    """What a worker found in a shard."""

    result: bytes
    worker: str


class AuditShards:
    """The table `audit_shards`; opens nothing before it is used.

    Args:
        url: of the store.
    """

    def __init__(self, url: str) -> None:
        self._url, self._engine = url, connect(url)

    def put(self, audit: str, shard: int, spec: bytes, now: int) -> None:
        """Write down what is to be done; shard 0: what is the same for all."""
        values = {"audit": audit, "shard": shard, "spec": spec, "created_at": now}
        with self._begin() as connection:
            connection.execute(sa.insert(audit_shards).values(values))

    def spec(self, audit: str, shard: int) -> bytes | None:
        """Return what is to be done; None: the audit is over."""
        query = sa.select(_table.spec).where(_is(audit, shard))
        with self._begin() as connection:
            row = connection.execute(query).first()
        return None if row is None else row.spec

    def answer(self, audit: str, shard: int, result: bytes, worker: str, now: int) -> bool:
        """Write down what was found, unless the audit is over; return whether it is not.

        A shard that is done twice has the second answer, which is the same.
        """
        values = {"result": result, "worker": worker, "done_at": now}
        change = sa.update(audit_shards).where(_is(audit, shard)).values(values)
        with self._begin() as connection:
            return bool(connection.execute(change).rowcount)

    def answered(self, audit: str, shard: int) -> Answer | None:
        """Return what was found in a shard; None: nothing yet, or the row is gone."""
        query = sa.select(_table.result, _table.worker).where(_is(audit, shard))
        with self._begin() as connection:
            row = connection.execute(query.where(_table.done_at.is_not(None))).first()
        return None if row is None else Answer(row.result or b"", row.worker or "?")

    def drop(self, audit: str, shard: int | None = None) -> None:
        """Delete a shard; None: all of an audit, which is over then."""
        mine = _table.audit == audit if shard is None else _is(audit, shard)
        with self._begin() as connection:
            connection.execute(sa.delete(audit_shards).where(mine))

    def drop_dead(self, before: int) -> None:
        """Delete audits that wrote nothing since `before`, Unix seconds."""
        alive = sa.select(_table.audit).where(_table.created_at >= before)
        with self._begin() as connection:
            connection.execute(sa.delete(audit_shards).where(_table.audit.not_in(alive)))

    def close(self) -> None:
        """Release connections; may be called twice."""
        self._engine.dispose()

    @contextlib.contextmanager
    def _begin(self) -> Iterator[sa.Connection]:
        with mapped_errors(self._url), self._engine.begin() as connection:
            yield connection


def _is(audit: str, shard: int) -> sa.ColumnElement[bool]:
    return sa.and_(_table.audit == audit, _table.shard == shard)
