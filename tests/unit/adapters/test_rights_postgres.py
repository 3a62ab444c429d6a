"""Rights on a PostgreSQL store: who holds one, who waits, and what ends with a session."""

from __future__ import annotations

import threading
import time

import pytest
from support.passes import bare
from support.stores import POSTGRES, keep_in, made, server

from anchord.adapters.store.sql import SqlStore
from anchord.errors import StoreBusyError

KILL = """SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity
          WHERE datname = current_database() AND pid <> pg_backend_pid()"""


@pytest.fixture
def two(tmp_path):
    """Two openings of one store, as two processes have them."""
    keep_in(POSTGRES)
    url = made(tmp_path)
    stores = [SqlStore(url), SqlStore(url)]
    yield stores
    for store in stores:
        store.close()


def cut(store: SqlStore) -> None:
    """End all sessions of a store's database, as its server does when it goes down."""
    server().execute(str(store._engine.url.database), KILL)


def test_the_right_is_free_the_moment_it_is_let_go(two):
    one, other = two
    for _ in range(20):
        with one.exclusive():
            pass
        with other.exclusive():
            pass


def test_the_right_is_free_after_a_block_that_failed_in_its_transaction(two):
    one, other = two
    with pytest.raises(ZeroDivisionError), one.exclusive(), one.ledger._database.writing():
        raise ZeroDivisionError
    with other.exclusive():
        assert other.add(bare(1), 1).new == 1


def test_a_pass_holds_off_another_and_is_named(two):
    one, other = two
    with one.exclusive(), pytest.raises(StoreBusyError, match=r"another anchord works on .*pid"):
        other.exclusive().__enter__()


def test_who_is_patient_gets_the_right_when_it_comes_free(two):
    one, other = two
    other.patience_s = 20
    order = []

    def wait():
        with other.exclusive():
            order.append("second")

    with one.exclusive():
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.2)
        order.append("first")
    waiting.join(30)
    assert order == ["first", "second"]


def test_who_lost_the_right_writes_no_more_and_can_take_it_again(two):
    one, other = two

    def lose() -> None:
        with one.exclusive():
            cut(one)
            one.add(bare(1), 1)

    with pytest.raises(StoreBusyError):
        lose()
    with other.exclusive():
        assert other.records.waiting()[0] == 0
        other.add(bare(1), 1)
    with one.exclusive():
        assert one.add(bare(1), 1).new == 0


def test_who_lost_the_right_and_finds_its_way_back_still_writes_nothing(two):
    one, other = two

    def go_on() -> None:
        with one.exclusive():
            cut(one)
            with pytest.raises(StoreBusyError):
                one.add(bare(1), 1)
            assert one.records.waiting()[0] == 0, "reading goes on, on a session of its own"
            with other.exclusive():
                other.add(bare(2), 1)
            one.add(bare(3), 1)

    with pytest.raises(StoreBusyError):
        go_on()
    assert other.records.waiting()[0] == 2


def test_workers_share_and_the_one_daemon_does_not(two):
    one, other = two
    with one.serving(1, shared=True), other.serving(1, shared=True):
        third = SqlStore(one._engine.url.render_as_string(hide_password=False))
        with pytest.raises(StoreBusyError, match="served already"):
            third.serving(1).__enter__()
        third.close()
    with one.serving(1), pytest.raises(StoreBusyError, match="served already"):
        other.serving(1, shared=True).__enter__()
