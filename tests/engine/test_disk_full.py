"""A disk that takes no file holds up what is to be packed, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.storing_items import Workshop

from anchord.adapters.archives.spool import FolderSpool
from anchord.core.storage import FileKind, FileState
from anchord.engine.itemising import SPOOL
from anchord.errors import DiskError

HOUR = 3_600


@pytest.fixture
def work(tmp_path: Path) -> Any:
    shop = Workshop(tmp_path, spool=FolderSpool(tmp_path / "spool"))
    yield shop
    shop.close()


def test_a_full_disk_pauses_packing_with_an_alert_and_is_tried_again(
    work: Workshop, tmp_path: Path
) -> None:
    (tmp_path / "spool").write_text("no folder can be here")
    work.batch(4)
    work.run(work.clock.now() + 12 * HOUR)
    lane = work.parts.store.storage.lanes.get(SPOOL)
    assert lane.code == "disk"
    assert "cannot be written" in (lane.alert or "")
    assert work.files() == []
    assert len(work.reports) < 12 * 6 * 2 + 20
    (tmp_path / "spool").unlink()
    work.run(work.clock.now() + 12 * HOUR)
    assert {file.state for file in work.files(FileKind.BUNDLES)} == {FileState.STORED}
    lane = work.parts.store.storage.lanes.get(SPOOL)
    assert (lane.code, lane.alert) == (None, None)


def test_a_spool_says_that_it_was_the_disk(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("no folder can be here")
    with pytest.raises(DiskError, match="make room or repair the disk"):
        FolderSpool(tmp_path / "spool").write("a.jsonl", b"{}")
