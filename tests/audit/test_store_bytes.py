"""No change is missed: every byte of what is signed, or follows from it, is flipped in turn.

With EVERY_BYTE=1 it is every byte; else each column's first and last bytes and some between, so
that the suite stays quick. Each flip must make the audit find something broken.
"""

from __future__ import annotations

import functools
import os
import sqlite3
from pathlib import Path

import msgspec
import pytest
from support.audited import CHAIN, audit, broken, database, settled
from support.parties import FakeSigner
from support.workplace import Workplace, sample

from anchord.app.audit_wiring import reading_store
from anchord.core.audit import AuditOptions
from anchord.engine.audit.store import audit_store
from anchord.engine.header_view import HeaderView

EVERY = os.environ.get("EVERY_BYTE") == "1"
STEPS = 2
"""Bytes of a long value that are flipped when not all are."""

COLUMNS = {
    "events": ("event_id", "signature", "chain"),
    "series": ("payload", "proof", "signer"),
    "checkpoints": ("note", "root"),
    "log_nodes": ("hash",),
    "tiles": ("record_ids", "nonces", "leaves"),
    "batches": ("root", "tile_roots", "proof", "trailer", "block_hash", "block_merkle_root"),
    "bodies": ("canonical",),
    "records": ("digest",),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    place = Workplace(tmp_path_factory.mktemp("bytes"))
    place.anchor(sample(1))
    place.anchor(sample(2))
    settled(database(place))
    return place


def values(path: Path, table: str, column: str) -> list[tuple[int, bytes]]:
    connection = sqlite3.connect(path)
    query = f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
    found = connection.execute(query).fetchall()
    connection.close()
    rows = [(key, bytes(value)) for key, value in found]
    return rows if EVERY else [rows[0], *rows[len(rows) // 2 : len(rows) // 2 + 1]] if rows else []


def places(length: int, salt: int) -> list[int]:
    """Which bytes to flip: all, or both ends and some between that differ from row to row."""
    if EVERY or length <= STEPS:
        return list(range(length))
    step = max(length // STEPS, 1)
    return sorted({0, length - 1, *range(salt % step, length, step)})


def write(path: Path, table: str, column: str, key: int, value: bytes) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608
    done = connection.execute(update, (value, key))
    assert done.rowcount == 1
    connection.close()


@pytest.mark.timeout(0 if EVERY else 120)
@pytest.mark.parametrize("table", COLUMNS)
def test_a_flipped_byte_is_found(table, place, tmp_path):
    path = tmp_path / "anchord.db"
    path.write_bytes(database(place).read_bytes())
    with place.app() as app:
        keyring = app.keyring
    options = AuditOptions(now=place.clock.now())
    opened = functools.partial(reading_store, f"sqlite:///{path}")
    missed = []
    for column in COLUMNS[table]:
        for key, value in values(path, table, column):
            for at in places(len(value), key):
                bad = value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
                write(path, table, column, key, bad)
                headers = HeaderView([place.chain], CHAIN, 6)
                outcome, facts = audit_store(opened, keyring, (), headers, options, lambda *_: None)
                if outcome.report(**msgspec.structs.asdict(facts)).result != "broken":
                    missed.append((column, key, at))
            write(path, table, column, key, value)
    assert missed == []
    assert broken(audit(place, path)) == {}


def test_a_row_signed_again_with_another_key_is_found(place, tmp_path):
    """The whole series re-signed by somebody else, ids and chain recomputed: only the key tells."""
    path = tmp_path / "anchord.db"
    path.write_bytes(database(place).read_bytes())
    stranger = FakeSigner("stranger-2024")
    connection = sqlite3.connect(path, isolation_level=None)
    rows = connection.execute("SELECT seq, event_id FROM events").fetchall()
    for seq, digest in rows:
        connection.execute(
            "UPDATE events SET signature = ? WHERE seq = ?", (stranger.sign(digest), seq)
        )
    connection.close()
    found = broken(audit(place, path))
    assert {"signature-wrong", "ledger-broken", "checkpoint-root-differs"} <= set(found)
    assert len(found["signature-wrong"]) == len(rows)
