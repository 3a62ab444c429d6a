"""A run fails when a test that should have run was skipped (`--fail-on-skip`, as `make test` does).

Skipping is how a suite stops testing without anybody noticing. What may be skipped stands in
`ALLOWED`, with the reason and where it holds.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ALLOWED: list[tuple[str, Callable[[], bool]]] = [
    # A clone without the data folder beside it may still test everything else; CI has the folder.
    ("../shared/data is absent", lambda: not os.environ.get("CI")),
    # It formats the manual pages; CI installs it.
    ("groff is not installed", lambda: not os.environ.get("CI")),
    # It compiles papers with pith.sty and reads their PDFs; CI installs it.
    ("TeX or poppler-utils is not installed", lambda: not os.environ.get("CI")),
]
"""Part of a skip's reason -> where skipping for it is right."""


def is_allowed(reason: str) -> bool:
    """Tell whether a skip with this reason is right here."""
    return any(part in reason and holds() for part, holds in ALLOWED)


def lacks_oracle() -> bool:
    """Tell whether this Python is one that py-bitcoinkernel has no wheels for, and it is absent.

    constraints-dev.txt leaves the oracle out from 3.14 on. On every other Python its absence is an
    error, as for any import.
    """
    return sys.version_info >= (3, 14) and importlib.util.find_spec("pbk") is None


class SkipWatch:
    """Collects the skips that are not allowed; with xdist this happens in the controller."""

    def __init__(self) -> None:
        self.unexpected: list[str] = []

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        longrepr = report.longrepr
        reason = str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)
        if not is_allowed(reason):
            self.unexpected.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.unexpected and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unexpected:
            terminalreporter.section("skipped, but should have run", red=True)
            for line in sorted(set(self.unexpected)):
                terminalreporter.line(line)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the tests of the header oracle where it cannot be had."""
    if collection_path.suffix != ".py" or not lacks_oracle():
        return None
    return "import pbk" in collection_path.read_text("utf-8") or None


def pytest_report_header() -> str | None:
    return "py-bitcoinkernel has no wheels here: its tests are left out" if lacks_oracle() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help="fail when a test was skipped for a reason that tests/support/skips.py does not allow",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fail-on-skip") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipWatch(), "anchord-skip-watch")
