"""`anchord backup`: one verified file of everything that cannot be made again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli.output import emit_json, shown_progress
from anchord.app.wiring import open_app

if TYPE_CHECKING:
    from anchord.adapters.backups.tarball import Manifest


@click.command(short_help="Write store, configuration and keyring to one verified file.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--with-keys", is_flag=True, help="Also the private keys; they must be encrypted.")
@click.option("--plain-keys", is_flag=True, help="Also private keys that are not encrypted.")
@click.option("--with-headers", is_flag=True, help="Also the header file; it can be fetched again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    config_path: str | None,
    file: Path,
    with_keys: bool,
    plain_keys: bool,
    with_headers: bool,
    as_json: bool,
) -> None:
    """Write a consistent backup to FILE, a tar, while passes go on.

    In it are the store as it is at one moment, anchord.toml, the keyring, and a manifest with the
    SHA-256 of each. Before FILE gets its name, the copy's ledger is checked row by row and the
    file is read back; it is never written over. Passphrase and archive credentials are never in
    it: keep them elsewhere, and the private keys too unless you say --with-keys.

    \b
    Examples:
      anchord backup /backup/anchord-$(date +%F).tar
      anchord backup --with-keys --json /backup/anchord.tar

    Exit code: 0 done, 2 a person must act, 3 the store is busy, 4 the store's ledger does not
    hold or the disk is full.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    from anchord.app.backup.making import make, private_keys

    with open_app(config_path) as app, shown_progress(quiet=as_json) as tell:
        keys = private_keys(app, plain=plain_keys) if with_keys or plain_keys else ()
        manifest = make(app, file, keys=keys, headers=with_headers, on_progress=tell)
    if as_json:
        emit_json(document(file, manifest))
        return
    size = file.stat().st_size
    click.echo(f"{file}: {size:,} bytes, {manifest.events:,} events, verified")
    if not keys:
        click.echo("The private keys are not in it: keep a copy of them elsewhere.", err=True)


def document(file: Path, manifest: Manifest) -> dict[str, Any]:
    """Return a backup's manifest with the file's name, for scripts."""
    return {"file": str(file), **msgspec.to_builtins(manifest)}
