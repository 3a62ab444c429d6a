"""The demo's records in a browser: `anchord serve` on a free port, while the stand-ins run on."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import socket
from pathlib import Path

import click

from anchord.app.cli.demo_audit import PUBLISHED
from anchord.errors import ConfigError

_HOST = "127.0.0.1"
_EXTRA = "uvicorn"


def check_servable() -> None:
    """Refuse before anything has been done, not after.

    Raises:
        ConfigError: what serves is not installed.
    """
    if importlib.util.find_spec(_EXTRA) is None:
        raise ConfigError(f"{_EXTRA} is not installed: pip install 'anchord[web]'")


def serve_demo(config: str, folder: Path, *, quiet: bool) -> None:
    """Show the records until Ctrl-C; the store is read, nothing is written.

    Args:
        config: configuration of the sandbox.
        folder: where the demo ran.
        quiet: the address goes to stderr, for stdout has a document.
    """
    from anchord.app.cli.main import cli

    address = f"{_HOST}:{_free_port()}"
    click.echo(f"Look at the records: http://{address}/ (Ctrl-C ends it)", err=quiet)
    tree = (folder / PUBLISHED).resolve()
    words = ["-c", config, "serve", "--bind", address, "--tree", str(tree)]
    with contextlib.redirect_stdout(io.StringIO()):
        cli.main(words, standalone_mode=False, prog_name="anchord")


def _free_port() -> int:
    with socket.create_server((_HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
    return port
