"""Where records stand, how many there were each day, and who cites whom

All of it follows from what is there, and is made from it: some seconds for a million records.
"""

import sqlalchemy as sa
from alembic import op

from anchord.adapters.store import citations, standings

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def _row_id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "standings",
        sa.Column("chunk", _row_id(), autoincrement=False, nullable=False),
        sa.Column("states", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("chunk", name=op.f("pk_standings")),
    )
    op.create_table(
        "days",
        sa.Column("day", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("records", sa.BigInteger(), nullable=False),
        sa.Column("anchored", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.Column("complete", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day", name=op.f("pk_days")),
    )
    is_postgresql = op.get_bind().dialect.name == "postgresql"
    # As on SQLite, texts are ordered by their bytes (0004).
    text = sa.Text(collation="C") if is_postgresql else sa.Text()
    op.create_table(
        "citations",
        sa.Column("cited", text, nullable=False),
        sa.Column("record_id", _row_id(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("cited", "record_id", name=op.f("pk_citations")),
    )
    op.create_index(
        "ix_records_kind",
        "records",
        ["source_kind", "id"],
        sqlite_where=sa.text("source_kind IS NOT NULL"),
        postgresql_where=sa.text("source_kind IS NOT NULL"),
    )
    standings.rebuild(op.get_bind())
    citations.rebuild(op.get_bind())
