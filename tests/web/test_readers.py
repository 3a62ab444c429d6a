"""Stores lent to requests: always at a fresh moment, never held between, never the wrong file."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.passes import bare
from support.workplace import Workplace

from anchord.adapters.signers.keyring import revoke_key
from anchord.app.config import load
from anchord.app.web.readers import Readers
from anchord.errors import ConfigError, FatalError, StoreBusyError


@pytest.fixture
def place(tmp_path):
    place = Workplace(tmp_path)
    place.add(*bare(3))
    return place


@pytest.fixture
def readers(place):
    found = Readers(load(str(place.config)), size=2, patience_s=0.2)
    yield found
    found.close()


def count(readers):
    with readers.lend() as store:
        return sum(map(len, store.records.walk()))


@pytest.mark.both_stores
def test_each_time_the_store_is_as_it_is_now_and_stays_so_in_the_block(place, readers):
    assert count(readers) == 3
    with readers.lend() as store:
        assert len(next(store.records.walk())) == 3
        place.add(*bare(2, "later"))
        assert len(next(store.records.walk())) == 3
    assert count(readers) == 5


@pytest.mark.both_stores
def test_the_mark_changes_with_what_is_committed_and_not_otherwise(place, readers):
    assert count(readers) == 3
    before = readers.mark()
    assert count(readers) == 3
    assert readers.mark() == before
    place.add(*bare(1, "later"))
    assert readers.mark() != before


@pytest.mark.both_stores
def test_those_who_come_too_many_wait_and_then_are_told(readers):
    third = readers.lend()
    with readers.lend(), readers.lend(), pytest.raises(StoreBusyError, match="at once"):
        third.__enter__()
    assert count(readers) == 3


def test_many_threads_share_few_stores(place):
    readers = Readers(load(str(place.config)), size=2)
    with ThreadPoolExecutor(16) as threads:
        assert set(threads.map(lambda _: count(readers), range(64))) == {3}
    assert len(readers._idle) <= 2
    readers.close()


def test_one_that_failed_is_not_lent_again(readers):
    with pytest.raises(FatalError), readers.lend() as store:
        raise FatalError("damaged")
    with readers.lend() as other:
        assert other is not store
    with pytest.raises(KeyError), readers.lend() as third:
        raise KeyError("a fault of who asked")
    with readers.lend() as fourth:
        assert fourth is third is other


def test_no_view_is_held_between_so_the_log_beside_the_file_shrinks(place, readers):
    assert count(readers) == 3
    with place.app() as app:
        app.store.add(bare(50, "later"), place.clock.now())
        with sqlite3.connect(place.folder / "anchord.db") as file:
            busy, *_ = file.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        file.close()
    assert busy == 0


def test_a_store_that_was_restored_in_its_place_is_read(place, readers, tmp_path):
    kept = tmp_path / "kept.db"
    shutil.copy(place.folder / "anchord.db", kept)
    place.add(*bare(4, "later"))
    assert count(readers) == 7
    mark = readers.mark()
    kept.replace(place.folder / "anchord.db")
    for beside in ("anchord.db-wal", "anchord.db-shm"):
        (place.folder / beside).unlink(missing_ok=True)
    assert readers.mark() != mark
    assert count(readers) == 3


def test_a_store_that_was_migrated_meanwhile_is_refused_with_words(place, readers):
    assert count(readers) == 3
    with sqlite3.connect(place.folder / "anchord.db") as file:
        file.execute("UPDATE alembic_version SET version_num = '9999'")
    file.close()
    with pytest.raises(ConfigError, match="newer"), readers.lend():
        pass


def test_where_nothing_can_be_written_what_is_written_later_is_seen(place, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    readers = Readers(load(str(place.config)))
    assert count(readers) == 3
    mark = readers.mark()
    place.add(*bare(1, "later"))
    assert count(readers) == 4
    assert readers.mark() != mark
    readers.close()


def test_the_keyring_is_read_again_when_it_changed(place, readers):
    before = readers.keyring()
    assert readers.keyring() is before
    (key,) = [key for key in before if key.own]
    revoke_key(place.folder / "keys", key.key_id, "lost", place.clock.now())
    (again,) = [key for key in readers.keyring() if key.own]
    assert again.revoked_at is not None


def test_no_private_key_is_needed(place, readers):
    for file in (place.folder / "keys").iterdir():
        if file.name != "keyring.toml":
            file.unlink()
    assert len(list(readers.keyring())) > 0
    assert count(readers) == 3


def test_what_is_lent_while_all_is_closed_is_let_go_of_when_it_comes_back(readers):
    with readers.lend() as store:
        closed = threading.Thread(target=readers.close)
        closed.start()
        closed.join(5)
        assert len(next(store.records.walk())) == 3
    assert readers._idle == []
