"""Finds parsers of foreign bytes that no target feeds.

A parser is a public function that takes bytes, a stream or an answer, and whose name or parameter
says that it reads: foreign bytes are called `raw` or `stream` everywhere in anchord,
and functions that judge them begin with one of `VERBS`. What a target reaches is seen while it is
fed with its seeds, not declared.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import anchord
from anchord.core import tsa
from support.fuzzing.engine import Target

ROOT = Path(anchord.__file__).parent
LAYERS = ("core", "adapters", "engine", "app")
VERBS = ("read_", "parse", "check_", "open_", "load_", "stated_", "split_", "verify_", "decode",
         "from_", "look", "unpack", "receive", "judge")  # fmt: skip
FOREIGN = frozenset(("raw", "stream", "answer", "token", "pem", "line", "head"))
TYPES = ("bytes", "BinaryIO", "IO[bytes]", "Response", "Answer")

Name = str
"""`core/note.py:parse`"""


def parsers() -> Iterator[Name]:
    """Yield every function that looks like a parser of foreign bytes."""
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef) and _parses(node):
                    yield f"{path.relative_to(ROOT).as_posix()}:{node.name}"


def _parses(node: ast.FunctionDef) -> bool:
    if node.name.startswith("_"):
        return False
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    foreign = [one for one in arguments if one.annotation and _takes(ast.unparse(one.annotation))]
    if not foreign:
        return False
    return node.name.startswith(VERBS) or any(one.arg in FOREIGN for one in foreign)


def _takes(annotation: str) -> bool:
    return any(kind in annotation for kind in TYPES) and "Callable" not in annotation


def reached(targets: tuple[Target, ...]) -> set[Name]:
    """Return the functions of anchord that run while targets are fed with their seeds."""
    found: set[Name] = set()
    root = f"{ROOT}/"

    def called(frame: FrameType, event: str, _argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root):
            found.add(f"{code.co_filename[len(root) :]}:{code.co_name}")

    tsa.read_token.cache_clear()  # who ran before may have read the same tokens
    for target in targets:
        seeds = target.seeds()
        sys.setprofile(called)
        try:
            for data in seeds:
                with contextlib.suppress(*target.lawful):
                    target.feed(data)
        finally:
            sys.setprofile(None)
    return found
