"""The registry's four seed records on their way from an empty store to complete pages, served.

The sandbox stands in for everything outside; what anchord does is done by its own commands.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Self

from anchord.core.canonical import pith_suffix
from anchord.sandbox.run import Sandbox
from support.face_places import Serving
from support.http_server import dead_port
from support.registry import SEED
from support.running import Ran, anchord

_BLOCKS = 7


class SeedPath:
    """An empty store and its running server; each step is a command. A context manager.

    Args:
        folder: an empty one.

    Attributes:
        url: where the server is, which its pages state too.
        config: the configuration of both.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._sandbox = stack.enter_context(Sandbox(self._folder, tick_s=0.05))
            self.config = self._sandbox.write_config()
            self._do("init", str(self._folder))
            at = f"127.0.0.1:{dead_port()}"
            web = f'\n[web]\nbase_url = "http://{at}"\nname = "registry.example.org"\n'
            self.config.write_text(self.config.read_text("utf-8") + web, "utf-8")
            self.serving = stack.enter_context(Serving(self.config, "--bind", at))
            self.url = self.serving.url
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _do(self, *words: str) -> Ran:
        done = anchord(*words, config=self.config)
        assert done.code == 0, done.err
        return done

    @property
    def places(self) -> list[str]:
        """Paths of the records' pages."""
        lines = SEED.read_text("utf-8").splitlines()
        digests = [json.loads(line)["canonical_sha256"] for line in lines]
        return [f"pith/{pith_suffix(bytes.fromhex(digest))}" for digest in digests]

    def add(self) -> None:
        """Take the seed records in."""
        self._do("add", str(SEED), "--quiet")

    def submit(self) -> None:
        """Make one pass: calendars get the Merkle root."""
        self._do("run-once", "--quiet")

    def mine(self) -> None:
        """Put what calendars hold into a block, with enough others on it."""
        self._sandbox.mine(_BLOCKS)

    def finish(self) -> None:
        """Pass until all is anchored and stored."""
        self._do("run-once", "--wait", "--deadline", "60", "--quiet")

    def audit(self) -> None:
        """Let an auditor look at the store."""
        self._do("audit", "--quiet", "-o", str(self._folder / "report.json"))
