from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import anchord
from support.serving import QUICK

from anchord.sandbox.run import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path, tick_s=0.05, archive=False) as running:
        config = running.write_config()
        anchord("init", tmp_path)
        config.write_text(config.read_text("utf-8") + QUICK, "utf-8")
        yield running


@pytest.fixture
def config(sandbox: Sandbox, tmp_path: Path) -> Path:
    return tmp_path / "anchord.toml"
