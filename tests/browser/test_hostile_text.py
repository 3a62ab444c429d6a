"""Whatever records, strangers and addresses say is text: it never runs, and is never markup."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from support.browser import Chromium
from support.face_places import BREAKOUT, CONTROLS, HOSTILE, LONG, SCRIPT, FacePlace, place_of

_FILES = ("state.json", "graph.json", "events.json", "bundle.json", "badge.svg")
_STRUCK = "img[src=x], svg[onload], iframe, textarea, main script"
"""What hostile words would make if they were markup."""
_WAYS = [
    ("records?q={}", 200),
    ("records?source={}", 200),
    ("records?q=a&anchored={}", 400),
    ("records?cursor={}", 400),
    ("lookup?ref={}", 404),
    ("pith/{}", 404),
    ("record/{}", 404),
    ("{}", 404),
    ("events?{}", 200),
]
"""Addresses with something hostile in them, and what the answer's status is."""
_WORDS = [HOSTILE, CONTROLS.encode("utf-8", "replace").decode(), LONG[:2000]]


def test_what_records_and_strangers_say_stays_text(
    place: FacePlace, served: str, static: str, chromium: Chromium
) -> None:
    with chromium.visit() as visit:
        for root, path in [
            (served, place_of(place.hostile)), (served, place_of(place.hostile_file)),
            (served, "records"), (served, "parked"),
            (static, f"{place_of(place.hostile)}/index.html"), (static, "index.html"),
        ]:  # fmt: skip
            visit.open(f"{root}/{path}")
            shown = visit.page.inner_text("body")
            # A label is the operator's own word: it is in lists, and not in what is signed.
            assert BREAKOUT[:20] in shown or path == place_of(place.hostile_file)
            assert "struck" not in visit.page.title().replace(SCRIPT, "").replace(BREAKOUT, "")
            assert visit.page.locator(_STRUCK).count() == 0
            scripts = visit.page.locator("script").evaluate_all("all => all.map((one) => one.src)")
            assert all(one.startswith(f"{root}/assets/") for one in scripts)
            links = visit.page.locator("a[href]").evaluate_all("all => all.map((one) => one.href)")
            assert all(one.startswith(("http://", "https://")) for one in links)
            turned = {sign for sign in visit.page.content() if sign in "\u202e\u2066\u2069\u202c"}
            assert not turned, "nothing turns the words around it"
        assert visit.faults == []


def test_files_of_a_hostile_record_do_nothing_when_a_browser_opens_them(
    place: FacePlace, served: str, static: str, chromium: Chromium
) -> None:
    with chromium.visit() as visit:
        for root in (served, static):
            for path in [f"{place_of(place.hostile)}/{name}" for name in _FILES]:
                visit.open(f"{root}/{path}")
                assert visit.page.locator("script, img, foreignObject").count() == 0
                assert visit.page.evaluate("document.contentType") in (
                    "application/json", "application/ld+json", "image/svg+xml"
                )  # fmt: skip
        # Beside what is no page, browsers ask for an icon, which a plain file server has not.
        assert [fault for fault in visit.faults if f"{static}/favicon.ico" not in fault] == []


@pytest.mark.parametrize(("way", "status"), _WAYS)
def test_what_an_address_says_stays_text(
    way: str, status: int, served: str, chromium: Chromium
) -> None:
    with chromium.visit() as visit:
        for words in _WORDS:
            url = f"{served}/{way.format(quote(words, safe=''))}"
            answer = visit.page.request.get(url, headers={"Accept": "text/html"})
            # A record that calls itself so is found by it.
            assert answer.status in {status, 200, 400, 404, 414}, (url, answer.status)
            visit.open(url, answer.status)
            assert visit.inline(answer.text()) == []
            assert visit.page.locator(_STRUCK).count() == 0
            assert visit.page.locator("h1").count() == 1, "an answer for people is a page"
        assert visit.faults == []
