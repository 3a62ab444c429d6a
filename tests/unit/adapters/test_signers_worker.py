from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from anchord.adapters.signers.file import FileSigner, create_key_dir, open_signer
from anchord.adapters.signers.worker import Worker
from anchord.errors import FatalError
from anchord.ports import BulkSigner

DIGESTS = [hashlib.sha256(b"%d" % number).digest() for number in range(3000)]


@pytest.fixture
def signer(tmp_path: Path) -> FileSigner:
    create_key_dir(tmp_path / "keys", "registry.example.org", None, 1_785_585_600)
    return open_signer(tmp_path / "keys", None, {}, "registry.example.org")


def test_signing_in_processes_gives_the_same_signatures(signer: FileSigner) -> None:
    assert isinstance(signer, BulkSigner)
    expected = [signer.sign(digest) for digest in DIGESTS]
    with ThreadPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(signer.sign_many, [DIGESTS] * 6))
    signer.close()
    assert found == [expected] * 6


def test_a_killed_process_is_done_without(signer: FileSigner) -> None:
    for _ in range(4):
        signer.sign_many(DIGESTS)
    (worker,) = signer._workers
    os.kill(worker._process.pid, signal.SIGKILL)
    worker._process.wait()
    assert signer.sign_many(DIGESTS) == [signer.sign(digest) for digest in DIGESTS]
    signer.close()


def test_closing_ends_the_process_and_may_be_repeated(signer: FileSigner) -> None:
    for _ in range(4):
        signer.sign_many(DIGESTS)
    (worker,) = signer._workers
    signer.close()
    signer.close()
    assert worker._process.poll() == 0


def test_few_signatures_start_no_process(signer: FileSigner) -> None:
    signer.sign_many(DIGESTS[:100])
    assert signer._workers == []


def test_only_digests_are_signed(signer: FileSigner) -> None:
    for _ in range(4):
        signer.sign_many(DIGESTS)
    with pytest.raises(FatalError):
        signer.sign_many([b"not a digest"])
    signer.close()


def test_the_key_is_not_in_the_command_line_or_environment_of_the_process() -> None:
    private = Ed25519PrivateKey.generate()
    raw = private.private_bytes_raw()
    worker = Worker(raw)
    assert worker.sign(DIGESTS[:2]) == [private.sign(digest) for digest in DIGESTS[:2]]
    proc = Path(f"/proc/{worker._process.pid}")
    if proc.is_dir():
        shown = (proc / "cmdline").read_bytes() + (proc / "environ").read_bytes()
        assert raw not in shown
        assert raw.hex().encode() not in shown
    worker.close()


def test_the_process_ends_when_its_parent_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from anchord.adapters.signers.worker import Worker\n"
        "worker = Worker(bytes(32)); worker.sign([bytes(32)])\n"
        "print(worker._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, check=False)
    pid = int(done.stdout)
    for _ in range(200):
        if not _running(pid):
            return
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("the signing process outlived its parent")


def _running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"
