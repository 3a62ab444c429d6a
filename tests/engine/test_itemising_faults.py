"""Whatever archive.org says, and whenever we die: nothing false, nothing lost, nothing twice."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from support.fake_items import DAY, LIES
from support.killing import Fuse, Killed, die_by_exception
from support.parties import FakeSigner
from support.storing_items import Workshop

from anchord.core.item_name import read_day_manifest
from anchord.core.storage import FileKind, FileState
from anchord.core.trust import Keys

EXAMPLES = int(os.environ.get("ANCHORD_ITEM_EXAMPLES", "6"))
UNSHRUNK = (Phase.explicit, Phase.reuse, Phase.generate)
"""An example lives through weeks, so what fails is shown as it was found."""


class Weather:
    """What happens outside; `which` chooses among what there is.

    Args:
        work: where it happens.
        batches: those made so far; more may come.
    """

    def __init__(self, work: Workshop, batches: list[int]) -> None:
        self._work, self._archive, self._batches = work, work.archive, batches

    def happen(self, event: str, which: int) -> None:
        """Let one thing happen."""
        EVENTS[event](self, which)

    def nothing(self, which: int) -> None:
        """Only time goes on."""

    def dark(self, _which: int) -> None:
        self._archive.dark |= set(self._archive.kept)

    def light(self, _which: int) -> None:
        self._archive.clear()

    def foreign(self, _which: int) -> None:
        item = self._work.items.open_item(self._work.clock.now() // DAY)
        if item is not None and not self._archive.kept.get(item.identifier):
            self._archive.foreign.add(item.identifier)

    def no_reads(self, which: int) -> None:
        codes = ("http-503", "http-500", "no-answer", "unknown-answer", "connection-refused")
        self._archive.reads += codes[: which + 1]

    def lose_there(self, which: int) -> None:
        # What was confirmed is not looked at again, so nobody could tell that it is gone.
        done = {file.name for file in self._work.files() if file.confirmed_at is not None}
        kept = sorted((item, name) for item, files in self._archive.kept.items() for name in files)
        for item, name in [(item, name) for item, name in kept if name not in done][which:][:1]:
            self._archive.lose(item, name)

    def lose_spool(self, which: int) -> None:
        for name in self._work.spool.names()[which:][:1]:
            self._work.spool.remove(name)

    def little_room(self, which: int) -> None:
        self._archive.left = which

    def no_limits(self, which: int) -> None:
        self._archive.left = ("http-500", "offline")[which % 2]

    def pending(self, _which: int) -> None:
        self._archive.pending.update(self._archive.kept)

    def failed(self, _which: int) -> None:
        self._archive.failed.update(self._archive.kept)

    def broken_downloads(self, _which: int) -> None:
        names = {name for files in self._archive.kept.values() for name in files}
        self._archive.broken_downloads |= names

    def retry(self, _which: int) -> None:
        self._work.retry()

    def more(self, which: int) -> None:
        name = f"more {self._work.clock.now()} {which}"
        self._batches.append(self._work.batch(which + 1, name, anchored=bool(which % 2)))


EVENTS = {
    name: getattr(Weather, name)
    for name in vars(Weather)
    if not name.startswith("_") and name != "happen"
}
LIE_LISTS = st.lists(st.sampled_from(LIES), max_size=8)
WEATHER = st.lists(
    st.tuples(st.sampled_from(sorted(EVENTS)), st.integers(0, 7), LIE_LISTS),
    min_size=1,
    max_size=8,
)


def live_through(
    work: Workshop, weather: list[tuple[str, int, list[str]]], batches: list[int]
) -> None:
    for event, which, lies in weather:
        work.archive.lies += lies
        Weather(work, batches).happen(event, which)
        work.run(work.clock.now() + (2 + 4 * which) * 3_600)


def judge_end(work: Workshop, batches: list[int]) -> None:
    """The weather clears: everything is stored once, and a second run does nothing."""
    work.settle()
    work.judge_done(batches)
    days = [file for file in work.files(FileKind.DAY) if file.state is FileState.STORED]
    keys = Keys(FakeSigner().keyring())
    for day in days:
        raw = work.archive.holds(day.identifier, day.name)
        listed = read_day_manifest(raw, keys).files
        ours = {file.name: file.sha256.hex() for file in work.items.files(day.item_id)}
        assert listed
        assert {file.name: file.sha256 for file in listed}.items() <= ours.items()
    puts = list(work.archive.puts)
    work.begin()
    work.run(work.clock.now() + 2 * DAY)
    assert work.archive.puts == puts
    assert work.lane.unfinished() == 0, work.states()


@settings(max_examples=EXAMPLES, deadline=None, phases=UNSHRUNK)
@given(weather=WEATHER, records=st.integers(1, 11))
def test_nothing_is_false_lost_or_doubled_whatever_the_service_does(
    weather: list[tuple[str, int, list[str]]], records: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Workshop(Path(folder))
        try:
            batches = [work.batch(records)]
            live_through(work, weather, batches)
            judge_end(work, batches)
        finally:
            work.close()


@settings(max_examples=EXAMPLES, deadline=None, phases=UNSHRUNK)
@given(
    weather=WEATHER,
    deaths=st.lists(st.integers(1, 60), min_size=1, max_size=6),
    records=st.integers(1, 9),
)
def test_nothing_is_false_lost_or_doubled_wherever_the_process_dies(
    weather: list[tuple[str, int, list[str]]], deaths: list[int], records: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Workshop(Path(folder))
        try:
            batches = [work.batch(records)]
            for after in deaths:
                work.begin(Fuse(after, die_by_exception))
                event, which, lies = weather[after % len(weather)]
                work.archive.lies += lies
                Weather(work, batches).happen(event, which)
                try:
                    work.run(work.clock.now() + 40 * 3_600)
                except Killed:
                    work.clock.advance(60)
            work.begin()
            live_through(work, weather, batches)
            judge_end(work, batches)
        finally:
            work.close()


def test_any_effect_may_be_the_last(tmp_path: Path) -> None:
    """The plain course of one batch, killed before its first effect, its second, and so on."""
    for left in range(1, 400, 2):
        folder = tmp_path / str(left)
        folder.mkdir()
        work = Workshop(folder)
        try:
            batch = work.batch(1)
            fuse = Fuse(left, die_by_exception)
            work.begin(fuse)
            died = True
            try:
                work.run(work.clock.now() + 3 * DAY)
                died = False
            except Killed:
                pass
            work.begin()
            work.run(work.clock.now() + 4 * DAY)
            work.judge_done([batch])
            assert work.spool.names() == [], fuse.names[-1]
            assert sorted(set(work.archive.puts)) == sorted(work.archive.puts), fuse.names[-1]
            assert sorted(work.states().values()) == ["stored"] * 3
        finally:
            work.close()
        if not died:
            return
    raise AssertionError("no end")
