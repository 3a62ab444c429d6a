from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleet import shared
from support.postgres import Cluster

from anchord.sandbox.run import Sandbox


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with Cluster() as running:
        yield running


@pytest.fixture
def sandbox(tmp_path: Path, cluster: Cluster) -> Iterator[Sandbox]:
    with Sandbox(tmp_path, tick_s=0.05, archive=False, authority=False) as running:
        shared(cluster, running.write_config())
        yield running


@pytest.fixture
def config(sandbox: Sandbox, tmp_path: Path) -> Path:
    return tmp_path / "anchord.toml"
