"""Keys of the archive are renewed, and the items that were made before stay ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.parties import open_store

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.item import mark_of
from anchord.app.archive_wiring import remembered_marks

OLD, NEW = Keys("accessOLD0000000", "secretOLD"), Keys("accessNEW0000000", "secretNEW")


@pytest.fixture
def lanes(tmp_path: Path):
    store = open_store(tmp_path)
    yield store.storage.lanes
    store.close()


def test_new_items_are_marked_by_the_keys_in_use_and_older_ones_stay_known(lanes) -> None:
    assert remembered_marks(lanes, OLD) == (mark_of(OLD),)
    assert remembered_marks(lanes, NEW) == (mark_of(NEW), mark_of(OLD))
    assert remembered_marks(lanes, OLD) == (mark_of(OLD), mark_of(NEW))
    assert remembered_marks(lanes, NEW) == (mark_of(NEW), mark_of(OLD))


def test_no_mark_tells_a_key(lanes) -> None:
    marks = remembered_marks(lanes, OLD)
    kept = lanes.get("marks").seen
    for key in (OLD.access, OLD.secret):
        assert key not in "".join(marks)
        assert key.encode() not in kept


def test_a_mark_is_written_once(lanes) -> None:
    remembered_marks(lanes, OLD)
    before = lanes.get("marks")
    remembered_marks(lanes, OLD)
    assert lanes.get("marks") == before
