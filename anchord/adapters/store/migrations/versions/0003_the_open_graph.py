"""Checkpoints of the log, what a batch carries beside records, and pulls from mirrors"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _row_id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("batches", sa.Column("trailer", sa.LargeBinary(), nullable=True))
    op.add_column("batches", sa.Column("not_before_height", sa.Integer(), nullable=True))
    op.create_table(
        "checkpoints",
        sa.Column("size", _row_id(), autoincrement=False, nullable=False),
        sa.Column("root", sa.LargeBinary(length=32), nullable=False),
        sa.Column("note", sa.LargeBinary(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("batch_id", _row_id(), nullable=True),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_checkpoints")),
    )
    op.create_index("ix_checkpoints_batch_id", "checkpoints", ["batch_id"], unique=False)
    op.create_index(
        "ix_checkpoints_waiting",
        "checkpoints",
        ["size"],
        unique=False,
        sqlite_where=sa.text("batch_id IS NULL"),
        postgresql_where=sa.text("batch_id IS NULL"),
    )
    op.create_table(
        "log_nodes",
        sa.Column("level", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("place", _row_id(), autoincrement=False, nullable=False),
        sa.Column("hash", sa.LargeBinary(length=32), nullable=False),
        sa.PrimaryKeyConstraint("level", "place", name=op.f("pk_log_nodes")),
    )
    op.create_table(
        "tokens",
        sa.Column("batch_id", _row_id(), autoincrement=False, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("answered_at", sa.BigInteger(), nullable=True),
        sa.Column("raw", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("batch_id", "url", name=op.f("pk_tokens")),
    )
    op.create_index("ix_tokens_next_attempt_at", "tokens", ["next_attempt_at"], unique=False)
    op.create_table(
        "pulls",
        sa.Column("mirror", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=True),
        sa.Column("etag", sa.Text(), nullable=True),
        sa.Column("last_modified", sa.Text(), nullable=True),
        sa.Column("fetched_at", sa.BigInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("mirror", "name", name=op.f("pk_pulls")),
    )
