"""`anchord run` as a process, against the sandbox: it does the work, and survives what happens."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from support.manager import ManagerSocket
from support.registry import SEED
from support.running import anchord
from support.serving import QUICK, Service, eventually

from anchord.app.wiring import open_app
from anchord.engine.run import run_pass
from anchord.sandbox.run import Sandbox


def anchored(config: Path) -> int:
    with open_app(str(config)) as app:
        return app.store.counts.by_state().get("anchored", 0)


def signed(config: Path) -> int:
    with open_app(str(config)) as app:
        return app.store.counts.events()


def stored(config: Path) -> int:
    with open_app(str(config)) as app:
        return app.store.storage.counts().by_capture


def checked(config: Path) -> None:
    ran = anchord("ledger", "check", config=config)
    assert ran.code == 0, ran.err


def test_records_added_while_it_runs_are_anchored(sandbox: Sandbox, config: Path) -> None:
    with Service(config).started() as service:
        assert anchord("add", SEED, config=config).code == 0
        eventually(lambda: signed(config) == 4)
        sandbox.mine(7)
        eventually(lambda: anchored(config) == 4 and signed(config) == 8)
        assert service.stopped() == 0
        lines = [line for line in service.log if line["event"] == "pass"]
    assert sum(line.get("sealed", 0) for line in lines) == 4
    assert [calendar.requests["digest"] for calendar in sandbox.calendars] == [1, 1, 1]
    checked(config)


def test_records_are_stored_while_it_runs(tmp_path: Path) -> None:
    with Sandbox(tmp_path, tick_s=0.05, mine_every_s=0.2) as sandbox:
        config = sandbox.write_config()
        anchord("init", tmp_path)
        config.write_text(config.read_text("utf-8") + QUICK, "utf-8")
        with Service(config).started() as service:
            anchord("add", SEED, config=config)
            eventually(lambda: stored(config) == 4)
            assert service.stopped() == 0
    checked(config)


def test_sigterm_in_the_middle_of_a_pass_loses_nothing(sandbox: Sandbox, config: Path) -> None:
    sandbox.fault("calendars", "slow", delay_s=1.0)
    anchord("add", SEED, config=config)
    with Service(config).started() as service:
        eventually(lambda: any(c.requests["connections"] for c in sandbox.calendars))
        began = time.monotonic()
        assert service.stopped() == 0
        assert time.monotonic() - began < 12
        assert service.log[-1]["event"] == "stopped"
    # The answers that were under way are kept, so no calendar is asked twice.
    sandbox.clear_faults()
    assert anchord("run-once", config=config).code == 0
    assert [calendar.requests["digest"] for calendar in sandbox.calendars] == [1, 1, 1]
    assert signed(config) == 4


def test_a_second_signal_stops_at_once(sandbox: Sandbox, config: Path) -> None:
    sandbox.fault("calendars", "slow", delay_s=5.0)
    anchord("add", SEED, config=config)
    with Service(config).started() as service:
        eventually(lambda: any(c.requests["connections"] for c in sandbox.calendars))
        service.send(signal.SIGINT)
        service.until(lambda line: line["event"] == "stop")
        began = time.monotonic()
        service.send(signal.SIGTERM)
        assert service.ended() == 128 + signal.SIGTERM
        assert time.monotonic() - began < 4


def test_killed_anywhere_it_goes_on_where_it_was(sandbox: Sandbox, config: Path) -> None:
    anchord("add", SEED, config=config)
    for wait_s in (0.0, 0.1, 0.3):
        with Service(config).started() as service:
            time.sleep(wait_s)
            service.process.kill()
            assert service.ended() == -signal.SIGKILL
    with Service(config).started() as service:
        eventually(lambda: signed(config) == 4)
        sandbox.mine(7)
        eventually(lambda: anchored(config) == 4)
        assert service.stopped() == 0
    assert signed(config) == 8
    checked(config)


def test_one_service_to_a_store_and_it_is_named(sandbox: Sandbox, config: Path) -> None:
    with Service(config).started() as service:
        second = anchord("run", config=config)
        assert second.code == 3
        assert f"pid {service.process.pid} on host " in second.err
        assert " runs since " in second.err
        assert service.stopped() == 0
    with Service(config).started() as again:
        assert again.stopped() == 0


def test_passes_by_hand_take_turns_with_the_service(
    sandbox: Sandbox, config: Path, tmp_path: Path
) -> None:
    manager = ManagerSocket(tmp_path / "socket")
    slow = config.read_text("utf-8").replace("pass_every_s = 0.2", "pass_every_s = 3600.0")
    config.write_text(slow, "utf-8")
    with Service(config, NOTIFY_SOCKET=manager.name) as service:
        manager.until(lambda message: message.get("STATUS", "").startswith("nothing is due"))
        anchord("add", SEED, config=config)
        ran = anchord("run-once", "--json", config=config)
        assert (ran.code, ran.json["sealed"]) == (0, 4)
        assert f"pid {service.process.pid} on host " in ran.err
        assert service.stopped() == 0
    manager.close()


def test_a_changed_configuration_is_taken_over(sandbox: Sandbox, config: Path) -> None:
    before = config.read_text("utf-8")
    config.write_text(before.replace("pass_every_s = 0.2", "pass_every_s = 3600.0"), "utf-8")
    with Service(config).started() as service:
        time.sleep(0.5)
        config.write_text(before.replace("[signer]", '[signer]\npassphrase_file = ""', 1), "utf-8")
        service.send(signal.SIGHUP)
        service.until(lambda line: "service.pass_every_s" in line.get("changed", []))
        anchord("add", SEED, config=config)
        eventually(lambda: signed(config) == 4)
        assert service.stopped() == 0


def test_what_cannot_be_reloaded_is_said_and_stays(sandbox: Sandbox, config: Path) -> None:
    with Service(config).started() as service:
        text = config.read_text("utf-8")
        config.write_text(f'store = {{ url = "sqlite:///elsewhere.db" }}\n{text}', "utf-8")
        service.send(signal.SIGHUP)
        service.until(lambda line: line.get("kept") == ["store.url"])
        config.write_text(text, "utf-8")
        anchord("add", SEED, config=config)
        eventually(lambda: signed(config) == 4)
        assert service.stopped() == 0


def test_a_broken_configuration_is_left_alone_and_said(sandbox: Sandbox, config: Path) -> None:
    with Service(config).started() as service:
        text = config.read_text("utf-8")
        config.write_text(text + "nonsense = 1\n", "utf-8")
        service.send(signal.SIGHUP)
        service.until(lambda line: line["event"] == "reload" and line["level"] == "error")
        assert any("nonsense" in line["message"] for line in service.log)
        config.write_text(text, "utf-8")
        anchord("add", SEED, config=config)
        eventually(lambda: signed(config) == 4)
        assert service.stopped() == 0


def test_nothing_is_signed_while_the_clock_is_back(sandbox: Sandbox, config: Path) -> None:
    anchord("add", SEED, config=config)
    with open_app(str(config)) as app:
        ahead = int(time.time()) + 90 * 86_400
        app.clock = type("Ahead", (), {"now": lambda _self: ahead})()
        run_pass(app.parts(), ahead)
    assert signed(config) == 4
    sandbox.mine(7)
    with Service(config).started() as service:
        service.until(lambda line: "the clock went back" in line["message"])
        time.sleep(1)
        assert signed(config) == 4
        service.send(signal.SIGHUP)
        service.until(lambda line: line["event"] == "clock")
        eventually(lambda: anchored(config) == 4)
        assert service.stopped() == 0
    checked(config)


def test_a_wrong_start_ends_with_exit_2_and_says_why(sandbox: Sandbox, config: Path) -> None:
    for key in (config.parent / "keys").glob("*.pem"):
        key.chmod(0o644)
    ran = anchord("run", config=config)
    assert ran.code == 2
    assert "mode" in ran.err or "read" in ran.err
