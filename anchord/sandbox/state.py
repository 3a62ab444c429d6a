"""What a running sandbox leaves in its directory: its ports, and where to drive it."""

from __future__ import annotations

import http.client
import json
import os
from pathlib import Path
from typing import Any

import msgspec

from anchord.errors import ConfigError, NetworkError
from anchord.sandbox.loopback import HOST

NOTICE = "sandbox, not Bitcoin"
RUN_FILE = "sandbox.json"
_TIMEOUT_S = 120


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything is and how it stands; the document of `anchord sandbox status --json`."""

    notice: str
    height: int
    best_block: str
    pending_commitments: int
    waiting_transactions: int
    mine_every_s: float | None
    calendars: dict[str, str]
    node: str
    node_cookie_file: str
    explorers: dict[str, str]
    peers: dict[str, str]
    authorities: dict[str, str]
    """Time-stamping authorities; empty where there is no `openssl`."""
    archive: dict[str, str]
    """The Internet Archive's services; empty: there is none."""
    archive_now: str
    """What its clock shows."""
    archive_counts: dict[str, dict[str, float]]
    """What it was asked, and how often its rules were broken."""
    control: str
    faults: list[dict[str, Any]]
    requests: dict[str, dict[str, int]]


class Ports:
    """The ports of the last run in this directory, so that a restart has the same addresses."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._ports: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}

    def of(self, name: str) -> int:
        """Return the port a service had, or 0 for a free one."""
        return self._ports.get(name, 0)

    def note(self, name: str, port: int) -> None:
        """Remember a service's port."""
        self._ports[name] = port

    def save(self) -> None:
        """Keep the ports for the next run."""
        replace_file(self._file, json.dumps(self._ports, indent=2) + "\n")


class RunFile:
    """`sandbox.json`: there as long as the sandbox runs."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / RUN_FILE

    def refuse_second(self) -> None:
        """Refuse to start beside a sandbox that runs in the same directory.

        Raises:
            ConfigError: one answers already.
        """
        try:
            running = read_run_file(self._file.parent)
            ask(running["control"], "GET", "/status")
        except (ConfigError, NetworkError):
            return  # nobody is there; a file that a crash left behind is overwritten
        raise ConfigError(
            f"a sandbox runs in {self._file.parent} (process {running['pid']}): "
            "stop it, or use another --dir"
        )

    def write(self, status: Status) -> None:
        """Tell the drive commands where to find this sandbox."""
        places = msgspec.to_builtins(status)
        shown = ("notice", "calendars", "node", "explorers", "peers", "authorities", "archive",
                 "control")  # fmt: skip
        document = {"pid": os.getpid()} | {name: places[name] for name in shown}
        replace_file(self._file, json.dumps(document, indent=2) + "\n")

    def remove(self) -> None:
        """Take the file away."""
        self._file.unlink(missing_ok=True)


def read_run_file(directory: Path) -> dict[str, Any]:
    """Return what a running sandbox left in `directory`.

    Raises:
        ConfigError: no sandbox runs there.
    """
    file = directory / RUN_FILE
    try:
        document: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        raise ConfigError(
            f"no sandbox runs in {directory} (no readable {RUN_FILE}): start one with "
            f"`anchord sandbox --dir {directory}`, or name its folder with --dir"
        ) from None
    return document


def ask(control: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    """Call a running sandbox's control address and return its JSON answer.

    Raises:
        NetworkError: nobody answers there.
        ConfigError: the sandbox refused; the message is its own.
    """
    port = int(control.rpartition(":")[2])
    connection = http.client.HTTPConnection(HOST, port, timeout=_TIMEOUT_S)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        response = connection.getresponse()
        document: dict[str, Any] = json.loads(response.read())
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NetworkError(
            f"the sandbox does not answer at {control} ({error}): start it again"
        ) from None
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ConfigError(str(document.get("error", document)))
    return document


def replace_file(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = file.with_name(file.name + ".part")
    part.write_text(text)
    part.replace(file)
