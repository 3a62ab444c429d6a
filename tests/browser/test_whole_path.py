"""From an empty store to complete records, as a person sees it who has the pages open all along."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.browser import FIGURES_MS, Chromium, Visit
from support.seed_path import SeedPath

_STRIP = "ul.strip li"


@pytest.fixture
def path(tmp_path: Path) -> Iterator[SeedPath]:
    with SeedPath(tmp_path) as running:
        yield running


def strip_of(visit: Visit, url: str) -> list[str]:
    """Return the words of a record's strip."""
    visit.open(url)
    return [word.strip() for word in visit.page.locator(_STRIP).all_text_contents()]


def events_on(page: Page) -> int:
    """Return how many events a page shows."""
    return page.locator("ol.happenings > li").count()


def reload_until(visit: Visit, url: str, events: int) -> None:
    """Load a page as somebody without scripts does, until it shows so many events."""
    for _ in range(100):
        visit.open(url)
        if events_on(visit.page) >= events:
            return
        visit.page.wait_for_timeout(100)
    raise AssertionError(f"the page shows {events_on(visit.page)} events")


def test_from_an_empty_store_to_complete_records(
    path: SeedPath, chromium: Chromium, pictures: Path
) -> None:
    record = f"{path.url}/{path.places[0]}"
    with (
        chromium.visit() as board,
        chromium.visit() as visit,
        chromium.visit(scripts=False) as bare,
    ):

        def keep(name: str) -> None:
            for what, window in (("dashboard", board), ("record", visit)):
                window.page.screenshot(path=pictures / f"path-{name}-{what}.png", full_page=True)

        board.open(path.url)
        expect(board.page.locator("#live")).to_contain_text("Live")
        assert "0 records" in board.page.inner_text("main")
        visit.open(record, 404)
        keep("1-empty")

        path.add()
        assert strip_of(visit, record) == [
            "not attested", "not anchored", "not stored", "refs pending"
        ]  # fmt: skip
        keep("2-added")

        path.submit()
        expect(board.page.locator("ol.happenings > li")).not_to_have_count(0)
        assert strip_of(visit, record)[1] == "submitted"
        reload_until(bare, path.url, len(path.places))
        assert events_on(board.page) == len(path.places)
        keep("3-submitted")

        path.mine()
        path.finish()
        assert strip_of(visit, record) == [
            "not attested", "anchored in a test chain", "stored", "refs pending"
        ]  # fmt: skip
        words = visit.page.inner_text("main")
        assert "Block hash" in words
        assert "Capture of" in words
        assert "Item " in words
        assert visit.page.locator(f"a[href$='{path.places[0]}/proof.ots']").count() > 0
        expect(board.page.locator("ol.happenings")).to_contain_text(
            "captured by the Wayback Machine"
        )
        expect(board.page.locator("#completeness")).to_contain_text("4 of 4", timeout=FIGURES_MS)
        reload_until(bare, path.url, min(10, events_on(board.page)))
        assert "4 of 4" in bare.page.inner_text("#completeness")
        keep("4-complete")

        for place in path.places:
            assert strip_of(visit, f"{path.url}/{place}")[1:3] == [
                "anchored in a test chain", "stored"
            ]  # fmt: skip
        assert "Traceback" not in path.serving.said
        assert visit.faults == board.faults == bare.faults == []
