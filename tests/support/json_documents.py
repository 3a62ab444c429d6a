"""Every JSON document the commands print, from one story told on a real sandbox."""

from __future__ import annotations

import base64
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec
from opentimestamps.core.notary import PendingAttestation
from opentimestamps.core.timestamp import Timestamp

from anchord.app.wiring import open_app
from anchord.core.canonical import read_record
from anchord.core.claims import TARGETS
from anchord.core.key_document import to_document
from anchord.core.model import BatchChange
from anchord.core.storage import CaptureChange, CaptureState, FileChange, FileState
from anchord.sandbox.run import Sandbox
from support.evidence import body_of, bundle_with, sign, withdrawal
from support.fleet import workers_of
from support.http_server import ScriptedServer, dead_port
from support.old_store import at_first_schema
from support.ots_oracle import written_file
from support.parties import FakeSigner
from support.postgres import Cluster
from support.workplace import run

MAPS = {
    "problems", "refused", "requests", "requests.*", "explorers", "peers", "calendars",
    "authorities", "kinds", "faults[].options", "archive", "archive_counts", "archive_counts.*",
    "stored.captures.refused", "stored.items.refused", "completeness.anchored",
    "completeness.stored", "completeness.by_source", "completeness.by_cohort",
    "completeness.waiting_age_s", "counts", "sources", "rows", "tables",
    "received.problems", "delivered.problems", "outlets",
}  # fmt: skip
"""Objects whose keys are names of things, documented as `problems.*`."""


OPAQUE = {"events[].event", "effective"}
"""Described elsewhere: docs/protocol.md, docs/operations.md."""


class Story:
    """Runs commands and keeps what they print, by command."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: dict[str, list[Any]] = defaultdict(list)
        self.config = folder / "anchord.toml"

    def tell(self, name: str, *words: str, code: int = 0) -> Any:
        """Run a command with --json and keep its documents under `name`."""
        result = run("-c", str(self.config), *name.split(), *words, "--json")
        assert result.exit_code == code, (name, words, result.exit_code, result.output)
        documents = list(_documents(result.stdout))
        self.told[name] += documents
        return documents[0]

    def tell_all(self, sandbox: Sandbox) -> None:
        """Tell the story, from an empty folder to a revoked key."""
        at_first_schema(self.folder / "anchord.db")
        self.tell("init", str(self.folder))
        self.tell("status")
        self._take_in()
        self._fail_once()
        self._anchor(sandbox)
        self._hear_others()
        self._read()
        self._ledger(sandbox)
        self._mirror()
        self._headers()
        self._look_after()
        self._receive()
        self._hand_over()
        self._keys()
        self._set_aside()
        self._park()
        self._leave_out()
        self._drive()
        self._share()

    def _take_in(self) -> None:
        records = [record(1, 1), record(1, 2)]
        lines = [json.dumps(one) for one in records]
        (self.folder / "two.jsonl").write_text("\n".join([*lines, "{"]), "utf-8")
        stamp = Timestamp(bytes(32))
        stamp.attestations.add(PendingAttestation("https://elsewhere.example.org"))
        (self.folder / "foreign.ots").write_bytes(written_file(stamp))
        names = [str(self.folder / name) for name in ("two.jsonl", "foreign.ots")]
        self.tell("add", *names, code=1)
        self.tell("status")

    def _fail_once(self) -> None:
        self.tell("sandbox fault", "calendar-1", "dead")
        self.tell("sandbox fault", "node", "warm-up")
        self.tell("sandbox fault", "wayback", "session-limit", "--count", "1")
        self.tell("run-once", code=3)
        self.tell("status")
        self.tell("show", "2507.00001v1")
        self.tell("sandbox status")
        self.tell("sandbox fault", "--clear")

    def _anchor(self, sandbox: Sandbox) -> None:
        sandbox.mine(7)
        self.tell("sandbox fault", "node", "warm-up")
        self.tell("sandbox fault", "ias3", "bad-digest", "--count", "1")
        self._meet_a_problem()
        self.tell("status", "--online")
        self.tell("sandbox fault", "--clear")
        self.tell("run-once", "--wait", "--deadline", "90")
        self.tell("status")
        self.tell("audit", "--jobs", "1", "--online", "2", "--fail-under", "anchored=1")
        empty = self.folder / "empty"
        empty.mkdir()
        self.tell("audit", str(empty), code=1)

    def _meet_a_problem(self) -> None:
        """Pass until the calendars have the path, so that the node is asked, and cannot answer."""
        for _ in range(200):
            ran = run("-c", str(self.config), "run-once", "--json")
            document = json.loads(ran.stdout)
            if document["problems"]:
                self.told["run-once"].append(document)
                return
            time.sleep(0.05)
        raise AssertionError("no pass met the node's problem")

    def _hear_others(self) -> None:
        """Take in what somebody who is trusted for that says about a record, and takes back."""
        about, reader = read_record(json.dumps(record(1, 1)).encode()), FakeSigner("reader")
        paper = {"doi": "10.1000/182"}
        said = [
            ("author_claim", {"author": {"name": "R. Reader"}}),
            ("citation", {"relation": "extends", "cited": paper}),
            ("replication", {"kind": "replication", "report": paper}),
        ]
        events = [
            sign(body_of(about, reader, payload, event_type=kind, target=TARGETS[kind]), reader)
            for kind, payload in said
        ]
        gone = [withdrawal(about, reader, one["event_id"], one["target"]) for one in events]
        key, heard = self.folder / "reader.json", self.folder / "heard.json"
        key.write_text(json.dumps(to_document(reader.public(targets=(*TARGETS.values(),)))))
        assert run("-c", str(self.config), "key", "trust", str(key)).exit_code == 0
        for some in (events, gone):
            heard.write_bytes(bundle_with(about, some))
            self.tell("add", str(heard))
            self.tell("show", "2507.00001v1")

    def _read(self) -> None:
        out = str(self.folder / "out")
        self.tell("show", "2507.00001v1", "--full")
        self.tell("open", "2507.00001v1")
        self.tell("show", "2507.00001", code=1)
        self.tell("show", bytes(32).hex())
        self.tell("verify", "2507.00001v1")
        self.tell("verify", bytes(32).hex())
        self.tell("export", "--all", "-o", out)
        self.tell("export", "--bundle", "2507.00001v1", "2507.99999", "-o", out, code=1)
        found = sorted(str(path) for path in Path(out).iterdir())
        self.tell("verify", *found)
        self.tell("verify", str(self.folder / "foreign.ots"), code=1)

    def _ledger(self, sandbox: Sandbox) -> None:
        """One more batch goes into a block: it carries the checkpoints made so far."""
        (self.folder / "more.jsonl").write_text(json.dumps(record(3, 1)), "utf-8")
        self.tell("add", str(self.folder / "more.jsonl"))
        self.tell("run-once")
        sandbox.mine(7)
        self.tell("run-once", "--wait", "--deadline", "90")
        self.tell("ledger check")
        headers = self.folder / "headers.bin"
        whole = headers.read_bytes()
        headers.write_bytes(whole[:160])
        self.tell("ledger check", "--offline", code=3)
        headers.write_bytes(whole)
        with open_app(str(self.config)) as app:
            (first, *_) = app.store.log.checkpoints()
            self._date_checkpoint(app, 5, first.size)
            self.tell("ledger check", code=1)
            self._date_checkpoint(app, first.created_at, first.size)
        self.tell("ledger consistency", "1", str(first.size))
        bundle = str(self.folder / "paper.json")
        proof = str(self.folder / "paper.tlog-proof")
        words = ["export", "--bundle", "2507.00001v1", "-o", bundle]
        assert run("-c", str(self.config), *words).exit_code == 0
        raw = run("-c", str(self.config), "ledger", "prove", "2507.00001v1").stdout_bytes
        Path(proof).write_bytes(raw)
        vkey = run("-c", str(self.config), "ledger", "checkpoint", "--vkey").stdout.split()[0]
        self.tell("ledger verify", proof, bundle, "--vkey", vkey)

    def _date_checkpoint(self, app: Any, moment: int, size: int) -> None:
        statement = "UPDATE checkpoints SET created_at = ? WHERE size = ?"
        with app.store._engine.begin() as connection:
            connection.exec_driver_sql(statement, (moment, size))

    def _mirror(self) -> None:
        """Publish, and pull it back with one bundle spoilt."""
        tree = self.folder / "mirror"
        self.tell("mirror publish", str(tree))
        stray = tree / "record" / "stray"
        stray.write_text("nobody's", "utf-8")
        self.tell("mirror publish", str(tree))
        self.tell("mirror pull", str(tree), "--dry-run")
        next(tree.glob("pith/*/bundle.json")).write_text("{", "utf-8")
        self.tell("mirror pull", str(tree), code=1)

    def _headers(self) -> None:
        with (self.folder / "headers.bin").open("ab") as file:
            file.write(b"torn")
        self.tell("headers sync")
        self.tell("headers status")
        copy = self.folder / "copy.bin"
        copy.write_bytes((self.folder / "headers.bin").read_bytes())
        self.tell("headers import", str(copy))
        self.tell("headers check", str(copy))
        copy.write_bytes(copy.read_bytes()[:-1])
        self.tell("headers check", str(copy), code=1)
        self.tell("headers status", "--file", str(self.folder / "none.bin"))

    def _keys(self) -> None:
        key = self.tell("key public")["key_id"]
        assert run("-c", str(self.config), "key", "rotate").exit_code == 0
        assert run("-c", str(self.config), "key", "revoke", key, "--reason", "x").exit_code == 0
        self.tell("key list")
        self.tell("key public", key)

    def _receive(self) -> None:
        """One source has a file that is none, one is not there."""
        text = self.config.read_text("utf-8")
        inbox = self.folder / "inbox"
        inbox.mkdir()
        (inbox / "bad.json").write_text("{", "utf-8")
        tables = [
            '[[sources]]\nname = "inbox"\nkind = "folder"\npath = "inbox"\nsettle_s = 0\n',
            '[[sources]]\nname = "away"\nkind = "sql"\nurl = "sqlite:///none.db"\ntable = "t"\n',
        ]
        self.tell("sources")
        self.config.write_text("\n".join([text, *tables]), "utf-8")
        self.tell("run-once", code=3)
        self.tell("sources")
        self.tell("sources pull", "--again", code=2)
        self.config.write_text(text, "utf-8")
        self.tell("sources")

    def _hand_over(self) -> None:
        """One outlet takes all but one event, one is away."""
        text = self.config.read_text("utf-8")
        secret = self.folder / "secret"
        secret.write_text("whsec_" + base64.b64encode(bytes(32)).decode(), "utf-8")
        secret.chmod(0o600)
        answers = chain([b"HTTP/1.0 422 No\r\n\r\n"], repeat(b"HTTP/1.0 200 OK\r\n\r\n"))
        with ScriptedServer(lambda _asked: [next(answers)]) as server:
            urls = {"hook": server.url, "away": f"http://127.0.0.1:{dead_port()}"}
            tables = [
                f'[[outlets]]\nname = "{name}"\nkind = "webhook"\nurl = "{url}"\n'
                'secret_file = "secret"\n'
                for name, url in urls.items()
            ]
            self.config.write_text("\n".join([text, *tables]), "utf-8")
            self.tell("run-once", code=3)
            self.tell("outlets")
            self.tell("retry", "--outlet", "hook")
        self.config.write_text(text, "utf-8")

    def _look_after(self) -> None:
        """What an operator does on a quiet day."""
        self.tell("doctor")
        self.tell("config show")
        self.tell("config check")
        self.tell("config explain", "anchoring")
        file = str(self.folder / "backup.tar")
        self.tell("backup", file)
        self.tell("restore", file, str(self.folder / "restored"))
        self.tell("migrate-store", f"sqlite:///{self.folder / 'moved.db'}")
        self.tell("db status")
        self.tell("db upgrade")

    def _set_aside(self) -> None:
        """Set aside work that is taken for open once more."""
        with open_app(str(self.config)) as app:
            tables = app.store.storage
            app.store.batches.change([BatchChange(batch_id=1, columns={"state": "submitted"})])
            (capture, *_) = tables.captures.of_record(1)
            waiting = {"state": CaptureState.WAITING}
            tables.captures.change([CaptureChange(capture=capture, columns=waiting)])
            (file,) = tables.items.in_state((FileState.STORED,), 1)
            packed = {"state": FileState.PACKED}
            tables.items.change([FileChange(file=file, columns=packed)])
        work = ("1", capture.url, f"{file.identifier}/{file.name}", "99")
        self.tell("park", *work, "--reason", "why", code=1)
        self.tell("retry", "1", "2507.99999", code=1)

    def _park(self) -> None:
        with open_app(str(self.config)) as app:
            parked = {"state": "parked", "note": "why", "next_check_at": None}
            app.store.batches.change([BatchChange(batch_id=1, columns=parked)])
            tables = app.store.storage
            (capture, *_) = tables.captures.of_record(1)
            gone = {"state": CaptureState.PARKED, "code": "blocked-url", "next_attempt_at": None}
            tables.captures.change([CaptureChange(capture=capture, columns=gone)])
            lane = tables.lanes.get("index")
            tables.lanes.put(
                msgspec.structs.replace(lane, stopped=True, alert="a person must look")
            )
        self.tell("status")
        self.tell("run-once", code=2)
        self.tell("archive check")
        self.tell("retry", "1", "99", "--archive", code=1)

    def _leave_out(self) -> None:
        self.tell("archive check")
        text = self.config.read_text("utf-8")
        self.config.write_text(re.sub(r"\ncontact = .*", "", text), "utf-8")
        self.tell("archive check", code=2)
        self.tell("run-once")
        self.tell("status")
        self.config.write_text(text, "utf-8")

    def _drive(self) -> None:
        self.tell("sandbox fault", "calendar-1", "slow", "--delay", "1", "--count", "2")
        self.tell("sandbox fault --list")
        self.tell("sandbox fault", "--clear")
        self.tell("sandbox mine", "2")
        self.tell("sandbox reorg", "1")
        self.tell("sandbox advance", "60")
        self.tell("sandbox site", "https://example.org/", "--status", "404")
        self.tell("sandbox site", "--clear")
        self.tell("sandbox status")

    def _share(self) -> None:
        """Two workers share a store; one of them is gone."""
        folder = self.folder / "shared"
        folder.mkdir()
        config = folder / "anchord.toml"
        with Cluster() as cluster:
            url = cluster.empty()
            config.write_text(f'[store]\nurl = "{url}"\n', "utf-8")
            assert run("-c", str(config), "init", str(folder)).exit_code == 0
            with workers_of(url):
                ran = run("-c", str(config), "status", "--json")
        self.told["status"].append(json.loads(ran.stdout))


def record(number: int, version: int) -> dict[str, Any]:
    """Return a record with its number, as a registry hands it out."""
    return {
        "metadata": {"primary_cat": "cs.DL", "submitted_at": "2025-07-14T15:31:31Z"},
        "schema_version": "1.0",
        "source": {"id": f"2507.{number:05d}", "kind": "arxiv", "version": version},
    }


def _documents(text: str) -> Iterator[Any]:
    """Yield one document, or one a line."""
    try:
        yield json.loads(text)
    except ValueError:
        yield from map(json.loads, text.splitlines())


def shapes(documents: list[Any]) -> dict[str, set[str]]:
    """Return path -> types of the values in documents: `a.b`, `list[].key`, `map.*`.

    An object or a list is named by what is in it, unless it can be absent.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for document in documents:
        for path, kind in _walk(document, ""):
            found[path].add(kind)
    return {
        path: kinds
        for path, kinds in found.items()
        if path in OPAQUE or not kinds <= {"object", "list"}
    }


def _walk(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if path in OPAQUE:
        yield path, "null" if value is None else "object"
    elif isinstance(value, dict):
        yield path, "object"
        for key, inner in value.items():
            name = "*" if path in MAPS else key
            yield from _walk(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield path, "list"
        for inner in value:
            yield from _walk(inner, f"{path}[]")
    else:
        yield path, _TYPES[type(value)]


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
