"""Laws of every page, of the server and of a published tree, in a real browser.

A page is opened once and then looked at by one test after the other, so none of them goes
elsewhere, and each sets what it needs: size, colours, medium.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest
from playwright.sync_api import Response
from support.browser import DESKTOP, PHONE, Chromium, Visit
from support.face_places import FacePlace, place_of

PAGES = [
    "served ",
    "served records",
    "served records?q=nothing+has+this",
    "served events",
    "served parked",
    "served audit",
    "served whole",
    "served file",
    "served hostile",
    "served submitted",
    "served absent",
    "served lookup?ref=2507.00001",
    "static ",
]
"""How a page is reached, and which it is: a record of `FacePlace`, or a path below the root."""
ELSEWHERE = ["static whole", "static hostile", "static waiting", "file whole", "file hostile"]
"""The same bytes as the server's, in a tree."""
_STATUS = {"absent": 404, "lookup?ref=2507.00001": 300}
_ABSENT = "pith/AAAAAAAAAAAAAAAAAAAAAAAAAA"
_PAPER = {"width": 720, "height": 1000}

Address: TypeAlias = Callable[[str], tuple[str, int]]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A page in its window."""

    name: str
    url: str
    status: int
    visit: Any
    answer: Any


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest, place: FacePlace) -> Address:
    """Return a function from a page's name to address and expected status."""

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


@pytest.fixture(scope="module")
def window(chromium: Chromium) -> Iterator[Visit]:
    with chromium.visit() as visit:
        visit.allow_clipboard()
        yield visit


@pytest.fixture(scope="module")
def bare(chromium: Chromium) -> Iterator[Visit]:
    """A window whose reader allows no scripts."""
    with chromium.visit(scripts=False) as visit:
        yield visit


@pytest.fixture(scope="module", params=PAGES)
def shown(request: pytest.FixtureRequest, address: Address, window: Visit) -> Shown:
    url, status = address(request.param)
    window.faults.clear()
    answer = window.open(url, status)
    return Shown(name=request.param, url=url, status=status, visit=window, answer=answer)


def at_a_desk(visit: Visit) -> None:
    visit.resize(DESKTOP)
    visit.page.emulate_media(media="screen", color_scheme="light")


def test_a_page_comes_with_a_strict_policy_and_nothing_inline(shown: Shown) -> None:
    stated = shown.visit.page.locator("meta[http-equiv='Content-Security-Policy']")
    policies = [stated.get_attribute("content") or ""]
    answer: Response = shown.answer
    markup = shown.visit.page.request.get(shown.url, headers={"Accept": "text/html"}).text()
    assert shown.visit.inline(markup) == []
    if shown.name.startswith("served"):
        headers = answer.headers
        policies.append(headers["content-security-policy"])
        assert directives(policies[1])["frame-ancestors"] == {"'none'"}
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-type"] == "text/html; charset=utf-8"
        assert "set-cookie" not in headers
    for policy in map(directives, policies):
        assert policy["default-src"] == policy["base-uri"] == {"'none'"}
        allowed = set().union(*(policy[kind] for kind in policy if kind.endswith("-src")))
        assert allowed <= {"'none'", "'self'", "data:"}
        assert policy["script-src"] == policy["style-src"] == {"'self'"}


def test_a_page_is_quiet_and_says_the_same_without_scripts(shown: Shown, bare: Visit) -> None:
    bare.faults.clear()
    bare.open(shown.url, shown.status)
    assert told(bare) == told(shown.visit)
    assert shown.visit.page.title() not in ("", "struck")
    assert bare.faults == shown.visit.faults == []


def test_a_page_is_readable_in_light_and_dark(shown: Shown, pictures: Path) -> None:
    visit: Visit = shown.visit
    at_a_desk(visit)
    visit.page.screenshot(path=pictures / f"{file_name(shown.name)}.png", full_page=True)
    assert visit.broken() == []
    assert visit.axe() == []
    visit.show("dark")
    visit.page.screenshot(path=pictures / f"{file_name(shown.name)}-dark.png")
    assert luminance(visit.page.evaluate(_GROUND)) < 0.2, "dark is dark"
    assert visit.axe(contrast_only=True) == []
    assert visit.faults == []


def test_everything_of_a_page_is_reached_by_keyboard(shown: Shown) -> None:
    visit: Visit = shown.visit
    at_a_desk(visit)
    visit.page.evaluate("document.activeElement.blur(); getSelection().removeAllRanges()")
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


def test_copy_buttons_copy_what_stands_beside_them(shown: Shown) -> None:
    page = shown.visit.page
    page.bring_to_front()
    at_a_desk(shown.visit)
    sources = page.locator("[data-copy]").all_text_contents()
    assert shown.visit.covered() == [], "a button hides nothing of what it copies"
    buttons = page.locator("button.copy").all()
    assert len(buttons) == len(sources)
    names = [one.get_attribute("aria-label") for one in buttons]
    assert len(set(names)) == len(names), "a listener knows which is which"
    for button, source in zip(buttons, sources, strict=True):
        if button.is_visible():
            button.click()
            shown.visit.until("one => one.textContent === 'Copied'", button)
            assert page.evaluate("navigator.clipboard.readText()") == source
    assert shown.visit.faults == []


def test_a_page_fits_a_phone_and_paper(shown: Shown, pictures: Path) -> None:
    visit: Visit = shown.visit
    at_a_desk(visit)
    visit.resize(PHONE)
    assert visit.overflow() == []
    visit.unfold()
    assert visit.overflow() == [], "nor when everything is open"
    assert visit.broken() == []
    visit.page.screenshot(path=pictures / f"{file_name(shown.name)}-phone.png", full_page=True)
    visit.page.emulate_media(media="print", color_scheme="dark")
    visit.resize(_PAPER)
    assert visit.overflow() == []
    assert luminance(visit.page.evaluate(_GROUND)) > 0.9, "paper is white"
    assert not visit.page.locator("button:visible, input:visible, .skip:visible").count()
    visit.unfold(open_=False)
    at_a_desk(visit)
    assert visit.faults == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_page_of_a_tree_is_quiet_and_says_the_same_without_scripts(
    name: str, address: Address, chromium: Chromium, bare: Visit
) -> None:
    url, status = address(name)
    bare.faults.clear()
    bare.open(url, status)
    with chromium.visit() as visit:
        visit.allow_clipboard()
        visit.open(url, status)
        assert told(bare) == told(visit)
        button = visit.page.locator("button.copy").first
        button.click()
        visit.until("one => one.textContent === 'Copied'", button)
        assert bare.faults == visit.faults == []


@pytest.mark.parametrize("name", ["served ", "served whole", "static whole"])
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


def test_a_page_prints(address: Address, chromium: Chromium) -> None:
    url, status = address("served whole")
    with chromium.visit() as visit:
        visit.open(url, status)
        assert visit.page.pdf().startswith(b"%PDF-")
        assert visit.faults == []


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


_GROUND = "getComputedStyle(document.body).backgroundColor"


def luminance(colour: str) -> float:
    """Return how light an `rgb(...)` is, 0 to 1; nothing drawn is white paper."""
    parts = [float(part) for part in colour[colour.index("(") + 1 : -1].split(",")]
    if len(parts) == 4 and parts[3] == 0:
        return 1.0
    return sum(parts[:3]) / 765
