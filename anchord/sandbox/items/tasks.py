"""Files and the tasks that bring them in, as the Tasks API tells of them.

The Tasks API: https://archive.org/developers/tasks.html. `wait_admin` is 0 for queued, 1 running,
2 error, 9 paused.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

QUEUED, RUNNING, ERROR, PAUSED = 0, 1, 2, 9
STATES = {
    QUEUED: ("queued", "green"),
    RUNNING: ("running", "blue"),
    ERROR: ("error", "red"),
    PAUSED: ("paused", "brown"),
}


class Version(msgspec.Struct, frozen=True):
    """One file as it came in."""

    name: str
    blob: int
    size: int
    md5: str
    sha1: str
    crc32: str
    at: float
    metadata: dict[str, str | list[str]] = {}


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One thing the archive's machines have to do to an item."""

    task_id: int
    cmd: str
    submitter: str
    at: float
    starts: float
    due: float
    name: str = ""
    put: Version | None = None
    """The file that comes in; None: it is deleted, or the task is about no file."""
    keep_old: bool = False


def moment(at: float) -> str:
    """Return a moment as the archive writes it."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def wait_admin(task: Task, now: float, *, first: bool, halted: int) -> int:
    """Return the state of a task in the queue; only the first of an item can be halted."""
    if first and halted:
        return halted
    return RUNNING if first and task.starts <= now else QUEUED


def waiting_row(identifier: str, task: Task, state: int) -> dict[str, Any]:
    """Return a task of the catalog."""
    status, colour = STATES[state]
    return _row(identifier, task) | {
        "wait_admin": state,
        "status": status,
        "color": colour,
        "category": "catalog",
    }


def done_row(identifier: str, task: Task) -> dict[str, Any]:
    """Return a task of the history."""
    return _row(identifier, task) | {"finished": int(task.due), "category": "history"}


def summary(states: list[int]) -> dict[str, int]:
    """Return how many tasks are in which state."""
    return {status: states.count(state) for state, (status, _) in STATES.items()}


def _row(identifier: str, task: Task) -> dict[str, Any]:
    return {
        "identifier": identifier,
        "task_id": task.task_id,
        "server": "ia600000.us.archive.org",
        "cmd": task.cmd,
        "args": {"name": task.name} if task.name else {},
        "submitter": task.submitter,
        "submittime": moment(task.at),
        "priority": 0,
    }
