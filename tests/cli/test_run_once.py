from __future__ import annotations

import base64
import json
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.running import anchord, start
from support.shared import SHARED

from anchord.app.wiring import open_app
from anchord.core.model import BatchChange
from anchord.sandbox.run import Sandbox

pytestmark = pytest.mark.shared_data
RECORDS = SHARED / "pith-records.jsonl"


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path, tick_s=0.05, archive=False) as running:
        running.write_config()
        anchord("init", tmp_path)
        yield running


@pytest.fixture
def config(sandbox: Sandbox, tmp_path: Path) -> Path:
    return tmp_path / "anchord.toml"


def test_records_go_in_not_anchored_and_come_out_anchored(sandbox: Sandbox, config: Path) -> None:
    assert anchord("add", RECORDS, config=config).code == 0
    first = anchord("run-once", "--json", config=config)
    assert first.code == 0
    assert (first.json["sealed"], first.json["submitted"], first.json["signed"]) == (60, 3, 60)
    assert first.json["left"] == 60
    sandbox.mine(7)
    second = anchord("run-once", "--wait", "--deadline", "30", "--json", config=config)
    assert second.code == 0
    assert (second.json["anchored"], second.json["signed"], second.json["left"]) == (1, 60, 0)
    assert [calendar.requests["digest"] for calendar in sandbox.calendars] == [1, 1, 1]


def test_one_question_per_calendar_whatever_the_batch(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    sandbox_before = [calendar.requests["timestamp"] for calendar in sandbox.calendars]
    anchord("run-once", config=config)
    sandbox.mine(7)
    time.sleep(1.1)
    anchord("run-once", config=config)
    asked = [calendar.requests["timestamp"] for calendar in sandbox.calendars]
    assert [b - a for a, b in zip(sandbox_before, asked, strict=True)] == [1, 1, 1]


def test_nothing_to_do_says_so_and_exits_zero(sandbox: Sandbox, config: Path) -> None:
    ran = anchord("run-once", config=config)
    assert (ran.code, ran.out) == (0, "nothing to do now\n")


def test_a_deadline_ends_the_waiting_with_exit_3(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    ran = anchord("run-once", "--wait", "--deadline", "1", "--json", config=config)
    assert (ran.code, ran.json["left"]) == (3, 60)


def test_failed_calls_exit_3_and_are_repeated(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    sandbox.fault("calendars", "dead", count=6)
    ran = anchord("run-once", "--json", config=config)
    assert ran.code == 3
    assert ran.json["failed_calls"] >= 1
    sandbox.clear_faults()
    time.sleep(1.1)
    assert anchord("run-once", "--json", config=config).json["submitted"] >= 2


def test_a_wait_ends_cleanly_at_sigterm(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    process = start("run-once", "--wait", "--json", config=config)
    deadline = time.monotonic() + 60
    while not any(calendar.requests["timestamp"] for calendar in sandbox.calendars):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 3
    assert json.loads(out)["left"] == 60


def test_two_passes_at_once_are_refused(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    sandbox.fault("calendars", "slow", delay_s=2.0)
    first = start("run-once", "--json", config=config)
    deadline = time.monotonic() + 60
    while not any(c.requests["connections"] for c in sandbox.calendars):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    second = anchord("run-once", config=config)
    assert second.code == 3
    assert "another anchord" in second.err
    first.communicate(timeout=30)
    assert first.returncode == 0


def test_a_reorg_withdraws_the_event_and_anchors_again(sandbox: Sandbox, config: Path) -> None:
    anchord("add", RECORDS, config=config)
    anchord("run-once", config=config)
    sandbox.mine(7)
    anchord("run-once", "--wait", "--deadline", "30", config=config)
    sandbox.reorg(7, drop=True)
    _check_now(config)
    withdrawn = anchord("run-once", "--json", config=config)
    assert withdrawn.json["signed"] == 60
    assert _types(config)["facet_withdrawn"] == 1
    # The calendars gave a path deeper than they repair by themselves: the root goes out again.
    time.sleep(1.1)
    assert anchord("run-once", "--json", config=config).json["submitted"] == 3
    sandbox.mine(7)
    again = anchord("run-once", "--wait", "--deadline", "30", "--json", config=config)
    assert (again.json["anchored"], again.json["left"]) == (1, 0)
    assert _types(config) == {
        "timestamp_submitted": 1,
        "timestamp_anchored": 2,
        "facet_withdrawn": 1,
    }


def _check_now(config: Path) -> None:
    """Let the time of the batch's next look at the chain come."""
    with open_app(str(config)) as app:
        app.store.batches.change([BatchChange(batch_id=1, columns={"next_check_at": 0})])


def _types(config: Path) -> Counter[str]:
    """Count the first record's events by type; within one second their order is by id."""
    number = json.loads(RECORDS.read_text("utf-8").splitlines()[0])["pith_number"]
    bundle = anchord("export", number, "--bundle", "-o", "-", config=config)
    events = bundle.json["events"]
    assert events == sorted(events, key=lambda event: (event["created_at"], event["event_id"]))
    for event in events:
        assert len(base64.b64decode(event["signature_b64"])) == 64
    return Counter(event["event_type"] for event in events)
