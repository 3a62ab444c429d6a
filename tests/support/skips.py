"""A run fails when a test that should have run was skipped (`--fail-on-skip`, as `make test` does).

Skipping is how a suite stops testing without anybody noticing. What may be skipped stands in
`ALLOWED`, with the reason and where it holds.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ALLOWED: list[tuple[str, Callable[[], bool]]] = [
    # A clone without the data folder beside it may still test everything else; CI has the folder.
    ("../shared/data is absent", lambda: not os.environ.get("CI")),
    # The oracle is published without wheels for 3.14; constraints-dev.txt leaves it out there.
    ("py-bitcoinkernel has no wheel", lambda: sys.version_info >= (3, 14)),
]
"""Part of a skip's reason -> where skipping for it is right."""


def is_allowed(reason: str) -> bool:
    """Tell whether a skip with this reason is right here."""
    return any(part in reason and holds() for part, holds in ALLOWED)


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help="fail when a test was skipped for a reason that tests/support/skips.py does not allow",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fail-on-skip") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(SkipWatch(), "anchord-skip-watch")
