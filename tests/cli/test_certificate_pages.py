"""The page of a certificate: one sheet, whatever stands on it; nothing loaded, nothing hidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from anchord.app.certificate import page as html
from anchord.app.certificate import pdf, qr, rosette
from anchord.app.certificate.shorten import latin, middle, visible
from anchord.app.certificate.wording import LONGEST, page_of
from anchord.core.certificate import (
    Anchor,
    Certificate,
    Copy,
    Earliest,
    Statement,
    Subject,
    Token,
)
from anchord.core.model import Scheme
from anchord.core.trust import Trust

DIGEST = "a15989f8d4e462156f1cd53daa5351277a31185567c8ea68ff7f5b03667f667f"
CAPTURE = Copy(
    kind="capture",
    where="https://web.archive.org/web/20240801110000/https://example.org/paper",
    at="2024-08-01T11:00:00Z",
    sha256="ab" * 32,
    stand_in=False,
)
ITEM = replace(CAPTURE, kind="item", where="archive.org/download/registry-example/bundles.zip")
PLAIN = Certificate(
    subject=Subject(
        digest=DIGEST,
        scheme=Scheme.PITH_JSON_V1,
        pith_number="pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5",
        source="arXiv:2507.00001v1",
        title=None,
        title_proved=False,
    ),
    anchor=Anchor(
        chain="bitcoin",
        height=912_345,
        hash="28" * 32,
        merkle_root="57" * 32,
        time="2024-07-26T06:00:00Z",
        confirmations=6,
        checked_with=("own headers",),
        calendars=("https://calendar.example.org",),
    ),
    statement=Statement(
        event_id="sha256:" + "17" * 32,
        signed_at="2024-08-01T12:00:00Z",
        signer_id="registry.example.org",
        key_id="test-2024",
        fingerprint="06" * 16,
        trust=Trust.KEYRING,
        proof_sha256="df" * 32,
    ),
    not_before=None,
    tokens=(),
    copies=(CAPTURE, ITEM),
)


def crowded(text: str = "z") -> Certificate:
    """Return a certificate with more of everything than a page can hold."""
    long = text * 2_000
    token = Token(signed_by=long, time="2024-07-26T03:00:00Z", trusted=False)
    return replace(
        PLAIN,
        subject=replace(PLAIN.subject, title=long, source=long),
        anchor=replace(
            PLAIN.anchor,
            calendars=tuple(f"https://calendar-{n}.example.org/{long}" for n in range(20)),
            checked_with=("own headers", long),
        ),
        statement=replace(
            PLAIN.statement, signer_id=long[:300], key_id=long[:300], trust=Trust.CLAIMED
        ),
        not_before=Earliest(height=912_300, hash="ab" * 32, time="2024-07-26T03:00:00Z"),
        tokens=(token,) * 9,
        copies=(
            *(replace(CAPTURE, where=f"https://web.archive.org/web/{long}") for _ in range(9)),
            *(replace(ITEM, where=f"archive.org/download/{long}", stand_in=True),) * 5,
        ),
    )


ODD = ["z", "W", "中", "ж", "<&>", "i ", "\u202e", "\U0001f9ff", "e\u0301", "\x00", "a\n"]


def room(made: Certificate) -> float:
    """Return how many points are left between the statement, the facts and the steps."""
    page = page_of(made)
    sheet = pdf._Sheet(Canvas(BytesIO(), pagesize=A4), page, DIGEST)
    return sheet._fit(sheet._head(pdf.TOP))


@pytest.mark.parametrize("text", ODD)
def test_too_much_of_everything_still_fits_one_sheet(text: str) -> None:
    for made in (crowded(text), replace(crowded(text), anchor=_of_a_test_chain(text))):
        raw = pdf.render(page_of(made), DIGEST)
        assert raw.count(b"/Type /Page\n") == 1
        assert room(made) >= 0, "the facts and the steps overlap"


def _of_a_test_chain(text: str) -> Anchor:
    return replace(crowded(text).anchor, chain="bitcoin-regtest")


@pytest.mark.parametrize("made", [PLAIN, crowded()], ids=["plain", "crowded"])
def test_all_text_of_the_sheet_is_where_both_a4_and_letter_show_it(made: Certificate) -> None:
    text = pdf.render(page_of(made), DIGEST).decode("latin-1")
    places = list(text_places(text))
    assert len(places) > 20
    outside = [at for at in places if not (36 < at[0] < 595 - 36 and 25 + 36 < at[1] < 842 - 61)]
    assert outside == []


def text_places(pdf_text: str) -> Iterator[tuple[float, float]]:
    """Yield where each stretch of text begins, moves of the origin taken into account."""
    stack, x, y = [], 0.0, 0.0
    moves = r"\bq\b|\bQ\b|1 0 0 1 (\S+) (\S+) (cm|Tm)(?! T\*)"
    for found in re.finditer(moves, pdf_text.partition("stream")[2]):
        if found[0] == "q":
            stack.append((x, y))
        elif found[0] == "Q":
            x, y = stack.pop()
        elif found[3] == "cm":
            x, y = x + float(found[1]), y + float(found[2])
        else:
            yield x + float(found[1]), y + float(found[2])


@given(st.text(max_size=300))
@settings(max_examples=15, deadline=None)
def test_any_title_can_be_printed(title: str) -> None:
    made = replace(PLAIN, subject=replace(PLAIN.subject, title=title or None))
    assert pdf.render(page_of(made), DIGEST).startswith(b"%PDF-")
    assert html.render(page_of(made), DIGEST).startswith(b"<!DOCTYPE html>")


@given(st.text(max_size=80))
def test_the_pdf_has_no_character_that_its_fonts_lack_and_loses_none(text: str) -> None:
    shown = latin(text)
    shown.encode("cp1252")
    assert all(char.isprintable() for char in shown)
    assert len(shown) >= len(visible(text)) or text != visible(text)


@pytest.mark.parametrize("made", [PLAIN, crowded("中")], ids=["plain", "crowded"])
def test_the_same_values_give_the_same_bytes(made: Certificate) -> None:
    page = page_of(made)
    assert pdf.render(page, DIGEST) == pdf.render(page, DIGEST)
    assert html.render(page, DIGEST) == html.render(page, DIGEST)


def test_the_pdf_is_titled_and_says_neither_who_nor_when() -> None:
    raw = pdf.render(page_of(PLAIN), DIGEST)
    assert b"/Title (Certificate of existence: pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5)" in raw
    assert b"/Author ()" in raw
    assert set(re.findall(rb"Date \(D:(\d{4})", raw)) == {b"2000"}, "a fixed moment, none of ours"


class Loads(HTMLParser):
    """Collects what a page would load, and its words."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "action", "data", "srcset") or name.startswith("on"):
                self.found.append(f"{name}={value}")


@pytest.mark.parametrize("text", ['<script>alert("x")</script>', "'\"><img src=x onerror=x>"])
def test_the_html_page_loads_nothing_and_runs_nothing(text: str) -> None:
    raw = html.render(page_of(crowded(text)), DIGEST).decode()
    loads = Loads()
    loads.feed(raw)
    assert loads.found == []
    assert not {"script", "img", "link", "iframe", "object"} & set(loads.tags)
    assert "url(" not in raw
    assert "@import" not in raw
    assert "default-src 'none'" in raw


def test_what_was_cut_stands_whole_below_the_html_page_and_is_said_to_be_cut() -> None:
    made = crowded("Q")
    page = page_of(made)
    raw = html.render(page, DIGEST).decode()
    for whole in (
        made.subject.title, made.statement.key_id, made.anchor.calendars[19], made.copies[0].where,
    ):  # fmt: skip
        assert whole is not None
        assert whole in raw
    assert "was cut" in raw
    assert page_of(PLAIN).whole == ()
    assert "was cut" not in html.render(page_of(PLAIN), DIGEST).decode()


def test_a_fingerprint_and_a_hash_are_never_cut() -> None:
    page = page_of(crowded())
    shown = " ".join(row.text for row in page.facts)
    signed, anchor = PLAIN.statement, PLAIN.anchor
    for value in (signed.fingerprint, signed.event_id, anchor.hash, anchor.merkle_root):
        assert value in shown
    assert all(len(row.text) <= 2 * LONGEST for row in page.facts)


def test_a_test_network_makes_specimens_and_bitcoin_does_not() -> None:
    real, trial = page_of(PLAIN), page_of(replace(PLAIN, anchor=_of_a_test_chain("z")))
    for form in (pdf, html):
        assert b"SPECIMEN" not in form.render(real, DIGEST)
        assert b"SPECIMEN" in form.render(trial, DIGEST)
        assert b"proves nothing about Bitcoin" in form.render(trial, DIGEST)


def test_a_page_never_says_more_than_was_proved() -> None:
    text = html.render(page_of(PLAIN), DIGEST).decode()
    assert "existed before" in text
    assert "good to hours" in text
    assert "does not say who made the record, nor when" in text
    assert "not fetched for this page" in text
    assert "not confirmed for this page" not in text
    doubtful = replace(PLAIN, statement=replace(PLAIN.statement, trust=Trust.CLAIMED))
    assert "not confirmed for this page" in html.render(page_of(doubtful), DIGEST).decode()
    before = replace(PLAIN, not_before=crowded().not_before)
    assert "the timestamp, not the record, is younger" in str(page_of(before).facts)


def test_the_code_holds_the_digest_and_every_digest_has_its_own() -> None:
    matrix = qr.modules(DIGEST)
    width, stretches = qr.runs(DIGEST)
    redrawn = [[False] * width for _ in range(width)]
    for x, y, length in stretches:
        redrawn[y][x : x + length] = [True] * length
    assert redrawn == matrix
    finder = [True] * 7
    assert matrix[0][:7] == matrix[0][-7:] == matrix[-1][:7] == finder
    other = DIGEST[:-1] + "0"
    assert qr.modules(other) != matrix
    assert rosette.curves("00" * 32) != rosette.curves("ff" * 32)


def test_a_rosette_stays_within_its_circle() -> None:
    for digest in (DIGEST, "00" * 32, "ff" * 32):
        for curve in rosette.curves(digest):
            assert all(x * x + y * y <= 1 for x, y in curve)


@given(st.text(min_size=1, max_size=60), st.integers(min_value=3, max_value=40))
def test_the_middle_is_cut_and_both_ends_stay(text: str, most: int) -> None:
    short = middle(text, most)
    assert len(short) <= most
    assert short == text or (short[0] == text[0] and short[-1] == text[-1] and "\u2026" in short)
