"""`python -m benchmarks.face --size 100000`: what `anchord serve` takes to show a large store.

A store of complete records (`benchmarks.idle`, `benchmarks.complete`) is served by the real
`anchord serve`, and asked over real sockets: for records drawn at random, so that no page is asked
for twice, for lists and filters, search, and the dashboard. One after another for the times; by
many connections for requests a second, with wrk where it is installed. `--datasette PROGRAM` has
Datasette serve the same file, and asks it for the row that a record's page begins with, and for a
page of the same table.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from anchord.core.number import pith_suffix
from anchord.sandbox.run import Sandbox
from benchmarks import measure, synthetic
from benchmarks.idle import resident_mib, work

LIMITS = {
    "page": 50, "record, JSON": 50, "list": 100, "list, not stored": 100, "list, complete": 100,
    "dashboard": 300,
}  # fmt: skip
"""Milliseconds at the median, as the issue of the face has them."""
MOST_MIB = 250
_NO_ARCHIVE = ("ANCHORD__ARCHIVE__CAPTURES__ENABLED", "ANCHORD__ARCHIVE__ITEMS__ENABLED")
_CONNECTIONS = 8
_START_S = 120
_FINE = (http.client.OK, http.client.SEE_OTHER)
"""A search that finds one record leads there."""
_LUA = """
local paths, at = {}, 0
for line in io.lines(os.getenv("BENCHMARK_PATHS")) do paths[#paths + 1] = line end
request = function()
  at = at + 1
  return wrk.format("GET", paths[at % #paths + 1])
end
"""


def make(folder: Path, size: int) -> None:
    """Make a configuration and a store of complete records, as the registry's are."""
    with Sandbox(folder, tick_s=0.1) as sandbox:
        config = sandbox.write_config()
        os.environ.update(dict.fromkeys(_NO_ARCHIVE, "false"))
        try:
            work(sandbox, config, size, _records)
        finally:
            for name in _NO_ARCHIVE:
                del os.environ[name]


def _records(folder: Path, size: int) -> Path:
    listed = folder / "records.jsonl"
    synthetic.write_records(listed, size)
    return listed


class Paths:
    """What is asked for: of records, each time another one.

    Args:
        store: the SQLite file.
        seed: of the draw.
    """

    def __init__(self, store: Path, seed: int = 1) -> None:
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as file:
            top = file.execute("SELECT max(id) FROM records").fetchone()[0]
            draw = random.Random(seed)
            ids = sorted({draw.randrange(1, top + 1) for _ in range(3_000)})
            found = [
                file.execute("SELECT id, digest, source_id FROM records WHERE id = ?", (one,))
                for one in ids
            ]
            rows = [row for cursor in found for row in cursor]
        draw.shuffle(rows)
        self.ids = itertools.cycle([row[0] for row in rows])
        self.names = itertools.cycle([pith_suffix(row[1]) for row in rows])
        self.papers = itertools.cycle([row[2] for row in rows])

    def kinds(self) -> dict[str, Callable[[], str]]:
        """Return what makes the path of each kind."""
        return {
            "page": lambda: f"/pith/{next(self.names)}",
            "record, JSON": lambda: f"/pith/{next(self.names)}.json",
            "bundle": lambda: f"/pith/{next(self.names)}/bundle.json",
            "badge": lambda: f"/pith/{next(self.names)}/badge.svg",
            "list": lambda: "/records?limit=50",
            "list, not stored": lambda: "/records?limit=50&stored=not%20stored",
            "list, complete": lambda: "/records.json?limit=50&stored=stored&anchored=anchored",
            "list, of arxiv": lambda: "/records.json?limit=50&source=arxiv",
            "search": lambda: f"/records?q={next(self.papers)}",
            "dashboard": lambda: "/",
            "events": lambda: "/events",
        }


def times(port: int, path: Callable[[], str], count: int) -> dict[str, float]:
    """Ask one after another; return milliseconds.

    Raises:
        StageError: an answer is none.
    """
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    took = []
    for turn in range(count + 2):
        asked, began = path(), time.perf_counter()
        client.request("GET", asked)
        answer = client.getresponse()
        answer.read()
        if answer.status not in _FINE:
            raise measure.StageError(f"{asked}: {answer.status}")
        if turn > 1:  # the first ones warm up
            took.append((time.perf_counter() - began) * 1000)
    client.close()
    took.sort()
    return {
        "median, ms": round(statistics.median(took), 1),
        "p99, ms": round(took[min(len(took) * 99 // 100, len(took) - 1)], 1),
    }


def per_second(port: int, paths: list[str], seconds: float) -> float:
    """Return how many requests a second are answered over some connections."""
    wrk = shutil.which("wrk")
    return _by_wrk(wrk, port, paths, seconds) if wrk else _by_threads(port, paths, seconds)


def _by_wrk(wrk: str, port: int, paths: list[str], seconds: float) -> float:
    with tempfile.TemporaryDirectory() as name:
        script, listed = Path(name) / "paths.lua", Path(name) / "paths"
        script.write_text(_LUA, "ascii")
        listed.write_text("\n".join(paths), "ascii")
        words = ["-t1", f"-c{_CONNECTIONS}", f"-d{max(int(seconds), 1)}s", "-s", str(script)]
        done = subprocess.run(
            [wrk, *words, f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True,
            env={**os.environ, "BENCHMARK_PATHS": str(listed)},
        )  # fmt: skip
    found = re.search(r"Requests/sec:\s+([0-9.]+)", done.stdout)
    if found is None or "Non-2xx" in done.stdout:
        raise measure.StageError(f"wrk: {done.stdout:.500}")
    return float(found[1])


def _by_threads(port: int, paths: list[str], seconds: float) -> float:
    end, done = time.monotonic() + seconds, itertools.count()

    def ask(mine: Iterator[str]) -> None:
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        while time.monotonic() < end:
            client.request("GET", next(mine))
            client.getresponse().read()
            next(done)
        client.close()

    threads = [
        threading.Thread(target=ask, args=(itertools.cycle(paths[place::_CONNECTIONS]),))
        for place in range(_CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return round(next(done) / seconds, 1)


@contextlib.contextmanager
def answering(words: list[str], port: int, path: str) -> Iterator[int]:
    """Run a server within the block, from when it answers; give its process id."""
    process = subprocess.Popen(
        words, cwd=measure.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + _START_S
        while not _answers(port, path):
            if process.poll() is not None or time.monotonic() > end:
                raise measure.StageError(f"{words[0]} does not answer at port {port}")
            time.sleep(0.1)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _answers(port: int, path: str) -> bool:
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        client.request("GET", path)
        return client.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()


def free_port() -> int:
    """Return a port nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def served(config: Path, store: Path, count: int, seconds: float) -> dict[str, Any]:
    """Serve the store and measure."""
    port, paths = free_port(), Paths(store)
    words = [measure.PYTHON, "-m", "anchord", "-c", str(config), "serve"]
    found: dict[str, Any] = {}
    with answering([*words, "--bind", f"127.0.0.1:{port}"], port, "/") as pid:
        for kind, path in paths.kinds().items():
            found[kind] = times(port, path, count)
        for kind in ("page", "record, JSON", "list"):
            asked = [paths.kinds()[kind]() for _ in range(2_000)]
            found[kind]["a second"] = per_second(port, asked, seconds)
        found["memory, MiB"] = resident_mib(pid)
    return found


def beside(datasette: str, store: Path, seconds: float) -> dict[str, float]:
    """Return requests a second of Datasette on the same file."""
    port, paths = free_port(), Paths(store)
    words = [datasette, "serve", "-i", str(store), "-p", str(port)]
    table = f"/{store.stem}/records"
    with answering(words, port, "/-/versions.json"):
        rows = [f"{table}/{next(paths.ids)}" for _ in range(2_000)]
        return {
            "row, page, a second": per_second(port, rows, seconds),
            "row, JSON, a second": per_second(port, [f"{row}.json" for row in rows], seconds),
            "list, a second": per_second(port, [f"{table}?_size=50"], seconds),
        }


def held(found: dict[str, Any]) -> list[str]:
    """Return the limits that do not hold."""
    slow = [
        f"{kind}: {found[kind]['median, ms']} ms, at most {limit}"
        for kind, limit in LIMITS.items()
        if found[kind]["median, ms"] >= limit
    ]
    large = found["memory, MiB"] >= MOST_MIB
    return [*slow, f"memory: {found['memory, MiB']} MiB, at most {MOST_MIB}"] if large else slow


def main(words: list[str]) -> int:
    """Measure and print one JSON document; exit code 1: a limit does not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--count", type=int, default=200, help="requests of each kind")
    parser.add_argument("--seconds", type=float, default=10, help="of many connections at once")
    parser.add_argument("--folder", type=Path, help="keep the store there, and use it again")
    parser.add_argument("--datasette", help="the program, to be measured beside")
    asked = parser.parse_args(words)
    with contextlib.ExitStack() as stack:
        folder = asked.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = folder / "anchord.db"
        if not store.exists():
            folder.mkdir(parents=True, exist_ok=True)
            make(folder, asked.size)
        found: dict[str, Any] = {"records": asked.size}
        found |= served(folder / "anchord.toml", store, asked.count, asked.seconds)
        if asked.datasette:
            found["datasette"] = beside(asked.datasette, store, asked.seconds)
    found["limits that do not hold"] = held(found)
    print(json.dumps(found, indent=2))
    return 1 if found["limits that do not hold"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
