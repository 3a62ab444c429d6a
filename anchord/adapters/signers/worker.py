"""A process that signs, so that signing and everything else use two cores.

`cryptography` leaves the interpreter lock for each signature and must get it back after: beside a
busy thread that costs more than it wins. A process of its own does not share the lock. The key
goes to it through a pipe that only parent and child hold, never over a command line, a file or the
environment. The child ends when the pipe closes, so it never outlives its parent, kill -9 included.

Run as `python -m anchord.adapters.signers.worker`: 32 bytes of key on standard input, then frames
of a 4-byte count and that many 32-byte digests; as many 64-byte signatures come back.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import BinaryIO

DIGEST_BYTES = 32
SIGNATURE_BYTES = 64


class Worker:
    """One signing process. One thread at a time talks to it.

    Args:
        private: the 32 raw bytes of the key.
    """

    def __init__(self, private: bytes) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            close_fds=True,
            # Ctrl-C reaches a whole process group: the parent decides, and closes the pipe.
            process_group=0,
        )
        self._send(private)

    def sign(self, digests: list[bytes]) -> list[bytes] | None:
        """Return the signatures in order, or None when the process is gone."""
        with self._lock:
            out = self._process.stdout
            try:
                self._send(len(digests).to_bytes(4, "big") + b"".join(digests))
                raw = b"" if out is None else out.read(SIGNATURE_BYTES * len(digests))
            except OSError:
                return None
        if len(raw) != SIGNATURE_BYTES * len(digests):
            return None
        return [raw[at : at + SIGNATURE_BYTES] for at in range(0, len(raw), SIGNATURE_BYTES)]

    def close(self) -> None:
        """End the process; may be called twice."""
        with self._lock:
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None and not pipe.closed:
                    try:
                        pipe.close()
                    except BrokenPipeError:
                        continue
            self._process.wait()

    def _send(self, data: bytes) -> None:
        if self._process.stdin is None:
            raise BrokenPipeError
        self._process.stdin.write(data)
        self._process.stdin.flush()


def main(source: BinaryIO, target: BinaryIO) -> None:
    """Read the key, then sign frame after frame until the pipe closes."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    sign = Ed25519PrivateKey.from_private_bytes(source.read(DIGEST_BYTES)).sign
    while len(head := source.read(4)) == 4:
        size = DIGEST_BYTES * int.from_bytes(head, "big")
        raw = source.read(size)
        if len(raw) != size:
            return
        signatures = [sign(raw[at : at + DIGEST_BYTES]) for at in range(0, size, DIGEST_BYTES)]
        try:
            target.write(b"".join(signatures))
            target.flush()
        except BrokenPipeError:
            return  # the parent was killed: nobody is there to hear of it


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
