"""Upload processes as their parent sees them: started when needed, ended when they fail.

A process answers one question at a time, so there are as many as calls in flight. One that dies,
hangs beyond its deadline or says what cannot be read is ended and replaced; the call is lost, and
whoever made it looks up what became of it.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping

import msgspec

from anchord.adapters.archives import item_messages as messages

_MODULE = "anchord.adapters.archives.item_process"
_KEPT_BACK = ("IA_", "ANCHORD_", "CREDENTIALS_DIRECTORY", "NETRC")
"""Settings that could say another account, or are none of its business."""


class ChildError(Exception):
    """The process is of no more use."""


class Child:
    """One upload process. One thread at a time asks it.

    Args:
        opening: goes to it through the pipe.
        environ: what it may know of ours; variables of the library and all that hold a key stay.
    """

    def __init__(self, opening: messages.Opening, environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            env=_environment(opening, environ),
            # Ctrl-C reaches a whole process group: the parent decides, and closes the pipe.
            process_group=0,
        )
        with contextlib.suppress(ChildError):  # the first question finds out
            self._write(messages.frame(opening))

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    def alive(self) -> bool:
        """Tell whether it still runs."""
        return self._process.poll() is None

    def ask(self, question: messages.Question, within_s: float) -> messages.Reply:
        """Return its reply.

        Raises:
            ChildError: it died, hung, or replied nonsense: end it.
        """
        ends_at = time.monotonic() + within_s
        self._write(messages.frame(question))
        data = messages.read_frame(
            lambda count: self._read(count, ends_at), messages.MAX_REPLY_BYTES
        )
        if data is None:
            raise ChildError("the upload process ended in the middle of a call")
        try:
            return messages.decode_reply(data)
        except msgspec.MsgspecError:
            raise ChildError("the upload process replied what cannot be read") from None

    def end(self) -> None:
        """Kill it and wait for its end; may be called twice, and while another thread asks."""
        self._process.kill()
        self._process.wait()

    def release(self) -> None:
        """Close the pipes once nobody asks any more."""
        self.end()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _write(self, data: bytes) -> None:
        """Write a frame that the pipe takes whole, as it is empty: nothing waits here."""
        try:
            if self._process.stdin is not None and self._process.stdin.write(data) == len(data):
                return
        except (OSError, ValueError):
            pass
        raise ChildError("the upload process is gone")

    def _read(self, count: int, ends_at: float) -> bytes:
        """Return `count` bytes, or fewer at the end."""
        if self._process.stdout is None:
            return b""
        descriptor, data = self._process.stdout.fileno(), bytearray()
        ready = select.poll()
        ready.register(descriptor, select.POLLIN)
        while len(data) < count:
            left = ends_at - time.monotonic()
            if left <= 0 or not ready.poll(left * 1_000):
                raise ChildError("the upload process did not reply in time")
            piece = os.read(descriptor, min(count - len(data), 1 << 20))
            if not piece:
                break
            data += piece
        return bytes(data)


class Children:
    """The upload processes of one account. Threads share it.

    Args:
        opening: goes to each through its pipe.
        environ: what they may know of ours.
    """

    def __init__(self, opening: messages.Opening, environ: Mapping[str, str]) -> None:
        self._opening, self._environ = opening, environ
        self._lock = threading.Lock()
        self._idle: list[Child] = []
        self._busy: set[Child] = set()
        self._closed = False

    def ask(self, question: messages.Question, within_s: float) -> messages.Reply:
        """Return the reply of a process that has time, or of a new one.

        Raises:
            ChildError: the process failed, or `close` was called.
        """
        child = self._take()
        try:
            reply = child.ask(question, within_s)
        except BaseException:
            self._forget(child)
            raise
        self._give_back(child)
        return reply

    def close(self) -> None:
        """End all of them; calls in flight fail. May be called twice."""
        with self._lock:
            self._closed = True
            idle, busy = self._idle, list(self._busy)
            self._idle = []
        for child in busy:
            child.end()
        for child in idle:
            child.release()

    def pids(self) -> list[int]:
        """Return the numbers of the processes that run."""
        with self._lock:
            return sorted(child.pid for child in (*self._idle, *self._busy))

    def _take(self) -> Child:
        with self._lock:
            if self._closed:
                raise ChildError("the archive is closed")
            while self._idle:
                child = self._idle.pop()
                if child.alive():
                    break
                child.release()
            else:
                try:
                    child = Child(self._opening, self._environ)
                except OSError as error:
                    reason = error.strerror or "no process"
                    raise ChildError(f"no upload process can be started: {reason}") from None
            self._busy.add(child)
            return child

    def _give_back(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
            if not self._closed:
                self._idle.append(child)
                return
        child.release()

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._busy.discard(child)
        child.release()


def _environment(opening: messages.Opening, environ: Mapping[str, str]) -> dict[str, str]:
    kept = {
        name: value
        for name, value in environ.items()
        if not name.startswith(_KEPT_BACK)
        and opening.access not in value
        and opening.secret not in value
    }
    # A ~/.netrc would put somebody's password beside requests that carry none.
    return {**kept, "NETRC": os.devnull}
