"""A pull that is killed goes on where it stopped: nothing is lost, nothing fetched over again."""

from __future__ import annotations

import signal
import threading
from collections import Counter

import pytest
from support.http_server import SILENCE, Asked
from support.running import start
from support.static_site import StaticSite, Steps
from support.trees import publish_tree
from support.workplace import Workplace, sample

RECORDS = 12
PATIENCE_S = 60


class HangingSite(StaticSite):
    """Says nothing any more from some bundle on, until it is mended."""

    hangs_at: int | None = None

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.bundles: Counter[str] = Counter()
        self.hanging = threading.Event()

    def _answer(self, asked: Asked) -> Steps:
        if asked.path.endswith("/bundle.json"):
            if self.hangs_at is not None and len(self.bundles) >= self.hangs_at:
                self.hanging.set()
                return (SILENCE,)
            self.bundles[asked.path] += 1
        return super()._answer(asked)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("source"))
    place.anchor(*[sample(number) for number in range(RECORDS)])
    tree = tmp_path_factory.mktemp("tree") / "tree"
    publish_tree(place, tree)
    return tree


def killed_at(place: Workplace, site: HangingSite, bundles: int) -> None:
    """Pull in a process of its own, and kill it while it waits for a bundle."""
    site.hangs_at = bundles
    process = start("mirror", "pull", site.url, "--rate", "1000", config=place.config)
    try:
        assert site.hanging.wait(PATIENCE_S)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == -signal.SIGKILL
    finally:
        process.kill()
    site.hanging.clear()


def test_a_killed_pull_goes_on_where_it_stopped(tmp_path, tree):
    place = Workplace(tmp_path)
    assert place.run("key", "trust", str(tree / "pith-signing-key.json")).exit_code == 0
    with HangingSite(tree) as site:
        for bundles in (1, 4, 9):
            killed_at(place, site, bundles)
            with place.app() as app:
                there = sum(len(chunk) for chunk in app.store.records.walk())
            assert there == bundles, "what came is in, whatever happened then"
        site.hangs_at = None
        found = place.json("mirror", "pull", site.url, "--rate", "1000")
        assert found["new"] == RECORDS - 9
        assert found["mirrors"][0]["complete"]
        assert set(site.bundles.values()) == {1}, "no bundle came twice"
        assert len(site.bundles) == RECORDS
