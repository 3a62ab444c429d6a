"""The layers of the package as rules over imports, for tests/test_architecture.py.

Works on syntax trees, so imports inside functions and under TYPE_CHECKING count too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALLOWED = {
    "errors": {"errors"},
    "core": {"core", "errors"},
    "ports": {"ports", "core", "errors"},
    "adapters": {"adapters", "ports", "core", "errors"},
    "engine": {"engine", "ports", "core", "errors"},
    "sandbox": {"sandbox", "core", "errors"},
    "app": {"app", "sandbox", "engine", "adapters", "ports", "core", "errors"},
    "__main__": {"app"},
    "": set(),
}
"""Part of the package -> the parts it may import. "" is the package itself (its version)."""

SHARED_ADAPTERS = {"disk", "hangup", "http"}
"""Adapters that other adapters may use."""

IMPURE_MODULES = {
    "asyncio", "http", "io", "logging", "multiprocessing", "os", "pathlib", "random", "secrets",
    "select", "socket", "sqlalchemy", "sqlite3", "ssl", "structlog", "subprocess", "sys",
    "tempfile", "threading", "time", "urllib", "urllib3", "uuid", "warnings",
}  # fmt: skip
"""What would bring the outside into core."""

IMPURE_CALLS = {"open", "print", "input", "breakpoint", "exec", "eval", "globals", "__import__"}
IMPURE_METHODS = {"now", "utcnow", "today", "urandom", "import_module"}
"""Names that, called as methods in core, read the clock or the machine."""

FORBIDDEN_ANYWHERE = ("bitcoin.rpc", "bitcoin.wallet", "bitcoin.core.key", "otsclient")
"""They load libssl through ctypes, which fails on machines without it."""

FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "base", "misc"}


class Use(NamedTuple):
    """One import statement's target."""

    line: int
    module: str


def module_name(root: Path, file: Path) -> str:
    """Return the dotted name of `file`, where `root` is the package's folder."""
    parts = [root.name, *file.relative_to(root).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST, package: str) -> Iterator[Use]:
    """Yield each module imported anywhere in `tree`; `from a import b` yields a.b.

    `package` resolves relative imports.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Use(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                source = ".".join([*above, source] if source else above)
            yield from (Use(node.lineno, f"{source}.{alias.name}") for alias in node.names)


def _part(module: str) -> str:
    """Return the part of anchord a dotted name lies in; "" for the package itself."""
    names = module.split(".")
    return names[1] if len(names) > 1 and names[1] in ALLOWED else ""


def _arrow_problem(source: str, target: str) -> str | None:
    mine, theirs = _part(source), _part(target)
    if theirs == "":
        known = target.split(".")[1:] in ([], ["__version__"])
        return None if known else f"imports {target}, which is in no layer"
    if theirs not in ALLOWED[mine]:
        return f"is in {mine or 'the package itself'} and imports {target}: the arrow runs up"
    if mine == theirs == "adapters":
        return _adapter_problem(source.split(".")[2:], target.split(".")[2:], target)
    return None


def _adapter_problem(source: list[str], target: list[str], name: str) -> str | None:
    if not target or target[0] in SHARED_ADAPTERS or source[:1] == target[:1]:
        return None
    return f"is an adapter and imports another one, {name}"


def _core_problems(tree: ast.AST, used: list[Use]) -> Iterator[str]:
    for use in used:
        if use.module.split(".")[0] in IMPURE_MODULES:
            yield f"line {use.line}: is in core and imports {use.module}"
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in IMPURE_CALLS:
            yield f"line {node.lineno}: is in core and calls {called.id}()"
        if isinstance(called, ast.Attribute) and called.attr in IMPURE_METHODS:
            yield f"line {node.lineno}: is in core and calls .{called.attr}()"


def problems(module: str, source: str, *, is_package: bool = False) -> list[str]:
    """Return every rule that the text of one module breaks."""
    tree = ast.parse(source)
    package = module if is_package else module.rpartition(".")[0]
    used = list(imports(tree, package))
    found = []
    if len(module.split(".")) > 1 and _part(module) == "":
        found.append("is in no layer: add its part to tests/support/layers.py")
    for use in used:
        if use.module.split(".")[0] == "anchord":
            problem = _arrow_problem(module, use.module)
            found += [f"line {use.line}: {problem}"] if problem else []
        if any(f"{use.module}.".startswith(f"{name}.") for name in FORBIDDEN_ANYWHERE):
            found.append(f"line {use.line}: imports {use.module}, which loads libssl by ctypes")
    if _part(module) == "core":
        found += _core_problems(tree, used)
    bad = FORBIDDEN_NAMES & set(module.split("."))
    if bad:
        found.append(f"is named {bad.pop()}, which says nothing about its one idea")
    return found


def function_lengths(source: str) -> list[tuple[str, int]]:
    """Return name and number of lines of every function."""
    return [
        (node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
