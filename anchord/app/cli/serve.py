"""`anchord serve`: records and what is published, over HTTP, in the foreground."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from anchord.app.config import load
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.app.config import Loaded

_NEEDED = ("starlette", "uvicorn")


@click.command(short_help="Serve records and a published tree over HTTP, to be read.")
@click.option("--bind", metavar="ADDRESS:PORT", help="Where to answer (default: web.bind).")
@click.option(
    "--tree",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder that `anchord mirror publish` writes (default: web.tree).",
)
@click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How the log on stderr is written: a line for people, or a JSON object.",
)
@click.pass_obj
def command(config_path: str | None, bind: str | None, tree: Path | None, log_format: str) -> int:
    """Serve records and a published tree over HTTP, until told to stop. Nothing is ever written.

    `/` shows how complete the store is, `/records` lists and finds records, each has its page and
    documents below `/pith/` or `/record/`, and `/openapi.json` tells the rest. `web.records` turns
    all of that off. `/healthz` says that the process lives, `/readyz` whether store and tree can be
    read, `/metrics` what monitoring wants, where `web.metrics` is on. All else are the files of the
    tree, as they lie there. It stays in the foreground and logs to stderr; SIGTERM stops it.

    Exit code: 0 stopped by a signal, 2 the configuration cannot be used.
    """
    for name in _NEEDED:
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"{name} is not installed: pip install 'anchord[web]'")
    from anchord.app.service.logs import logging_as
    from anchord.app.web.face import site_of
    from anchord.app.web.server import serve

    configured = load(config_path)
    loaded = _with(configured, bind, tree)
    _keep_secrets(loaded)
    with logging_as(log_format):
        # What pages say follows from the configuration alone, as in a tree that is published.
        return serve(loaded, os.environ, site_of(configured))


def _with(loaded: Loaded, bind: str | None, tree: Path | None) -> Loaded:
    """Return the configuration with what the options say instead."""
    web = loaded.config.web
    web = msgspec.structs.replace(
        web, bind=bind or web.bind, tree=str(tree.absolute()) if tree is not None else web.tree
    )
    return msgspec.structs.replace(loaded, config=msgspec.structs.replace(loaded.config, web=web))


def _keep_secrets(loaded: Loaded) -> None:
    """Refuse a folder with the key, the store or a secret in it.

    Raises:
        ConfigError: the tree holds one of them.
    """
    path = private_in_tree(loaded)
    if path is not None:
        raise ConfigError(
            f"web.tree is {loaded.config.web.tree}, and {path} lies in it: name the folder that "
            "`anchord mirror publish` writes, with nothing else in it"
        )


def private_in_tree(loaded: Loaded) -> Path | None:
    """Return something in the folder that is served and must never be; None: there is nothing."""
    from anchord.app.cli.add import own_files

    if not loaded.config.web.tree:
        return None
    tree = loaded.resolve(loaded.config.web.tree).resolve()
    own = (path for path in own_files(loaded) if path.resolve().is_relative_to(tree))
    return next(own, None)
