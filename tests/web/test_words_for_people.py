"""What pages say of themselves is so, whatever page it is; an empty store says how to fill it."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from support.asking import Asked
from support.face_places import FacePlace, place_of
from support.workplace import Workplace

BROWSER = "text/html,*/*;q=0.8"
SIGNED = "Every word here follows from signed events"
STORE = "what the operator's own store says"


def shown(asked: Asked, target: str) -> str:
    """Return what people read of a page, on one line."""
    page = asked.ask(target, Accept=BROWSER).body.decode()
    assert "<footer" in page
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


@pytest.mark.parametrize(
    "target",
    ["/", "/records", "/records?q=nothing", "/records?anchored=bad", "/events", "/parked", "/audit",
     "/lookup?ref=2507.00001", "/nowhere", "/pith/AAAAAAAAAAAAAAAAAAAAAAAAAA"],
)  # fmt: skip
def test_no_page_of_the_store_says_that_it_follows_from_signed_events(
    asked: Asked, target: str
) -> None:
    page = shown(asked, target)
    assert SIGNED not in page
    assert (STORE in page) == (target not in ("/events", "/audit"))


def test_every_page_of_a_record_says_that_it_follows_from_signed_events(
    face: FacePlace, asked: Asked
) -> None:
    for record in face.records.values():
        page = shown(asked, f"/{place_of(record)}")
        assert SIGNED in page
        assert STORE not in page


def test_an_empty_store_says_how_it_is_filled_and_a_filter_that_fits_nothing_how_to_go_on(
    tmp_path: Path, asked: Asked
) -> None:
    with Asked(Workplace(tmp_path).config) as empty:
        assert "anchord add" in shown(empty, "/")
        assert "There are no records yet." in shown(empty, "/records")
        assert "No record has this name" in shown(empty, "/records?q=2507.10392")
        assert "There is no such record. All records" in shown(empty, "/records?stored=stored")
    assert "There is no such record. All records" in shown(asked, "/records?source=nowhere")


def test_every_line_that_may_be_longer_than_a_screen_is_reached_by_keyboard(
    tmp_path: Path, asked: Asked
) -> None:
    with Asked(Workplace(tmp_path).config) as empty:
        for place, target in [(empty, "/audit"), (asked, "/audit"), (asked, "/parked")]:
            page = place.ask(target, Accept=BROWSER).body.decode()
            assert all('tabindex="0"' in tag for tag in re.findall(r"<pre\b[^>]*>", page))
