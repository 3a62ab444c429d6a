"""`anchord demo`: the whole job on the registry's four seed records, in the sandbox."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import tempfile
import urllib.parse
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.demo_audit import publish_and_audit, told
from anchord.app.cli.demo_serve import check_servable, serve_demo
from anchord.app.cli.output import emit_json, notes, print_table
from anchord.core.event import CAPTURED, ITEM_STORED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.adapters.http import Client
    from anchord.sandbox.run import Sandbox

_DEADLINE_S = 60
_FACETS = ("attested", "anchored", "stored", "refs")
_MAX_COPY_BYTES = 1 << 20
_BLOCKS = 6
"""Mined after the block that holds the records: enough for the sandbox's confirmations."""


@click.command(short_help="Do the whole job on four seed records in the sandbox.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep everything in this folder (default: a temporary one, removed at the end).",
)
@click.option(
    "--serve",
    is_flag=True,
    help="Serve pages of the records at the end, until Ctrl-C; their address is printed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(directory: Path | None, serve: bool, as_json: bool) -> int:
    """Anchor and store the registry's four seed records in the sandbox, and verify what came out.

    Everything is real but the network: calendars, a regtest chain, a node, explorers, peers and an
    internet archive run on loopback inside this process. Sandbox, not Bitcoin.
    """
    if serve:
        check_servable()
    steps = _Steps(quiet=as_json)
    with _folder(directory) as folder, _sandbox(folder, steps) as sandbox:
        rows, audit = _run(sandbox, folder, steps)
        proved = sum(row["result"] == "proved" for row in rows)
        stored = sum(map(_stored, rows))
        if as_json:
            emit_json({"sandbox": True, "records": rows, "audit": audit})
        else:
            _table(rows)
            click.echo(
                f"{proved} of {len(rows)} proofs verified, {stored} of {len(rows)} records stored "
                f"and fetched again. {told(audit)} Sandbox, not Bitcoin."
            )
        if directory is not None:
            steps.say(f"everything is kept in {folder}; `anchord sandbox --dir {folder}` goes on")
        if serve:
            serve_demo(str(sandbox.write_config()), folder, quiet=as_json)
    return 0 if rows and proved == stored == len(rows) and audit["result"] == "sound" else 1


class _Steps:
    """Says on stderr what happens."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = notes()
        self._quiet = quiet

    def say(self, text: str) -> None:
        if not self._quiet:
            self._console.print(text, markup=False)


@contextlib.contextmanager
def _folder(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
        return
    with tempfile.TemporaryDirectory(prefix="anchord-demo-") as name:
        yield Path(name)


@contextlib.contextmanager
def _sandbox(folder: Path, steps: _Steps) -> Iterator[Sandbox]:
    from anchord.sandbox.run import Sandbox

    steps.say(
        "sandbox, not Bitcoin: starting calendars, regtest chain, node, explorers, peers, archive"
    )
    with Sandbox(folder, tick_s=0.2) as sandbox:
        yield sandbox


def _run(
    sandbox: Sandbox, folder: Path, steps: _Steps
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Run anchord's own commands one after the other; only mining is the sandbox's.

    Returns:
        A row for each record, and the report of the stranger's audit.
    """
    config = str(sandbox.write_config())
    _anchord(config, "init", str(folder), "--json")
    steps.say("1. init      configuration, signing key and store")
    seed = resources.files("anchord.sandbox").joinpath("seed/seed-records.jsonl")
    with resources.as_file(seed) as file:
        added = _anchord(config, "add", str(file), "--json", "--quiet")
    steps.say(
        f"2. add       {added['new'] + added['known']} seed records, each hash and "
        "Pith Number recomputed"
    )
    passed = _anchord(config, "run-once", "--json", "--quiet")
    steps.say(
        f"3. run-once  {passed['sealed']} records under one Merkle root, held by "
        f"{passed['submitted']} calendars; {passed['signed']} events signed"
    )
    sandbox.mine(1 + _BLOCKS)
    steps.say(f"4. mine      {1 + _BLOCKS} blocks in the sandbox (hours on Bitcoin)")
    _finish(config, steps)
    proofs = folder / "ots"
    _anchord(config, "export", "--all", "-o", str(proofs), "--json")
    steps.say("7. export    one .ots a record")
    rows = _rows(config, proofs)
    steps.say("8. verify    each .ots by itself, against anchord's own checked headers")
    steps.say("9. fetch     each memento and each bundle again: the hashes are the signed ones")
    audit = publish_and_audit(_anchord, config, folder, sandbox.explorer_urls)
    steps.say("10. mirror publish   pages, bundles, proofs, log and signed index, as static files")
    steps.say("11. audit    of those files, in an empty folder, with only the public key")
    return rows, audit


def _finish(config: str, steps: _Steps) -> None:
    """Let anchord wait until all is anchored and stored, and say what came of it."""
    deadline = ("--wait", "--deadline", str(_DEADLINE_S))
    passed = _anchord(config, "run-once", *deadline, "--json", "--quiet")
    stored = _anchord(config, "status", "--json")["stored"]["records"]
    steps.say(
        f"5. run-once  {passed['upgraded']} paths to the chain, checked against headers; "
        f"{passed['signed']} events signed"
    )
    steps.say(
        f"6.           {stored['by_capture']} pages captured and replayed, "
        f"{stored['by_item']} bundles in an item, checksums compared"
    )


def _rows(config: str, proofs: Path) -> list[dict[str, Any]]:
    """Check each record from outside: its exported proof, its memento, its bundle in the item."""
    from anchord.app.wiring import open_app
    from anchord.core.number import pith_number

    with open_app(config) as app:
        records = [record for chunk in app.store.records.walk() for record in chunk]
        numbers = [pith_number(record.digest, record.year or "") for record in records]
        return [
            _row(app.client, config, proofs, number, record.digest)
            for number, record in zip(numbers, records, strict=True)
        ]


def _row(client: Client, config: str, proofs: Path, number: str, digest: bytes) -> dict[str, Any]:
    shown = _anchord(config, "show", number, "--full", "--json")
    file = proofs / f"{number.rpartition(':')[2]}.ots"
    options = ("--digest", digest.hex(), "--offline", "--json")
    verdict = _anchord(config, "verify", str(file), *options)
    return {
        "pith_number": number,
        "canonical_sha256": digest.hex(),
        "strip": shown["strip"].split(" | "),
        "result": verdict["result"],
        "block_height": verdict["block_height"],
        "existed_before": verdict["existed_before"],
        "checked_with": verdict["checked_with"],
        "copies": [
            {"url": url, "fetched": _sha256_at(client, url) == sha256}
            for url, sha256 in _copies(shown)
        ],
    }


def _copies(shown: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield where the signed events say that copies are, raw, and what they hash to."""
    members = {one["member_sha256"]: one["member_url"] for one in shown["stored"]["items"]}
    for one in shown["events"]:
        said = one["event"]["payload"]
        if one["event_type"] == CAPTURED:
            yield said["capture_url"].replace("/http", "id_/http", 1), said["sha256"]
        elif one["event_type"] == ITEM_STORED:
            yield members.get(said["member_sha256"], ""), said["member_sha256"]


def _sha256_at(client: Client, url: str) -> str | None:
    """Fetch as anybody would, one redirect followed; None when nothing is there."""
    for _ in range(2):
        if not url:
            return None
        answer = client.get(url, max_bytes=_MAX_COPY_BYTES)
        if answer.status == HTTPStatus.OK:
            return hashlib.sha256(answer.body).hexdigest()
        url = urllib.parse.urljoin(url, answer.headers.get("Location", ""))
    return None


def _table(rows: list[dict[str, Any]]) -> None:
    """Print completeness in the words of record pages, and what each proof shows."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("Pith Number", "attested", "anchored", "stored", "refs"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        words = [
            word.replace(name, "").strip() for name, word in zip(_FACETS, row["strip"], strict=True)
        ]
        words[1] = f"block {row['block_height']}" if row["result"] == "proved" else row["result"]
        copies = sum(copy["fetched"] for copy in row["copies"])
        words[2] = f"{copies} copies" if _stored(row) else words[2] or "not fetched"
        table.add_row(row["pith_number"], *words)
    print_table(table)
    for before in sorted({row["existed_before"] for row in rows if row["existed_before"]}):
        click.echo(f"existed before {before}, good to hours")


def _stored(row: dict[str, Any]) -> bool:
    """Tell whether a record is stored, and every copy was fetched with its signed hash."""
    copies = row["copies"]
    return row["strip"][2] == "stored" and bool(copies) and all(c["fetched"] for c in copies)


def _anchord(config: str, *arguments: str) -> Any:
    """Run a command of anchord in this process and return the JSON document it prints."""
    from anchord.app.cli.main import cli

    words = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(words):
        cli.main(["-c", config, *arguments], standalone_mode=False, prog_name="anchord")
    return json.loads(out.getvalue() or "{}")
