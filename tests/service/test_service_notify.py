"""What the service manager is told: sd_notify(3), by a real datagram socket."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
import uuid
from pathlib import Path

import pytest
from support.manager import ManagerSocket
from support.registry import SEED
from support.running import anchord
from support.serving import Service

from anchord.app.service.notify import Notifier
from anchord.sandbox.run import Sandbox


@pytest.fixture(params=["path", "abstract"])
def manager(request, tmp_path):
    name = tmp_path / "notify" if request.param == "path" else f"@anchord-{uuid.uuid4()}"
    socket = ManagerSocket(name)
    yield socket
    socket.close()


def test_each_message_is_a_datagram_with_its_variables(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.name})
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    notifier.ready()
    notifier.reloading()
    notifier.status("all is\nwell")
    notifier.status("all is\nwell")
    notifier.stopping()
    notifier.beat()
    manager.take(0.2)
    moment = int(manager.messages[1].pop("MONOTONIC_USEC"))
    assert before <= moment <= before + 10_000_000
    assert manager.messages == [
        {"READY": "1"}, {"RELOADING": "1"}, {"STATUS": "all is well"}, {"STOPPING": "1"},
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", "relative", "vsock:2:1", "/nowhere/at/all"])
def test_nobody_there_is_no_trouble(name):
    notifier = Notifier({"NOTIFY_SOCKET": name})
    notifier.ready()
    notifier.status("fine")


@pytest.mark.parametrize(
    ("environ", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "2500000"}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "77"}, 2.5),
        ({"WATCHDOG_USEC": "2500000", "WATCHDOG_PID": "78"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_the_watchdog_is_ours_only_when_it_says_so(environ, watchdog_s):
    assert Notifier(environ, pid=77).watchdog_s == watchdog_s


def test_signs_of_life_are_not_sent_faster_than_is_of_use(manager):
    notifier = Notifier({"NOTIFY_SOCKET": manager.name, "WATCHDOG_USEC": "2000000"})
    for _ in range(100):
        notifier.beat()
    manager.take(0.1)
    assert manager.all("WATCHDOG") == ["1"]


def test_a_service_tells_its_whole_life(sandbox: Sandbox, config: Path, tmp_path: Path) -> None:
    watchdog_s = 4
    with (
        contextlib.closing(ManagerSocket(tmp_path / "socket")) as manager,
        Service(
            config, NOTIFY_SOCKET=manager.name, WATCHDOG_USEC=str(watchdog_s * 1_000_000)
        ) as service,
    ):
        manager.until(lambda message: "READY" in message)
        manager.until(lambda message: message.get("STATUS", "").startswith("nothing is due"))
        manager.take(watchdog_s + 1)
        service.send(signal.SIGHUP)
        manager.until(lambda message: "RELOADING" in message)
        manager.until(lambda message: "READY" in message)
        assert service.stopped() == 0
        manager.take(0.1)
    kinds = [next(iter(message)) for message in manager.messages]
    assert kinds.count("READY") == 2
    assert kinds.index("READY") < kinds.index("RELOADING") < kinds.index("STOPPING")
    beats = [at for at, kind in zip(manager.moments, kinds, strict=True) if kind == "WATCHDOG"]
    assert len(beats) > 1
    assert max(b - a for a, b in itertools.pairwise(beats)) < watchdog_s


def test_a_loop_that_hangs_gives_no_sign_of_life(
    sandbox: Sandbox, config: Path, tmp_path: Path
) -> None:
    """A calendar that trickles for longer than the watchdog allows stands for any hang."""
    manager = ManagerSocket(tmp_path / "socket")
    sandbox.fault("calendars", "slow", delay_s=4.0)
    with Service(config, NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="800000") as service:
        manager.until(lambda message: "WATCHDOG" in message)
        anchord("add", SEED, config=config)
        manager.take(3.5)
        service.process.kill()
    beats = [
        at
        for at, message in zip(manager.moments, manager.messages, strict=True)
        if "WATCHDOG" in message
    ]
    manager.take(0.1)
    gaps = [b - a for a, b in zip(beats, [*beats[1:], time.monotonic()], strict=True)]
    assert max(gaps) > 0.8
    manager.close()
