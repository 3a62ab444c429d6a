"""`anchord restore`: a verified backup into an empty folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from anchord.app.cli.output import emit_json, shown_progress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.backup.restoring import Restored


@click.command(short_help="Put a backup into an empty folder, verified first.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, file: Path, folder: Path, as_json: bool) -> None:
    """Verify FILE, made by `anchord backup`, and put what is in it into DIR.

    DIR must be empty or not there yet: nothing is ever written over. Every file is held against
    the manifest and the ledger is checked before DIR gets its name, so what is there is whole.
    No configuration is read.

    What happened since the backup is asked again from the calendars by the next pass; records
    that were added since must be added again, and adding one twice changes nothing.

    Exit code: 0 done, 1 FILE is no whole backup, 2 a person must act, 4 its ledger does not hold
    or the disk is full.
    """
    del config_path
    from anchord.app.backup.restoring import restore

    with shown_progress(quiet=as_json) as tell:
        done = restore(file, folder, tell)
    notes = list(_notes(folder, done))
    if as_json:
        from anchord.app.cli.backup import document

        said = {"folder": str(folder), "private_keys": done.private_keys, "notes": notes}
        emit_json({**document(file, done.manifest), **said})
        return
    click.echo(f"{folder}: the backup of {done.manifest.created_at}, verified")
    for note in notes:
        click.echo(note, err=True)


def _notes(folder: Path, done: Restored) -> Iterator[str]:
    """Yield what is left to do, by hand."""
    from anchord.app.config import load
    from anchord.app.wiring import store_url

    config = folder / done.manifest.config
    loaded = load(str(config))
    if not done.private_keys:
        where = folder / done.manifest.keys
        yield f"Private keys are not in it: copy them to {where}, or run `anchord key rotate`."
    if not store_url(loaded).endswith(str((folder / done.manifest.store).absolute())):
        yield f"store.url in {config} names another place: set it to sqlite:///{done.manifest.store}"
    if loaded.resolve(loaded.config.signer.key_dir) != (folder / done.manifest.keys).absolute():
        yield f'signer.key_dir in {config} names another place: set it to "{done.manifest.keys}"'
    if done.proved.events is None:
        yield f"The store has schema {done.proved.schema}: run `anchord db upgrade`, then check it."
    yield f"Next: anchord -c {config} doctor"
