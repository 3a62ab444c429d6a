"""Which rows belong to which: what an audit finds orphans by."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from anchord.adapters.store.schema import (
    batches,
    bodies,
    captures,
    checkpoints,
    citations,
    documents,
    events,
    file_members,
    file_ranges,
    files,
    items,
    records,
    series,
    tiles,
    tokens,
)

OWNERS: tuple[tuple[sa.Table, sa.Column[Any], sa.Column[Any], sa.Column[Any]], ...] = (
    (events, events.c.seq, events.c.record_id, records.c.id),
    (events, events.c.seq, events.c.series_id, series.c.id),
    (series, series.c.id, series.c.batch_id, batches.c.id),
    (series, series.c.id, series.c.file_id, files.c.id),
    (records, records.c.id, records.c.batch_id, batches.c.id),
    (batches, batches.c.id, batches.c.record_id, records.c.id),
    (bodies, bodies.c.record_id, bodies.c.record_id, records.c.id),
    (documents, documents.c.id, documents.c.record_id, records.c.id),
    (citations, citations.c.record_id, citations.c.record_id, documents.c.record_id),
    (tiles, tiles.c.tile, tiles.c.batch_id, batches.c.id),
    (tokens, tokens.c.url, tokens.c.batch_id, batches.c.id),
    (checkpoints, checkpoints.c.size, checkpoints.c.batch_id, batches.c.id),
    (captures, captures.c.id, captures.c.record_id, records.c.id),
    (captures, captures.c.id, captures.c.batch_id, batches.c.id),
    (captures, captures.c.id, captures.c.series_id, series.c.id),
    (files, files.c.id, files.c.item_id, items.c.id),
    (file_ranges, file_ranges.c.file_id, file_ranges.c.file_id, files.c.id),
    (file_ranges, file_ranges.c.file_id, file_ranges.c.batch_id, batches.c.id),
    (file_members, file_members.c.file_id, file_members.c.file_id, files.c.id),
)
"""(table, its key, the column that names an owner, the owner's key)."""
