"""The findings an audit can come to are those that docs/audit.md lists, with the same degrees."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import anchord
from anchord.core.finding import Severity
from anchord.engine.audit.tree_words import _ENDINGS

HERE = Path(__file__).resolve().parents[2]
SOURCES = sorted((Path(anchord.__file__).parent / "engine" / "audit").glob("*.py"))
CODE = re.compile(r"[a-z]+(-[a-z]+)+")
NO_CODES = {
    "utf-8", "anchord-orphan",
    # What an archive answered, within the words of a finding.
    "bad-name", "tasks-pending", "too-large", "unknown-answer",
}  # fmt: skip
ROW = re.compile(r"^\| `([a-z-]+)` \| ([a-z, ]+) \| .{10,} \|$", re.MULTILINE)
ENDING = re.compile(r"^\| `-([a-z-]+)` \| .{10,} \|$", re.MULTILINE)
FINDERS = {"find", "_find", "_broken", "_log_finding", "_tile_finding"}


def doc() -> str:
    return (HERE / "docs" / "audit.md").read_text("utf-8")


def nodes() -> Iterator[ast.AST]:
    for source in SOURCES:
        yield from ast.walk(ast.parse(source.read_text("utf-8")))


def name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_every_code_is_listed_once_and_no_other() -> None:
    endings = {words for _, words in _ENDINGS} | {"wrong"}
    texts = {
        node.value
        for node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    codes = {text for text in texts if CODE.fullmatch(text)} - NO_CODES
    listed = [code for code, _ in ROW.findall(doc())]
    assert len(listed) == len(set(listed)) > 90
    # `signature-wrong` is both a code and an ending.
    assert codes - set(listed) == endings - set(listed) - {"changed", "unreadable", "wrong"}
    assert set(listed) - codes == set()
    assert set(ENDING.findall(doc())) == endings


def test_every_thing_a_code_is_made_of_is_listed() -> None:
    things = {
        node.args[1].value
        for node in nodes()
        if isinstance(node, ast.Call) and name_of(node.func) == "code_of"
        and isinstance(node.args[1], ast.Constant)
    }  # fmt: skip
    said = re.search(r"Where a (.*?) does not hold", doc())
    assert said is not None
    assert set(re.findall(r"`([a-z]+)`", said[1])) == things


def test_degrees_that_a_call_states_are_listed() -> None:
    listed = {code: set(degrees.split(", ")) for code, degrees in ROW.findall(doc())}
    names = {one.name: one.value for one in Severity}
    wrong = []
    for node in nodes():
        if not isinstance(node, ast.Call) or name_of(node.func) not in FINDERS or not node.args:
            continue
        code = node.args[0]
        if not isinstance(code, ast.Constant) or not isinstance(code.value, str):
            continue
        if code.value not in listed:
            wrong.append(code.value)
            continue
        stated = {
            names[one.attr]
            for argument in node.args
            for one in ast.walk(argument)
            if isinstance(one, ast.Attribute) and one.attr in names
        }
        if not stated <= listed[code.value]:
            wrong.append(f"{code.value}: {stated}")
    assert wrong == []
