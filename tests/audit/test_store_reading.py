"""A store opened for an audit cannot be written, works beside a pass, and leaves nothing behind."""

from __future__ import annotations

import stat

import pytest
import sqlalchemy as sa
from support.audited import audit, broken, database
from support.workplace import Workplace, sample

from anchord.adapters.store.reading import SqlReadingStore
from anchord.errors import AnchordError, ConfigError


@pytest.fixture
def place(tmp_path) -> Workplace:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    return place


def url(place: Workplace) -> str:
    return f"sqlite:///{database(place)}"


def test_a_write_is_refused(place):
    store = SqlReadingStore(url(place))
    with pytest.raises(AnchordError):
        store.batches.unpark(1, 5)
    engine = store._engine
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError, match="readonly"):
        connection.exec_driver_sql("DELETE FROM records")
    store.close()


def test_it_works_while_a_pass_writes(place):
    with place.app() as app, app.store._engine.connect() as held:
        held.exec_driver_sql("SELECT count(*) FROM records").all()
        app.store.add([sample(3)], place.clock.now())
        assert database(place).with_name("anchord.db-wal").exists()
        report = audit(place)
    assert broken(report) == {}
    assert report.completeness.records == 3


@pytest.mark.parametrize("writable", [True, False])
def test_it_leaves_nothing_behind_whether_or_not_it_may(place, writable):
    def seen():
        return {file.name: file.read_bytes() for file in place.folder.iterdir() if file.is_file()}

    before = seen()
    assert "anchord.db-wal" not in before
    mode = place.folder.stat().st_mode
    place.folder.chmod(mode if writable else stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert audit(place, jobs=1).result == "sound"
    finally:
        place.folder.chmod(mode)
    assert seen() == before


@pytest.mark.parametrize("words", ["no store", "make one"])
def test_a_store_that_is_not_there_is_not_made(tmp_path, words):
    path = tmp_path / "none.db"
    with pytest.raises(ConfigError, match=words):
        SqlReadingStore(f"sqlite:///{path}")
    assert not path.exists()
