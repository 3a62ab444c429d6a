"""`anchord migrate-store`: all of it arrives, or nothing does; and a life that goes on there."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.audited import whole_place
from support.parties import FakeChain, FakeClock
from support.stores import POSTGRES, SQLITE, keep_in, server
from support.workplace import CONFIG, Workplace, run, sample

from anchord.adapters.store import moving
from anchord.adapters.store.database import connect, create
from anchord.adapters.store.moving import move
from anchord.adapters.store.schema import audit_shards, metadata
from anchord.adapters.store.sql import SqlStore
from anchord.errors import AnchordError, FatalError, StoreBusyError


def quiet(_what: str, _done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A SQLite store with something in nearly every table."""
    keep_in(SQLITE)
    return whole_place(tmp_path_factory.mktemp("lived"))


@pytest.fixture
def place(lived: Workplace, tmp_path: Path) -> Workplace:
    """A copy of it, to be written to."""
    folder = tmp_path / "here"
    shutil.copytree(lived.folder, folder)
    copy = Workplace.__new__(Workplace)
    copy.__dict__.update(lived.__dict__, folder=folder, clock=FakeClock(lived.clock.moment))
    copy.chain = FakeChain.__new__(FakeChain)
    copy.chain.__dict__.update(lived.chain.__dict__, headers=list(lived.chain.headers))
    return copy


def moved(place: Workplace, *urls: str, code: int = 0) -> Any:
    result = place.run("migrate-store", *urls, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.stderr


def use(place: Workplace, url: str) -> None:
    place.config.write_text(f'[store]\nurl = "{url}"\n' + CONFIG, "utf-8")


def store_of(place: Workplace) -> str:
    return f"sqlite:///{place.folder / 'anchord.db'}"


def rows(url: str) -> dict[str, list[tuple[Any, ...]]]:
    engine = connect(url)
    with engine.connect() as connection:
        found = {
            name: [tuple(row) for row in connection.execute(table.select().order_by(*table.c))]
            for name, table in metadata.tables.items()
            if table is not audit_shards
        }
    engine.dispose()
    return found


def test_everything_arrives_and_the_new_store_is_audited_and_goes_on(place: Workplace) -> None:
    url = server().empty()
    before = rows(store_of(place))
    told = moved(place, url)
    assert rows(url) == before == rows(store_of(place))
    assert {name: table["rows"] for name, table in told["tables"].items()} == {
        name: len(found) for name, found in before.items()
    }
    use(place, url)
    audit = place.json("audit")
    assert audit["result"] == "sound", audit
    assert place.json("ledger", "check")["rows"] == told["events"]
    assert place.json("verify", sample(1).digest.hex())
    place.anchor(sample(11), sample(12))
    assert len(rows(url)["records"]) == len(before["records"]) + 2
    assert place.json("audit")["result"] == "sound"
    back = f"sqlite:///{place.folder / 'back.db'}"
    moved(place, back)
    assert rows(back) == rows(url)
    use(place, back)
    place.anchor(sample(13))


def test_said_again_it_tells_the_same_and_changes_nothing(place: Workplace) -> None:
    url = server().empty()
    first = moved(place, url)
    assert moved(place, url) == first
    assert moved(place, store_of(place), url) == first


def test_a_store_with_other_rows_is_not_written_over(place: Workplace) -> None:
    url = server().empty()
    create(url)
    store = SqlStore(url)
    store.add([sample(99)], 1)
    store.close()
    assert "expected an empty store" in moved(place, url, code=2)
    assert len(rows(url)["records"]) == 1


def test_as_many_other_rows_are_told_apart(place: Workplace) -> None:
    url = server().empty()
    moved(place, url)
    engine = connect(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE records SET label = 'another' WHERE id = 1")
    engine.dispose()
    assert "expected an empty store" in moved(place, url, code=2)


@pytest.mark.parametrize("kind", [SQLITE, POSTGRES])
def test_cut_off_anywhere_it_leaves_nothing_and_is_begun_anew(place: Workplace, kind: str) -> None:
    url = server().empty() if kind == POSTGRES else f"sqlite:///{place.folder / 'new.db'}"

    for wanted in ("move events", "move tiles", "compare records", "compare tiles"):

        def cut(what: str, _done: int, _total: int, wanted: str = wanted) -> None:
            if what == wanted:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            move(store_of(place), url, cut)
        assert not any(rows(url).values())
    assert move(store_of(place), url, quiet)
    assert rows(url) == rows(store_of(place))


def test_a_target_that_does_not_keep_what_it_is_given_gets_nothing(
    place: Workplace,
) -> None:
    url = server().empty()
    create(url)
    engine = connect(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN NEW.label := 'spoilt'; RETURN NEW; END $$"
        )
        connection.exec_driver_sql(
            "CREATE TRIGGER spoil BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION spoil()"
        )
    engine.dispose()
    with pytest.raises(FatalError, match="in the table records"):
        move(store_of(place), url, quiet)
    assert not any(rows(url).values())


def test_the_server_going_away_in_the_middle_leaves_nothing(place: Workplace) -> None:
    url = server().empty()

    def cut(what: str, _done: int, _total: int) -> None:
        if what == "move records":
            server().execute(
                url.rpartition("/")[2],
                "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )

    with pytest.raises(StoreBusyError):
        move(store_of(place), url, cut)
    assert not any(rows(url).values())
    move(store_of(place), url, quiet)


def test_a_row_that_is_damaged_is_told_and_nothing_is_kept(place: Workplace) -> None:
    with sqlite3.connect(place.folder / "anchord.db") as raw:
        raw.execute("UPDATE events SET chain = 'text' WHERE seq = 1")
    raw.close()
    url = server().empty()
    with pytest.raises(AnchordError, match=r"damaged|failed"):
        move(store_of(place), url, quiet)
    assert not any(rows(url).values())


def test_a_ledger_that_does_not_hold_is_told_with_the_exit_code_of_danger(place: Workplace) -> None:
    with sqlite3.connect(place.folder / "anchord.db") as raw:
        raw.execute("UPDATE events SET signature = zeroblob(64) WHERE seq = 1")
    raw.close()
    assert "do not use the new one" in moved(place, server().empty(), code=4)


def test_while_it_moves_nobody_writes(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    url = server().empty()
    monkeypatch.setattr("anchord.adapters.store.database.BUSY_TIMEOUT_S", 0)
    tried = []
    real = moving.move

    def watched(source: str, target: str, on_progress: Any) -> Any:
        store = SqlStore(source)
        for write in (lambda: store.add([sample(98)], 1), lambda: store.exclusive().__enter__()):
            with pytest.raises(StoreBusyError):
                write()
            tried.append(write)
        store.close()
        return real(source, target, on_progress)

    monkeypatch.setattr(moving, "move", watched)
    moved(place, url)
    assert len(tried) == 2


def test_a_served_store_is_not_moved(place: Workplace) -> None:
    url, other = server().empty(), server().empty()
    moved(place, url)
    store = SqlStore(url)
    with store.serving(1, shared=True):
        assert "is served already" in moved(place, url, other, code=3)
    with store.exclusive():
        assert "another anchord works on" in moved(place, url, other, code=3)
    store.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["postgresql://a:secret@h/d"], "a password on the command line"),
        (["postgresql://a@h/d?password=secret"], "a password on the command line"),
        (["mysql://h/d"], "expected the address of a store"),
        (["nonsense"], "expected the address of a store"),
        (["sqlite://"], "expected the address of a store"),
        (["sqlite:///:memory:"], "in memory"),
        (["sqlite:///a.db", "sqlite:///a.db"], "are the same"),
        (["sqlite:///a", "sqlite:///b", "sqlite:///c"], "at most"),
    ],
)
def test_addresses_that_cannot_be_meant_are_refused(
    lived: Workplace, words: list[str], told: str
) -> None:
    result = lived.run("migrate-store", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert "secret" not in result.stderr


def test_a_backup_of_a_postgresql_store_is_restored_and_audited(
    place: Workplace, tmp_path: Path
) -> None:
    url = server().empty()
    moved(place, url)
    use(place, url)
    file = tmp_path / "backup.tar"
    made = place.json("backup", str(file))
    assert made["events"] == len(rows(url)["events"])
    result = run("restore", str(file), str(tmp_path / "again"), "--json")
    assert result.exit_code == 0, result.output
    assert any("store.url" in note for note in json.loads(result.stdout)["notes"])
    assert rows(f"sqlite:///{tmp_path / 'again' / 'anchord.db'}") == rows(url)
    assert [one.name for one in (tmp_path / "again").glob("anchord.db*")] == ["anchord.db"]


def test_state_and_health_of_a_postgresql_store_are_told(place: Workplace) -> None:
    url = server().empty()
    moved(place, url)
    use(place, url)
    told = place.json("db", "status")
    assert told["current"]
    assert told["bytes"] > 100_000
    assert told["held_by"] is None
    store = SqlStore(url)
    with store.exclusive():
        assert "a pass (pid" in place.json("db", "status")["held_by"]
        assert place.run("db", "upgrade").exit_code == 3
    store.close()
    doctor = place.run("doctor")
    assert "fsync is off" in doctor.stdout, doctor.output
