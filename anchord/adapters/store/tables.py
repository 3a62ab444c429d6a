"""What all tables share: their registry, the names of constraints, the types of numbers."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Id = sa.BigInteger().with_variant(sa.Integer, "sqlite")
Moment = sa.BigInteger
"""Whole Unix seconds, UTC."""


def row_id() -> sa.Column[int]:
    """Return a column for a number the database gives."""
    return sa.Column("id", Id, primary_key=True, autoincrement=True)
