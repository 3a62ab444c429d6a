"""The configuration: its file, and every file, folder and address it names. Nothing is asked."""

from __future__ import annotations

import functools
import os
import stat
from typing import TYPE_CHECKING

from anchord.app.config_environment import variable
from anchord.app.doctor.result import Result, fail, failed, ok, warn
from anchord.app.wiring import App, store_url
from anchord.errors import AnchordError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from anchord.app.config import Loaded


def check(loaded: Loaded) -> Iterator[Result]:
    """Look at the file itself, then at what it names."""
    yield from _file(loaded)
    yield from _folders(loaded)
    yield from _secrets(loaded)
    yield from _addresses(loaded)
    yield from _web(loaded)
    yield from _exchange(loaded)


def _file(loaded: Loaded) -> Iterator[Result]:
    name, path = "configuration", loaded.path
    mode = path.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield warn(
            name, f"{path} can be written by others (mode {stat.S_IMODE(mode):04o})",
            f"chmod go-w '{path}'",
        )  # fmt: skip
    given = ", ".join(variable(name) for name in loaded.environment)
    yield ok(name, f"{path}{f', and of the environment {given}' if given else ''}")


def _folders(loaded: Loaded) -> Iterator[Result]:
    """Each folder that is written to must be there and ours, or possible to make."""
    from anchord.adapters.store.database import sqlite_path

    try:
        store = sqlite_path(store_url(loaded))
    except ConfigError as error:
        yield failed("store.url", error, "name a database as config/anchord.toml shows")
        store = None
    config = loaded.config
    wanted = {
        "store.url": None if store is None else store.parent,
        "signer.key_dir": loaded.resolve(config.signer.key_dir),
        "headers.file.path": loaded.resolve(config.headers.file.path).parent
        if "file" in config.headers.sources
        else None,
        "archive.items.spool_dir": loaded.resolve(config.archive.items.spool_dir)
        if config.archive.items.enabled and config.archive.items.prefix
        else None,
    }
    for key, folder in wanted.items():
        if folder is not None:
            yield _writable(key, folder)


def _writable(key: str, folder: Path) -> Result:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir():
        return fail(key, f"{there} is no folder", f"set {key}, or take the file away")
    if not os.access(there, os.W_OK | os.X_OK):
        return fail(
            key, f"{there} cannot be written by this user",
            "run as the user it belongs to, or give it to this one with chown",
        )  # fmt: skip
    return ok(key, str(folder) if there == folder else f"{folder}, to be made")


def _secrets(loaded: Loaded) -> Iterator[Result]:
    from anchord.adapters.signers.private_key import read_passphrase
    from anchord.app.archive_wiring import keys_of

    named = loaded.config.signer.passphrase_file
    file = loaded.resolve(named) if named else None
    node = loaded.config.headers.node
    yield from _passfile(loaded)
    yield _tried(
        "signer.passphrase_file",
        lambda: None if read_passphrase(file, os.environ) is None else "can be read",
        "make the file with the passphrase on its first line, mode 0600",
    )
    yield _tried(
        "archive.credentials_file",
        lambda: None if keys_of(loaded) is None else "can be read",
        "see docs/internet-archive.md: two lines, mode 0600",
    )
    if "node" in loaded.config.headers.sources:
        for key, name in (("cookie_file", node.cookie_file), ("password_file", node.password_file)):
            if name and not os.access(loaded.resolve(name), os.R_OK):
                where = loaded.resolve(name)
                yield fail(
                    f"headers.node.{key}", f"{where} cannot be read",
                    "start the node, or let this user read the file",
                )  # fmt: skip


def _passfile(loaded: Loaded) -> Iterator[Result]:
    """Look at the password file of the store: the driver passes over one that it cannot use."""
    from anchord.adapters.signers.private_key import check_private
    from anchord.app.database_address import passfile

    named = passfile(loaded.config.store.url)
    if named is None:
        return
    path = loaded.resolve(named)
    if not os.access(path, os.R_OK):
        yield fail(
            "store.url", f"the password file {path} cannot be read",
            "make it with a line HOST:PORT:DATABASE:USER:PASSWORD, mode 0600, for this user",
        )  # fmt: skip
        return

    def look() -> str:
        check_private(path, path.stat().st_mode, "600")
        return f"the password file {path} can be read"

    yield _tried("store.url", look, f"chmod 600 '{path}'")


def _addresses(loaded: Loaded) -> Iterator[Result]:
    """Making the clients checks every address; none of them opens a connection."""
    app = App(loaded)
    yield _tried(
        "anchoring.calendars",
        lambda: f"{len(app.calendars)} addresses are well formed",
        "correct the address; config/anchord.toml shows the public ones",
    )
    yield _tried(
        "headers.sources",
        lambda: ", ".join(source.name for source in app.headers),
        "correct the key that is named",
    )
    if loaded.config.anchoring.authorities:
        yield _tried(
            "anchoring.authorities",
            lambda: f"{len(app.authorities)}, with certificates that can be used",
            "fetch the authority's root certificate as PEM and name it in `certificates`",
        )
    app.close()


def _web(loaded: Loaded) -> Iterator[Result]:
    """Look at the folder that is served, where one is."""
    from anchord.app.cli.serve import private_in_tree

    if not loaded.config.web.tree:
        return
    tree, private = loaded.resolve(loaded.config.web.tree), private_in_tree(loaded)
    if private is not None:
        yield fail("web.tree", f"{private} lies in {tree}", "serve a folder of its own")
    elif not tree.is_dir():
        yield warn("web.tree", f"{tree} is not there", f"anchord mirror publish '{tree}'")
    else:
        yield ok("web.tree", str(tree))


def _exchange(loaded: Loaded) -> Iterator[Result]:
    """Look at what sources and outlets name on this machine: files, folders, drivers, addresses."""
    from anchord.app import outlet_wiring, source_wiring

    app, todo = App(loaded), "see `anchord config explain {}`; docs/operations.md has examples"
    for source in loaded.config.sources:
        yield _tried(
            f"sources ({source.name})",
            functools.partial(source_wiring.look_over, app, source),
            todo.format("sources"),
        )
    for outlet in loaded.config.outlets:
        yield _tried(
            f"outlets ({outlet.name})",
            functools.partial(outlet_wiring.look_over, loaded, app.clock, outlet),
            todo.format("outlets"),
        )
    app.close()


def _tried(key: str, look: Callable[[], str | None], todo: str) -> Result:
    try:
        return ok(key, look() or "none is set")
    except AnchordError as error:
        return failed(key, error, todo)
