"""SECURITY.md says where each attack stops: what it names is there, and its tests are run."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text("utf-8")
MODEL = TEXT.partition("## Threat model")[2].partition("\n## ")[0]
PLACE = re.compile(r"`([\w/]+\.py):(\w+|\*)`")

ATTACKERS = (
    "calendar", "explorer", "peer", "archive", "source of records", "mirror", "database",
    "receiver", "visitor", "user of the same machine", "thief of the signing key",
    "installed",
)  # fmt: skip


def rows() -> list[tuple[str, str, str, str]]:
    """Return (attacker, attempt, where, test) of every row."""
    found, attacker = [], ""
    for line in MODEL.splitlines():
        if line.startswith("### "):
            attacker = line[4:]
        elif line.startswith("| ") and not line.startswith(("| it tries to", "| ---")):
            attempt, where, shown = (cell.strip() for cell in line.strip("|").split("|"))
            found.append((attacker, attempt, where, shown))
    return found


@cache
def names(path: Path) -> frozenset[str]:
    """Return the functions and classes of a file."""
    kinds = (ast.FunctionDef, ast.ClassDef)
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return frozenset(node.name for node in nodes if isinstance(node, kinds))


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]}: {row[1]}"[:60])
def test_every_row_names_functions_and_tests_that_are_there(row: tuple[str, str, str, str]) -> None:
    for cell, folder in ((row[2], ROOT / "anchord"), (row[3], ROOT / "tests")):
        if (ROOT / cell.strip("`")).is_file():
            continue  # a file of the repository that is no code
        places = PLACE.findall(cell)
        assert places, cell
        assert re.fullmatch(r"[`\w/.:*]+(, [`\w/.:*]+)*", cell), f"not a list of places: {cell}"
        for file, name in places:
            path = folder / file
            assert path.is_file(), path
            assert name == "*" or name in names(path), f"{file} has no {name}"


def test_every_kind_of_attacker_has_its_rows() -> None:
    attackers = {row[0].lower() for row in rows()}
    for wanted in ATTACKERS:
        assert any(wanted in attacker for attacker in attackers), wanted
    assert len(rows()) > 40


def test_every_test_of_security_and_fuzzing_is_of_use_to_the_model() -> None:
    """A file of this folder that no row names guards something nobody wrote down."""
    named = {file for row in rows() for file, _ in PLACE.findall(row[3])}
    ours = {
        path.relative_to(ROOT / "tests").as_posix()
        for path in Path(__file__).parent.glob("test_*.py")
    }
    assert ours - {"security/test_security_model.py"} <= named
