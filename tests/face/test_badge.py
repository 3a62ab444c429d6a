"""The badge fits its words, says what the strip says, and nothing a stranger wrote acts in it."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from support.face_views import rich

from anchord.app.face.badge import _svg, badge
from anchord.app.face.page import page
from anchord.app.face.site import Site
from anchord.app.face.strip import FOR_TESTS, strip_words
from anchord.app.face.text_width import text_width

SVG = "{http://www.w3.org/2000/svg}"
FACETS = {
    "attested": ("attested", "not attested"),
    "anchored": ("anchored", "submitted", "not anchored", FOR_TESTS),
    "stored": ("stored", "not stored"),
    "refs": ("refs", "refs pending"),
}
TAGS = "svg title linearGradient stop clipPath rect path g text"
EVERY_STRIP = [tuple(zip(FACETS, words, strict=True)) for words in product(*FACETS.values())]


def parsed(words, title="pith:2025:A"):
    return ET.fromstring(_svg(title, words))  # noqa: S314  made here


def texts(svg):
    """Return the words from the left, each once: a shadow lies under each."""
    found = [one.text for one in svg.iter(f"{SVG}text")]
    assert found[::2] == found[1::2]
    return found[::2]


@pytest.mark.parametrize(
    ("words", "px"),
    [("build", 27), ("passing", 41), ("failing", 33), ("coverage", 51), ("license", 37),
     ("downloads", 59), ("unknown", 51)],
)  # fmt: skip
def test_widths_are_those_of_the_badges_everybody_knows(words, px):
    assert text_width(words) == px


@pytest.mark.parametrize("words", EVERY_STRIP)
def test_every_badge_says_what_the_strip_says_and_its_boxes_join(words):
    svg = parsed(words)
    strip = dict(words)
    said = texts(svg)
    assert said[:3] == ["pith", strip["anchored"], strip["stored"]]
    assert said[3:] == [word for facet, word in words if word == facet in ("attested", "refs")]
    boxes = [one for one in svg.iter(f"{SVG}rect") if one.get("x") is not None]
    edges = [(int(box.get("x")), int(box.get("width"))) for box in boxes]
    assert edges[0][0] == 0
    assert all(x + width == after for (x, width), (after, _) in pairwise(edges))
    assert sum(edges[-1]) == int(svg.get("width"))
    for (x, width), text, word in zip(edges, list(svg.iter(f"{SVG}text"))[::2], said, strict=True):
        assert int(text.get("textLength")) == 10 * text_width(word)
        assert width == text_width(word) + 10
        assert int(text.get("x")) == 10 * x + 5 * width


def test_letters_stand_out_from_every_field():
    def luminance(colour):
        whole = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
        parts = [int(whole[at : at + 2], 16) / 255 for at in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    colours = {
        one.get("fill")
        for words in EVERY_STRIP
        for one in parsed(words).iter(f"{SVG}rect")
        if one.get("x") is not None
    }
    assert len(colours) == 4
    assert all(1.05 / (luminance(colour) + 0.05) >= 4.5 for colour in colours)


@given(name=st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="￾￿")))
def test_a_name_is_text_whatever_it_is(name):
    svg = parsed(EVERY_STRIP[0], title=name)
    assert svg.get("aria-label") == name
    assert (svg.find(f"{SVG}title").text or "") == name
    assert {one.tag.removeprefix(SVG) for one in svg.iter()} == set(TAGS.split())


def test_a_badge_needs_nothing_from_outside_and_acts_on_nothing():
    raw = _svg("x", EVERY_STRIP[0]).decode()
    assert not re.search(r"script|style=|<style|href|\bon\w+=", raw)
    assert set(re.findall(r"https?://[^\"]*", raw)) == {"http://www.w3.org/2000/svg"}
    assert set(re.findall(r"url\(([^)]*)\)", raw)) == {"#r", "#s"}


@pytest.mark.parametrize("chain", ["bitcoin-regtest", "bitcoin-testnet4", "bitcoin-signet"])
def test_a_block_of_a_chain_made_for_tests_never_makes_anything_anchored_by_that_word(chain):
    view = rich()
    real, test = (
        replace(view, state=json.loads(
            re.sub('"chain": "[a-z0-9-]+"', f'"chain": "{name}"', json.dumps(view.state))))
        for name in ("bitcoin", chain)
    )  # fmt: skip
    assert strip_words(real.state)["anchored"] == "anchored"
    assert strip_words(test.state)["anchored"] == FOR_TESTS
    for view, word in ((real, "anchored"), (test, FOR_TESTS)):
        said = texts(ET.fromstring(badge(view)))  # noqa: S314  made here
        assert said[1] == word
        fields = [one.get("fill") for one in ET.fromstring(badge(view)).iter(f"{SVG}rect")]  # noqa: S314
        assert (fields[2] == "#2e7d32") is (view is real), "only Bitcoin is green"
        strip = re.search(r'<ul class="strip".*?</ul>', page(view, Site()).decode(), re.DOTALL)
        assert strip is not None
        assert f">{word}<" in strip[0]
