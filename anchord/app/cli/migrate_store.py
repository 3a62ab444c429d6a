"""`anchord migrate-store`: everything of a store into another database, compared row by row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli.output import emit_json, shown_progress
from anchord.app.config import load
from anchord.app.database_address import PASSFILE, holds_password, with_passfile
from anchord.errors import ConfigError, FatalError

if TYPE_CHECKING:
    from anchord.adapters.store.moving import MovedTable
    from anchord.app.backup.proving import Proved
    from anchord.app.config import Loaded


@click.command(short_help="Move the store to another database, compared row by row.")
@click.argument("urls", metavar="[FROM_URL] TO_URL", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, urls: tuple[str, ...], as_json: bool) -> None:
    """Copy the store of the configuration, or the one at FROM_URL, into the empty one at TO_URL.

    From SQLite to PostgreSQL or back. Stop services and workers first: while it is copied nobody
    can write to it. Everything is written in one transaction, read back and compared, and the
    ledger is checked row by row; cut off at any point, it is begun anew by saying it again. The old
    store stays as it is. Nothing is used of the new one until store.url names it.

    A password does not belong on a command line: name a file in the address, ?passfile=FILE
    (https://www.postgresql.org/docs/current/libpq-pgpass.html).

    \b
    Examples:
      anchord migrate-store postgresql://anchord@db.example.org/anchord
      anchord migrate-store postgresql://anchord@db.example.org/anchord sqlite:////srv/anchord.db

    Exit code: 0 done, 2 a person must act, 3 the store is busy or a server away, 4 the ledger does
    not hold, or the disk is full.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    loaded = load(config_path)
    source, target = _addresses(loaded, urls)
    moved, proved = _move(loaded, source, target, quiet=as_json)
    if as_json:
        emit_json(_document(source, target, moved, proved))
        return
    rows = sum(table.rows for table in moved.values())
    click.echo(f"{rows:,} rows of {len(moved)} tables moved and compared")
    click.echo(f"{proved.events or 0:,} events of the ledger checked in the new store")
    click.echo(f'Now set in {loaded.path}: store.url = "{_shown(target)}"', err=True)
    click.echo(
        "The old store was left as it is: keep it as a backup, and let nothing run on it.", err=True
    )


def _move(
    loaded: Loaded, source: str, target: str, *, quiet: bool
) -> tuple[dict[str, MovedTable], Proved]:
    from anchord.adapters.signers.keyring import load_keyring
    from anchord.adapters.store.moving import move
    from anchord.adapters.store.vitals import still
    from anchord.app.backup.proving import prove_store

    keyring = load_keyring(loaded.resolve(loaded.config.signer.key_dir))
    with shown_progress(quiet=quiet) as tell, still(source):
        moved = move(source, target, tell)
        try:
            return moved, prove_store(target, keyring, "the new store", tell)
        except FatalError as error:
            raise FatalError(
                f"{error}. It is what the old store holds, row by row: do not use the new one"
            ) from error


def _addresses(loaded: Loaded, urls: tuple[str, ...]) -> tuple[str, str]:
    """Return the addresses of the old and the new store.

    Raises:
        ConfigError: too many, not addresses, a password in one, or both are one store.
    """
    from anchord.app.wiring import store_url

    if len(urls) > 2:
        raise ConfigError(f"expected FROM_URL and TO_URL at most, got {len(urls)} words")
    *given, target = [_address(url) for url in urls]
    source = given[0] if given else store_url(loaded)
    if source == target:
        raise ConfigError("both addresses are the same: name another database to move to")
    return source, target


def _address(text: str) -> str:
    import sqlalchemy as sa

    from anchord.adapters.store.database import sqlite_path

    unknown = ConfigError(
        "expected the address of a store, sqlite:///FILE or postgresql://USER@HOST/DATABASE"
    )
    try:
        url = sa.make_url(text)
        path = sqlite_path(text)
    except (sa.exc.ArgumentError, ValueError):
        raise unknown from None
    if url.get_backend_name() not in {"sqlite", "postgresql"} or not url.database:
        raise unknown
    if holds_password(text):
        raise ConfigError(
            f"a password on the command line is seen by everybody on this machine: {PASSFILE}"
        )
    if path is None:
        there = with_passfile(url, lambda name: Path(name).expanduser().absolute())
        return there.render_as_string(hide_password=False)
    if str(path) == ":memory:":
        raise ConfigError("a store in memory is gone at once: name a file, sqlite:///FILE")
    return f"sqlite:///{Path(path).absolute()}"


def _document(
    source: str, target: str, moved: dict[str, MovedTable], proved: Proved
) -> dict[str, Any]:
    return {
        "from": _shown(source),
        "to": _shown(target),
        "events": proved.events or 0,
        "checkpoint": proved.checkpoint or 0,
        "tables": msgspec.to_builtins(moved),
    }


def _shown(url: str) -> str:
    import sqlalchemy as sa

    return sa.make_url(url).render_as_string(hide_password=True)
