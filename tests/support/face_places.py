"""Stores whose pages are looked at, one of everything in them, and who serves them.

What people or programs can put on a page goes in by the doors that strangers have: labels of files,
records as they come, documents with events of others.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from anchord.core.canonical import pith_suffix
from anchord.core.event import CAPTURED
from anchord.core.key_document import to_document
from anchord.core.model import Document, Record
from support.evidence import body_of, bundle_with, sign, stored_event
from support.parties import FakeSigner
from support.passes import bare as plain_digests
from support.stored_place import configure, store_capture, store_item
from support.workplace import Workplace, bare, sample

SPEAKER = FakeSigner("speaker-2024", "speaker.example.org")
"""Claims things about records; its key is trusted."""
STRANGER = FakeSigner("stranger-2024", "stranger.example.org")
"""Claims things, too; nobody trusts its key."""

SCRIPT = "<script>document.title='struck'</script><img src=x onerror=document.title='struck'>"
BREAKOUT = f"\"'></title></script></textarea></pre>--><svg/onload=alert(1)>{SCRIPT}"
TURNED = "\u202egnp.exe\u202c \u2066left\u2069 \u200bzero"
LONG = "w" * 10_000
CONTROLS = "bell \x07 escape \x1b[31m delete \x7f line\u2028separator \ud83d\udca3"
HOSTILE = f"{BREAKOUT} {TURNED} {{{{ 7*7 }}}} {{% raw %}} ${{7*7}}"
TITLE = f"{BREAKOUT} {TURNED}"
"""It is the title of a record: the hash in the record agrees."""


def place_of(record: Record) -> str:
    """Return where a record's page is below the root."""
    if record.year is None:
        return f"record/{record.digest.hex()}"
    return f"pith/{pith_suffix(record.digest)}"


class FacePlace:
    """A store with records in every state, and what strangers may say of them.

    Args:
        folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self.place = place = Workplace(folder)
        self._trust(SPEAKER)
        self.whole, self.cited = sample(1), sample(2)
        self.file = bare(hashlib.sha256(b"three").digest(), "three.pdf")
        self.hostile = hostile_record()
        self.hostile_file = bare(hashlib.sha256(b"four").digest(), HOSTILE[:200])
        self.submitted, self.waiting = sample(5), sample(6)
        self.again = sample(1, source={"id": "2507.00001", "kind": "arxiv", "version": 2})
        claimed = Document(record=self.whole, raw=bundle_with(self.whole, _claims(self)))
        place.anchor(claimed, self.cited, self.file, *plain_digests(30))
        store_capture(place)
        store_item(place)
        place.add(self.hostile_file, hostile_document(self.hostile), self.submitted)
        place.step()
        place.add(self.waiting, self.again)
        self._park()
        self._audit()

    def _trust(self, signer: FakeSigner) -> None:
        file = self.place.folder / f"{signer.key_id}.json"
        file.write_text(json.dumps(to_document(signer.public())), "utf-8")
        targets = ("author", "citation", "replication", "storage")
        words = [word for target in targets for word in ("--target", target)]
        assert self.place.run("key", "trust", str(file), *words).exit_code == 0

    def _park(self) -> None:
        done = self.place.run("park", "2", "--reason", BREAKOUT[:200])
        assert done.exit_code == 0, done.stderr

    def _audit(self) -> None:
        """Let there be a report to be shown."""
        report = self.place.folder / "report.json"
        assert self.place.run("audit", "--quiet", "-o", str(report)).exit_code in (0, 1)
        configure(self.place, '\n[web]\naudit_report = "report.json"\n')

    @property
    def records(self) -> dict[str, Record]:
        """The records that have a page worth looking at, by what they are."""
        names = ("whole", "cited", "file", "hostile", "hostile_file", "submitted", "waiting")
        return {name: getattr(self, name) for name in names}

    def publish(self, tree: Path) -> None:
        """Publish all of it."""
        done = self.place.run("mirror", "publish", str(tree), "--quiet")
        assert done.exit_code == 0, done.output


def hostile_record() -> Record:
    """Return a record whose every text is hostile."""
    title = " ".join(TITLE.lower().split())
    return sample(
        4,
        metadata={
            "submitted_at": "2024-07-14T15:31:31Z",
            "title_canon_sha256": hashlib.sha256(title.encode()).hexdigest(),
            "license": "javascript:alert(1)",
            "note": [HOSTILE, LONG, CONTROLS.encode("utf-8", "replace").decode()],
            "primary_cat": SCRIPT,
        },
        source={"id": BREAKOUT, "kind": BREAKOUT, "version": 1},
        **{BREAKOUT: {"</script>": "data:text/html,<script>alert(1)</script>"}},
    )


def hostile_document(record: Record) -> Document:
    """Return what strangers, believed and not, say of it."""
    events = [
        _claim(record, "author_claim", "author", author={"name": HOSTILE[:300]}),
        _claim(record, "citation", "citation", relation="cites",
               cited={"url": f"https://example.org/{BREAKOUT}".replace(" ", ""), "title": TITLE}),
        _claim(record, "replication", "replication", kind="falsification",
               report={"url": "https://example.org/?a=javascript:alert(1)#" + "w" * 200}),
        stored_event(record, SPEAKER, CAPTURED, capture_url="javascript:alert(1)"),
        stored_event(record, SPEAKER, CAPTURED, final_url="data:text/html," + SCRIPT,
                     original_url=f"https://example.org/{BREAKOUT}"),
        _claim(record, SCRIPT, "record", by=STRANGER, title=TITLE, text=LONG),
        _claim(record, "record_created", "record", by=STRANGER, title=TITLE, note=HOSTILE,
               receipt={"kind": "pith_receipt", "key_id": BREAKOUT, "algorithm": SCRIPT,
                        "builder": HOSTILE, "signature_b64": BREAKOUT, "signed_at": SCRIPT}),
    ]  # fmt: skip
    return Document(record=record, raw=bundle_with(record, events, [SPEAKER, STRANGER]))


def _claims(place: FacePlace) -> list[dict[str, Any]]:
    record, other = place.whole, place.cited
    number = sample_number(other)
    return [
        _claim(record, "author_claim", "author", position=1,
               author={"name": "An Author", "orcid": "0000-0002-1825-0097"}),
        _claim(record, "citation", "citation", relation="extends", cited={"pith_number": number}),
        _claim(record, "citation", "citation", relation="cites",
               cited={"doi": "10.1000/182", "title": "The handbook"}),
        _claim(record, "replication", "replication", kind="replication",
               report={"url": "https://example.org/reports/1"}),
    ]  # fmt: skip


def sample_number(record: Record) -> str:
    """Return a record's Pith Number."""
    return f"pith:{record.year}:{pith_suffix(record.digest)}"


def _claim(
    record: Record, event: str, about: str, by: FakeSigner = SPEAKER, **payload: Any
) -> dict[str, Any]:
    return sign(body_of(record, by, payload, event_type=event, target=about), by)


class Serving:
    """A running `anchord serve`; a context manager.

    Args:
        config: its configuration.
        options: of the command.
    """

    def __init__(self, config: Path, *options: str) -> None:
        self._log = config.with_name("serve.log")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "anchord", "-c", str(config), "serve",
                 "--bind", "127.0.0.1:0", *options],
                stderr=log, stdout=subprocess.DEVNULL, env=_environment(),
            )  # fmt: skip
        self.url = self._found()

    def _found(self) -> str:
        end = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < end:
            if found := re.search(r"serves (http://127\.0\.0\.1:[0-9]+)", self.said):
                return found[1]
            time.sleep(0.05)
        self._process.kill()
        raise AssertionError(f"it does not serve: {self.said}")

    @property
    def said(self) -> str:
        """Its log."""
        return self._log.read_text("utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.wait()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ANCHORD_")}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """Serve files as any web server does; yield the address."""
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
