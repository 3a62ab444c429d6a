"""`anchord bundle`: one record's bundle, whatever it holds so far."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from anchord.app.wiring import open_app


@click.command(short_help="Print a record's bundle: record, events, whole proofs, keys.")
@click.argument("record", metavar="RECORD")
@click.option("-o", "--output", metavar="FILE", default="-",
              help="File to write (default: standard output).")  # fmt: skip
@click.option("--force", is_flag=True, help="Replace a file that says something this does not.")
@click.pass_obj
def command(config_path: str | None, record: str, output: str, force: bool) -> int:
    """Print the bundle of RECORD: everything a stranger needs to check it offline.

    RECORD is any name of a record: Pith Number, short form, digest, arXiv id, DOI. A record that
    has no proof yet has a bundle, too, of what is there. The bytes are those that `anchord mirror
    publish` writes, and the same on every mirror that knows the same.

    \b
    Examples:
      anchord bundle 2507.10392 | anchord verify -
      anchord bundle pith:2025:LOHGU5AX -o paper.bundle.json

    Exit code: 0 it was written, 1 the record is not known or a file was kept.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.cli.references import one_record
    from anchord.engine.export import record_bundle

    with open_app(config_path) as app:
        data = record_bundle(app.store, app.keyring, one_record(app.store, record)) + b"\n"
    if output == "-":
        sys.stdout.buffer.write(data)
        return 0
    return _written(Path(output), data, force=force)


def _written(path: Path, data: bytes, *, force: bool) -> int:
    """Write a file whole or not at all; one that says more is kept."""
    from anchord.adapters.outputs.folder import FolderOutput
    from anchord.core.bundle_text import follows
    from anchord.errors import ConfigError

    if path.is_dir():
        raise ConfigError(f"-o {path} is a folder: name a file, or see `anchord export --bundle`")
    folder = FolderOutput(path.parent, follows, force=force)
    outcome = folder.put(path.name, data)
    folder.close()
    if outcome == "kept":
        click.echo(f"{path} kept: it says something the bundle does not; see --force", err=True)
        return 1
    return 0
