"""Laws of every page, of the server and of a published tree, in a real browser."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from support.browser import PHONE, Chromium, Visit
from support.face_places import FacePlace, place_of

SERVED = [
    "served ",
    "served records",
    "served records?q=arxiv&anchored=anchored",
    "served records?q=nothing+has+this",
    "served events",
    "served parked",
    "served audit",
    "served whole",
    "served cited",
    "served file",
    "served hostile",
    "served hostile_file",
    "served submitted",
    "served waiting",
    "served absent",
    "served lookup?ref=2507.00001",
    "static ",
]
"""Pages that differ. How a page is reached, and which it is: a record of `FacePlace`, or a path
below the root."""
PAGES = [
    *SERVED,
    "static whole",
    "static hostile",
    "static waiting",
    "file whole",
    "file hostile",
]
"""Some are the same bytes, elsewhere."""
_STATUS = {"absent": 404, "lookup?ref=2507.00001": 300}
_ABSENT = "pith/AAAAAAAAAAAAAAAAAAAAAAAAAA"

Address: TypeAlias = Callable[[str], tuple[str, int]]


@pytest.fixture
def address(request: pytest.FixtureRequest, place: FacePlace) -> Address:
    """Return a function from a name of `PAGES` to address and expected status."""

    def found(name: str) -> tuple[str, int]:
        way, _, page = name.partition(" ")
        path = page if page not in place.records else place_of(place.records[page])
        if way == "served":
            path = _ABSENT if page == "absent" else path
            return f"{request.getfixturevalue('served')}/{path}", _STATUS.get(page, 200)
        path += "/index.html" if path else "index.html"
        if way == "file":
            return (request.getfixturevalue("tree") / path).as_uri(), 200
        return f"{request.getfixturevalue('static')}/{path}", 200

    return found


def markup_of(visit: Visit, url: str) -> str:
    """Return a page's bytes as text, before any script changed it."""
    if url.startswith("file:"):
        return Path(url.removeprefix("file://")).read_text("utf-8")
    return visit.page.request.get(url, headers={"Accept": "text/html"}).text()


@pytest.mark.parametrize("name", SERVED)
def test_a_page_is_readable_in_light_and_dark(
    name: str, address: Address, chromium: Chromium, pictures: Path
) -> None:
    url, status = address(name)
    with chromium.visit() as visit:
        visit.open(url, status)
        visit.page.screenshot(path=pictures / f"{file_name(name)}.png", full_page=True)
        assert visit.broken() == []
        assert visit.axe() == []
        visit.show("dark")
        visit.page.screenshot(path=pictures / f"{file_name(name)}-dark.png", full_page=True)
        assert luminance(visit.page.evaluate(_PAPER)) < 0.2, "dark is dark"
        assert visit.axe(contrast_only=True) == []
        assert visit.faults == []


@pytest.mark.parametrize("name", SERVED)
def test_a_page_fits_a_phone_and_paper(
    name: str, address: Address, chromium: Chromium, pictures: Path
) -> None:
    url, status = address(name)
    with chromium.visit(size=PHONE) as visit:
        visit.open(url, status)
        assert visit.overflow() == []
        for details in visit.page.locator("details:not([open]) > summary").all():
            if details.is_visible():
                details.click()
        assert visit.overflow() == [], "nor when everything is open"
        assert visit.broken() == []
        visit.page.screenshot(path=pictures / f"{file_name(name)}-phone.png", full_page=True)
        visit.page.emulate_media(media="print", color_scheme="dark")
        visit.resize({"width": 720, "height": 1000})
        assert visit.overflow() == []
        assert luminance(visit.page.evaluate(_PAPER)) > 0.9, "paper is white"
        assert not visit.page.locator("button:visible, input:visible, .skip:visible").count()
        assert len(visit.page.pdf()) > 5_000
        assert visit.faults == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_quiet_and_says_the_same_without_scripts(
    name: str, address: Address, chromium: Chromium
) -> None:
    url, status = address(name)
    with chromium.visit(scripts=False) as plain, chromium.visit() as visit:
        plain.open(url, status)
        visit.open(url, status)
        assert told(plain) == told(visit)
        markup = markup_of(visit, url)
        assert visit.inline(markup) == []
        assert visit.page.title() not in ("", "struck")
        assert plain.faults == [] == visit.faults


@pytest.mark.parametrize("name", SERVED)
def test_everything_of_a_page_is_reached_by_keyboard(
    name: str, address: Address, chromium: Chromium
) -> None:
    url, status = address(name)
    with chromium.visit() as visit:
        visit.open(url, status)
        expected = visit.stops()
        assert len(expected) > 3, "there is something to reach"
        reached: list[dict[str, Any]] = []
        for _ in range(len(expected) + 60):
            stop = visit.tab()
            if stop["number"] == -1 or (reached and stop["number"] == reached[0]["number"]):
                break
            reached.append(stop)
        assert [one["name"] for one in reached if not one["seen"]] == [], "focus can be seen"
        wanted = {one["number"] for one in expected}
        # Chromium also stops at what can be scrolled.
        own = [one for one in reached if one["number"] in wanted or not one["scrolls"]]
        assert [one["name"] for one in own] == [one["name"] for one in expected]
        for before, after in itertools.pairwise(own[1:]):
            back = after["bottom"] <= before["top"] and after["right"] <= before["left"]
            assert not back, f"the eye goes back from {before['name']} to {after['name']}"


@pytest.mark.parametrize("name", ["served ", "served whole", "static whole", "static "])
def test_a_key_skips_to_the_content(name: str, address: Address, chromium: Chromium) -> None:
    url, status = address(name)
    with chromium.visit() as visit:
        visit.open(url, status)
        first = visit.tab()
        assert (first["name"], first["seen"]) == ("a Skip to the content", True)
        visit.page.keyboard.press("Enter")
        assert visit.page.evaluate("document.activeElement.localName") == "main"
        visit.tab()
        assert visit.page.evaluate("!!document.activeElement.closest('main')")


@pytest.mark.parametrize("name", ["served whole", "static whole", "file whole", "served parked"])
def test_copy_buttons_copy_what_stands_beside_them(
    name: str, address: Address, chromium: Chromium
) -> None:
    url, status = address(name)
    with chromium.visit() as visit:
        visit.allow_clipboard()
        visit.open(url, status)
        sources = [one.text_content() for one in visit.page.locator("[data-copy]").all()]
        buttons = visit.page.locator("button.copy")
        assert buttons.count() == len(sources) > 0
        assert visit.covered() == [], "a button hides nothing of what it copies"
        names = [one.get_attribute("aria-label") for one in buttons.all()]
        assert len(set(names)) == len(names), "a listener knows which is which"
        for button, source in zip(buttons.all(), sources, strict=True):
            if not button.is_visible():
                continue
            button.click()
            visit.page.wait_for_function(
                "one => one.textContent === 'Copied'", arg=button.element_handle()
            )
            assert visit.page.evaluate("navigator.clipboard.readText()") == source
        assert visit.faults == []


@pytest.mark.parametrize("name", SERVED)
def test_a_page_comes_with_a_strict_policy(name: str, address: Address, chromium: Chromium) -> None:
    url, status = address(name)
    with chromium.visit(scripts=False) as visit:
        answer = visit.open(url, status)
        assert answer is not None
        stated = visit.page.locator("meta[http-equiv='Content-Security-Policy']")
        policies = [stated.get_attribute("content") or ""]
        if name.startswith("served"):
            headers = answer.headers
            policies.append(headers["content-security-policy"])
            assert directives(policies[1])["frame-ancestors"] == {"'none'"}
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["content-type"] == "text/html; charset=utf-8"
            assert "set-cookie" not in headers
        for policy in map(directives, policies):
            assert policy["default-src"] == {"'none'"}
            assert policy["base-uri"] == {"'none'"}
            allowed = set().union(*(policy[kind] for kind in policy if kind.endswith("-src")))
            assert allowed <= {"'none'", "'self'", "data:"}
            assert policy["script-src"] == policy["style-src"] == {"'self'"}


def directives(policy: str) -> dict[str, set[str]]:
    """Return what a Content-Security-Policy allows, by directive."""
    words = [part.split() for part in policy.split(";") if part.strip()]
    return {name: set(values) for name, *values in words}


def told(visit: Visit) -> str:
    """Return a page's text, but for its moment, and for what a script fills in for a shell."""
    text = re.sub(r"BASE:-[^}]*}", "BASE:-}", visit.text())
    return re.sub(r"as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "as of now", text)


def file_name(name: str) -> str:
    """Return what a page's picture is called."""
    way, _, page = name.partition(" ")
    words = "".join(sign if sign.isalnum() else "-" for sign in page) or "root"
    return f"{way}-{words}"


_PAPER = """getComputedStyle(document.body).backgroundColor"""


def luminance(colour: Any) -> float:
    """Return how light an `rgb(...)` is, 0 to 1; nothing drawn is white paper."""
    parts = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")]
    if len(parts) == 4 and parts[3] == 0:
        return 1.0
    return sum(parts[:3]) / 765
