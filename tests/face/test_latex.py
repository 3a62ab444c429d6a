"""A paper with pith.sty compiles, and its PDF has the badge, the link and the number.

Compiled by both engines in folders of their own, without shell escape.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from anchord.app.face.latex_package import pith_sty
from anchord.app.face.site import Site

ENGINES = ("pdflatex", "lualatex")
pytestmark = [
    pytest.mark.skipif(
        any(shutil.which(tool) is None for tool in (*ENGINES, "pdftotext", "pdfinfo")),
        reason="TeX or poppler-utils is not installed",
    ),
]

HERE = "https://pith.example.org"
SUFFIX = "LOHGU5AX7BHMWC5MXWWMKZIY2K"
NUMBER = f"pith:2025:{SUFFIX}"
DIGEST = "5b8e6a7417f84ecb0bacbdacc56518d2a4deccea0d5c9e7a1e718519261c9961"
TITLE = r"\title{On the Persistence of Records}\author{A. Author}\date{July 2025}"


class Paper:
    """A compiled paper: what it says, where it leads, what it says of itself."""

    def __init__(self, folder: Path, engine: str, source: str, *, runs: int = 1) -> None:
        self.folder = folder
        (folder / "paper.tex").write_text(source, "utf-8")
        for _ in range(runs):
            self.done = subprocess.run(
                [engine, "-no-shell-escape", "-interaction=nonstopmode", "-halt-on-error",
                 "paper.tex"],
                cwd=folder, capture_output=True, check=False, timeout=120,
                env={**os.environ, "max_print_line": "1000"},
            )  # fmt: skip
            self.log = (folder / "paper.log").read_text("utf-8", errors="replace")
            if self.done.returncode:
                break

    @property
    def said(self) -> str:
        """The log as running text: LaTeX breaks its lines and begins them with the package."""
        return " ".join(self.log.replace("(pith)", "").split())

    def compiled(self) -> Paper:
        assert self.done.returncode == 0, self.log[-3000:]
        return self

    def _ask(self, *command: str) -> str:
        return subprocess.run(
            command, cwd=self.folder, capture_output=True, check=True, text=True, timeout=60
        ).stdout

    @property
    def text(self) -> str:
        return self._ask("pdftotext", "-layout", "paper.pdf", "-")

    @property
    def lines(self) -> list[str]:
        return [" ".join(line.split()) for line in self.text.splitlines() if line.strip()]

    @property
    def links(self) -> list[str]:
        return [
            row.split()[-1] for row in self._ask("pdfinfo", "-url", "paper.pdf").splitlines()[1:]
        ]

    @property
    def facts(self) -> dict[str, str]:
        rows = self._ask("pdfinfo", "-custom", "paper.pdf").splitlines()
        return {name: rest.strip() for name, _, rest in (row.partition(":") for row in rows)}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pith.sty").write_bytes(pith_sty(Site(base_url=HERE)))
    return tmp_path


def paper(number, *, kind="{article}", load=r"\usepackage{pith}", title=TITLE, last=""):
    return "\n".join(
        [rf"\documentclass{kind}", load, title, r"\begin{document}", number,
         r"\maketitle" if title else "First words.", r"\section{Introduction}", "Text.", last,
         r"\end{document}"]
    )  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES)
def test_the_badge_is_below_the_title_links_to_the_page_and_is_in_the_metadata(folder, engine):
    found = Paper(folder, engine, paper(rf"\pithnumber{{{NUMBER}}}")).compiled()
    assert found.lines[:5] == [
        "On the Persistence of Records", "A. Author", "July 2025", f"pith {SUFFIX}",
        "1 Introduction",
    ]  # fmt: skip
    assert found.links == [f"{HERE}/pith/{SUFFIX}"]
    assert found.facts["PithNumber"] == NUMBER
    assert "Warning" not in found.log


@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("[twocolumn]{article}", "pdflatex"),
        ("{amsart}", "lualatex"),
        ("[titlepage]{article}", "pdflatex"),
        ("{report}", "lualatex"),
        ("{scrartcl}", "pdflatex"),
        ("[titlepage]{scrreprt}", "pdflatex"),
    ],
)
def test_in_every_class_the_badge_follows_the_title_before_the_text(folder, kind, engine):
    found = Paper(folder, engine, paper(rf"\pithnumber{{{SUFFIX}}}", kind=kind)).compiled()
    lines = [line.lower() for line in found.lines]
    badge = lines.index(f"pith {SUFFIX}".lower())
    assert lines.index("on the persistence of records") < badge
    assert badge < next(at for at, line in enumerate(lines) if "introduction" in line)
    assert found.links == [f"{HERE}/pith/{SUFFIX}"]
    if "page" in kind or kind == "{report}":
        assert SUFFIX in found.text.split("\f")[0]


@pytest.mark.parametrize("engine", ENGINES)
def test_with_hyperref_its_own_title_and_settings_stay(folder, engine):
    load = r"\usepackage{pith}\usepackage[pdftitle={Mine},pdfauthor={Me},colorlinks]{hyperref}"
    found = Paper(folder, engine, paper(rf"\pithnumber{{{NUMBER}}}", load=load)).compiled()
    assert found.facts["Title"] == "Mine"
    assert found.facts["Author"] == "Me"
    assert found.facts["PithNumber"] == NUMBER
    assert found.links == [f"{HERE}/pith/{SUFFIX}"]


def test_every_form_of_a_number_leads_to_its_page_from_preamble_and_text(folder):
    numbers = (NUMBER, SUFFIX.lower(), f"pith:{SUFFIX[:8]}", SUFFIX[:12], f"sha256:{DIGEST}")
    calls = "".join(rf"\pithnumber{{{number}}}" for number in numbers)
    load = r"\usepackage{pith}" + calls
    # Languages make colons active; a number's are none of theirs.
    last = r"\catcode`\:=13 \def:{!}" + rf"\pithnumber{{pith:2024:{'A' * 26}}}"
    found = Paper(folder, "pdflatex", paper("", load=load, last=last)).compiled()
    paths = [f"pith/{SUFFIX}", f"pith/{SUFFIX}", f"pith/{SUFFIX[:8]}", f"pith/{SUFFIX[:12]}",
             f"record/{DIGEST}", f"pith/{'A' * 26}"]  # fmt: skip
    assert found.links == [f"{HERE}/{path}" for path in paths]
    assert found.facts["PithNumber"] == ", ".join(
        [NUMBER, f"pith:{SUFFIX}", f"pith:{SUFFIX[:8]}", f"pith:{SUFFIX[:12]}", f"sha256:{DIGEST}",
         f"pith:2024:{'A' * 26}"]
    )  # fmt: skip


def test_without_a_title_the_badge_stands_where_it_is_called_once_that_is_known(folder):
    source = paper(rf"Before \pithnumber{{{SUFFIX}}} after.", title="")
    first = Paper(folder, "pdflatex", source).compiled()
    assert "Run LaTeX again" in first.said
    assert SUFFIX in first.text
    second = Paper(folder, "pdflatex", source).compiled()
    assert f"Before pith {SUFFIX} after" in " ".join(second.lines)
    assert second.text.count(SUFFIX) == 1
    assert "Run LaTeX again" not in second.said


def test_a_style_that_leaves_the_date_out_has_the_badge_after_its_title(folder):
    title = TITLE + (
        r"\makeatletter\def\@maketitle{\begin{center}\@title\par\@author\end{center}}\makeatother"
    )
    found = Paper(folder, "pdflatex", paper(rf"\pithnumber{{{SUFFIX}}}", title=title)).compiled()
    assert found.lines[:3] == ["On the Persistence of Records", "A. Author", f"pith {SUFFIX}"]


def test_host_leads_elsewhere_and_nobadge_leaves_the_metadata_alone(folder):
    load = r"\usepackage[host=https://other.example.org/a_b/\string~c/]{pith}"
    found = Paper(folder, "pdflatex", paper(rf"\pithnumber{{{SUFFIX}}}", load=load)).compiled()
    assert found.links == [f"https://other.example.org/a_b/~c/pith/{SUFFIX}"]
    load = r"\usepackage[nobadge]{pith}"
    found = Paper(folder, "lualatex", paper(rf"\pithnumber{{{NUMBER}}}", load=load)).compiled()
    assert SUFFIX not in found.text
    assert found.links == []
    assert found.facts["PithNumber"] == NUMBER


@pytest.mark.parametrize("host", ["javascript:alert(1)", "https://example.org/)>>/X<<(", "ftp://x"])
def test_what_is_no_address_is_told_and_never_linked(folder, host):
    load = rf"\usepackage[host={{{host}}}]{{pith}}"
    found = Paper(folder, "pdflatex", paper(rf"\pithnumber{{{SUFFIX}}}", load=load)).compiled()
    assert found.links == []
    assert SUFFIX in found.text
    assert "is no address" in found.said


@pytest.mark.parametrize(
    "number",
    ["", "LOHGU5A", SUFFIX + "A", "LOHGU5A1", "pith:25:LOHGU5AX", f"sha256:{DIGEST[:-1]}",
     r"LOHGU5AX\write18", "LOHGU5AX)>>"],
)  # fmt: skip
def test_what_is_no_number_is_an_error_that_says_so(folder, number):
    found = Paper(folder, "pdflatex", paper(rf"\pithnumber{{{number}}}"))
    assert found.done.returncode
    assert "is no Pith Number" in found.said


def test_a_site_without_an_address_hands_out_a_package_without_one():
    assert pith_sty(Site()) == pith_sty(Site(base_url="https://example.org/%41}#\\"))
    assert pith_sty(Site(base_url=HERE)).count(HERE.encode()) == 1
    assert HERE.encode() not in pith_sty(Site())


def test_a_paper_that_is_made_into_dvi_compiles_too(folder):
    Paper(folder, "latex", paper(rf"\pithnumber{{{SUFFIX}}}")).compiled()
