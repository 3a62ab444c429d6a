"""Make the store of a released schema, by the code of that release, and dump it beside this file.

Run it with that code first on the path, as README.md in this folder shows. It uses only what every
release has: the commands, and the sandbox. All dates lie a fixed time back, so that no clock that
runs the tests is behind them; the key is made from a word, so that no private key is kept.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sqlite3
import sys
import tempfile
import time
from importlib import resources
from pathlib import Path
from typing import Any

START = 1_735_732_800
"""2025-01-01T12:00:00Z, as the first moment of every store."""
SEED = b"a key of released stores, which signs nothing that counts"
_real_time = time.time
_ahead = [START - int(time.time())]
time.time = lambda: _real_time() + _ahead[0]

from click.testing import CliRunner  # noqa: E402
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: E402
from opentimestamps.core.notary import (  # noqa: E402
    BitcoinBlockHeaderAttestation,
    PendingAttestation,
)
from opentimestamps.core.op import OpSHA256  # noqa: E402
from opentimestamps.core.serialize import BytesSerializationContext  # noqa: E402
from opentimestamps.core.timestamp import DetachedTimestampFile, Timestamp  # noqa: E402

import anchord.adapters.signers.file as signers  # noqa: E402
from anchord.adapters.store.schema import REVISION  # noqa: E402
from anchord.app.cli.main import cli  # noqa: E402
from anchord.sandbox.run import Sandbox  # noqa: E402


class _OneKey:
    """Stands where the release draws a key."""

    @staticmethod
    def generate() -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(SEED).digest())

    from_private_bytes = Ed25519PrivateKey.from_private_bytes


signers.Ed25519PrivateKey = _OneKey  # type: ignore[misc,assignment]


def later(seconds: int) -> None:
    """Let time pass."""
    _ahead[0] += seconds


class Maker:
    """One store, and what happens to it.

    Args:
        folder: where it is made.
        sandbox: the parties around it.
    """

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self.folder, self.sandbox = folder, sandbox
        self.config = sandbox.write_config()

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        """Run a command of the release; return its JSON document."""
        ran = CliRunner().invoke(cli, ["-c", str(self.config), *words, "--json"],
                                 standalone_mode=False)  # fmt: skip
        if ran.exception is not None or (ran.return_value or 0) not in codes:
            raise SystemExit(f"{words}: {ran.return_value} {ran.exception!r} {ran.output}")
        return json.loads(ran.stdout) if ran.stdout.strip() else None

    def finish(self, *codes: int) -> None:
        """Pass until nothing waits any more, or waits for others."""
        self.run("run-once", "--wait", "--deadline", "15", codes=(0, 3, *codes))

    def make(self) -> None:
        """Let happen what a store of some years has seen."""
        self.run("init", str(self.folder))
        seed = resources.files("anchord.sandbox").joinpath("seed/seed-records.jsonl")
        self.add("seed.jsonl", seed.read_bytes())
        self.run("run-once", codes=(0, 3))
        self.sandbox.mine(7)
        self.finish()
        self.add("SHA256SUMS", b"".join(_line(number) for number in range(40)))
        self.adopt()
        self.run("run-once", codes=(0, 3))
        self.sandbox.mine(7)
        self.finish()
        self.undo()
        self.add("more", b"".join(_line(number) for number in range(40, 45)))
        self.run("run-once", codes=(0, 3))
        self.add("last", b"".join(_line(number) for number in range(45, 48)))

    def undo(self) -> None:
        """Let a reorg undo the last block that was signed for, and anchor anew."""
        later(7_200)
        self.sandbox.reorg(9, drop=True)
        self.run("run-once", codes=(0, 3))
        self.finish()  # what is lost that deep no calendar repairs by itself: handed in again
        self.sandbox.mine(8)
        later(7_200)
        self.finish()

    def add(self, name: str, raw: bytes) -> None:
        """Take in a file."""
        file = self.folder / name
        file.write_bytes(raw)
        self.run("add", str(file))

    def adopt(self) -> None:
        """Take in proofs that others began: one for a stranger's calendar, one that is false."""
        pending, false = Timestamp(_digest(1_001)), Timestamp(_digest(1_002))
        pending.attestations.add(PendingAttestation("https://elsewhere.example.org"))
        false.ops.add(OpSHA256()).attestations.add(BitcoinBlockHeaderAttestation(3))
        for name, stamp in (("pending", pending), ("false", false)):
            context = BytesSerializationContext()
            DetachedTimestampFile(OpSHA256(), stamp).serialize(context)
            self.add(f"{name}.ots", context.getbytes())

    def dump(self, file: Path) -> None:
        """Write the store as SQL text, with what is needed to read on from it."""
        store = sqlite3.connect(self.folder / "anchord.db")
        out = self.folder / "out"
        self.run("export", "--all", "-o", str(out), codes=(0, 1))
        proofs = {
            one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in sorted(out.iterdir())
        }
        document = {
            "revision": REVISION,
            "now": int(time.time()),
            "keyring": (self.folder / "keys" / "keyring.toml").read_text("utf-8"),
            "headers": base64.b64encode((self.folder / "headers.bin").read_bytes()).decode(),
            "proofs": proofs,
            "bundles": self.bundles(store),
            "sql": list(store.iterdump()),
        }
        raw = json.dumps(document, indent=0).encode()
        file.write_bytes(gzip.compress(raw, 9, mtime=0))

    def bundles(self, store: sqlite3.Connection) -> dict[str, Any]:
        """Return bundles as the release writes them: of records with everything, and of some."""
        some = store.execute("SELECT digest FROM records WHERE id <= 6 ORDER BY id").fetchall()
        found = {}
        for (digest,) in some:
            out = self.folder / "one.json"
            out.unlink(missing_ok=True)
            self.run("export", "--bundle", digest.hex(), "-o", str(out), codes=(0, 1))
            if out.is_file():
                found[digest.hex()] = json.loads(out.read_text("utf-8"))
        return found


def _digest(number: int) -> bytes:
    return hashlib.sha256(b"file %d" % number).digest()


def _line(number: int) -> bytes:
    return f"{_digest(number).hex()}  file-{number}\n".encode()


def main() -> None:
    """Make and dump."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Sandbox(folder, tick_s=0.1) as sandbox:
            maker = Maker(folder, sandbox)
            maker.make()
            maker.dump(Path(sys.argv[1]) / f"{REVISION}.json.gz")


if __name__ == "__main__":
    main()
