"""The tables. State lives here and nowhere else.

What is bulky is kept apart from what changes: `records` is small and is updated when a batch is
sealed, `bodies` holds canonical bytes and is never touched again. A record stands where its batch
stands, so a million records change state by one row. Events are stored without their bodies: a
body is rendered from its series (what all share), the record, and the batch's proof; the event id
proves that the rendering is exact (docs/adr/0003).
"""

from __future__ import annotations

import sqlalchemy as sa

from anchord.adapters.store.schema_audit import audit_shards
from anchord.adapters.store.schema_exchange import outlet_rows, outlets, record_urls, sources
from anchord.adapters.store.schema_face import citations, days, standings
from anchord.adapters.store.schema_log import checkpoints, log_nodes, pulls, tokens
from anchord.adapters.store.tables import Id, Moment, metadata, row_id

REVISION = "0005"
"""The migration this code needs; a store with another one is refused."""

__all__ = [
    "audit_shards", "checkpoints", "citations", "days", "log_nodes", "metadata", "outlet_rows",
    "outlets", "pulls", "record_urls", "sources", "standings", "tokens",
]  # fmt: skip
"""Tables that stand elsewhere, here with the others."""

records = sa.Table(
    "records",
    metadata,
    row_id(),
    sa.Column("digest", sa.LargeBinary(32), nullable=False),
    sa.Column("scheme", sa.SmallInteger, nullable=False),
    sa.Column("year", sa.SmallInteger),
    sa.Column("source_kind", sa.Text),
    sa.Column("source_id", sa.Text),
    sa.Column("source_version", sa.Integer),
    sa.Column("label", sa.Text),
    sa.Column("batch_id", Id),
    sa.Column("added_at", Moment, nullable=False),
    sa.Index("ix_records_digest", "digest", unique=True),
    sa.Index(
        "ix_records_source",
        "source_id",
        sqlite_where=sa.text("source_id IS NOT NULL"),
        postgresql_where=sa.text("source_id IS NOT NULL"),
    ),
    sa.Index(
        "ix_records_kind",
        "source_kind",
        "id",
        sqlite_where=sa.text("source_kind IS NOT NULL"),
        postgresql_where=sa.text("source_kind IS NOT NULL"),
    ),
    sa.Index(
        "ix_records_waiting",
        "id",
        sqlite_where=sa.text("batch_id IS NULL"),
        postgresql_where=sa.text("batch_id IS NULL"),
    ),
)
"""One row a record. `batch_id` NULL: not anchored and waiting for a batch."""

bodies = sa.Table(
    "bodies",
    metadata,
    sa.Column("record_id", Id, primary_key=True, autoincrement=False),
    sa.Column("canonical", sa.LargeBinary, nullable=False),
)

documents = sa.Table(
    "documents",
    metadata,
    row_id(),
    sa.Column("record_id", Id, nullable=False),
    sa.Column("sha256", sa.LargeBinary(32), nullable=False),
    sa.Column("raw", sa.LargeBinary, nullable=False),
    sa.Column("added_at", Moment, nullable=False),
    sa.UniqueConstraint("record_id", "sha256"),
)
"""Foreign bundles, byte for byte as they came."""

batches = sa.Table(
    "batches",
    metadata,
    row_id(),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("root", sa.LargeBinary(32), nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("driving", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("tile_roots", sa.LargeBinary),
    sa.Column("record_id", Id),
    sa.Column("adopted_raw", sa.LargeBinary),
    sa.Column("adopted_sha256", sa.LargeBinary(32)),
    sa.Column("proof", sa.LargeBinary),
    sa.Column("block_height", sa.Integer),
    sa.Column("block_hash", sa.LargeBinary(32)),
    sa.Column("block_merkle_root", sa.LargeBinary(32)),
    sa.Column("block_time", Moment),
    sa.Column("next_check_at", Moment),
    sa.Column("submitted_at", Moment),
    sa.Column("attested_at", Moment),
    sa.Column("anchored_at", Moment),
    sa.Column("final_at", Moment),
    sa.Column("note", sa.Text),
    sa.Column("packed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("claimed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("trailer", sa.LargeBinary),
    sa.Column("not_before_height", sa.Integer),
    sa.Index("ix_batches_state", "state"),
    sa.Index(
        "ix_batches_unpacked",
        "id",
        sqlite_where=sa.text("packed < size"),
        postgresql_where=sa.text("packed < size"),
    ),
    sa.Index(
        "ix_batches_unclaimed",
        "id",
        sqlite_where=sa.text("claimed < size"),
        postgresql_where=sa.text("claimed < size"),
    ),
    sa.Index("ix_batches_next_check_at", "next_check_at"),
    sa.Index("ix_batches_record_id", "record_id"),
    sa.UniqueConstraint("record_id", "adopted_sha256"),
)
"""One row a Merkle root (kind "sealed") or an adopted `.ots` file (kind "adopted", size 1).

`proof` is the serialised timestamp from `root` on, everything known so far merged; NULL until a
calendar answered. `driving` counts the records whose `batch_id` this is. Members before `packed`
are in files of items, members before `claimed` were looked at for a URL to capture. `trailer` is
what the root carries beside the tree (`anchord.core.trailer`), NULL when nothing; its block hash is
that of the block at `not_before_height`.
"""

tiles = sa.Table(
    "tiles",
    metadata,
    sa.Column("batch_id", Id, primary_key=True, autoincrement=False),
    sa.Column("tile", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("first_record_id", Id, nullable=False),
    sa.Column("record_ids", sa.LargeBinary, nullable=False),
    sa.Column("nonces", sa.LargeBinary, nullable=False),
    sa.Column("leaves", sa.LargeBinary, nullable=False),
    sa.Index("ix_tiles_member", "batch_id", "first_record_id"),
)
"""1,024 leaves a row: record ids (8 bytes, big-endian, ascending), nonces (16), leaves (32)."""

submissions = sa.Table(
    "submissions",
    metadata,
    row_id(),
    sa.Column("batch_id", Id, nullable=False),
    sa.Column("calendar", sa.Text, nullable=False),
    sa.Column("round", sa.Integer, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("last_attempt_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("answered_at", Moment),
    sa.Column("raw", sa.LargeBinary),
    sa.UniqueConstraint("batch_id", "calendar", "round"),
    sa.Index("ix_submissions_next_attempt_at", "next_attempt_at"),
)
"""One intent per batch, calendar and round; `raw` is the answer as it came."""

pendings = sa.Table(
    "pendings",
    metadata,
    row_id(),
    sa.Column("uri", sa.Text, nullable=False),
    sa.Column("commitment", sa.LargeBinary, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("last_attempt_at", Moment),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("detail", sa.Text),
    sa.Column("unknown_since", Moment),
    sa.Column("answered_at", Moment),
    sa.Column("raw", sa.LargeBinary),
    sa.UniqueConstraint("uri", "commitment"),
    sa.Index("ix_pendings_next_attempt_at", "next_attempt_at"),
)
"""One row per commitment and calendar URI, shared by all batches that wait for it.

`status`: waiting, journal, transaction, unknown, error, attested, void (a reorg undid it).
"""

batch_pendings = sa.Table(
    "batch_pendings",
    metadata,
    sa.Column("batch_id", Id, primary_key=True, autoincrement=False),
    sa.Column("pending_id", Id, primary_key=True, autoincrement=False),
    sa.Index("ix_batch_pendings_pending_id", "pending_id"),
)

series = sa.Table(
    "series",
    metadata,
    row_id(),
    sa.Column("batch_id", Id, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("payload", sa.LargeBinary, nullable=False),
    sa.Column("proof", sa.LargeBinary),
    sa.Column("signer", sa.LargeBinary, nullable=False),
    sa.Column("key_id", sa.Text, nullable=False),
    sa.Column("withdraws", Id),
    sa.Column("start", sa.Integer, nullable=False),
    sa.Column("stop", sa.Integer, nullable=False),
    sa.Column("next", sa.Integer, nullable=False),
    sa.Column("file_id", Id),
    sa.Index("ix_series_batch_type", "batch_id", "event_type"),
    sa.Index(
        "ix_series_open",
        "id",
        sqlite_where=sa.text("next < stop"),
        postgresql_where=sa.text("next < stop"),
    ),
)
"""Events of one type for the members [start, stop) of a batch, decided at one moment.

The row is the intent: written with the batch's change of state, in one transaction. `next` moves
with the appended events, so a killed pass continues where the ledger ends. `file_id` names the file
that the members of an `item_stored` series are in.
"""

events = sa.Table(
    "events",
    metadata,
    sa.Column("seq", Id, primary_key=True, autoincrement=False),
    sa.Column("record_id", Id, nullable=False),
    sa.Column("series_id", Id, nullable=False),
    sa.Column("numbered", sa.SmallInteger, nullable=False),
    sa.Column("event_id", sa.LargeBinary(32), nullable=False),
    sa.Column("signature", sa.LargeBinary(64), nullable=False),
    sa.Column("chain", sa.LargeBinary(32), nullable=False),
    sa.Index("ix_events_record_id", "record_id"),
)
"""The ledger: append only. `numbered` 1: the subject is the Pith Number, 0: the record id.
`chain` = sha256(chain before || event_id || signature); 32 zero bytes before the first."""

calendars = sa.Table(
    "calendars",
    metadata,
    sa.Column("url", sa.Text, primary_key=True),
    sa.Column("last_ok_at", Moment),
    sa.Column("last_error_at", Moment),
    sa.Column("last_error", sa.Text),
    sa.Column("failures", sa.Integer, nullable=False),
)
"""Health by calendar: `failures` counts since the last success."""

captures = sa.Table(
    "captures",
    metadata,
    row_id(),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("record_id", Id, nullable=False),
    sa.Column("batch_id", Id, nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("contains", sa.Text),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("job_id", sa.Text),
    sa.Column("submitted_at", Moment),
    sa.Column("deadline_at", Moment),
    sa.Column("since_at", Moment),
    sa.Column("timestamp", sa.Text),
    sa.Column("final_url", sa.Text),
    sa.Column("http_status", sa.Integer),
    sa.Column("adopted", sa.SmallInteger, nullable=False),
    sa.Column("checks", sa.Integer, nullable=False),
    sa.Column("reported_at", Moment),
    sa.Column("sha256", sa.LargeBinary(32)),
    sa.Column("size", sa.BigInteger),
    sa.Column("x_archive_src", sa.Text),
    sa.Column("series_id", Id),
    sa.Column("stored_at", Moment),
    sa.Column("confirmed_at", Moment),
    sa.Column("confirmations", sa.Integer, nullable=False),
    sa.Column("lost", sa.Integer, nullable=False),
    sa.Column("code", sa.Text),
    sa.Column("note", sa.Text),
    sa.Column("created_at", Moment, nullable=False),
    sa.UniqueConstraint("record_id", "role"),
    sa.Index("ix_captures_due", "state", "next_attempt_at", "id"),
)
"""One row a URL of a record; `place` is the record's leaf number in `batch_id`."""

lanes = sa.Table(
    "lanes",
    metadata,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("grants", sa.LargeBinary, nullable=False),
    sa.Column("day", sa.Integer, nullable=False),
    sa.Column("used", sa.Integer, nullable=False),
    sa.Column("until", Moment),
    sa.Column("strikes", sa.Integer, nullable=False),
    sa.Column("code", sa.Text),
    sa.Column("note", sa.Text),
    sa.Column("stopped", sa.SmallInteger, nullable=False),
    sa.Column("alert", sa.Text),
    sa.Column("seen", sa.LargeBinary),
    sa.Column("changed_at", Moment, nullable=False),
)
"""Paces and pauses, by way to a service; `grants` are moments, 8 bytes each, big-endian."""

items = sa.Table(
    "items",
    metadata,
    row_id(),
    sa.Column("identifier", sa.Text, nullable=False, unique=True),
    sa.Column("day", sa.Integer, nullable=False),
    sa.Column("part", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("seen_at", Moment),
    sa.Column("note", sa.Text),
    sa.UniqueConstraint("day", "part"),
)
"""One row a container at archive.org."""

files = sa.Table(
    "files",
    metadata,
    row_id(),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("item_id", Id, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("beside", Id),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("md5", sa.LargeBinary(16), nullable=False),
    sa.Column("sha1", sa.LargeBinary(20), nullable=False),
    sa.Column("sha256", sa.LargeBinary(32), nullable=False),
    sa.Column("members", sa.Integer, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("next_attempt_at", Moment),
    sa.Column("checks", sa.Integer, nullable=False),
    sa.Column("created_at", Moment, nullable=False),
    sa.Column("sent_at", Moment),
    sa.Column("stored_at", Moment),
    sa.Column("confirmed_at", Moment),
    sa.Column("confirmations", sa.Integer, nullable=False),
    sa.Column("code", sa.Text),
    sa.Column("note", sa.Text),
    sa.UniqueConstraint("item_id", "name"),
    sa.Index("ix_files_due", "state", "next_attempt_at", "id"),
)
"""One row a file of an item: a ZIP of bundles, its manifest, or a day's manifest."""

file_ranges = sa.Table(
    "file_ranges",
    metadata,
    sa.Column("file_id", Id, primary_key=True, autoincrement=False),
    sa.Column("place", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("batch_id", Id, nullable=False),
    sa.Column("start", sa.Integer, nullable=False),
    sa.Column("stop", sa.Integer, nullable=False),
    sa.Index("ix_file_ranges_batch_id", "batch_id", "start"),
)
"""Which members of which batches a ZIP holds, in its order."""

file_members = sa.Table(
    "file_members",
    metadata,
    sa.Column("file_id", Id, primary_key=True, autoincrement=False),
    sa.Column("sha256s", sa.LargeBinary, nullable=False),
)
"""SHA-256 of each member of a ZIP, 32 bytes each, in its order."""
