"""`anchord archive check`, and storing by the commands, against the sandbox's archive."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import record
from support.running import Ran, anchord, start

from anchord.adapters.archives.account import AccountLock
from anchord.adapters.archives.credentials import load_keys
from anchord.app.archive_wiring import account_dir
from anchord.app.config import load
from anchord.sandbox.run import Sandbox


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    with Sandbox(tmp_path, tick_s=0.05) as running:
        running.write_config()
        anchord("init", tmp_path)
        yield running


@pytest.fixture
def config(sandbox: Sandbox) -> Path:
    return sandbox.directory / "anchord.toml"


def add(config: Path, count: int = 2) -> list[str]:
    """Add records as a registry hands them out; return their arXiv ids."""
    records = [record(number, 1) for number in range(1, count + 1)]
    lines = "".join(json.dumps(one) + "\n" for one in records)
    (config.parent / "records.jsonl").write_text(lines, "utf-8")
    assert anchord("add", config.parent / "records.jsonl", config=config).code == 0
    return [one["source"]["id"] for one in records]


def change(config: Path, pattern: str, instead: str) -> None:
    text, count = re.subn(pattern, instead, config.read_text("utf-8"), flags=re.MULTILINE)
    assert count
    config.write_text(text, "utf-8")


def keys_file(config: Path) -> Path:
    loaded = load(str(config))
    return loaded.resolve(loaded.config.archive.credentials_file)


def check(config: Path, code: int) -> dict[str, Any]:
    ran = anchord("archive", "check", "--json", config=config)
    assert ran.code == code, ran.out
    document: dict[str, Any] = ran.json
    return document


def outcomes(document: dict[str, Any]) -> dict[str, str]:
    return {one["check"]: one["outcome"] for one in document["checks"]}


# ---------------------------------------------------------------------- check


def test_a_good_account_is_told_with_its_quotas_and_the_day_rate(config: Path) -> None:
    add(config)
    found = check(config, 0)
    assert set(outcomes(found).values()) == {"ok"}
    assert set(outcomes(found)) == {"keys", "uploads", "captures", "service", "index"}
    assert found["slots"]["available"] == 3
    assert found["slots"]["daily_captures_limit"] == 30_000
    assert found["rate"]["captures_per_day"] == 3 * 86_400 // 30
    text = anchord("archive", "check", config=config).out
    assert "8,640 captures a day, bound by slots" in text
    assert all(len(line) <= 80 for line in text.splitlines() if "http" not in line)


def test_a_check_makes_no_capture_and_no_upload(sandbox: Sandbox, config: Path) -> None:
    add(config)
    check(config, 0)
    counts = sandbox.status().archive_counts
    assert (counts["wayback"]["submits"], counts["items"]["puts"]) == (0, 0)
    assert counts["wayback"]["cdx_reads"] == 1


def test_keys_nobody_knows_need_a_person(config: Path) -> None:
    keys_file(config).write_text("AbCdEfGh12345678\nZyXwVuTs87654321\n", "utf-8")
    found = check(config, 2)
    assert outcomes(found)["captures"] == "refused"


def test_a_key_that_one_service_knows_and_the_other_refuses_is_told_as_perhaps_load(
    sandbox: Sandbox, config: Path
) -> None:
    sandbox.fault("wayback", "not-logged-in")
    found = check(config, 2)
    (detail,) = [one["detail"] for one in found["checks"] if one["check"] == "captures"]
    assert found["account"] is not None
    assert "under load" in detail


def test_records_that_no_pass_has_seen_are_part_of_the_backlog(config: Path) -> None:
    add(config, 3)
    assert check(config, 0)["rate"]["backlog"] == 3


def test_a_way_that_is_stopped_is_told_beside_what_is_well_again(
    sandbox: Sandbox, config: Path
) -> None:
    add(config)
    sandbox.fault("wayback", "blocked-ip")
    anchord("run-once", config=config)
    sandbox.clear_faults()
    assert check(config, 0)["stopped"] == ["spn"]
    text = anchord("archive", "check", config=config).out
    assert "stopped     Save Page Now" in text
    assert "anchord retry --archive" in text
    anchord("retry", "--archive", config=config)
    assert check(config, 0)["stopped"] == []


def test_every_alert_names_the_command_that_opens_the_archive_again(
    sandbox: Sandbox, config: Path
) -> None:
    add(config)
    sandbox.fault("wayback", "blocked-ip")
    ran = anchord("run-once", config=config)
    assert "`anchord retry --archive`" in ran.err


def test_what_is_missing_needs_a_person_and_nobody_is_asked(config: Path) -> None:
    change(config, r"^contact = .*\n", "")
    found = check(config, 2)
    assert found["blocked"]
    assert found["checks"] == []
    ran = anchord("archive", "check", config=config)
    assert "archive.contact" in ran.out
    assert "asking" not in ran.err


def test_one_way_that_is_off_is_told_and_is_no_fault(config: Path) -> None:
    change(config, r'^stored_when = "both"', 'stored_when = "either"')
    change(config, r'^prefix = ".*"', 'prefix = ""')
    found = check(config, 0)
    assert found["missing"] == ["no item is made: archive.items.prefix is empty"]
    assert "uploads" not in outcomes(found)


@pytest.mark.parametrize("fault", ["offline", "rate-limited", "unknown-shape"])
def test_an_archive_that_is_away_is_a_matter_of_time(
    sandbox: Sandbox, config: Path, fault: str
) -> None:
    sandbox.fault("wayback", fault)
    assert "temporary" in outcomes(check(config, 3)).values()


# ---------------------------------------------------------------------- run-once


def stored(config: Path) -> int:
    count: int = anchord("status", "--json", config=config).json["stored"]["records"]["stored"]
    return count


def run_until_stored(sandbox: Sandbox, config: Path) -> Ran:
    anchord("run-once", config=config)
    sandbox.mine(7)
    return anchord("run-once", "--wait", "--deadline", "60", "--json", config=config)


def test_records_come_out_anchored_and_stored(sandbox: Sandbox, config: Path) -> None:
    names = add(config)
    ran = run_until_stored(sandbox, config)
    assert (ran.code, ran.json["left"], ran.json["left_to_store"]) == (0, 0, 0)
    assert stored(config) == 2
    for name in names:
        document = anchord("show", name, "--json", config=config).json
        assert document["strip"] == "not attested | anchored | stored | refs pending"
        types = {one["event_type"] for one in document["events"]}
        assert {"capture_stored", "item_stored"} <= types
    again = anchord("run-once", "--json", config=config).json
    assert again["stored"]["captures"]["submitted"] == 0
    assert again["stored"]["items"]["uploaded"] == 0


def test_without_credentials_records_are_anchored_and_nothing_is_sent(
    sandbox: Sandbox, config: Path
) -> None:
    add(config)
    change(config, r'^credentials_file = ".*"', 'credentials_file = ""')
    ran = run_until_stored(sandbox, config)
    assert (ran.code, ran.json["left"], ran.json["stored"]) == (0, 0, None)
    text = anchord("status", config=config).out
    assert "archive.credentials_file" in text
    assert {"wayback", "ias3", "archive-org"}.isdisjoint(sandbox.status().requests)


def test_keys_that_cannot_be_used_stop_nothing_but_the_archive(
    sandbox: Sandbox, config: Path
) -> None:
    add(config)
    keys_file(config).chmod(0o644)
    ran = anchord("run-once", "--json", config=config)
    assert (ran.code, ran.json["sealed"], ran.json["stored"]) == (2, 2, None)
    assert "chmod 600" in ran.err


def test_a_second_process_on_the_account_anchors_and_says_so(config: Path) -> None:
    add(config)
    loaded = load(str(config))
    keys = load_keys(keys_file(config), {})
    assert keys is not None
    with AccountLock(account_dir(loaded), keys.fingerprint, "sqlite:///other.db"):
        ran = anchord("run-once", "--json", config=config)
    assert (ran.code, ran.json["sealed"], ran.json["stored"]) == (3, 2, None)
    assert "another anchord process uses this archive.org account" in ran.err


def test_a_wait_for_the_archive_ends_at_its_deadline(sandbox: Sandbox, config: Path) -> None:
    add(config)
    sandbox.mine(1)
    sandbox.fault("wayback", "session-limit")
    began = time.monotonic()
    ran = anchord("run-once", "--wait", "--deadline", "2", "--json", config=config)
    assert ran.code == 3
    assert ran.json["left_to_store"] > 0
    assert time.monotonic() - began < 30


def test_nothing_is_waited_for_that_a_person_must_open_first(
    sandbox: Sandbox, config: Path
) -> None:
    add(config)
    sandbox.fault("wayback", "blocked-ip")
    began = time.monotonic()
    ran = run_until_stored(sandbox, config)
    assert (ran.code, ran.json["left"], ran.json["left_to_store"]) == (2, 0, 2)
    assert ran.json["stored"]["items"]["stored"] == 2
    assert time.monotonic() - began < 50
    assert "STOPPED: Save Page Now, see `anchord status`" in ran.err
    assert "ALERT" in anchord("run-once", config=config).err
    again = anchord("run-once", "--json", config=config)
    assert (again.code, again.json["stopped"]) == (2, ["spn"])


def test_a_signal_ends_a_wait_for_the_archive(sandbox: Sandbox, config: Path) -> None:
    add(config)
    sandbox.fault("wayback", "session-limit")
    process = start("run-once", "--wait", "--json", config=config)
    end = time.monotonic() + 60
    while not sandbox.status().requests.get("wayback", {}).get("save"):
        assert time.monotonic() < end
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (3, err)
    assert json.loads(out)["left_to_store"] > 0


def test_an_alert_is_told_by_every_pass(sandbox: Sandbox, config: Path) -> None:
    add(config)
    sandbox.fault("wayback", "blocked-ip")
    anchord("run-once", config=config)
    ran = anchord("run-once", config=config)
    (alert,) = anchord("status", "--json", config=config).json["stored"]["alerts"]
    assert f"ALERT {alert}" in ran.err
    assert f"ALERT {alert}" in anchord("status", config=config).out.splitlines()[0]


# ---------------------------------------------------------------------- secrets


def test_no_command_shows_a_key(sandbox: Sandbox, config: Path) -> None:
    access, secret = _keys(config)
    names = add(config)
    words: list[str] = []
    commands = [
        ["archive", "check"], ["run-once"], ["status"], ["show", names[0], "--full"],
        ["archive", "check", "--json"], ["status", "--json"], ["show", names[0], "--json"],
        ["retry", "--all", "--archive"], ["export", "--all", "-o", str(config.parent / "out")],
    ]  # fmt: skip
    for command in commands:
        ran = anchord(*command, config=config)
        words.append(ran.out + ran.err)
    sandbox.mine(7)
    words += _watched(config)
    anchord("export", "--bundle", names[0], "-o", config.parent / "bundles", config=config)
    # The stand-in keeps its accounts' keys in its own folder; ours are its neighbours.
    own = [file for file in config.parent.rglob("*") if file.is_file() and not _stand_in(file)]
    assert {"anchord.db", "anchord.db-wal"} & {file.name for file in own}
    assert any(file.suffix == ".lock" and "account" in file.name for file in own)
    words += [file.read_bytes().decode("latin-1") for file in own]
    for text in words:
        assert access not in text
        assert secret not in text


def _stand_in(file: Path) -> bool:
    return "sandbox" in file.parts and "account" not in file.parts


def _keys(config: Path) -> tuple[str, str]:
    keys = load_keys(keys_file(config), {})
    assert keys is not None
    return keys.access, keys.secret


def _watched(config: Path) -> list[str]:
    """Run a pass as a process; return what it prints, and what the process list shows meanwhile."""
    process = start("run-once", "--wait", "--deadline", "60", config=config)
    seen: set[str] = set()
    end = time.monotonic() + 90
    while process.poll() is None and time.monotonic() < end:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        seen.update(line for line in listed.stdout.splitlines() if "anchord" in line)
        time.sleep(0.1)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 0, err
    assert any("item_process" in line for line in seen), "the upload process was never seen"
    return [out, err, *seen]
