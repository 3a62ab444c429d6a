"""`anchord run` shows metrics, and neither waits nor ends for who looks at them."""

from __future__ import annotations

import contextlib
import socket
import time
import urllib.request
from pathlib import Path

from support.monitored import Samples, samples, value
from support.registry import SEED
from support.running import anchord
from support.serving import Service, eventually

from anchord.sandbox.run import Sandbox


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def scraped(port: int) -> Samples:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=20) as answer:
        return samples(answer.read())


def test_a_service_shows_what_it_does_and_what_the_store_has(
    sandbox: Sandbox, config: Path
) -> None:
    port = free_port()
    with Service(config, ANCHORD__SERVICE__METRICS=f"127.0.0.1:{port}").started() as service:
        assert anchord("add", SEED, config=config).code == 0
        service.until(lambda line: line["event"] == "pass" and line.get("sealed") == 4)
        sandbox.mine(7)
        eventually(lambda: value(scraped(port), "ledger_events") == 8, 60)
        found = scraped(port)
        assert service.stopped() == 0
    assert value(found, "sealed_records_total") == 4
    assert value(found, "signed_events_total") == 8
    assert value(found, "anchored_batches_total") == 1
    assert value(found, "attempts_total", facet="anchored", step="submit", outcome="done") == 3
    assert value(found, "records", facet="anchored", state="anchored") == 4
    assert value(found, "paused") == 0
    assert time.time() - (value(found, "last_look_timestamp_seconds") or 0) < 30
    assert time.time() - (value(found, "last_pass_timestamp_seconds", kind="pass") or 0) < 60
    assert (value(found, "log_lines_total", level="info") or 0) >= 2
    assert any(name == "process_resident_memory_bytes" for name, _ in found)
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        raise AssertionError("the door is still open")


def test_who_stands_in_the_door_does_not_keep_it_from_stopping(
    sandbox: Sandbox, config: Path
) -> None:
    port = free_port()
    with Service(config, ANCHORD__SERVICE__METRICS=str(port)).started() as service:
        with contextlib.ExitStack() as stack:
            for _ in range(20):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
            began = time.monotonic()
            assert service.stopped() == 0
        assert time.monotonic() - began < 10
    assert not [line for line in service.log if line["level"] != "info"]


def test_an_address_that_is_taken_does_not_keep_work_from_being_done(
    sandbox: Sandbox, config: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with Service(config, ANCHORD__SERVICE__METRICS=where).started() as service:
            service.until(lambda line: line["event"] == "metrics" and line["level"] == "warning")
            assert anchord("add", SEED, config=config).code == 0
            service.until(lambda line: line["event"] == "pass" and line.get("sealed") == 4)
            assert service.stopped() == 0


def test_a_service_that_shows_nothing_opens_nothing(sandbox: Sandbox, config: Path) -> None:
    with Service(config).started() as service:
        listening = {
            line.split()[9] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
            if line.split()[3] == "0A"
        }  # fmt: skip
        mine = {
            link.removeprefix("socket:[").removesuffix("]")
            for fd in Path(f"/proc/{service.process.pid}/fd").iterdir()
            if (link := str(fd.readlink())).startswith("socket:")
        }
        assert not listening & mine
        assert service.stopped() == 0
    assert "metrics" not in {line["event"] for line in service.log}
