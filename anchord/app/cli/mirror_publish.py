"""`anchord mirror publish`: the store as a static tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from anchord.app.cli.output import emit_json, notes, printable, progress
from anchord.app.wiring import App, open_app
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.progress import Progress

    from anchord.app.face.site import Site
    from anchord.engine.publishing import Published

_MAX_NAME = 100
_WAITS_S = 30.0
"""For a pass of a service to end; the next one begins after this."""


@click.command(
    short_help="Write a static tree that any web server can host.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--base-url",
    metavar="URL",
    help="Where DIR will be served (default: web.base_url; when that is empty, too, all addresses "
    "are relative).",
)
@click.option("--name", metavar="NAME", help="Name of the mirror (default: signer.signer_id).")
@click.option(
    "--status",
    type=click.Choice(["primary", "mirror"]),
    default="mirror",
    show_default=True,
    help="What the manifest says this mirror is.",
)
@click.option(
    "--pages/--no-pages",
    default=True,
    show_default=True,
    help="Write pages, documents for programs and badges beside the evidence.",
)
@click.option("--anchored-only", is_flag=True, help="Leave out what no block holds yet.")
@click.option("--force", is_flag=True, help="Write into a folder that holds something else.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("-q", "--quiet", is_flag=True, help="No progress and no summary.")
@click.pass_obj
def command(
    config_path: str | None,
    *,
    folder: Path,
    base_url: str | None,
    name: str | None,
    status: str,
    pages: bool,
    anchored_only: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Write records, pages, proofs, keys and the log into DIR, for any web server to serve.

    Pages and documents are the ones that `anchord serve` shows, byte for byte; --no-pages leaves
    them out. DIR is brought up to date: files that did not change are not written again, and what
    belongs to nothing in the store any more is named, not deleted. The index, signed with the
    active key, is written last. No pass can run meanwhile.

    \b
    Examples:
      anchord mirror publish /srv/www/mirror --base-url https://mirror.example.org
      anchord mirror publish public --anchored-only && rsync -a --delete public/ host:www/

    Exit code: 0 the tree is up to date, 1 the store holds something damaged, 2 DIR cannot be
    published to, 3 a pass is running: try again.
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    with open_app(config_path) as app, progress(quiet=quiet or as_json) as bars:
        app.store.patience_s = _WAITS_S
        done = _publish(
            app, folder, base_url, name, status, teller(bars),
            pages=pages, anchored_only=anchored_only, force=force,
        )  # fmt: skip
    document = {"folder": str(folder), **msgspec.to_builtins(done)}
    if as_json:
        emit_json(document)
    elif not quiet:
        _tell(done, folder)
    return 0


def _publish(
    app: App, folder: Path, base_url: str | None, name: str | None, status: str,
    on_progress: Callable[[str, int, int], None], *, pages: bool, anchored_only: bool, force: bool,
) -> Published:  # fmt: skip
    from anchord.adapters.outputs.tree import TreeOutput
    from anchord.app.tree_pages import TreePages
    from anchord.core.merge import MERGE_VERSION
    from anchord.engine.publishing import PublishOptions, publish

    site = _site(app, base_url, name)
    options = PublishOptions(
        name=name or app.config.signer.signer_id,
        merge_version=MERGE_VERSION,
        origin=app.config.ledger.origin or app.config.signer.signer_id,
        base_url=site.base_url,
        status=status,
        anchored_only=anchored_only,
        expected=app.store.records.waiting()[0] + sum(app.store.counts.by_state().values()),
    )
    with TreeOutput(folder, force=force, private=_private(app)) as sink:
        return publish(
            app.store, app.keyring, app.signer, sink, options,
            app.clock.now(), on_progress, TreePages(site) if pages else None,
        )  # fmt: skip


def _site(app: App, base_url: str | None, name: str | None) -> Site:
    """Return where the tree will be and what it is called: as the server's, unless told otherwise.

    Raises:
        ConfigError: an address nobody may be sent to, or a name of several lines.
    """
    from anchord.adapters.http import base_url as checked
    from anchord.app.web.face import site_of

    if name is not None and not (name.strip() and name.isprintable() and len(name) <= _MAX_NAME):
        raise ConfigError(
            f"--name: expected up to {_MAX_NAME} characters on one line, got {name!r:.120}"
        )
    usual = site_of(app.loaded)
    where = usual.base_url if base_url is None else checked(base_url, "--base-url").rstrip("/")
    return msgspec.structs.replace(usual, base_url=where, name=name or usual.name)


def _private(app: App) -> list[Path]:
    """Return what must never be served: keys, store, secrets, and the configuration."""
    from anchord.app.cli.add import own_files

    return own_files(app.loaded)


def teller(bars: Progress) -> Callable[[str, int, int], None]:
    """Return what shows how far a piece of work has come."""
    tasks: dict[str, Any] = {}

    def tell(what: str, done: int, total: int) -> None:
        if what not in tasks:
            tasks[what] = bars.add_task(what, total=total)
        bars.update(tasks[what], completed=done, total=total)

    return tell


def _tell(done: Published, folder: Path) -> None:
    say = notes().print
    changed = f"{done.new:,} new, {done.updated:,} updated, {done.same:,} as they were"
    say(f"{done.records:,} records ({done.anchored:,} anchored) in {done.files:,} files: {changed}")
    if done.checkpoint is not None:
        say(f"the log covers {done.checkpoint:,} events")
    words = {"same": "nothing changed: the index is as it was"}
    say(printable(words.get(done.index, f"index.json of {folder} is signed and in place")))
    if done.strays:
        named = ", ".join(done.stray_files[:5])
        say(
            printable(f"{done.strays:,} files belong to nothing in the store any more: {named}"),
            markup=False,
        )
