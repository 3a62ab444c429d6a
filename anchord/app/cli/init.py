"""`anchord init`: a configuration, a signing key and a store; what is there is kept."""

from __future__ import annotations

import errno
import os
import socket
from importlib import resources
from pathlib import Path

import click

from anchord.app.cli.output import emit_json
from anchord.app.config import Loaded, load
from anchord.app.database_address import PASSFILE, holds_password
from anchord.app.toml_text import value_text
from anchord.errors import ConfigError


@click.command(short_help="Make a configuration, a signing key and a store in a folder.")
@click.argument(
    "directory", default=".", metavar="[DIR]", type=click.Path(file_okay=False, path_type=Path)
)
@click.option(
    "--signer-id", metavar="NAME", help="Who signs, as events state it (default: this host's name)."
)
@click.option(
    "--store", metavar="URL",
    help="Where a new configuration keeps the store (default: sqlite:///anchord.db).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(
    config_path: str | None,
    directory: Path,
    signer_id: str | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Make anchord.toml, a signing key and a store in DIR (default: here).

    What is there already is kept: running it again changes nothing. A store of an older
    version is migrated. An encrypted key is made with `anchord key new --passphrase-file`;
    set signer.passphrase_file first, and init uses it for the first key.

    A store on PostgreSQL is an empty database, in which anchord makes its tables:
    --store 'postgresql://USER@HOST/DATABASE?passfile=FILE'.
    """
    # A folder named on the command line wins over a configuration named in the environment.
    config = directory / "anchord.toml"
    if config_path is not None and directory == Path():
        config = Path(config_path)
    made = []
    try:
        config.parent.mkdir(parents=True, exist_ok=True)
        if _write_config(config, signer_id or socket.gethostname(), store):
            made.append(str(config))
    except OSError as error:
        raise ConfigError(
            f"{config} cannot be made: {error.strerror}; check the folder, its permissions and "
            "free space"
        ) from None
    loaded = load(str(config))
    if store not in {None, loaded.config.store.url}:
        raise ConfigError(
            f"{config} is kept as it is, and its store.url is not what --store names: change it "
            "there, or leave --store out"
        )
    made += _make_key(loaded)
    new, migrated = _make_store(loaded)
    made += new
    if as_json:
        emit_json({"config": str(config), "made": made, "migrated": migrated})
        return
    for name in made:
        click.echo(f"made  {name}")
    for name in migrated:
        click.echo(f"migrated  {name}; an older anchord does not open it any more")
    if not made and not migrated:
        click.echo(f"{config.parent.absolute()} is complete: nothing to make")
    click.echo("Next: anchord add FILE..., then anchord run-once --wait", err=True)


def _write_config(path: Path, signer_id: str, store: str | None) -> bool:
    """Write the starting configuration, whole or not at all, unless there is one.

    A half-written or empty file would count as a configuration: it would mean the defaults.
    """
    text = resources.files("anchord.app").joinpath("starting.toml").read_text("utf-8")
    safe = "".join(ch for ch in signer_id if ch.isalnum() or ch in ".-_") or "anchord"
    text = text.replace("@SIGNER_ID@", safe)
    if store is not None:
        text = text.replace("[signer]", f"[store]\nurl = {_toml_url(store)}\n\n[signer]", 1)
    if path.exists():
        return False
    # A killed init leaves this file; nothing reads it, and the next one writes it again.
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(text, "utf-8")
        _take_name(beside, path)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _toml_url(url: str) -> str:
    """Return an address as the configuration has it.

    Raises:
        ConfigError: it cannot be one, or holds a password.
    """
    if holds_password(url):
        raise ConfigError(
            f"a password on the command line is seen by everybody on this machine: {PASSFILE}"
        )
    if not url.isprintable() or not url.partition("://")[1]:
        raise ConfigError(
            "--store: expected sqlite:///FILE or postgresql://USER@HOST/DATABASE, got another text"
        )
    return value_text(url)


def _take_name(beside: Path, path: Path) -> None:
    """Give a file its name unless the name is taken; where links are unknown, without that care."""
    try:
        os.link(beside, path)
    except OSError as error:
        if error.errno not in {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise
        beside.replace(path)


def _make_key(loaded: Loaded) -> list[str]:
    from anchord.adapters.signers.file import create_key_dir
    from anchord.adapters.signers.keyring import load_keyring
    from anchord.adapters.signers.private_key import read_passphrase
    from anchord.app.wiring import SystemClock

    signer = loaded.config.signer
    folder = loaded.resolve(signer.key_dir)
    if _has_keyring(folder) and load_keyring(folder).active() is not None:
        return []
    file = loaded.resolve(signer.passphrase_file) if signer.passphrase_file else None
    passphrase = read_passphrase(file, os.environ)
    key = create_key_dir(folder, signer.signer_id, passphrase, SystemClock().now())
    return [str(folder / f"{key.key_id}.pem")]


def _has_keyring(folder: Path) -> bool:
    try:
        return (folder / "keyring.toml").exists()
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be read: {error.strerror}; run as the user it belongs to"
        ) from None


def _make_store(loaded: Loaded) -> tuple[list[str], list[str]]:
    """Make or migrate the store; return what is new, and what is migrated."""
    from anchord.adapters.store.database import create, revision_at, shown_url, sqlite_path
    from anchord.app.wiring import store_url

    url = store_url(loaded)
    old = revision_at(url) is not None
    if not create(url):
        return [], []
    path = sqlite_path(url)
    named = [f"the store's tables in {shown_url(url)}" if path is None else str(path)]
    return ([], named) if old else (named, [])
