"""`anchord key`: make, show, list, rotate, revoke and trust signing keys.

The commands need the configuration only: keys can be made before, and moved without, anything else.
Where the store can be read, no key is ended before its newest event.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.key_clock import ACCEPT, check_moment
from anchord.app.cli.output import console, emit_json, notes, one_line, print_table, utc
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from anchord.app.config import Loaded
    from anchord.core.keyring import Keyring, PublicKey

_PASSPHRASE = click.option(
    "--passphrase-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File whose first line encrypts the new key (default: signer.passphrase_file, or the "
    "systemd credential anchord-passphrase; without either the key is not encrypted).",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_MAX_DOCUMENT = 1024 * 1024


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Make, list, rotate and revoke signing keys.

    Keys live in the folder signer.key_dir of the configuration: private halves in one .pem file
    each, public halves of own and trusted keys in keyring.toml.
    """


@command.command()
@click.option(
    "--signer-id",
    metavar="NAME",
    help="Who signs (default: signer.signer_id of the configuration).",
)
@_PASSPHRASE
@click.pass_obj
def new(config_path: str | None, signer_id: str | None, passphrase_file: Path | None) -> None:
    """Make the first signing key."""
    from anchord.adapters.signers.file import create_key_dir

    loaded = _load(config_path)
    who = signer_id or loaded.config.signer.signer_id
    key = create_key_dir(_folder(loaded), who, _passphrase(loaded, passphrase_file), _now())
    _say_made(loaded, key)


@command.command()
@click.option("--signer-id", metavar="NAME", help="Who signs from now on (default: as before).")
@_PASSPHRASE
@click.option(
    "--destroy-old", is_flag=True, help="Delete the old private key: it can sign nothing more."
)
@ACCEPT
@click.pass_obj
def rotate(
    config_path: str | None,
    signer_id: str | None,
    passphrase_file: Path | None,
    destroy_old: bool,
    accept_clock: bool,
) -> None:
    """Make a new key active; the old one keeps verifying what it signed."""
    from anchord.adapters.signers.file import rotate_key

    loaded, now = _load(config_path), _now()
    check_moment(loaded, now, accept=accept_clock)
    passphrase = _passphrase(loaded, passphrase_file)
    key = rotate_key(_folder(loaded), passphrase, now, signer_id=signer_id, destroy_old=destroy_old)
    _say_made(loaded, key)
    if destroy_old:
        notes().print("The old private key is deleted; copies in backups are not.", markup=False)


@command.command(short_help="Print a public key document, to be published.")
@click.argument("key_id", required=False)
@_JSON
@click.option("--pem", "as_pem", is_flag=True, help="Print SubjectPublicKeyInfo PEM instead.")
@click.pass_obj
def public(config_path: str | None, key_id: str | None, as_json: bool, as_pem: bool) -> None:
    """Print the public key document of KEY_ID (default: the active key), as JSON.

    Publish it where the readers of your events can find it; compare fingerprints by another way.
    """
    from anchord.core.key_document import to_document

    if as_json and as_pem:
        raise click.UsageError("--json and --pem exclude each other")
    key = _find(_keyring(_load(config_path)), key_id)
    if as_pem:
        click.echo(_pem(key.public_key), nl=False)
    else:
        emit_json(to_document(key))


@command.command(name="list")
@_JSON
@click.pass_obj
def list_(config_path: str | None, as_json: bool) -> None:
    """List own and trusted keys."""
    keyring = _keyring(_load(config_path))
    if as_json:
        emit_json([_row(key) for key in keyring])
    else:
        _print(keyring)


@command.command(short_help="Revoke a key: what it signs from now on does not count.")
@click.argument("key_id", metavar="KEY_ID")
@click.option(
    "--reason", metavar="TEXT", required=True, help="Why, e.g. 'laptop stolen'; it is published."
)
@ACCEPT
@click.pass_obj
def revoke(config_path: str | None, key_id: str, reason: str, accept_clock: bool) -> None:
    """Revoke a key: what it signs after this moment does not count."""
    from anchord.adapters.signers.keyring import revoke_key

    loaded, now = _load(config_path), _now()
    check_moment(loaded, now, accept=accept_clock)
    key = revoke_key(_folder(loaded), key_id, reason, now)
    notes().print(f"Revoked {key_id} at {utc(key.revoked_at)}.", markup=False)
    if key.active:
        notes().print("It was the active key: run `anchord key rotate`.", markup=False)


@command.command(short_help="Believe the foreign key in a public key document.")
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, allow_dash=True))
@click.option("--target", "targets", multiple=True, metavar="NAME",
              help="What it may sign: timestamp, storage; record, graph (a registry); author, "
              "citation, replication (claims of others); * for all. Default: as stated. May be "
              "repeated.")  # fmt: skip
@click.pass_obj
def trust(config_path: str | None, file: str, targets: tuple[str, ...]) -> None:
    """Believe the foreign key in FILE, a public key document ("-": standard input)."""
    from anchord.adapters.signers.keyring import trust_key
    from anchord.core.key_document import from_document
    from anchord.core.keyring import fingerprint

    key = from_document(_document(file), targets)
    trust_key(_folder(_load(config_path)), key)
    notes().print(
        f"Trusted {key.key_id} of {key.signer_id} for {', '.join(key.targets)}.\n"
        f"Fingerprint {fingerprint(key.public_key)}: compare it with one you got another way.",
        markup=False,
    )


@command.command(short_help="Forget a foreign key and believe nothing it signed.")
@click.argument("key_id", metavar="KEY_ID")
@click.pass_obj
def untrust(config_path: str | None, key_id: str) -> None:
    """Forget a foreign key: nothing it signed, at any time, is believed any more."""
    from anchord.adapters.signers.keyring import untrust_key

    untrust_key(_folder(_load(config_path)), key_id)
    notes().print(f"Forgot {key_id}.", markup=False)


def _load(config_path: str | None) -> Loaded:
    from anchord.app.config import load

    return load(config_path)


def _folder(loaded: Loaded) -> Path:
    return loaded.resolve(loaded.config.signer.key_dir)


def _now() -> int:
    return int(time.time())


def _passphrase(loaded: Loaded, file: Path | None) -> bytes | None:
    from anchord.adapters.signers.private_key import read_passphrase

    named = loaded.config.signer.passphrase_file
    return read_passphrase(file or (loaded.resolve(named) if named else None), os.environ)


def _keyring(loaded: Loaded) -> Keyring:
    from anchord.adapters.signers.keyring import load_keyring

    return load_keyring(_folder(loaded))


def _find(keyring: Keyring, key_id: str | None) -> PublicKey:
    key = keyring.active() if key_id is None else keyring.get(key_id)
    if key is None:
        which = "an active key" if key_id is None else f"the key {key_id!r}"
        raise ConfigError(f"the keyring has not got {which}: see `anchord key list`")
    return key


def _say_made(loaded: Loaded, key: PublicKey) -> None:
    """Name the new key on stdout, and what to do with it on stderr."""
    from anchord.core.keyring import fingerprint

    click.echo(key.key_id)
    notes().print(f"Fingerprint {fingerprint(key.public_key)}, in {_folder(loaded)}.", markup=False)
    if key.signer_id != loaded.config.signer.signer_id:
        notes().print(
            f'Set signer.signer_id = "{key.signer_id}" in {loaded.path}, '
            "or nothing can be signed with it.",
            markup=False,
        )


def _pem(raw: bytes) -> str:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    pem = Ed25519PublicKey.from_public_bytes(raw).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return pem.decode("ascii")


def _row(key: PublicKey) -> dict[str, Any]:
    from anchord.core.key_document import to_document

    return to_document(key) | {"own": key.own, "active": key.active}


def _print(keyring: Keyring) -> None:
    """Print one line a key, or a few where a terminal is too narrow for that."""
    from anchord.core.keyring import fingerprint

    table, out = _table(keyring), console()
    if not out.is_terminal or _width(out, table) <= out.width:
        print_table(table)
        return
    for key in keyring:
        out.print(one_line(f"{key.key_id}  {_state(key)}"), markup=False)
        signs = f"{key.signer_id}, for {', '.join(key.targets)}"
        out.print(f"    {one_line(signs)}", markup=False)
        window = f"from {utc(key.valid_from) or '-'} until {utc(key.valid_until) or '-'}"
        out.print(f"    {window}", markup=False)
        out.print(f"    fingerprint {fingerprint(key.public_key)}", markup=False)


def _width(out: Console, table: Table) -> int:
    """Return how wide a table is when nothing is folded."""
    return out.measure(table, options=out.options.update(max_width=1000)).maximum


def _table(keyring: Keyring) -> Table:
    from rich.table import Table

    from anchord.core.keyring import fingerprint

    table = Table(box=None, pad_edge=False)
    for name in ("key", "state", "signer", "targets", "from", "until", "fingerprint"):
        table.add_column(name, overflow="fold")
    for key in keyring:
        cells = (
            key.key_id,
            _state(key),
            key.signer_id,
            ", ".join(key.targets),
            utc(key.valid_from) or "-",
            utc(key.valid_until) or "-",
            fingerprint(key.public_key),
        )
        table.add_row(*map(one_line, cells))
    return table


def _state(key: PublicKey) -> str:
    """Return the one word that matters most about a key."""
    if key.revoked_at is not None:
        return f"revoked {utc(key.revoked_at)}"
    if not key.own:
        return "trusted"
    return "active" if key.active else "retired"


def _document(file: str) -> Any:
    """Read a public key document."""
    try:
        with click.open_file(file, "rb") as stream:
            raw = stream.read(_MAX_DOCUMENT)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        name = "standard input" if file == "-" else file
        raise RefusedError(f"{name} is not JSON: expected a public key document") from None
