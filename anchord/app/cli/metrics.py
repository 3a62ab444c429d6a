"""`anchord metrics`: the store's numbers for Prometheus, printed or put into a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from anchord.app.config import load
from anchord.errors import ConfigError

_MODE = 0o644
"""The collector that reads the file runs as another user; there is no secret in it."""


@click.command(short_help="Print the store's numbers for Prometheus.")
@click.option("-o", "--output", "file", type=click.Path(dir_okay=False, path_type=Path),
              help="Write to FILE at once, over what is there; best *.prom.")  # fmt: skip
@click.pass_obj
def command(config_path: str | None, file: Path | None) -> None:
    """Print what `anchord run` shows at `service.metrics`, as far as it is in the store.

    For passes by timer, where nothing runs that could be asked: `--output` writes the file that
    node_exporter's textfile collector reads. Nothing is asked of anybody, and nothing is written
    to the store. What one process counts (attempts, passes, memory) is not in it. docs/metrics.md
    has every name.

    \b
    Examples:
      anchord metrics | grep oldest
      anchord metrics -o /var/lib/prometheus/node-exporter/anchord.prom

    Exit code: 0 done, 2 the store or FILE cannot be opened, 3 the store is busy, 4 it cannot be
    read. When it is not 0, FILE stays as it was, and its age tells.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.metrics.exposition import text_now

    text = text_now(load(config_path))
    if file is None:
        sys.stdout.buffer.write(text)
    else:
        _replace(file, text)


def _replace(file: Path, text: bytes) -> None:
    """Let a file have new contents at once; a reader sees all of the old or all of the new.

    Its name of meanwhile ends otherwise, so that no collector takes it. Nothing is synced: after a
    crash the next run writes it again.
    """
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _MODE)
        try:
            with os.fdopen(handle, "wb") as output:
                os.fchmod(handle, _MODE)
                output.write(text)
            beside.replace(file)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ConfigError(
            f"{file} cannot be written: {error.strerror or error}; check its folder"
        ) from None
