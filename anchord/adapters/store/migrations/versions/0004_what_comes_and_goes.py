"""Sources that are looked at again, outlets for receipts, shards of audits"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def _row_id() -> sa.BigInteger:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


_TABLES = (
    "audit_shards",
    "batch_pendings", "batches", "bodies", "calendars", "captures", "checkpoints", "documents",
    "events", "file_members", "file_ranges", "files", "items", "lanes", "log_nodes", "outlet_rows",
    "outlets", "pendings", "pulls", "records", "series", "sources", "submissions", "tiles",
    "tokens",
)  # fmt: skip


def _as_on_sqlite() -> None:
    """Let PostgreSQL order texts by their bytes, and take commitments of any length.

    An entry of an index has 2,704 bytes at most there, so it holds a commitment's hash.
    """
    found = sa.inspect(op.get_bind())
    for table in _TABLES:
        for column in found.get_columns(table):
            if isinstance(column["type"], sa.Text):
                op.execute(
                    f'ALTER TABLE {table} ALTER COLUMN "{column["name"]}" TYPE text COLLATE "C"'
                )
    op.drop_constraint("uq_pendings_uri_commitment", "pendings")
    op.create_index(
        "uq_pendings_uri_commitment", "pendings", ["uri", sa.text("sha256(commitment)")],
        unique=True,
    )  # fmt: skip


def upgrade() -> None:
    op.create_table(
        "sources",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("cursor", sa.LargeBinary(), nullable=True),
        sa.Column("next_at", sa.BigInteger(), nullable=True),
        sa.Column("looked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_ok_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("taken", sa.BigInteger(), nullable=False),
        sa.Column("refused", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_sources")),
    )
    op.create_table(
        "record_urls",
        sa.Column("record_id", _row_id(), autoincrement=False, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("record_id", name=op.f("pk_record_urls")),
    )
    op.create_table(
        "outlets",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("seq", _row_id(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("last_ok_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_outlets")),
    )
    op.create_table(
        "outlet_rows",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seq", _row_id(), autoincrement=False, nullable=False),
        sa.Column("record_id", _row_id(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", "seq", name=op.f("pk_outlet_rows")),
    )
    op.create_index(
        "ix_outlet_rows_due", "outlet_rows", ["name", "next_attempt_at", "seq"], unique=False
    )
    op.create_index(
        "ix_outlet_rows_record_id", "outlet_rows", ["name", "record_id", "seq"], unique=False
    )
    op.create_table(
        "audit_shards",
        sa.Column("audit", sa.Text(), nullable=False),
        sa.Column("shard", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("spec", sa.LargeBinary(), nullable=False),
        sa.Column("result", sa.LargeBinary(), nullable=True),
        sa.Column("worker", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("done_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("audit", "shard", name=op.f("pk_audit_shards")),
    )
    if op.get_bind().dialect.name == "postgresql":
        _as_on_sqlite()
