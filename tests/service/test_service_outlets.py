"""`anchord run` hands receipts over by itself, and kill -9 leaves none out."""

from __future__ import annotations

import base64
import hmac
import json
import signal
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

from support.http_server import Asked, ScriptedServer, always, reply
from support.registry import SEED, seeds
from support.running import anchord
from support.serving import QUICK, Service, eventually

from anchord.app.wiring import open_app
from anchord.sandbox.run import Sandbox

KEY = bytes(range(32))
OFTEN = {"ANCHORD__LEDGER__CHECKPOINT_EVERY_S": "0"}
"""Bundles wait for checkpoints."""
OUTLETS = """
[[outlets]]
name = "bundles"
kind = "folder"
path = "out"

[[outlets]]
name = "hook"
kind = "webhook"
url = "{url}/hook"
secret_file = "secret"

[[outlets]]
name = "registry"
kind = "sql"
url = "sqlite:///registry.db"
[outlets.statements]
timestamp_anchored = "UPDATE papers SET anchored_at = :anchored_at WHERE id = :id"
capture_stored = "UPDATE papers SET capture_url = :capture_url WHERE id = :id"
item_stored = "UPDATE papers SET item = :item WHERE id = :id"
"""


def prepared(sandbox: Sandbox, folder: Path, url: str) -> Path:
    """Make a configuration with a folder, a webhook and a database of the operator's."""
    config = sandbox.write_config()
    anchord("init", folder)
    secret = folder / "secret"
    secret.write_text("whsec_" + base64.b64encode(KEY).decode(), "utf-8")
    secret.chmod(0o600)
    ids = [record["canonical_record"]["source"]["id"] for record in seeds()]
    with closing(sqlite3.connect(folder / "registry.db")) as registry, registry:
        registry.execute("CREATE TABLE papers (id TEXT, anchored_at, capture_url, item)")
        registry.executemany("INSERT INTO papers (id) VALUES (?)", [(one,) for one in ids])
    text = config.read_text("utf-8") + QUICK + OUTLETS.format(url=url)
    config.write_text(text, "utf-8")
    return config


def papers(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "registry.db")) as registry:
        return registry.execute("SELECT anchored_at, capture_url, item FROM papers").fetchall()


def outlets(config: Path) -> dict[str, Any]:
    ran = anchord("outlets", "--json", config=config)
    return {one["name"]: one for one in json.loads(ran.out)["outlets"]}


def events_of(asked: list[Asked]) -> list[dict[str, Any]]:
    """Return what a receiver believes: requests whose signature is right."""
    found = []
    for one in asked:
        names = ("webhook-id", "webhook-timestamp")
        signed = ".".join(one.headers[name] for name in names).encode() + b"." + one.body
        mac = base64.b64encode(hmac.digest(KEY, signed, "sha256")).decode()
        assert one.headers["webhook-signature"] == f"v1,{mac}"
        found.append(json.loads(one.body))
    return found


def ledger(config: Path) -> list[tuple[int, str]]:
    with open_app(str(config)) as app:
        return [
            (row.record_id, f"sha256:{row.event_id.hex()}")
            for rows in app.store.ledger.walk()
            for row in rows
        ]


def all_handed_over(config: Path) -> bool:
    """Tell whether every event that was decided is signed, and every outlet has all of them."""
    with open_app(str(config)) as app:
        unsigned = app.store.counts.unsigned()
    return not unsigned and not any(one["behind"] for one in outlets(config).values())


def test_killed_again_and_again_every_receipt_arrives_everywhere(tmp_path: Path) -> None:
    with (
        ScriptedServer(always(reply(b"", "204 No Content"))) as server,
        Sandbox(tmp_path, tick_s=0.05, mine_every_s=0.2) as sandbox,
    ):
        config = prepared(sandbox, tmp_path, server.url)
        assert anchord("add", SEED, config=config).code == 0
        for wanted in (1, 3, 6, 9):
            with Service(config, **OFTEN) as service:
                eventually(lambda wanted=wanted: len(server.asked) >= wanted)  # type: ignore[misc]
                service.send(signal.SIGKILL)
        with Service(config, **OFTEN).started() as service:
            eventually(lambda: all(at and item for at, _, item in papers(tmp_path)), 60)
            assert service.stopped() == 0
        # A capture whose answer nobody heard is looked for in the index minutes later: not here.
        alone = {**OFTEN, "ANCHORD__ARCHIVE__CAPTURES__ENABLED": "false"}
        with Service(config, **alone).started() as service:
            eventually(lambda: all_handed_over(config), 60)
            assert service.stopped() == 0
        shown = outlets(config)
    rows = ledger(config)
    captured = [url for _, url, _ in papers(tmp_path) if url]
    assert len(rows) == 4 * 3 + len(captured), "submitted, anchored, in an item, each once"
    assert {one["seq"] for one in shown.values()} == {len(rows)}
    assert not any(one["waiting"] or one["parked"] for one in shown.values())
    _arrived(rows, events_of(server.asked))
    bundles = sorted((tmp_path / "out").glob("*.bundle.json"))
    assert len(bundles) == 4
    for path in bundles:
        name = path.name.removesuffix(".bundle.json")
        assert anchord("bundle", name, config=config).out == path.read_text("utf-8") + "\n"


def _arrived(rows: list[tuple[int, str]], events: list[dict[str, Any]]) -> None:
    """Judge: all of the ledger, and of each record in its order, whatever came twice."""
    first = list(dict.fromkeys(event["event_id"] for event in events))
    assert set(first) == {event_id for _, event_id in rows}
    record_of = {event_id: record for record, event_id in rows}
    arrived, wanted = defaultdict(list), defaultdict(list)
    for event_id in first:
        arrived[record_of[event_id]].append(event_id)
    for record, event_id in rows:
        wanted[record].append(event_id)
    assert arrived == wanted


def test_an_outlet_is_added_by_a_reload_and_trouble_is_told_once(
    sandbox: Sandbox, config: Path, tmp_path: Path
) -> None:
    answers = [reply(b"", "503 Away")]
    with ScriptedServer(lambda _asked: answers) as server, Service(config).started() as service:
        anchord("add", SEED, config=config)
        eventually(lambda: len(ledger(config)) == 4)
        prepared(sandbox, tmp_path, server.url)
        service.send(signal.SIGHUP)
        service.until(lambda line: "outlets" in line.get("changed", []))
        service.until(lambda line: line.get("about") == "outlet hook")
        eventually(lambda: len(list((tmp_path / "out").glob("*.json"))) == 4)
        answers[:] = [reply(b"", "200 OK")]
        anchord("retry", "--outlet", "hook", config=config)
        eventually(lambda: outlets(config)["hook"]["delivered"] == 4)
        assert service.stopped() == 0
    told = [line for line in service.log if line.get("about") == "outlet hook"]
    assert len(told) == 1
    assert "503" in told[0]["message"]
