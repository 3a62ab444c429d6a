"""Imports point down only, core is pure, files stay readable; and this test would notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import layers

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "anchord"
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 400
LONGER: dict[str, str] = {}
"""Files that may be longer, with the reason."""


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def test_the_package_was_found() -> None:
    assert len(FILES) > 20


@pytest.mark.parametrize("file", FILES, ids=_name)
def test_imports_point_down_and_core_is_pure(file: Path) -> None:
    module = layers.module_name(PACKAGE, file)
    source = file.read_text("utf-8")
    found = layers.problems(module, source, is_package=file.name == "__init__.py")
    assert found == [], f"{_name(file)} {found}"


def test_no_file_is_too_long_to_hold_one_idea() -> None:
    lines = {_name(file): len(file.read_text("utf-8").splitlines()) for file in FILES}
    too_long = {name: count for name, count in lines.items() if count > MAX_LINES}
    assert too_long.keys() == LONGER.keys(), too_long


def test_nine_functions_in_ten_are_short() -> None:
    lengths = sorted(
        length for file in FILES for _, length in layers.function_lengths(file.read_text("utf-8"))
    )
    assert lengths[int(len(lengths) * 0.9)] <= 35


def test_running_anchord_never_loads_what_loads_libssl() -> None:
    """Also through other packages: import everything, then look what came along."""
    script = f"""
import importlib, pkgutil, sys, anchord
for found in pkgutil.walk_packages(anchord.__path__, "anchord."):
    if "__main__" not in found.name and ".migrations" not in found.name:
        importlib.import_module(found.name)
bad = {layers.FORBIDDEN_ANYWHERE!r}
print([m for m in sys.modules if any((m + ".").startswith(b + ".") for b in bad)])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


VIOLATIONS = [
    ("anchord.core.x", "from anchord import ports", "runs up"),
    ("anchord.core.x", "from anchord.adapters.http import client", "runs up"),
    ("anchord.core.x", "from .. import ports", "runs up"),
    ("anchord.core.x", "from ..engine.run import run_pass", "runs up"),
    ("anchord.ports", "import anchord.adapters.store", "runs up"),
    ("anchord.ports", "from anchord.app.config import Config", "runs up"),
    ("anchord.engine.x", "def f():\n    from anchord.adapters.store import schema", "runs up"),
    ("anchord.engine.x", "if TYPE_CHECKING:\n    import anchord.adapters.http", "runs up"),
    ("anchord.engine.x", "from anchord import app", "runs up"),
    ("anchord.engine.x", "import anchord.sandbox.run", "runs up"),
    ("anchord.adapters.x", "from anchord.engine import run", "runs up"),
    ("anchord.adapters.x", "import anchord.app.config", "runs up"),
    ("anchord.adapters.calendars", "from anchord.adapters.store import schema", "another one"),
    ("anchord.adapters.store.x", "from anchord.adapters.headers import esplora", "another one"),
    ("anchord.adapters.headers.x", "from ..store import schema", "another one"),
    ("anchord.sandbox.x", "from anchord.adapters import http", "runs up"),
    ("anchord.sandbox.x", "from anchord.app import config", "runs up"),
    ("anchord.errors", "from anchord.core import model", "runs up"),
    ("anchord", "from anchord.core import model", "runs up"),
    ("anchord.core.x", "import anchord.novel", "no layer"),
    ("anchord.novel", "", "no layer"),
    ("anchord.core.x", "import time", "imports time"),
    ("anchord.core.x", "def f():\n    from random import randint", "imports random"),
    ("anchord.core.x", "import secrets, socket", "imports socket"),
    ("anchord.core.x", "import logging.handlers", "imports logging"),
    ("anchord.core.x", "open('f')", "calls open()"),
    ("anchord.core.x", "datetime.now(UTC)", "calls .now()"),
    ("anchord.core.x", "x = os.urandom(16)", "calls .urandom()"),
    ("anchord.adapters.x", "import bitcoin.rpc", "libssl"),
    ("anchord.adapters.x", "from bitcoin import rpc", "libssl"),
    ("anchord.app.cli.x", "def f():\n    from otsclient.cmds import stamp", "libssl"),
    ("anchord.core.utils", "", "named utils"),
    ("anchord.adapters.base.x", "", "named base"),
]


@pytest.mark.parametrize(("module", "source", "expected"), VIOLATIONS)
def test_each_kind_of_violation_is_found(module: str, source: str, expected: str) -> None:
    assert any(expected in problem for problem in layers.problems(module, source))


LAWFUL = [
    ("anchord.core.x", "import hashlib\nfrom anchord import errors\nfrom . import merkle"),
    ("anchord.adapters.calendars", "import time\nfrom anchord.adapters import http"),
    ("anchord.adapters.store.x", "from anchord.adapters.store import schema\nfrom . import y"),
    ("anchord.adapters.headers.x", "from anchord.adapters.http import client"),
    ("anchord.engine.x", "from anchord.ports import Clock\nfrom anchord import __version__"),
    ("anchord.sandbox.x", "import socket\nimport bitcoin.core\nfrom anchord.core import proof"),
    ("anchord.app.cli.x", "from anchord.sandbox import run\nfrom anchord.engine import run"),
    ("anchord.__main__", "from anchord.app.cli.main import main"),
]


@pytest.mark.parametrize(("module", "source"), LAWFUL)
def test_what_is_lawful_passes(module: str, source: str) -> None:
    assert layers.problems(module, source) == []
