"""The tables of the log, of what batches carry, and of pulls from mirrors."""

from __future__ import annotations

import sqlalchemy as sa

from anchord.adapters.store.tables import Id, Moment, metadata

checkpoints = sa.Table(
    "checkpoints",
    metadata,
    sa.Column("size", Id, primary_key=True, autoincrement=False),
    sa.Column("root", sa.LargeBinary(32), nullable=False),
    sa.Column("note", sa.LargeBinary, nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("batch_id", Id),
    sa.Index(
        "ix_checkpoints_waiting",
        "size",
        sqlite_where=sa.text("batch_id IS NULL"),
        postgresql_where=sa.text("batch_id IS NULL"),
    ),
    sa.Index("ix_checkpoints_batch_id", "batch_id"),
)
"""Signed heads of the log over the first `size` events. `batch_id`: the batch whose trailer carries
it; NULL while it waits for the next one."""

log_nodes = sa.Table(
    "log_nodes",
    metadata,
    sa.Column("level", sa.SmallInteger, primary_key=True, autoincrement=False),
    sa.Column("place", Id, primary_key=True, autoincrement=False),
    sa.Column("hash", sa.LargeBinary(32), nullable=False),
)
"""Roots of full tiles of the log: (1, n) covers events 256n+1 to 256n+256, (2, n) 65,536 events,
and so on. They follow from `events`; without them every proof would walk the whole ledger."""

tokens = sa.Table(
    "tokens",
    metadata,
    sa.Column("batch_id", Id, primary_key=True, autoincrement=False),
    sa.Column("url", sa.Text, primary_key=True),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("answered_at", Moment),
    sa.Column("raw", sa.LargeBinary),
    sa.Index("ix_tokens_next_attempt_at", "next_attempt_at"),
)
"""One intent per batch and time-stamping authority (RFC 3161); `raw` is the token as it came."""

pulls = sa.Table(
    "pulls",
    metadata,
    sa.Column("mirror", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("sha256", sa.LargeBinary(32)),
    sa.Column("etag", sa.Text),
    sa.Column("last_modified", sa.Text),
    sa.Column("fetched_at", Moment),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("note", sa.Text),
)
"""What was fetched from which mirror, so that a pull goes on where it stopped and asks for changes
only. `state`: fetched, absent, refused, failed."""
