"""Captures, items and lanes: what the facet stored needs"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "captures",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column(
            "record_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False
        ),
        sa.Column("batch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("contains", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("job_id", sa.Text(), nullable=True),
        sa.Column("submitted_at", sa.BigInteger(), nullable=True),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("since_at", sa.BigInteger(), nullable=True),
        sa.Column("timestamp", sa.Text(), nullable=True),
        sa.Column("final_url", sa.Text(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("adopted", sa.SmallInteger(), nullable=False),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("reported_at", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=True),
        sa.Column("x_archive_src", sa.Text(), nullable=True),
        sa.Column("series_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("stored_at", sa.BigInteger(), nullable=True),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=True),
        sa.Column("confirmations", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_captures")),
        sa.UniqueConstraint("record_id", "role", name=op.f("uq_captures_record_id_role")),
    )
    op.create_index("ix_captures_due", "captures", ["state", "next_attempt_at", "id"], unique=False)
    op.create_table(
        "file_members",
        sa.Column(
            "file_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("sha256s", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_file_members")),
    )
    op.create_table(
        "file_ranges",
        sa.Column(
            "file_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("place", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("batch_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", "place", name=op.f("pk_file_ranges")),
    )
    op.create_index("ix_file_ranges_batch_id", "file_ranges", ["batch_id", "start"], unique=False)
    op.create_table(
        "files",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("item_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("beside", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("md5", sa.LargeBinary(length=16), nullable=False),
        sa.Column("sha1", sa.LargeBinary(length=20), nullable=False),
        sa.Column("sha256", sa.LargeBinary(length=32), nullable=False),
        sa.Column("members", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_attempt_at", sa.BigInteger(), nullable=True),
        sa.Column("checks", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sent_at", sa.BigInteger(), nullable=True),
        sa.Column("stored_at", sa.BigInteger(), nullable=True),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=True),
        sa.Column("confirmations", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_files")),
        sa.UniqueConstraint("item_id", "name", name=op.f("uq_files_item_id_name")),
    )
    op.create_index("ix_files_due", "files", ["state", "next_attempt_at", "id"], unique=False)
    op.create_table(
        "items",
        sa.Column(
            "id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("identifier", sa.Text(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("part", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.BigInteger(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("day", "part", name=op.f("uq_items_day_part")),
        sa.UniqueConstraint("identifier", name=op.f("uq_items_identifier")),
    )
    op.create_table(
        "lanes",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("grants", sa.LargeBinary(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("used", sa.Integer(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=True),
        sa.Column("strikes", sa.Integer(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("stopped", sa.SmallInteger(), nullable=False),
        sa.Column("alert", sa.Text(), nullable=True),
        sa.Column("seen", sa.LargeBinary(), nullable=True),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lanes")),
    )
    op.add_column("batches", sa.Column("packed", sa.Integer(), server_default="0", nullable=False))
    op.add_column("batches", sa.Column("claimed", sa.Integer(), server_default="0", nullable=False))
    op.create_index(
        "ix_batches_unclaimed",
        "batches",
        ["id"],
        unique=False,
        sqlite_where=sa.text("claimed < size"),
        postgresql_where=sa.text("claimed < size"),
    )
    op.create_index(
        "ix_batches_unpacked",
        "batches",
        ["id"],
        unique=False,
        sqlite_where=sa.text("packed < size"),
        postgresql_where=sa.text("packed < size"),
    )
    op.add_column(
        "series",
        sa.Column("file_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
    )
    op.drop_index(op.f("ix_series_batch_id"), table_name="series")
    op.create_index("ix_series_batch_type", "series", ["batch_id", "event_type"], unique=False)
