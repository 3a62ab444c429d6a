"""The table through which the shards of an audit go to the workers, and come back."""

from __future__ import annotations

import sqlalchemy as sa

from anchord.adapters.store.tables import Moment, metadata

audit_shards = sa.Table(
    "audit_shards",
    metadata,
    sa.Column("audit", sa.Text, primary_key=True),
    sa.Column("shard", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("spec", sa.LargeBinary, nullable=False),
    sa.Column("result", sa.LargeBinary),
    sa.Column("worker", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("done_at", Moment),
)
"""What `anchord audit --fleet` asks workers, while it runs, and what they found. Shard 0 holds what
is the same for all. Nothing of it is evidence: no backup and no move of a store takes it along."""
