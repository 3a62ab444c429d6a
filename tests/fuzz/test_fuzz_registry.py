"""No parser of foreign bytes is forgotten, and whoever reads JSON knows how it can fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from support.fuzzing.exempt import EXEMPT
from support.fuzzing.finder import ROOT, parsers, reached
from support.fuzzing.targets import TARGETS


def test_every_parser_of_foreign_bytes_is_fed_by_a_target() -> None:
    found, fed = set(parsers()), reached(TARGETS)
    assert len(found) > 80, "the finder looks in the wrong place"
    missing = sorted(found - fed - set(EXEMPT))
    assert not missing, f"add a target in tests/support/fuzzing, or a reason to EXEMPT: {missing}"


def test_every_exemption_is_of_something_that_is_there() -> None:
    found = set(parsers())
    stale = [name for name in EXEMPT if name not in found and (ROOT / name.split(":")[0]).exists()]
    assert not stale
    assert all(EXEMPT.values())


def test_targets_have_names_of_their_own() -> None:
    names = [target.name for target in TARGETS]
    assert len(set(names)) == len(names)


OWN_JSON = {
    "adapters/archives/account.py": "our own note in our own lock",
    "adapters/archives/item_child.py": "our own child process",
    "adapters/sources/resolver.py:_read": "a cursor that we wrote",
    "adapters/sources/sql_cursor.py": "a cursor that we wrote",
    "adapters/store/serving.py": "our own note in our own lock",
    "adapters/outputs/tree.py": "our own spool",
    "app/archive_wiring.py": "what we keep of a lane",
    "core/merge.py": "what json.dumps has just written",
    "core/bundle_text.py": "pieces of what was read with a limit on its depth",
    "engine/audit/store_records.py": "record bytes that have their digest, whose depth is limited",
    "engine/audit/tree_items.py:_day": "a manifest that was read with a limit on its depth",
    "engine/stored.py": "record bytes that have their digest, whose depth is limited",
    "engine/uploading.py": "what we keep of a lane",
}
"""Files, or functions in one, in which JSON is read that cannot be nested too deeply."""


def test_whoever_reads_json_of_strangers_knows_that_it_may_be_nested_too_deeply() -> None:
    """Both parsers raise RecursionError, which is no ValueError."""
    forgetful = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith("sandbox/") or name in OWN_JSON:
            continue
        for function in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef) and f"{name}:{function.name}" not in OWN_JSON:
                forgetful += [f"{name}:{line}" for line in _forgetful(function)]
    assert not forgetful


def _forgetful(function: ast.FunctionDef) -> Iterator[int]:
    for node in ast.walk(function):
        if isinstance(node, ast.Try) and any(map(_reads_json, node.body)):
            caught = " ".join(ast.unparse(h.type) for h in node.handlers if h.type)
            if not any(word in caught for word in ("RecursionError", "UNREADABLE")):
                yield node.lineno


def _reads_json(node: ast.AST) -> bool:
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    return any(ast.unparse(call.func) in ("json.loads", "msgspec.json.decode") for call in calls)
