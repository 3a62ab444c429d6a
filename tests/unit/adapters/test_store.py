"""The store as such: creation, refusals, taking in, finding, the right to write."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
import sqlalchemy as sa
from support.parties import open_store
from support.passes import bare, numbered

from anchord.adapters.store import database
from anchord.adapters.store.database import create
from anchord.adapters.store.schema import REVISION, metadata
from anchord.adapters.store.sql import SqlStore
from anchord.core import event
from anchord.core.model import (
    BatchChange,
    BatchState,
    Document,
    NewSeries,
    Record,
    Scheme,
    SignedRow,
)
from anchord.core.reference import Reference
from anchord.errors import ConfigError, FatalError, StoreBusyError


@pytest.fixture
def store(tmp_path):
    opened = open_store(tmp_path)
    yield opened
    opened.close()


def url(folder, name="anchord.db"):
    return f"sqlite:///{folder / name}"


def test_creating_twice_changes_nothing(tmp_path):
    assert create(url(tmp_path)) is True
    before = (tmp_path / "anchord.db").read_bytes()
    assert create(url(tmp_path)) is False
    assert (tmp_path / "anchord.db").read_bytes() == before
    assert (tmp_path / "anchord.db").stat().st_mode & 0o077 == 0


def test_the_migration_makes_the_schema_of_the_code(tmp_path):
    create(url(tmp_path))
    engine = database.connect(url(tmp_path))
    found = sa.inspect(engine)
    assert set(found.get_table_names()) - {"alembic_version"} == set(metadata.tables)
    for name, table in metadata.tables.items():
        assert [c["name"] for c in found.get_columns(name)] == list(table.columns.keys())
        assert {i["name"] for i in found.get_indexes(name)} == {i.name for i in table.indexes}
    engine.dispose()


def test_a_store_that_is_not_there_is_not_made_by_opening(tmp_path):
    with pytest.raises(ConfigError, match="anchord init"):
        SqlStore(url(tmp_path))
    assert not (tmp_path / "anchord.db").exists()


def test_a_database_of_somebody_else_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "anchord.db") as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    with pytest.raises(ConfigError, match="no anchord store"):
        SqlStore(url(tmp_path))


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "anchord.db").write_bytes(b"this is a text, not a database" * 99)
    with pytest.raises(FatalError, match="not a database"):
        SqlStore(url(tmp_path))


@pytest.mark.parametrize(
    ("found", "words"), [("9999", "newer"), ("0000", "migrate"), ("zzzz", "newer")]
)
def test_another_schema_is_refused_with_what_to_do(tmp_path, found, words):
    create(url(tmp_path))
    with sqlite3.connect(tmp_path / "anchord.db") as raw:
        raw.execute("UPDATE alembic_version SET version_num = ?", (found,))
    raw.close()
    with pytest.raises(ConfigError, match=words):
        SqlStore(url(tmp_path))
    if found > REVISION:
        with pytest.raises(ConfigError, match=words):
            create(url(tmp_path))


def test_commits_are_as_durable_as_sqlite_makes_them(store):
    with store._engine.connect() as connection:
        pragmas = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_a_locked_store_is_busy_not_broken(store, tmp_path):
    with store._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=10")
    other = sqlite3.connect(tmp_path / "anchord.db")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="locked by another"):
        store.add(bare(1), 1)
    other.close()
    assert store.add(bare(1), 1).new == 1


HOLD = """
import sys
from anchord.adapters.store.sql import SqlStore
with SqlStore(sys.argv[1]).exclusive():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_one_process_passes_at_a_time_and_the_right_ends_with_the_process(store, tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, url(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(StoreBusyError, match="another anchord") as caught, store.exclusive():
        pass
    assert caught.value.exit_code == 3
    assert store.add(bare(1), 1).new == 1, "adding goes on meanwhile"
    holder.kill()
    holder.wait(10)
    holder.stdin.close()
    holder.stdout.close()
    with store.exclusive():
        pass


def test_a_lock_file_that_cannot_be_opened_says_so(store, tmp_path):
    (tmp_path / "anchord.db.lock").mkdir()
    with pytest.raises(ConfigError, match="lock file"), store.exclusive():
        pass


def test_the_right_to_pass_is_given_back_after_a_failure(store):
    with pytest.raises(RuntimeError), store.exclusive():
        raise RuntimeError
    with store.exclusive():
        pass


def dump(store):
    raw = store._engine.raw_connection()
    try:
        return list(raw.driver_connection.iterdump())
    finally:
        raw.close()


def test_adding_again_changes_nothing(store):
    items = [*bare(3), *numbered(3)]
    assert store.add(items, 1).new == 6
    before = dump(store)
    added = store.add(items, 2)
    assert (added.new, added.known) == (0, 6)
    assert dump(store) == before


def test_a_chunk_may_hold_one_record_twice(store):
    (text,) = numbered(1)
    hash_only = Record(digest=text.digest, scheme=Scheme.SHA256)
    assert store.add([hash_only, text, hash_only], 1).new == 1
    assert store.records.body(1) == text.canonical


def test_a_text_completes_a_bare_digest_and_never_the_other_way(store):
    (text,) = numbered(1)
    hash_only = Record(digest=text.digest, scheme=Scheme.SHA256)
    store.add([hash_only], 1)
    assert store.records.body(1) is None
    store.add([text], 2)
    store.add([hash_only], 3)
    record = store.records.get(1)
    assert (record.scheme, record.year, record.added_at) == (Scheme.PITH_JSON_V1, "2026", 1)
    assert store.records.body(1) == text.canonical


def test_documents_are_kept_byte_for_byte_and_once(store):
    (text,) = numbered(1)
    store.add([Document(record=text, raw=b"{ }"), Document(record=text, raw=b"{}")], 1)
    store.add([Document(record=text, raw=b"{ }")], 2)
    assert store.records.documents(1) == [b"{ }", b"{}"]


def test_a_chunk_goes_in_whole_or_not_at_all(store):
    broken = Record(digest=None, scheme=Scheme.SHA256)  # type: ignore[arg-type]
    with pytest.raises(FatalError):
        store.add([*bare(3), broken], 1)
    assert store.records.waiting() == (0, None)


def test_records_are_found_by_digest_prefix_and_source(store):
    from msgspec.structs import replace

    one, two = numbered(2)
    store.add([replace(one, source_kind="arxiv", source_id="2001.1", source_version=2), two], 1)
    find = store.records.find
    assert [r.id for r in find(Reference(digest=two.digest))] == [2]
    assert [r.id for r in find(Reference(source_id="2001.1"))] == [1]
    assert find(Reference(source_id="2001.1", source_version=3)) == []
    assert find(Reference(digest=bytes(32))) == []


def test_walking_yields_everything_in_chunks(store):
    store.add(bare(25), 1)
    chunks = [[r.id for r in chunk] for chunk in store.records.walk(chunk=10)]
    assert [len(chunk) for chunk in chunks] == [10, 10, 5]
    assert [r for chunk in chunks for r in chunk] == list(range(1, 26))


def seal(store, now=1):
    def make_tile(digests):
        return bytes(16 * len(digests)), b"".join(digests)

    return store.batches.seal(now, ["https://a.example.org"], make_tile)


def test_sealing_fails_whole_and_leaves_the_records_waiting(store):
    store.add(bare(1500), 1)
    calls = []

    def make_tile(digests):
        calls.append(len(digests))
        if len(calls) == 2:
            raise RuntimeError("killed in the middle")
        return bytes(16 * len(digests)), b"".join(digests)

    with pytest.raises(RuntimeError):
        store.batches.seal(1, [], make_tile)
    assert calls == [1024, 476]
    assert store.records.waiting()[0] == 1500
    assert store.batches.last_sealed_at() is None
    assert seal(store).size == 1500


def test_nothing_waiting_seals_nothing(store):
    assert seal(store) is None


def test_what_is_named_but_not_there_is_damage(store):
    for ask in (
        lambda: store.batches.get(7),
        lambda: store.ledger.get_series(7),
    ):
        with pytest.raises(FatalError, match="damaged"):
            ask()
    assert store.records.get(7) is None
    store.add(bare(2), 1)
    batch = seal(store)
    with pytest.raises(FatalError, match="not among the leaves"):
        store.batches.index_of(batch, 3)


def new_series(stop, **changes):
    values = {
        "event_type": "timestamp_submitted", "created_at": 1, "payload": b"{}", "proof": None,
        "signer": b"{}", "key_id": "k", "stop": stop,
    }  # fmt: skip
    return NewSeries(**{**values, **changes})


def test_a_change_of_many_batches_is_one_transaction(store):
    store.add(bare(2), 1)
    seal(store)
    good = BatchChange(batch_id=1, columns={"note": "new"}, series=(new_series(2),))
    bad = BatchChange(batch_id=1, series=(new_series(None),))
    with pytest.raises(FatalError):
        store.batches.change([good, bad])
    assert store.batches.get(1).note is None
    assert store.ledger.open_series() == []
    store.batches.change([good])
    assert [s.stop for s in store.ledger.open_series()] == [2]


def row(seq, record_id=1, series_id=1):
    chain = event.NO_CHAIN
    for _ in range(seq):
        chain = event.chain_next(chain, bytes(32), bytes(64))
    return SignedRow(seq, record_id, series_id, False, bytes(32), bytes(64), chain)


@pytest.mark.parametrize("rows", [[2], [3], [0]])
def test_a_row_that_does_not_follow_the_last_is_not_appended(store, rows):
    store.add(bare(2), 1)
    seal(store)
    store.batches.change([BatchChange(batch_id=1, series=(new_series(2),))])
    (series,) = store.ledger.open_series()
    with pytest.raises(FatalError, match="nothing was appended"):
        store.ledger.append([(series, 1)], [row(seq) for seq in rows])
    assert store.ledger.open_series() == [series]
    store.ledger.append([(series, 1)], [row(1)])
    with pytest.raises(StoreBusyError):
        store.ledger.append([(series, 1)], [row(2)])
    assert store.ledger.head()[0] == 1


def test_a_series_that_was_cut_takes_no_more_rows(store):
    store.add(bare(2), 1)
    seal(store)
    store.batches.change([BatchChange(batch_id=1, series=(new_series(2),))])
    (series,) = store.ledger.open_series()
    store.batches.change([BatchChange(batch_id=1, cut_series=(series.id,))])
    with pytest.raises(StoreBusyError):
        store.ledger.append([(series, 2)], [row(1), row(2, 2)])
    assert store.ledger.head() == (0, bytes(32))


def test_unparking_asks_and_checks_everything_anew(store):
    store.add(bare(1), 1)
    seal(store)
    columns = {"state": BatchState.PARKED.value, "note": "why", "next_check_at": None}
    store.batches.change([BatchChange(batch_id=1, columns=columns)])
    store.batches.unpark(1, 50)
    batch = store.batches.get(1)
    assert (batch.state, batch.note, batch.next_check_at) == (BatchState.SEALED, None, 50)
    assert [s.attempts for s in store.calls.due_submissions(50)] == [0]


@pytest.mark.parametrize("make", [SqlStore, create])
@pytest.mark.parametrize(
    "address", ["nosuch://user:hunter2@db.example.org/anchord", "hunter2", "x://a:hunter2@h:port/"]
)
def test_an_address_that_cannot_be_used_is_refused_without_telling_its_password(make, address):
    with pytest.raises(ConfigError) as caught:
        make(address)
    if address == "hunter2":
        return
    assert "hunter2" not in str(caught.value)
