"""Running anchord's commands, in this process or as one of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from anchord.app.cli.main import cli
from anchord.errors import AnchordError


class Ran:
    """What a command printed and how it ended."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def anchord(*arguments: str | Path, config: Path | None = None) -> Ran:
    """Run a command in this process, ending as `anchord.app.cli.main.main` would."""
    words = [str(word) for word in arguments]
    if config is not None:
        words = ["-c", str(config), *words]
    result = CliRunner().invoke(cli, words, standalone_mode=False)
    error = result.exception
    if error is None:
        code = result.return_value
        return Ran(code if isinstance(code, int) else 0, result.stdout, result.stderr)
    if isinstance(error, AnchordError):
        return Ran(error.exit_code, result.stdout, f"{result.stderr}anchord: {error}\n")
    if isinstance(error, click.ClickException):
        return Ran(2, result.stdout, result.stderr + error.format_message())
    raise error


def start(*arguments: str | Path, config: Path | None = None) -> subprocess.Popen[str]:
    """Start a command as a process."""
    words = [sys.executable, "-m", "anchord"]
    if config is not None:
        words += ["-c", str(config)]
    return subprocess.Popen(
        [*words, *[str(word) for word in arguments]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
