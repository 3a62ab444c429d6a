"""Stores that released code made (tests/data/stores), put into a folder as they were."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sqlite3
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from anchord.adapters.signers.private_key import write_private_key
from anchord.app.config import load
from anchord.app.wiring import App
from anchord.core.header import HEADER_SIZE
from anchord.engine.run import PassReport, run_pass
from support.parties import (
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
from support.workplace import run

FOLDER = Path(__file__).resolve().parents[1] / "data" / "stores"
SEED = b"a key of released stores, which signs nothing that counts"
"""As in `make_store.py` there."""
CONFIG = f"""
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


def released() -> list[str]:
    """Return the schema revisions that have a store here."""
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


class ReleasedStore:
    """An anchord whose store was made by an older one, in a folder of its own.

    Args:
        folder: an empty one.
        revision: of the schema.
    """

    def __init__(self, folder: Path, revision: str) -> None:
        told: dict[str, Any] = json.loads(
            gzip.decompress((FOLDER / f"{revision}.json.gz").read_bytes())
        )
        self.folder, self.told = folder, told
        self.clock = FakeClock(told["now"] + 60)
        self.config = folder / "anchord.toml"
        self.config.write_text(CONFIG, "utf-8")
        self._write_keys()
        headers = base64.b64decode(told["headers"])
        (folder / "headers.bin").write_bytes(headers)
        self.chain = FakeChain(height=0)
        self.chain.headers = [
            headers[start : start + HEADER_SIZE] for start in range(0, len(headers), HEADER_SIZE)
        ]
        self.chain._time = told["now"]  # where the blocks that are mined from now on begin
        self.calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))]
        store = sqlite3.connect(folder / "anchord.db")
        store.executescript("\n".join(told["sql"]))
        store.close()

    def _write_keys(self) -> None:
        keys = self.folder / "keys"
        keys.mkdir(mode=0o700)
        (keys / "keyring.toml").write_text(self.told["keyring"], "utf-8")
        private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(SEED).digest())
        (name,) = [
            line.split('"')[1]
            for line in self.told["keyring"].splitlines()
            if line.startswith('key_id = "anchord-')
        ]
        write_private_key(keys / f"{name}.pem", private, None)

    def run(self, *words: str) -> Any:
        """Run a command."""
        return run("-c", str(self.config), *words)

    def json(self, *words: str, code: int = 0) -> Any:
        """Run a command and return its document."""
        ran = self.run(*words, "--json")
        assert ran.exit_code == code, ran.output
        return json.loads(ran.stdout)

    def rows(self, query: str) -> list[Any]:
        """Ask the file itself."""
        store = sqlite3.connect(self.folder / "anchord.db")
        try:
            return store.execute(query).fetchall()
        finally:
            store.close()

    def app(self) -> App:
        """Open it as the code of today does."""
        return App(load(str(self.config)), self.clock)

    def step(self, seconds: int = 61) -> PassReport:
        """Make one pass, some time later."""
        with self.app() as app:
            parts = make_parts(
                self.folder, calendars=self.calendars, headers=[self.chain],
                signer=app.signer,  # type: ignore[arg-type]
                store=app.store, poll_min_s=1, poll_max_s=2,
            )  # fmt: skip
            return run_pass(parts, self.clock.advance(seconds))

    def mine(self) -> None:
        """Put what the calendars hold into a block with enough blocks on it."""
        if any(calendar.waiting(self.chain) for calendar in self.calendars):
            mine_together(self.chain, *self.calendars)
        self.chain.grow(6)
        self.chain.write(self.folder / "headers.bin")
