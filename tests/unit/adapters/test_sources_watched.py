"""A watched folder: every file that is put there is taken, once nobody changes it any more."""

from __future__ import annotations

import errno
import itertools
import os
import random
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.parties import make_parts
from support.sourcing import digests, record_text, sha, to_the_end

from anchord.adapters.sources import watched, watched_scan
from anchord.adapters.sources.watched import WatchedFolder
from anchord.adapters.sources.watched_scan import Mark
from anchord.core.model import Rejection
from anchord.engine import receiving
from anchord.errors import TransientError

LONG_AGO = 1_000_000_000


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    folder = tmp_path / "inbox"
    folder.mkdir()
    return folder


@pytest.fixture
def parts(tmp_path: Path):
    found = make_parts(tmp_path)
    yield found
    found.store.close()


def now(later_s: int = 1) -> int:
    """Return a moment by which everything done so far is over."""
    return int(time.time()) + later_s


def watching(folder: Path, settle_s: int = 0, **more) -> WatchedFolder:
    return WatchedFolder("inbox", 60, folder, settle_s=settle_s, **more)


def labels(source: WatchedFolder, cursor: bytes | None = None, at: int | None = None):
    """Return what a look gives, by label, and the cursor after it."""
    found = []
    for step in source.look(cursor, at or now()):
        found += [item.label for item in step.items]
        cursor = step.cursor or cursor
    return sorted(found), cursor


def old(path: Path) -> Path:
    """Give a file a modification time of long ago."""
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_files_come_in_as_anchord_add_takes_them(inbox, parts):
    (inbox / "notes.txt").write_text("hello")
    (inbox / "below").mkdir()
    (inbox / "below/records.jsonl").write_text(f"{record_text(1)}\n{{\n{record_text(2)}\n")
    (inbox / "SHA256SUMS").write_text(f"{sha('elsewhere')}  elsewhere.txt\n")
    (refused,) = to_the_end(parts, watching(inbox), now())
    assert (refused.where.endswith("below/records.jsonl"), refused.line) == (True, 2)
    wanted = {sha("hello"), sha(record_text(1)), sha(record_text(2)), sha("elsewhere")}
    assert digests(parts) == wanted


def test_a_file_is_left_alone_until_it_has_settled(inbox):
    (inbox / "a").write_text("a")
    source = watching(inbox, settle_s=10)
    assert labels(source, at=now(5)) == ([], None) or labels(source, at=now(5))[0] == []
    assert labels(source, at=now(12))[0] == ["a"]


def test_what_was_taken_is_not_read_again(inbox, parts):
    (inbox / "a").write_text("a")
    source = watching(inbox)
    to_the_end(parts, source, now())
    looked = receiving.look(parts, source, now(100)).received
    assert (looked.new, looked.known) == (0, 0)


@pytest.mark.parametrize("how", ["copied", "moved", "linked", "replaced", "written again"])
def test_a_file_that_comes_later_is_seen_whatever_its_modification_time_says(inbox, how):
    (inbox / "before").write_text("before")
    source = watching(inbox)
    _, cursor = labels(source)
    time.sleep(0.02)
    outside = inbox.parent / "outside"
    outside.write_text("later")
    old(outside)
    if how == "copied":
        shutil.copy2(outside, inbox / "late")
    elif how == "moved":
        outside.rename(inbox / "late")
    elif how == "linked":
        (inbox / "late").hardlink_to(outside)
    elif how == "replaced":
        outside.rename(inbox / "before")
    else:
        (inbox / "before").write_text("again!")
        old(inbox / "before")
    name = "before" if how in ("replaced", "written again") else "late"
    assert labels(source, cursor)[0] == [name]


def test_a_folder_that_is_moved_in_whole_is_seen(inbox):
    outside = inbox.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "one").write_text("one")
    (outside / "deep/two").write_text("two")
    time.sleep(0.02)
    (inbox / "first").write_text("first")
    source = watching(inbox)
    _, cursor = labels(source)
    outside.rename(inbox / "moved")
    found, cursor = labels(source, cursor)
    more, cursor = labels(source, cursor, now(60))
    assert sorted(found + more) == ["moved/deep/two", "moved/one"]
    (inbox / "moved").rename(inbox / "again")
    _, cursor = labels(source, cursor, now(120))
    assert labels(source, cursor, now(240))[0] in ([], ["again/deep/two", "again/one"])


def test_hidden_files_links_and_pipes_are_passed_over(inbox):
    secret = inbox.parent / "secret.json"
    secret.write_text(record_text(1))
    (inbox / "link.json").symlink_to(secret)
    (inbox / "loop").symlink_to(inbox)
    (inbox / ".hidden").write_text("x")
    (inbox / ".folder").mkdir()
    (inbox / ".folder/in").write_text("x")
    os.mkfifo(inbox / "pipe")
    (inbox / "real").write_text("real")
    own = inbox / "anchord.db"
    own.write_text("store")
    assert labels(watching(inbox, skip=[own, inbox / "nowhere"]))[0] == ["real"]


def test_a_link_that_takes_a_file_s_place_meanwhile_is_not_followed(inbox, monkeypatch):
    secret = inbox.parent / "secret"
    secret.write_text("secret")
    (inbox / "a").write_text("a")
    opened = watched._opened

    def swapped(path: Path):
        path.unlink()
        path.symlink_to(secret)
        return opened(path)

    monkeypatch.setattr(watched, "_opened", swapped)
    (step,) = watching(inbox).look(None, now())
    assert [type(item) for item in step.items] == [Rejection]


def test_a_file_that_changes_while_it_is_read_comes_when_it_is_done(inbox, monkeypatch):
    (inbox / "a").write_text("half")
    moments = watched._moment
    seen = []

    def changing(stream):
        if len(seen) == 1:
            (inbox / "a").write_text("whole")
        seen.append(1)
        return moments(stream)

    monkeypatch.setattr(watched, "_moment", changing)
    source = watching(inbox)
    found, cursor = labels(source)
    assert found == []
    monkeypatch.setattr(watched, "_moment", moments)
    items = [item for step in source.look(cursor, now()) for item in step.items]
    assert [item.digest.hex() for item in items] == [sha("whole")]


def test_names_of_any_bytes_are_shown_as_text(inbox, parts):
    name = os.fsencode(inbox) + b"/\xff\x1b[31m"
    with open(name, "wb") as file:  # noqa: PTH123  a name that is no text
        file.write(b"odd")
    assert to_the_end(parts, watching(inbox), now()) == []
    assert digests(parts) == {sha("odd")}
    cursor = parts.store.sources.get("inbox").cursor
    watching(inbox).place(cursor).encode("utf-8")


def test_a_folder_that_is_away_is_looked_for_later(inbox, parts):
    (inbox / "a").write_text("a")
    source = watching(inbox)
    to_the_end(parts, source, now())
    inbox.rename(inbox.parent / "unmounted")
    assert isinstance(receiving.look(parts, source, now()).error, TransientError)
    (inbox.parent / "unmounted").rename(inbox)
    (inbox / "b").write_text("b")
    to_the_end(parts, source, now(60))
    to_the_end(parts, source, now(120))
    assert digests(parts) == {sha("a"), sha("b")}


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ESTALE, errno.ETIMEDOUT])
def test_what_is_wrong_with_the_machine_is_no_fault_of_a_file(inbox, parts, monkeypatch, number):
    for name in "abc":
        (inbox / name).write_text(name)
    source, opened = watching(inbox), watched._opened

    def refusing(path: Path):
        if path.name == "b":
            raise OSError(number, os.strerror(number))
        return opened(path)

    monkeypatch.setattr(watched, "_opened", refusing)
    looked = receiving.look(parts, source, now())
    assert isinstance(looked.error, TransientError)
    assert looked.received.refused == 0
    monkeypatch.undo()
    assert to_the_end(parts, source, now(60)) == []
    assert digests(parts) == {sha("a"), sha("b"), sha("c")}


def test_a_big_file_shows_life_and_is_hashed_once(inbox, monkeypatch):
    monkeypatch.setattr(watched, "_PIECE", 1024)
    monkeypatch.setattr(watched, "_PART", 4096)
    (inbox / "big").write_bytes(b"x" * 20_000)
    steps = list(watching(inbox).look(None, now()))
    assert sum(len(step.items) for step in steps) == 1
    assert len(steps) > 4
    assert [step.cursor is None for step in steps] == [True] * (len(steps) - 1) + [False]


def test_many_files_are_taken_by_parts(inbox, parts, monkeypatch):
    monkeypatch.setattr(watched_scan, "AT_ONCE", 40)
    monkeypatch.setattr(watched, "STEP_ITEMS", 15)
    for number in range(100):
        (inbox / f"{number}").write_text(f"{number}")
    source, counts, paused = watching(inbox), [], True
    while paused:
        looked = receiving.look(parts, source, now())
        paused = looked.paused
        counts.append(looked.received.new)
    assert counts == [40, 40, 20]
    assert max(len(step.items) for step in source.look(None, now())) == 15


def test_a_cursor_of_another_folder_counts_for_nothing(inbox, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "a").write_text("a")
    _, cursor = labels(watching(other))
    (inbox / "b").write_text("b")
    assert labels(watching(inbox), cursor)[0] == ["b"]
    for garbage in (b"", b"\x00", b"garbage", cursor[:-1]):
        assert Mark.read(garbage, inbox) is None


class Chance:
    """Does anything at all in a watched folder and beside it, the same for a seed."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance, self.folder = random.Random(seed), folder
        self.inbox, self.outside = folder / "inbox", folder / "outside"
        self.inbox.mkdir()
        self.outside.mkdir()
        self._made = 0

    def do(self) -> None:
        """Make a folder, write a file, or move one of either somewhere."""
        self._made += 1
        there = sorted(self.folder.rglob("*"))
        here = self.chance.choice([path for path in there if path.is_dir()])
        name = here / f"{self._made}"
        movable = [path for path in there if path not in (self.inbox, self.outside)]
        what = self.chance.randrange(4)
        if what == 0:
            name.mkdir()
        elif what == 1 or not movable:
            name.write_text(f"{self._made}")
            old(name)
        else:
            moved = self.chance.choice(movable)
            if not here.is_relative_to(moved):
                moved.rename(name)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 99]))))
def test_whatever_is_done_in_the_folder_all_that_stays_is_taken(tmp_path_factory, seed, rounds):
    """Files and folders come, move and go, between looks that are cut off anywhere."""
    chance = Chance(tmp_path_factory.mktemp("chance"), seed)
    source, cursor, taken = watching(chance.inbox), None, set()
    for actions, cut in [*rounds, (0, 99), (0, 99), (0, 99)]:
        for _ in range(actions):
            chance.do()
        look = source.look(cursor, now())
        for step in itertools.islice(look, cut):
            taken |= {item.digest.hex() for item in step.items}
            cursor = step.cursor or cursor
        look.close()
    stays = {sha(path.read_text()) for path in chance.inbox.rglob("*") if path.is_file()}
    assert stays <= taken
