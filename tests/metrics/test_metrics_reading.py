"""A scrape never hurts: the store is read by one thread, seldom, briefly, and never written to."""

from __future__ import annotations

import hashlib
import threading
import time
from pathlib import Path

import pytest
from support.monitored import configured, filled, samples, value, write

from anchord.app.config import Loaded
from anchord.app.metrics import reading
from anchord.app.metrics.exposition import Metrics
from anchord.app.metrics.reading import Meter, Reading
from anchord.errors import ConfigError, StoreBusyError


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Count readings, and let none wait for the last one's time to be over."""
    taken: list[float] = []
    real = reading.read

    def read(loaded: Loaded) -> Reading:
        taken.append(time.monotonic())
        return real(loaded)

    monkeypatch.setattr(reading, "read", read)
    monkeypatch.setattr(reading, "_LEAST_EVERY_S", 0.0)
    monkeypatch.setattr(reading, "_SHARE", 0)
    return taken


def settled(meter: Meter) -> Reading:
    """Return a reading that was begun after now."""
    meter.latest(30)
    return meter.latest(30)


def test_nothing_is_read_while_nobody_writes(tmp_path: Path, counted: list[float]) -> None:
    loaded = filled(tmp_path)
    meter = Meter(lambda: loaded)
    first = meter.latest(30)
    for _ in range(10):
        assert meter.latest(30).measured is first.measured
    assert len(counted) == 1
    assert (first.known_at or 0) < (meter.latest(30).known_at or 0)
    meter.close()


def test_what_somebody_writes_is_seen(tmp_path: Path, counted: list[float]) -> None:
    loaded = configured(tmp_path)
    meter = Meter(lambda: loaded)
    for count in range(1, 4):
        write(loaded, tmp_path, name=f"record {count}")
        measured = settled(meter).measured
        assert measured is not None
        assert measured.waiting == count
    assert len(counted) == 3
    meter.close()


def test_however_many_ask_one_reads_and_not_again_soon(tmp_path: Path) -> None:
    loaded, taken = filled(tmp_path), []
    real = reading.read
    metrics = Metrics(lambda: loaded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "read", lambda one: (taken.append(1), real(one))[1])
        threads = [threading.Thread(target=metrics.exposition) for _ in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        write(loaded, tmp_path)
        text = metrics.exposition()
    assert len(taken) == 1
    assert value(samples(text), "records", facet="anchored", state="not_anchored") == 4
    metrics.close()


def test_a_reading_that_takes_long_is_not_waited_for(
    tmp_path: Path, counted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, go_on = filled(tmp_path), threading.Event()
    metrics = Metrics(lambda: loaded)
    before = samples(metrics.exposition(30))
    real = reading.read
    monkeypatch.setattr(reading, "read", lambda one: (go_on.wait(30), real(one))[1])
    write(loaded, tmp_path)
    began = time.monotonic()
    for _ in range(5):
        shown = samples(metrics.exposition(0.05))
        assert value(shown, "ledger_events") == value(before, "ledger_events")
    assert time.monotonic() - began < 5
    go_on.set()
    metrics.close()


def test_a_busy_store_leaves_the_numbers_of_before_and_says_so(
    tmp_path: Path, counted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = filled(tmp_path)
    metrics = Metrics(lambda: loaded)
    before = samples(metrics.exposition(30))

    def busy(_loaded: Loaded) -> Reading:
        raise StoreBusyError("a pass works on it")

    monkeypatch.setattr(reading, "read", busy)
    write(loaded, tmp_path)
    metrics.exposition(30)
    shown = samples(metrics.exposition(30))
    assert value(shown, "store_up") == 0
    for name in ("ledger_events", "store_reading_timestamp_seconds"):
        assert (value(shown, name) or 0) >= (value(before, name) or 0) > 0
    metrics.close()


@pytest.mark.parametrize("harm", ["gone", "torn", "fault"])
def test_a_store_that_cannot_be_read_is_down_and_has_no_numbers(
    harm: str, tmp_path: Path, counted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = filled(tmp_path)
    metrics = Metrics(lambda: loaded)
    metrics.exposition(30)
    write(loaded, tmp_path)
    if harm == "fault":
        monkeypatch.setattr(reading, "read", lambda _loaded: 1 // 0)
    else:
        for beside in ("-wal", "-shm"):
            (tmp_path / f"anchord.db{beside}").unlink(missing_ok=True)
        (tmp_path / "anchord.db").unlink()
        if harm == "torn":
            (tmp_path / "anchord.db").write_bytes(b"no database")
    metrics.exposition(30)
    shown = samples(metrics.exposition(30))
    assert value(shown, "store_up") == 0
    assert value(shown, "ledger_events") is None
    assert value(shown, "build_info", version="0.1.0", schema="0005") == 1
    metrics.close()


def test_a_store_that_was_put_in_the_place_of_another_is_the_one_that_is_told(
    tmp_path: Path, counted: list[float]
) -> None:
    """As `anchord restore` and a rename do it, while the service of before still runs."""
    loaded = filled(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    write(configured(other), other)
    meter = Meter(lambda: loaded)
    meter.latest(30)
    for beside in ("-wal", "-shm"):
        (tmp_path / f"anchord.db{beside}").unlink(missing_ok=True)
    (other / "anchord.db").replace(tmp_path / "anchord.db")
    for count in (1, 2):
        measured = settled(meter).measured
        assert measured is not None
        assert (measured.waiting, measured.events) == (count, 0)
        write(loaded, tmp_path, name="one more")
    meter.close()


def test_reading_writes_nothing(tmp_path: Path) -> None:
    loaded = filled(tmp_path)

    def contents() -> dict[str, str]:
        return {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(tmp_path.iterdir())
            if path.is_file()
        }

    before = contents()
    metrics = Metrics(lambda: loaded)
    metrics.exposition(30)
    metrics.close()
    assert contents() == before


def test_closing_twice_leaves_no_thread_and_nothing_open(tmp_path: Path) -> None:
    loaded = filled(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        metrics = Metrics(lambda: loaded)
        metrics.exposition(30)
        metrics.close()
        metrics.close()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
    assert "measures" not in [thread.name for thread in threading.enumerate()]


def test_closing_does_not_wait_for_a_reading_that_takes_long(
    tmp_path: Path, counted: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, go_on = filled(tmp_path), threading.Event()
    real = reading.read
    monkeypatch.setattr(reading, "_GOODBYE_S", 0.1)
    monkeypatch.setattr(reading, "read", lambda one: (go_on.wait(30), real(one))[1])
    metrics = Metrics(lambda: loaded)
    metrics.exposition(0.05)
    began = time.monotonic()
    metrics.close()
    assert time.monotonic() - began < 5
    go_on.set()
    while "measures" in [thread.name for thread in threading.enumerate()]:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    metrics.close()


def test_a_header_file_that_is_short_or_absent_has_no_tip(tmp_path: Path) -> None:
    loaded = filled(tmp_path)
    headers = tmp_path / "headers.bin"
    whole = headers.read_bytes()
    tips = []
    for contents in (whole, whole[:-1], whole[:79], b""):
        headers.write_bytes(contents)
        tips.append(reading.read(loaded).tip)
    headers.unlink()
    tips.append(reading.read(loaded).tip)
    heights = [None if tip is None else tip.height for tip in tips]
    last = len(whole) // 80 - 1
    assert heights == [last, last - 1, None, None, None]


def test_a_store_that_was_never_made_is_refused_when_it_is_read_once(tmp_path: Path) -> None:
    loaded = configured(tmp_path)
    (tmp_path / "anchord.db").unlink()
    with pytest.raises(ConfigError, match="anchord init"):
        reading.read(loaded)
