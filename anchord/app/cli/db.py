"""`anchord db`: what is in the store, and bringing its schema up to this anchord."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import console, emit_json, printable
from anchord.app.config import load
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Tell about the store, and migrate it to the schema of this anchord."""


@command.command(short_help="Show schema, size and rows of the store.")
@_JSON
@click.pass_obj
def status(config_path: str | None, as_json: bool) -> int:
    """Show the store's schema, size, rows, and who runs passes on it; nothing is written.

    Exit code: 0 the schema is this anchord's, 2 it is another.
    """
    from anchord.app.wiring import store_url

    document = _describe(store_url(load(config_path)))
    if as_json:
        emit_json(document)
    else:
        for line in _lines(document):
            console().print(printable(line), markup=False)
    return 0 if document["current"] else ConfigError.exit_code


def _describe(url: str) -> dict[str, Any]:
    import sqlalchemy as sa

    from anchord.adapters.store.schema import REVISION
    from anchord.adapters.store.vitals import ExaminedStore, holder, revision_of, sizes

    revision = revision_of(url)
    size = sizes(url)
    rows: dict[str, int] = {}
    if revision == REVISION:  # the tables of another schema are not known here
        store = ExaminedStore(url)
        rows = store.rows()
        store.close()
    return {
        "store": sa.make_url(url).render_as_string(hide_password=True),
        "schema": revision,
        "needed": REVISION,
        "current": revision == REVISION,
        "bytes": None if size is None else size[0],
        "log_bytes": None if size is None else size[1],
        "rows": rows,
        "held_by": holder(url),
    }


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield f"{'store':<14}{document['store']}"
    schema = document["schema"] or "none: it is no anchord store"
    todo = "" if document["current"] else f"; this anchord needs {document['needed']}"
    yield f"{'schema':<14}{schema}{todo}"
    if document["bytes"] is not None:
        beside = f", and {document['log_bytes']:,} in the write-ahead log"
        yield f"{'size':<14}{document['bytes']:,} bytes{beside}"
    yield f"{'passes':<14}{document['held_by'] or 'none is running'}"
    for name, count in document["rows"].items():
        yield f"{'':<14}{count:>12,}  {name}"


@command.command(short_help="Migrate the store to the schema of this anchord.")
@_JSON
@click.pass_obj
def upgrade(config_path: str | None, as_json: bool) -> None:
    """Migrate the store to the schema this anchord needs; all of it, or nothing.

    Stop the passes and make a backup first: an older anchord does not open the store any more.
    A store that is not there is not made: that does `anchord init`.

    Exit code: 0 done, or nothing to do; 2 there is no store, or it is newer; 3 a pass is running.
    """
    from anchord.adapters.store.database import create
    from anchord.adapters.store.schema import REVISION
    from anchord.adapters.store.vitals import alone, revision_of
    from anchord.app.wiring import store_url

    url = store_url(load(config_path))
    before = revision_of(url)
    if before is None:
        raise ConfigError(
            "the database of store.url is no anchord store: make one with `anchord init`"
        )
    with alone(url):
        changed = create(url)
    _bring_up_queue(url)
    if as_json:
        emit_json({"before": before, "schema": REVISION, "migrated": changed})
        return
    words = f"migrated from {before} to {REVISION}" if changed else f"has schema {REVISION} already"
    click.echo(f"the store {words}")


def _bring_up_queue(url: str) -> None:
    """Make or bring up the tables workers share, so that they need no right to make any."""
    import sqlalchemy as sa

    from anchord.app.fleet import schema

    if sa.make_url(url).get_backend_name() != "postgresql":
        return
    try:
        schema.install(url)
    except ConfigError as error:  # only workers need them
        click.echo(f"anchord: workers cannot share this store: {error}", err=True)
