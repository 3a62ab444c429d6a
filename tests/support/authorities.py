"""Time-stamping authorities for tests: real tokens by `openssl ts`, and `openssl` as judge."""

from __future__ import annotations

import os
import subprocess
from email.message import Message
from pathlib import Path

from cryptography.x509 import Certificate

from anchord.core import tsa
from anchord.errors import AnchordError
from anchord.sandbox.authority import PATH, Authority, find_openssl
from anchord.sandbox.faults import Fault
from anchord.sandbox.web import Request

NONCE = 0x80FF00FF00FF00FF


def openssl() -> str:
    """Return the program; these tests never pass without it."""
    found = find_openssl()
    assert found, "the tests of tokens need the program `openssl`: install it"
    return found


class LocalAuthority:
    """The sandbox's authority without the network."""

    def __init__(self, folder: Path) -> None:
        self._service = Authority("authority-1", folder, openssl())
        self.root_file = self._service.root_file
        self.home = folder

    def trusted(self) -> tuple[Certificate, ...]:
        return tsa.read_certificates(self.root_file.read_bytes())

    def reply(self, query: bytes, fault: str | None = None) -> bytes:
        headers = Message()
        headers["Content-Length"] = str(len(query))
        struck = None if fault is None else Fault(fault, None, None, {})
        request = Request("POST", PATH, headers, lambda _length: query, struck)
        return self._service.answer(request).body

    def answer(self, digest: bytes, fault: str | None = None) -> bytes:
        """Return the answer to a question about `digest`, asked with NONCE."""
        return self.reply(tsa.request(digest, NONCE), fault)

    def token(self, digest: bytes) -> tsa.Token:
        return tsa.check_response(self.answer(digest), digest, NONCE, self.trusted())


class FakeAuthority:
    """Implements the port over a local one.

    Attributes:
        fail_with: raised by every call while set.
    """

    def __init__(self, local: LocalAuthority, url: str = "https://tsa.example.org/tsr") -> None:
        self.url = url
        self.asked: list[bytes] = []
        self.fail_with: AnchordError | None = None
        self._local = local

    def stamp(self, digest: bytes) -> tsa.Token:
        self.asked.append(digest)
        if self.fail_with is not None:
            raise self.fail_with
        return self._local.token(digest)


def openssl_accepts(token: bytes, digest: bytes, roots: Path, folder: Path) -> bool:
    """Ask `openssl ts -verify` about a token."""
    file = folder / "judged.tst"
    file.write_bytes(token)
    words = ["ts", "-verify", "-digest", digest.hex(), "-in", str(file), "-token_in"]
    ran = run_openssl(*words, "-CAfile", str(roots))
    assert b"Verification: " in ran.stdout, ran
    return ran.returncode == 0 and b"Verification: OK" in ran.stdout


def run_openssl(*words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "OPENSSL_CONF": os.devnull}
    return subprocess.run([openssl(), *words], capture_output=True, check=False, env=environment)
