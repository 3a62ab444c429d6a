"""`anchord open`: where a record's page is, and a browser on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from anchord.app.cli.output import emit_json
from anchord.app.cli.references import name_of, one_record
from anchord.app.wiring import open_app
from anchord.errors import RefusedError

if TYPE_CHECKING:
    from anchord.app.web_config import WebConfig
    from anchord.core.model import StoredRecord

_LOOPBACK = {4: "127.0.0.1", 6: "::1"}
"""What reaches a server on this machine that answers at every address."""


@click.command(short_help="Print the address of a record's page, or open it.")
@click.argument("record", metavar="RECORD")
@click.option("--launch", is_flag=True, help="Open it in the browser, too.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_obj
def command(config_path: str | None, record: str, launch: bool, as_json: bool) -> None:
    """Print where the page of the record is that RECORD names.

    RECORD is a Pith Number, 8 or more characters of its suffix, a SHA-256, an arXiv id or a DOI.
    The address is below `web.base_url`; where that is empty, it is the one at which `anchord serve`
    answers on this machine. Whether anything answers there is not tried.

    \b
    Examples:
      anchord open 2507.10392
      anchord open pith:2025:LOHGU5AX --launch
    """  # noqa: D301  the escape is click's mark for a paragraph that keeps its lines
    with open_app(config_path) as app:
        found, web = one_record(app.store, record), app.config.web
    address = f"{_root(web)}/{_place(found)}"
    if as_json:
        emit_json({"name": name_of(found), "address": address, "local": not web.base_url})
    else:
        click.echo(address)
    if not web.base_url:
        click.echo("anchord: `anchord serve` answers there, on this machine alone", err=True)
    if launch:
        _launch(address)


def _root(web: WebConfig) -> str:
    import ipaddress

    from anchord.app.metrics.address import host_and_port

    if web.base_url:
        return web.base_url.rstrip("/")
    host, port = host_and_port(web.bind, "web.bind")
    address = ipaddress.ip_address(host)
    host = _LOOPBACK[address.version] if address.is_unspecified else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _place(record: StoredRecord) -> str:
    from anchord.engine.export import stem_of
    from anchord.engine.publishing_about import folder_of

    return folder_of(stem_of(record.digest, numbered=record.year is not None))


def _launch(address: str) -> None:
    """Open an address in the browser that the person chose for this machine.

    Raises:
        RefusedError: there is none.
    """
    import webbrowser

    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        raise RefusedError(
            "found no browser to open the page with: name one in BROWSER, or open it by hand"
        )
