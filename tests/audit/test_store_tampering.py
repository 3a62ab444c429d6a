"""Whatever is changed, dropped, repeated, reordered or swapped in a store is found, and named."""

# ruff: noqa: E501, ISC004, S608 -- a table of SQL statements

from __future__ import annotations

import pytest
from support.audited import audit, broken, damaged, database, settled, whole_place
from support.workplace import Workplace

from anchord.core.canonical import pith_number


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    place = whole_place(tmp_path_factory.mktemp("whole"))
    settled(database(place))
    return place


def flip(table: str, column: str, where: str) -> str:
    return (
        f"UPDATE {table} SET {column} = CAST(substr({column}, 1, length({column}) - 1) || "
        f"CASE substr({column}, -1) WHEN X'00' THEN X'01' ELSE X'00' END AS BLOB) WHERE {where}"
    )


def swap(table: str, column: str, key: str, one: int, two: int) -> tuple[str, ...]:
    """Swap a column of two rows."""
    made = f"UPDATE {table} SET {column} = (SELECT {column} FROM {table}_kept WHERE {key} = "
    return (
        f"CREATE TABLE {table}_kept AS SELECT * FROM {table}",
        f"{made}{two}) WHERE {key} = {one}",
        f"{made}{one}) WHERE {key} = {two}",
        f"DROP TABLE {table}_kept",
    )


COPY = (
    "INSERT INTO events SELECT (SELECT max(seq) FROM events) + 1, record_id, series_id, numbered, "
    "event_id, signature, chain FROM events WHERE seq = 1"
)

CASES: dict[str, tuple[tuple[str, ...], set[str]]] = {
    # --- ledger
    "event id changed": ((flip("events", "event_id", "seq = 2"),), {"event-changed"}),
    "signature changed": ((flip("events", "signature", "seq = 2"),), {"signature-wrong"}),
    "chain changed": ((flip("events", "chain", "seq = 2"),), {"ledger-broken"}),
    "last chain changed": (
        (flip("events", "chain", "seq = (SELECT max(seq) FROM events)"),), {"ledger-broken"}),
    "event of another record": (
        ("UPDATE events SET record_id = 2 WHERE seq = 1",), {"event-repeated", "event-missing"}),
    "event of a record of another batch": (
        ("UPDATE events SET record_id = 4 WHERE seq = 1",), {"event-outside", "event-missing"}),
    "checkpoint of a batch that is not there": (
        ("UPDATE checkpoints SET batch_id = 99 WHERE batch_id IS NULL",), {"row-of-nothing"}),
    "event of a record that is not there": (
        ("UPDATE events SET record_id = 99 WHERE seq = 1",), {"row-of-nothing"}),
    "event of another series": (
        ("UPDATE events SET series_id = 2 WHERE seq = 1",), {"event-missing", "event-outside"}),
    "event of no series": (
        ("UPDATE events SET series_id = 99 WHERE seq = 1",), {"row-of-nothing", "event-missing"}),
    "other kind of subject": (
        ("UPDATE events SET numbered = 1 - numbered WHERE seq = 1",), {"event-changed"}),
    "event dropped": (("DELETE FROM events WHERE seq = 2",), {"ledger-broken", "event-missing"}),
    "first event dropped": (
        ("DELETE FROM events WHERE seq = 1",), {"ledger-broken", "event-missing"}),
    "last event dropped": (
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",),
        {"event-missing", "checkpoint-beyond-ledger"}),
    "event dropped with its series moved back": (
        ("DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)",
         "UPDATE series SET next = next - 1, stop = stop - 1 "
         "WHERE id = (SELECT max(id) FROM series)"),
        {"checkpoint-beyond-ledger"}),
    "event repeated": ((COPY,), {"event-repeated", "ledger-broken"}),
    "events reordered": (swap("events", "event_id", "seq", 1, 2), {"ledger-broken"}),
    "signatures swapped": (swap("events", "signature", "seq", 1, 2), {"signature-wrong"}),
    "whole rows swapped": (
        ("UPDATE events SET seq = -1 WHERE seq = 1", "UPDATE events SET seq = 1 WHERE seq = 2",
         "UPDATE events SET seq = 2 WHERE seq = -1"), {"ledger-broken"}),
    "gap in the numbers": (
        ("UPDATE events SET seq = -seq WHERE seq > 2",
         "UPDATE events SET seq = 1 - seq WHERE seq < 0"), {"ledger-broken"}),
    # --- what is kept beside it for lists and plots
    "standings that say all of all": (
        ("UPDATE standings SET states = CAST(replace(hex(zeroblob(4096)), '00', char(7)) AS BLOB)",),
        {"count-differs"}),
    "standings that say nothing": (("DELETE FROM standings",), {"count-differs"}),
    "standings cut": (("UPDATE standings SET states = substr(states, 1, 9)",), {"count-differs"}),
    "standings of records that are not there": (
        ("INSERT INTO standings SELECT 7, states FROM standings LIMIT 1",), {"count-differs"}),
    "more anchored on a day": (("UPDATE days SET anchored = anchored + 1",), {"count-differs"}),
    "a day before all": (("INSERT INTO days VALUES (1, 1, 1, 1, 1)",), {"count-differs"}),
    "day dropped": (("DELETE FROM days",), {"count-differs"}),
    # --- series
    "payload of a series": (
        ("UPDATE series SET payload = CAST(replace(payload, 'opentimestamps', 'other') AS BLOB) "
         "WHERE id = 1",), {"event-changed"}),
    "moment of a series": (
        ("UPDATE series SET created_at = created_at + 1 WHERE id = 1",), {"event-changed"}),
    "type of a series": (
        ("UPDATE series SET event_type = 'timestamp_submitted' WHERE id = 2",), {"event-changed"}),
    "signer of a series": (
        ("UPDATE series SET signer = CAST(replace(signer, 'registry.', 'another.') AS BLOB) "
         "WHERE id = 1",),
        {"event-changed"}),
    "key of a series": (("UPDATE series SET key_id = 'other' WHERE id = 1",), {"key-unknown"}),
    "proof of a series": ((flip("series", "proof", "id = 2"),), {"event-changed"}),
    "series without proof": (("UPDATE series SET proof = NULL WHERE id = 2",), {"event-changed"}),
    "series of another batch": (
        ("UPDATE series SET batch_id = 2 WHERE id = 1",), {"event-outside"}),
    "series that withdraws": (("UPDATE series SET withdraws = 1 WHERE id = 2",), {"event-refused"}),
    "start of a series": (("UPDATE series SET start = 1 WHERE id = 1",), {"event-outside"}),
    "next of a series": (("UPDATE series SET next = next - 1 WHERE id = 1",), {"event-outside"}),
    "stop before next": (("UPDATE series SET stop = next - 1 WHERE id = 1",), {"series-range-wrong"}),
    "series dropped": (("DELETE FROM series WHERE id = 2",), {"row-of-nothing", "event-missing"}),
    # --- log
    "checkpoint's root": ((flip("checkpoints", "root", "1"),), {"checkpoint-row-differs"}),
    "checkpoint's note": (
        ("UPDATE checkpoints SET note = CAST(replace(note, 'A', 'B') AS BLOB)",), {"checkpoint-signature-wrong"}),
    "checkpoint's size": (
        ("UPDATE checkpoints SET size = size + 1 WHERE size = (SELECT min(size) FROM checkpoints)",),
        {"checkpoint-row-differs"}),
    "checkpoint's key": (
        ("UPDATE checkpoints SET key_id = 'other'",), {"checkpoint-signature-wrong"}),
    "carried checkpoint dropped": (
        ("DELETE FROM checkpoints WHERE batch_id IS NOT NULL",), {"trailer-differs"}),
    "checkpoint said to be carried elsewhere": (
        ("UPDATE checkpoints SET batch_id = 1",), {"trailer-differs"}),
    "node that is none": (("INSERT INTO log_nodes VALUES (1, 0, zeroblob(32))",), {"log-node-wrong"}),
    # --- batches and tiles
    "batch's root": ((flip("batches", "root", "id = 1"),), {"batch-root-wrong"}),
    "roots of tiles": ((flip("batches", "tile_roots", "id = 1"),), {"batch-root-wrong"}),
    "batch's proof": ((flip("batches", "proof", "id = 1"),), {"header-differs"}),
    "proofs swapped": (swap("batches", "proof", "id", 1, 2), {"batch-proof-wrong"}),
    "trailer": ((flip("batches", "trailer", "trailer IS NOT NULL"),), {"batch-root-wrong"}),
    "block's height": (
        ("UPDATE batches SET block_height = block_height + 1 WHERE id = 1",), {"batch-proof-wrong"}),
    "block's hash": ((flip("batches", "block_hash", "id = 1"),), {"block-columns-differ"}),
    "block's root": ((flip("batches", "block_merkle_root", "id = 1"),), {"batch-proof-wrong"}),
    "block's time": (
        ("UPDATE batches SET block_time = block_time + 1 WHERE id = 1",), {"block-columns-differ"}),
    "anchored without an event": (
        ("DELETE FROM events WHERE series_id = 2", "DELETE FROM series WHERE id = 2"),
        {"event-missing"}),
    "not anchored any more": (
        ("UPDATE batches SET state = 'submitted' WHERE id = 1",), {"state-behind-events"}),
    "parked": (("UPDATE batches SET state = 'parked' WHERE id = 1",), {"state-behind-events"}),
    "state that is none": (("UPDATE batches SET state = 'x' WHERE id = 1",), {"store-damaged"}),
    "batch's size": (("UPDATE batches SET size = size + 1 WHERE id = 1",), {"event-missing"}),
    "batch dropped": (("DELETE FROM batches WHERE id = 1",), {"row-of-nothing"}),
    "adopted file": (
        (flip("batches", "adopted_raw", "kind = 'adopted'"),),
        {"kept-file-changed"}),
    "adopted file of another record": (
        ("UPDATE batches SET record_id = 1 WHERE kind = 'adopted'",), {"digest-differs"}),
    "nonce": ((flip("tiles", "nonces", "batch_id = 1"),), {"leaf-differs"}),
    "leaf": ((flip("tiles", "leaves", "batch_id = 1"),), {"leaf-differs", "tile-root-differs"}),
    "records of a tile": (
        ("UPDATE tiles SET record_ids = CAST(substr(record_ids, 1, length(record_ids) - 1) || X'63' "
         "AS BLOB) WHERE batch_id = 1",), {"tile-damaged", "record-misplaced"}),
    "records of a tile cut": (
        ("UPDATE tiles SET record_ids = substr(record_ids, 2) WHERE batch_id = 1",),
        {"tile-damaged"}),
    "document": ((flip("documents", "raw", "1"),), {"kept-file-changed"}),
    "text in place of bytes": (
        ("UPDATE events SET event_id = 'text' WHERE seq = 1",), {"store-damaged"}),
    "tile dropped": (("DELETE FROM tiles WHERE batch_id = 1",), {"event-outside"}),
    # --- records
    "digest": ((flip("records", "digest", "id = 1"),), {"digest-differs", "leaf-differs"}),
    "digest of a bare one": ((flip("records", "digest", "id = 3"),), {"leaf-differs"}),
    "digests swapped": (
        ("UPDATE records SET digest = zeroblob(32) WHERE id = 9",
         "DROP INDEX ix_records_digest", *swap("records", "digest", "id", 1, 2)),
        {"digest-differs"}),
    "body": ((flip("bodies", "canonical", "record_id = 1"),), {"digest-differs"}),
    "bodies swapped": (swap("bodies", "canonical", "record_id", 1, 2), {"digest-differs"}),
    "body dropped": (("DELETE FROM bodies WHERE record_id = 1",), {"body-missing"}),
    "body added": (
        ("INSERT INTO bodies SELECT 3, canonical FROM bodies WHERE record_id = 1",),
        {"digest-differs"}),
    "scheme": (("UPDATE records SET scheme = 3 WHERE id = 1",), {"record-columns-differ"}),
    "scheme that is none": (("UPDATE records SET scheme = 9 WHERE id = 1",), {"store-damaged"}),
    "year": (("UPDATE records SET year = year + 1 WHERE id = 1",), {"record-columns-differ"}),
    "no year": (("UPDATE records SET year = NULL WHERE id = 1",), {"record-columns-differ"}),
    "source id": (
        ("UPDATE records SET source_id = 'x' WHERE id = 1",), {"record-columns-differ"}),
    "source kind": (
        ("UPDATE records SET source_kind = NULL WHERE id = 1",), {"record-columns-differ"}),
    "source version": (
        ("UPDATE records SET source_version = 2 WHERE id = 1",), {"record-columns-differ"}),
    "source of a bare one": (
        ("UPDATE records SET source_kind = 'arxiv' WHERE id = 3",), {"record-columns-differ"}),
    "record of another batch": (
        ("UPDATE records SET batch_id = 2 WHERE id = 1",), {"record-misplaced"}),
    "record dropped": (("DELETE FROM records WHERE id = 1",), {"record-missing", "row-of-nothing"}),
    "adopted record dropped": (("DELETE FROM records WHERE id = 4",), {"row-of-nothing"}),
    # --- captures and items
    "capture's hash": ((flip("captures", "sha256", "1"),), {"capture-differs"}),
    "capture's URL": (("UPDATE captures SET final_url = url || 'x'",), {"capture-differs"}),
    "capture's moment": (
        ("UPDATE captures SET timestamp = '20240726120001'",), {"capture-differs"}),
    "capture's place": (("UPDATE captures SET place = place + 1",), {"capture-differs"}),
    "capture's state": (("UPDATE captures SET state = 'waiting'",), {"capture-differs"}),
    "capture without its event": (
        ("UPDATE captures SET series_id = NULL",), {"event-missing", "capture-missing"}),
    "capture of another event": (
        ("UPDATE captures SET series_id = 1",), {"capture-differs", "capture-missing"}),
    "capture dropped": (("DELETE FROM captures",), {"capture-missing"}),
    "capture of another record": (("UPDATE captures SET record_id = 2",), {"capture-missing"}),
    "file's hash": ((flip("files", "sha256", "1"),), {"item-differs"}),
    "file's md5": ((flip("files", "md5", "1"),), {"item-differs"}),
    "file's name": (("UPDATE files SET name = 'x.zip'",), {"item-differs"}),
    "file's members": (("UPDATE files SET members = 1",), {"item-differs"}),
    "file gone": (("UPDATE files SET state = 'gone'",), {"item-differs"}),
    "item's name": (("UPDATE items SET identifier = 'other-item'",), {"item-differs"}),
    "hashes of members": ((flip("file_members", "sha256s", "1"),), {"event-changed"}),
    "hashes of members cut": (
        ("UPDATE file_members SET sha256s = substr(sha256s, 1, 32)",), {"item-differs"}),
    "stretch of a file": (("UPDATE file_ranges SET start = 1",), {"item-differs"}),
    "stretch dropped": (("DELETE FROM file_ranges",), {"item-differs"}),
    "file dropped": (("DELETE FROM files",), {"row-of-nothing"}),
    "item event without a file": (
        ("UPDATE series SET file_id = NULL WHERE file_id IS NOT NULL",), {"event-changed"}),
}  # fmt: skip


def test_an_event_that_was_moved_names_both_records(place, tmp_path):
    path = damaged(database(place), tmp_path / "damaged.db",
                   "UPDATE events SET record_id = 2 WHERE seq = 1")  # fmt: skip
    with place.app() as app:
        lost, gained = (_name(app.store.records.get(number)) for number in (1, 2))
    found = broken(audit(place, path))
    assert [one.partition(":")[0] for one in found["event-missing"]] == [lost.partition(":")[0]]
    assert found["event-missing"][0].startswith(lost)
    assert any(gained in one for one in found["event-changed"])


def _name(record) -> str:
    return pith_number(record.digest, record.year)


@pytest.mark.parametrize("case", CASES)
def test_it_is_found_and_named(case, place, tmp_path):
    statements, codes = CASES[case]
    path = damaged(database(place), tmp_path / "damaged.db", *statements)
    report = audit(place, path)
    found = broken(report)
    assert report.result == "broken", found
    assert codes <= set(found), found
    assert all(subject for subjects in found.values() for subject in subjects)
