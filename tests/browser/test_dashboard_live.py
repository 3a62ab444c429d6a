"""A dashboard that is left open shows what happens, and forgets nothing that a reader did."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser import FIGURES_MS, Chromium
from support.face_places import Serving
from support.workplace import Workplace, sample


@pytest.mark.parametrize("path", ["/", "/events"])
def test_events_and_numbers_come_by_themselves(
    tmp_path: Path, chromium: Chromium, pictures: Path, path: str
) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    with Serving(place.config) as running, chromium.visit() as visit:
        visit.open(running.url + path)
        page = visit.page
        expect(page.locator("#live")).to_contain_text("Live")
        before = page.locator(".happenings li").count()
        assert before == 2, "submitted and anchored"
        if path == "/":
            page.locator("#numbers > summary").click()
            page.locator("#numbers > summary").blur()
        place.anchor(sample(2))
        expect(page.locator(".happenings li")).to_have_count(before + 2)
        seen = page.locator(".happenings a").all_text_contents()
        assert len(set(seen)) == 2
        assert seen[0] == seen[1], "the newest first"
        if path == "/":
            expect(page.locator("#completeness")).to_contain_text("2 of 2", timeout=FIGURES_MS)
            assert page.locator("#numbers").get_attribute("open") is not None
            page.screenshot(path=pictures / "dashboard-live.png", full_page=True)
        assert visit.faults == []
        page.locator(".happenings a").first.click()
        page.wait_for_url("**/pith/*")
    assert "Traceback" not in running.said


def test_a_dashboard_without_scripts_says_how_to_see_more(
    tmp_path: Path, chromium: Chromium
) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    with Serving(place.config) as running, chromium.visit(scripts=False) as visit:
        visit.open(f"{running.url}/events")
        place.anchor(sample(2))
        visit.page.get_by_role("link", name="Reload").click()
        assert visit.page.locator(".happenings li").count() == 4
        visit.open(running.url)
        assert "2 records" in visit.page.locator("main").inner_text()
        assert visit.faults == []
