"""A whole anchord in a folder: real configuration, key, store and header file, and fake parties."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from anchord.adapters.signers.file import create_key_dir
from anchord.app.cli.main import cli
from anchord.app.config import load
from anchord.app.wiring import App
from anchord.core.canonical import read_record
from anchord.core.model import Adoption, Document, Record, Scheme
from anchord.engine.run import PassReport, run_pass
from anchord.errors import AnchordError
from support.parties import (
    START,
    URI_A,
    URI_B,
    URL_A,
    URL_B,
    FakeCalendar,
    FakeChain,
    FakeClock,
    make_parts,
    mine_together,
)
from support.stores import address

CONFIG = f"""
[signer]
signer_id = "registry.example.org"

[headers]
network = "regtest"
sources = ["file"]

[[anchoring.calendars]]
url = "{URL_A}"
uris = ["{URI_A}"]

[[anchoring.calendars]]
url = "{URL_B}"
uris = ["{URI_B}"]
"""


def sample(number: int, **changes: Any) -> Record:
    """Return a record as the registry's are."""
    value = {
        "metadata": {
            "abstract_canon_sha256": f"{number:064x}",
            "cross_cats_sorted": [],
            "license": "",
            "primary_cat": "cs.DL",
            "submitted_at": f"20{number % 26:02d}-07-14T15:31:31Z",
            "title_canon_sha256": f"{number + 1:064x}",
        },
        "schema_version": "1.0",
        "source": {"id": f"2507.{number:05d}", "kind": "arxiv", "version": 1},
        **changes,
    }
    return read_record(json.dumps(value).encode())


def bare(digest: bytes, label: str | None = None) -> Record:
    return Record(digest=digest, scheme=Scheme.SHA256, label=label)


class Workplace:
    """One folder with `anchord init` done, and the parties around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.chain = FakeChain()
        self.calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        where = address(folder)
        store = "" if where.startswith("sqlite") else f'[store]\nurl = "{where}"\n'
        (folder / "anchord.toml").write_text(store + CONFIG, "utf-8")
        if not (folder / "keys").exists():  # a test may bring the keys of another place
            create_key_dir(folder / "keys", "registry.example.org", None, START)
        assert self.run("init", str(folder)).exit_code == 0
        self.write_headers()

    def write_headers(self) -> None:
        self.chain.write(self.folder / "headers.bin")

    @property
    def config(self) -> Path:
        return self.folder / "anchord.toml"

    def app(self) -> App:
        return App(load(str(self.config)), self.clock)

    def add(self, *items: Record | Adoption | Document) -> None:
        with self.app() as app:
            app.store.add(items, self.clock.now())

    def step(self, seconds: int = 61) -> PassReport:
        """Make one pass, some time later."""
        with self.app() as app:
            parts = make_parts(
                self.folder,
                calendars=self.calendars,
                headers=[self.chain],
                signer=app.signer,  # type: ignore[arg-type]
                store=app.store,
            )
            return run_pass(parts, self.clock.advance(seconds))

    def mine(self, more: int = 5) -> int:
        """Put what waits into a block with `more` blocks on it; return its height."""
        height = mine_together(self.chain, *self.calendars)
        self.chain.grow(more)
        self.write_headers()
        return height

    def anchor(self, *items: Record | Adoption | Document) -> int:
        """Add records and bring them all the way; return the block."""
        self.add(*items)
        self.step()
        height = self.mine()
        report = self.step(1000)
        assert report.anchored == 1
        return height

    def run(self, *words: str, stdin: bytes | None = None) -> Result:
        """Run the command line with this configuration."""
        return run("-c", str(self.config), *words, stdin=stdin)

    def json(self, *words: str, code: int = 0) -> Any:
        result = self.run(*words, "--json")
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)


def run(*words: str, stdin: bytes | None = None) -> Result:
    """Run the command line in this process; errors become exit codes as `anchord` does it."""
    result = CliRunner().invoke(cli, list(words), input=stdin, standalone_mode=False)
    error = result.exception
    if isinstance(error, AnchordError):
        result.exit_code = error.exit_code
        result.stderr_bytes = (result.stderr_bytes or b"") + str(error).encode()
    elif error is not None and not isinstance(error, SystemExit):
        if type(error).__module__.startswith("click"):
            result.exit_code = 2
        else:
            raise error
    elif isinstance(result.return_value, int):
        result.exit_code = result.return_value
    return result


def lines(result: Result) -> Sequence[Any]:
    """Return the JSON Lines a command printed."""
    return [json.loads(line) for line in result.stdout.splitlines()]


__all__ = ["START", "Workplace", "bare", "lines", "run", "sample"]
