"""A real PostgreSQL server of one's own: made, started, stopped, killed, and taken away again.

It listens on a socket in its own folder and on 127.0.0.1. The server refuses to run as root, so
root lets the user `postgres` of Debian's package run it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

USER = "postgres"
_START_S = 60
_STOP_S = 20
_SETTINGS = {
    "fsync": "off",  # what a test kills is the process, never the machine
    "shared_buffers": "64MB",
    "max_connections": "60",
    "log_min_messages": "fatal",
    "autovacuum_naptime": "5s",
}


def binaries() -> Path:
    """Return the folder of the newest server that is installed."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    found += [Path(path).resolve().parent for path in [shutil.which("postgres")] if path]
    if not found:
        raise RuntimeError("no PostgreSQL server is installed: apt-get install postgresql")
    return max(found, key=lambda path: [int(p) for p in path.parts if p.isdigit()] or [0])


def _as_user() -> dict:
    if os.geteuid() != 0:
        return {}
    return {"user": USER, "group": USER, "extra_groups": []}


def _dies_with_us() -> list[str]:
    """Return the command that lets a server go when whoever started it was killed."""
    who = ["--reuid", USER, "--regid", USER, "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *who, "--pdeathsig", "QUIT", "--"]


class Cluster:
    """One server with its own data. A context manager."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="anchord-pg-"))
        self.port = _free_port()
        self._settings = {**_SETTINGS, **settings}
        self._process: subprocess.Popen | None = None
        self._made = 0
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER, USER)
        self._run("initdb", "-D", str(self.data), "-U", self.name, "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def name(self) -> str:
        return USER if os.geteuid() == 0 else getpass.getuser()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [binaries() / program, *arguments], cwd=self.folder, capture_output=True, text=True,
            check=False, **_as_user(),
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {"port": str(self.port), "listen_addresses": "127.0.0.1",
                    "unix_socket_directories": str(self.folder), **self._settings}  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_dies_with_us(), binaries() / "postgres", "-D", str(self.data), *options],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        end = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no server: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        import psycopg

        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(self.address("postgres"), connect_timeout=5).close()
            return True
        return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop: SIGINT is the fast shutdown, SIGQUIT one like a crash."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:  # a busy machine; what is committed stays all the same
            process.send_signal(signal.SIGQUIT)
            process.wait(_START_S)

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop and start again: every connection is lost."""
        self.stop(how)
        self.start()

    def close(self) -> None:
        """Stop, and take everything away."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str) -> str:
        """Return what libpq connects to."""
        return f"host={self.folder} port={self.port} user={self.name} dbname={database}"

    def url(self, database: str) -> str:
        """Return the URL of `store.url`."""
        return f"postgresql://{self.name}@127.0.0.1:{self.port}/{database}"

    def empty(self, like: str = "template1") -> str:
        """Make a database with nothing in it, or what `like` has; return its URL."""
        self._made += 1
        name = f"anchord_{self._made}"
        self.execute("postgres", f'CREATE DATABASE "{name}" TEMPLATE "{like}"')
        return self.url(name)

    def execute(self, database: str, statement: str) -> list[tuple]:
        """Run one statement as the superuser, outside a transaction."""
        import psycopg

        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]
