"""What lists, filters and counts are read from: it all follows from records, documents and ledger.

Each row is written in the transaction of what it follows from, so it is never behind.
"""

from __future__ import annotations

import sqlalchemy as sa

from anchord.adapters.store.tables import Id, metadata

standings = sa.Table(
    "standings",
    metadata,
    sa.Column("chunk", Id, primary_key=True, autoincrement=False),
    sa.Column("states", sa.LargeBinary, nullable=False),
)
"""What the ledger says of 4,096 neighbouring records, a byte each (`anchord.adapters.store.
standings`): a million records are 245 rows, so to look for those that lack something is to look at
a megabyte. A row that is not there is all zeros: nothing was signed."""

days = sa.Table(
    "days",
    metadata,
    sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("records", sa.BigInteger, nullable=False),
    sa.Column("anchored", sa.BigInteger, nullable=False),
    sa.Column("stored", sa.BigInteger, nullable=False),
    sa.Column("complete", sa.BigInteger, nullable=False),
)
"""By how many a UTC day (days since 1970) changed the numbers of records that are there, anchored,
stored, and both; the sums of all are those of `standings`."""

citations = sa.Table(
    "citations",
    metadata,
    sa.Column("cited", sa.Text, primary_key=True),
    sa.Column("record_id", Id, primary_key=True, autoincrement=False),
)
"""Under which names (`anchord.core.citing`) the documents of a record say that it cites others.
Nothing of it is checked: it says where to look."""
