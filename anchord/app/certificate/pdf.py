"""The certificate as a one-page PDF.

A4, with all of it within what a letter-size sheet shows, too. The fonts are those every PDF reader
has (ISO 32000-1, 9.6.2.2), so the same values give the same bytes on every machine; streams are
left uncompressed for the same reason, and so that anybody can read what is in them.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from reportlab.lib.colors import Color, HexColor
from reportlab.lib.enums import TA_CENTER
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph

from anchord.app.certificate import qr, rosette
from anchord.app.certificate.shorten import latin, middle
from anchord.app.certificate.wording import LONGEST, LONGEST_TITLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.app.certificate.wording import Page, Row

INK, SOFT, GOLD = HexColor(0x17233F), HexColor(0x5A6478), HexColor(0x9A7B3A)
FAINT, ALARM = HexColor(0xE9E2D0), HexColor(0x9E2B25)
WIDTH, HEIGHT = A4
LEFT, RIGHT, BOTTOM, TOP = 62.0, WIDTH - 62.0, 66.0, HEIGHT - 66.0
"""Where text may stand. Letter shows A4 all but 25 points at the top and the bottom."""
FRAME = 42.0
LABEL = 62.0
"""Width of the column of labels."""
CODE = 76.0
"""Side of the QR code with its quiet zone."""
SERIF, BOLD, ITALIC, FIXED = "Times-Roman", "Times-Bold", "Times-Italic", "Courier"


def _style(font: str, size: float, color: Color = INK, **more: int) -> ParagraphStyle:
    values = {"leading": size * 1.22, "alignment": 0, "splitLongWords": 1, **more}
    return ParagraphStyle(font + str(size), fontName=font, fontSize=size, textColor=color, **values)


SCALES = (1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7)
"""By which facts and steps are set smaller when there is much to say; the first that fits."""


def render(page: Page, digest: str) -> bytes:
    """Return the PDF of a page about `digest`."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, pageCompression=0, invariant=1, lang="en")
    name = page.title or page.name
    canvas.setTitle(f"Certificate of existence: {latin(name)}")
    canvas.setAuthor("")
    canvas.setSubject(f"sha256:{digest} existed before {page.when}")
    canvas.setCreator("anchord")
    _Sheet(canvas, page, digest).draw()
    canvas.showPage()
    canvas.save()
    return buffer.getvalue()


_ESCAPES = (
    "\\u and digits stand for a character that the fonts of a PDF lack; the HTML page shows it."
)


class _Sheet:
    """One sheet, drawn from the top and from the bottom towards the middle."""

    def __init__(self, canvas: Canvas, page: Page, digest: str) -> None:
        self._canvas, self._page, self._digest = canvas, page, digest
        self._size = 8.6
        self._value = self._hash = self._small = self._command = _style(SERIF, self._size)
        shown = (page.title or "", page.source or "", *(row.text for row in page.facts))
        escaped = any(latin(text) != text for text in shown)
        self._limits = (*page.limits, *((_ESCAPES,) if escaped else ()))

    def draw(self) -> None:
        """Draw all of it."""
        if self._page.specimen is not None:
            self._watermark()
        self._frame()
        below = self._head(TOP)
        room = self._fit(below)
        self._foot(BOTTOM)
        self._rows(self._page.facts, below - max(room, 0) * 0.45)

    def _fit(self, below: float) -> float:
        """Choose the size of facts and steps; return the room they leave."""
        room = 0.0
        for scale in SCALES:
            self._size = 8.6 * scale
            self._value, self._hash = _style(SERIF, self._size), _style(FIXED, 7.2 * scale)
            self._small, self._command = _style(SERIF, 7.8 * scale), _style(FIXED, 6.3 * scale)
            room = below - self._foot(BOTTOM, measure=True)
            room -= self._rows(self._page.facts, 0, measure=True)
            if room >= 0:
                break
        return room

    # ---------------------------------------------------------------- ornaments

    def _watermark(self) -> None:
        canvas = self._canvas
        canvas.saveState()
        canvas.setFillColor(ALARM, alpha=0.07)
        canvas.translate(WIDTH / 2, HEIGHT / 2)
        canvas.rotate(52)
        canvas.setFont(BOLD, 118)
        canvas.drawCentredString(0, -36, "SPECIMEN")
        canvas.restoreState()

    def _frame(self) -> None:
        canvas = self._canvas
        canvas.setStrokeColor(GOLD)
        for inset, width in ((0.0, 1.4), (4.0, 0.4)):
            canvas.setLineWidth(width)
            at = FRAME + inset
            canvas.rect(at, at, WIDTH - 2 * at, HEIGHT - 2 * at)
        canvas.setLineWidth(0.4)
        for x in (FRAME + 4, WIDTH - FRAME - 4):
            for y in (FRAME + 4, HEIGHT - FRAME - 4):
                self._corner(x, y)

    def _corner(self, x: float, y: float) -> None:
        inward_x, inward_y = (1 if x < WIDTH / 2 else -1), (1 if y < HEIGHT / 2 else -1)
        for size in (5.0, 9.0, 13.0):
            path = self._canvas.beginPath()
            path.moveTo(x, y + inward_y * size)
            path.lineTo(x + inward_x * size, y)
            self._canvas.drawPath(path)

    def _rosette(self, x: float, y: float, radius: float) -> None:
        canvas = self._canvas
        canvas.setLineWidth(0.3)
        for number, curve in enumerate(rosette.curves(self._digest)):
            canvas.setStrokeColor(GOLD if number // rosette.STRANDS != 1 else INK)
            path = canvas.beginPath()
            path.moveTo(x + radius * curve[0][0], y + radius * curve[0][1])
            for across, up in curve[1:]:
                path.lineTo(x + radius * across, y + radius * up)
            path.close()
            canvas.drawPath(path)

    def _code(self, x: float, y: float) -> None:
        """Draw the QR code with its lower left corner at (x, y), dark on white."""
        canvas = self._canvas
        width, stretches = qr.runs(self._digest)
        step = CODE / (width + 2 * qr.QUIET)
        canvas.setFillColor(HexColor(0xFFFFFF))
        canvas.rect(x, y, CODE, CODE, stroke=0, fill=1)
        canvas.setFillColor(INK)
        path = canvas.beginPath()
        for column, row, length in stretches:
            top = y + CODE - (row + qr.QUIET) * step
            path.rect(x + (column + qr.QUIET) * step, top - step, length * step, step)
        canvas.drawPath(path, stroke=0, fill=1)

    # ---------------------------------------------------------------- text

    def _head(self, y: float) -> float:
        """Draw the statement from `y` down; return where it ends."""
        page = self._page
        radius = 34.0 if page.dense else 45.0
        self._rosette(WIDTH / 2, y - radius, radius)
        y -= 2 * radius + 26
        self._spaced("CERTIFICATE OF EXISTENCE", y, 17.5, 3.6)
        self._rule(y - 11)
        y = self._centered("The record", y - 31, ITALIC, 11, SOFT) - 2
        if page.title is not None:
            # An escape is longer than the character it stands for: the title is cut once more.
            title = middle(latin(page.title), LONGEST_TITLE)
            style = _style(BOLD, 12.5 if page.dense else 15, alignment=TA_CENTER)
            y = self._flow(title, style, LEFT + 20, y + 11, RIGHT - LEFT - 40) - 10
            y = self._centered(f"({page.title_note})", y, ITALIC, 8, SOFT) - 7
        y = self._centered(latin(page.name), y, FIXED, 12 if len(page.name) < 50 else 9.4, INK)
        if page.source is not None:
            y = self._centered(latin(page.source), y, SERIF, 10, SOFT)
        if not page.name.endswith(page.digest):
            y = self._centered(f"sha256 {page.digest}", y, FIXED, 7.6, SOFT)
        y = self._centered("existed before", y - 7, ITALIC, 11, SOFT) - 11
        y = self._centered(page.when, y, BOLD, 23, INK) + 11
        words = f"proved by {latin(page.block)}, whose time is good to hours"
        y = self._centered(words, y, SERIF, 10.5, INK) - 2
        if page.specimen is not None:
            y = self._centered(latin(page.specimen), y, BOLD, 9.5, ALARM)
        return y + 4

    def _spaced(self, text: str, y: float, size: float, space: float) -> None:
        canvas = self._canvas
        width = canvas.stringWidth(text, SERIF, size) + space * (len(text) - 1)
        canvas.setFillColor(INK)
        line = canvas.beginText((WIDTH - width) / 2, y)
        line.setFont(SERIF, size)
        line.setCharSpace(space)
        line.textOut(text)
        line.setCharSpace(0)
        canvas.drawText(line)

    def _rule(self, y: float) -> None:
        self._canvas.setStrokeColor(GOLD)
        self._canvas.setLineWidth(0.7)
        self._canvas.line(WIDTH / 2 - 60, y, WIDTH / 2 + 60, y)

    def _centered(self, text: str, y: float, font: str, size: float, color: Color) -> float:
        """Draw one line, made smaller where it would be too wide; return the next line's place."""
        canvas = self._canvas
        wide = canvas.stringWidth(text, font, size)
        size = min(size, size * (RIGHT - LEFT) / max(wide, 1))
        canvas.setFillColor(color)
        canvas.setFont(font, size)
        canvas.drawCentredString(WIDTH / 2, y, text)
        return y - size * 1.45

    def _flow(
        self, text: str, style: ParagraphStyle, x: float, y: float, width: float,
        *, measure: bool = False,
    ) -> float:  # fmt: skip
        """Draw a paragraph whose top is at `y`; return its lower edge."""
        paragraph = Paragraph(escape(text).replace("\n", "<br/>"), style)
        _, height = paragraph.wrap(width, HEIGHT)
        if not measure:
            paragraph.drawOn(self._canvas, x, y - height)
        return float(y - height)

    def _rows(self, rows: Sequence[Row], y: float, *, measure: bool = False) -> float:
        """Draw facts, names on the left; return the height they take."""
        start, size = y, self._size
        inset = LABEL + LEFT
        for row in rows:
            if row.label and not measure:
                self._words(row.label, LEFT, y - size * 0.95, ITALIC, size, SOFT)
            style = self._hash if row.code else self._value
            text = middle(latin(row.text), LONGEST + 60)
            y = self._flow(text, style, inset, y, RIGHT - inset, measure=measure) - size * 0.28
        return start - y

    def _words(self, text: str, x: float, y: float, font: str, size: float, color: Color) -> None:
        self._canvas.setFillColor(color)
        self._canvas.setFont(font, size)
        self._canvas.drawString(x, y, text)

    def _foot(self, y: float, *, measure: bool = False) -> float:
        """Draw the steps and the limits up from `y`; return where they begin."""
        column, size = RIGHT - LEFT - CODE - 14, self._size
        limits = [("", text, "") for text in self._limits]
        steps = [(f"{n}.", s.text, s.code) for n, s in enumerate(self._page.steps, 1)]
        groups = (("What it does not say", limits), ("How to check it without anchord", steps))
        for heading, items in groups:
            height = self._items(items, 0, column, measure=True)
            if not measure:
                self._items(items, y + height, column)
                self._words(heading, LEFT, y + height + size * 0.47, BOLD, size, GOLD)
            y += height + size * 2.2
        if not measure:
            self._caption(RIGHT - CODE, BOTTOM)
            self._canvas.setStrokeColor(FAINT)
            self._canvas.setLineWidth(0.8)
            self._canvas.line(LEFT, y, RIGHT, y)
        return y + 6

    def _items(
        self, items: Sequence[tuple[str, str, str]], y: float, width: float,
        *, measure: bool = False,
    ) -> float:  # fmt: skip
        start, size = y, self._size * 0.91
        for number, text, code in items:
            inset = 11.0 if number else 0.0
            if number and not measure:
                self._words(number, LEFT, y - size * 0.97, SERIF, size, INK)
            left, room = LEFT + inset, width - inset
            y = self._flow(latin(text), self._small, left, y, room, measure=measure)
            if code:
                lines = "\n".join(latin(line) for line in code.splitlines())
                y = self._flow(lines, self._command, left, y - 1, room, measure=measure)
            y -= size * 0.2
        return start - y

    def _caption(self, x: float, y: float) -> None:
        self._code(x, y + 9)
        self._canvas.setFillColor(SOFT)
        self._canvas.setFont(ITALIC, 7)
        self._canvas.drawCentredString(x + CODE / 2, y + 2, "the digest, for a phone")
