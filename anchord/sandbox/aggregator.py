"""A calendar's front: digests of one tick become one commitment in the journal.

After otsserver/calendar.py: a nonce and a hash per digest, a Merkle tree per tick, the
calendar's clock in front, a MAC behind, and the whole synced to the journal before anyone
gets an answer.
"""

from __future__ import annotations

import hashlib
import os
import struct
import threading
import time
from pathlib import Path

from opentimestamps.core.notary import PendingAttestation
from opentimestamps.core.op import OpAppend, OpPrepend
from opentimestamps.core.timestamp import Timestamp, make_merkle_tree
from opentimestamps.timestamp import nonce_timestamp

COMMITMENT_SIZE = 44
"""time4 + sha256 + mac8."""
_MAC_SIZE = 8


class Journal:
    """The commitments a calendar owes a proof for, in order; never changed, only appended."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._lock = threading.Lock()
        data = file.read_bytes() if file and file.exists() else b""
        whole = len(data) - len(data) % COMMITMENT_SIZE
        if file and whole < len(data):
            os.truncate(file, whole)  # a write that a crash cut short was never answered
        self._commitments = [
            data[i : i + COMMITMENT_SIZE] for i in range(0, whole, COMMITMENT_SIZE)
        ]

    def append(self, commitment: bytes) -> None:
        """Keep a commitment; returns when it is on disk."""
        with self._lock:
            if self._file:
                with self._file.open("ab") as out:
                    out.write(commitment)
                    out.flush()
                    os.fsync(out.fileno())
            self._commitments.append(commitment)

    def chunk(self, start: int, size: int) -> list[bytes]:
        """Return `size` commitments from `start`, or fewer at the end."""
        with self._lock:
            return self._commitments[start : start + size]


class Aggregator:
    """Collects digests for a tick and commits to them together. Threads may share it.

    Args:
        uri: what the pending attestations say.
        key: secret of the MACs.
        journal: where commitments are kept.
        tick_s: how long digests are collected; the real server takes a second.
    """

    def __init__(self, uri: str, key: bytes, journal: Journal, *, tick_s: float) -> None:
        self._uri = uri
        self._key = key
        self._journal = journal
        self._tick_s = tick_s
        self._lock = threading.Lock()
        self._queue: list[tuple[Timestamp, threading.Event]] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sandbox-aggregator", daemon=True)

    def start(self) -> None:
        """Begin to tick."""
        self._thread.start()

    def stop(self) -> None:
        """Stop ticking; who still waits gets no answer."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def submit(self, digest: bytes) -> Timestamp | None:
        """Wait for the tick; return the timestamp of `digest`, or None when the sandbox ends."""
        stamp = Timestamp(digest)
        done = threading.Event()
        with self._lock:
            self._queue.append((nonce_timestamp(stamp), done))
        while not done.wait(0.5):
            if self._stopping.is_set():
                return None
        return stamp

    def _run(self) -> None:
        while not self._stopping.wait(self._tick_s):
            with self._lock:
                queue, self._queue = self._queue, []
            if queue:
                self._commit(make_merkle_tree([stamp for stamp, _ in queue]))
                for _, done in queue:
                    done.set()

    def _commit(self, root: Timestamp) -> None:
        second = int(time.time())
        timed = root.ops.add(OpPrepend(struct.pack(">L", second)))
        mac = hashlib.sha256(timed.msg + second_key(self._key, second)).digest()[:_MAC_SIZE]
        commitment = timed.ops.add(OpAppend(mac))
        commitment.attestations.add(PendingAttestation(self._uri))
        self._journal.append(commitment.msg)


def second_key(key: bytes, second: int) -> bytes:
    """Return the MAC key of one second, the leaf of a binary tree of keys over 32 bits."""
    for bit in range(31, -1, -1):
        side = b"\xff" if second >> bit & 1 else b"\x00"
        key = hashlib.sha256(key + side).digest()
    return key
