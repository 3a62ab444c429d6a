"""A database server that stops in the middle: it keeps no time limit and closes no connection."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator

import sqlalchemy as sa

from support.stores import server

_BUSY = (
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = '{}' "
    "AND state = 'active' AND pid <> pg_backend_pid()"
)


@contextlib.contextmanager
def mute(url: str) -> Iterator[list[int]]:
    """Stop the first process of the server that answers a question about this database.

    Gives the list of processes that were stopped; they go on when the block ends.
    """
    name, stopped, over = sa.make_url(url).database, [], threading.Event()

    def stop() -> None:
        while not stopped and not over.is_set():
            for (number,) in server().execute("postgres", _BUSY.format(name)):
                os.kill(number, signal.SIGSTOP)
                stopped.append(number)
            time.sleep(0.01)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield stopped
    finally:
        over.set()
        thread.join()
        for number in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGCONT)
