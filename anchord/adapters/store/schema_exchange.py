"""The tables of what comes in and goes out by itself: sources that are looked at again, outlets."""

from __future__ import annotations

import sqlalchemy as sa

from anchord.adapters.store.tables import Id, Moment, metadata

sources = sa.Table(
    "sources",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("cursor", sa.LargeBinary),
    sa.Column("next_at", Moment),
    sa.Column("looked_at", Moment),
    sa.Column("last_ok_at", Moment),
    sa.Column("last_error_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("taken", sa.BigInteger, nullable=False),
    sa.Column("refused", sa.BigInteger, nullable=False),
)
"""Where each configured source goes on: `cursor` is the source's own, written after the records up
to it are durable. `failures` counts since the last look that went well; `taken` and `refused` count
new records and refusals, for ever."""

record_urls = sa.Table(
    "record_urls",
    metadata,
    sa.Column("record_id", Id, primary_key=True, autoincrement=False),
    sa.Column("url", sa.Text, nullable=False),
)
"""The page of a record's own, where its source named one: captured instead of what the
configuration makes of its kind."""

outlets = sa.Table(
    "outlets",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("seq", Id, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("last_ok_at", Moment),
    sa.Column("last_error_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("delivered", sa.BigInteger, nullable=False),
)
"""How far each outlet is: every event up to `seq` was handed over, or has a row in
`outlet_rows`."""

outlet_rows = sa.Table(
    "outlet_rows",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("seq", Id, primary_key=True, autoincrement=False),
    sa.Column("record_id", Id, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Index("ix_outlet_rows_due", "name", "next_attempt_at", "seq"),
    sa.Index("ix_outlet_rows_record_id", "name", "record_id", "seq"),
)
"""Events that were set aside, so that one bad record does not hold up the rest, and the later ones
of the same records behind them. `state`: waiting, or parked (a person must act)."""
