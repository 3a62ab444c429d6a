"""The standard client takes the sandbox for the real thing: stamp, upgrade, verify."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentimestamps.core.serialize import StreamDeserializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile

from anchord.sandbox.run import Sandbox

OTS = Path(sys.executable).with_name("ots")


@pytest.fixture
def ots(tmp_path):
    """Return a function that runs `ots` with an empty home, and gives code and words."""

    def run(*arguments):
        home = {"HOME": str(tmp_path), "PATH": os.defpath}
        done = subprocess.run(
            [OTS, "--no-cache", *map(str, arguments)],
            capture_output=True,
            text=True,
            env=home,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.fixture
def stamped(tmp_path, sandbox, ots):
    """Return a file that the standard client has stamped."""
    file = tmp_path / "file.txt"
    file.write_text("a record")
    code, words = ots("stamp", "-c", sandbox.calendars[0].url, "-m", 1, file)
    assert code == 0, words
    return file


@pytest.fixture
def complete(sandbox, ots, stamped):
    """Return a stamped file whose proof the standard client has completed."""
    sandbox.mine(6)
    code, words = ots("--whitelist", sandbox.calendars[0].url, "upgrade", f"{stamped}.ots")
    assert code == 0, words
    assert "Success! Timestamp complete" in words
    return stamped


def test_the_client_reads_why_a_proof_is_not_complete(sandbox, ots, stamped):
    upgrade = ("--whitelist", sandbox.calendars[0].url, "upgrade", f"{stamped}.ots")
    assert "Pending confirmation in Bitcoin blockchain" in ots(*upgrade)[1]
    sandbox.mine(1)
    code, words = ots(*upgrade)
    assert code == 1
    assert "waiting for 5 confirmations" in words


@pytest.mark.parametrize("network", [(), ("--btc-regtest",)])
def test_the_client_verifies_by_its_own_rpc_call_whatever_network_it_is_told(
    sandbox, ots, complete, network
):
    # It never asks the node which chain that is: with a node's address the option is ignored.
    code, words = ots(
        *network, "--bitcoin-node", sandbox.node_auth_url, "verify", f"{complete}.ots"
    )
    assert code == 0, words
    assert f"Success! Bitcoin block {sandbox.height - 5} attests existence" in words
    assert sandbox.requests["node"]["getblockheader"] == 1


def test_the_client_finds_the_regtest_cookie_through_bitcoin_conf(sandbox, ots, complete, tmp_path):
    # Only without an address does --btc-regtest matter: it names the folder of the cookie.
    (tmp_path / ".bitcoin").mkdir()
    (tmp_path / "data" / "regtest").mkdir(parents=True)
    (tmp_path / "data" / "regtest" / ".cookie").write_bytes(sandbox.cookie_file.read_bytes())
    port = sandbox.node_url.rpartition(":")[2]
    (tmp_path / ".bitcoin" / "bitcoin.conf").write_text(
        f"rpcport={port}\nrpcconnect=127.0.0.1\ndatadir={tmp_path / 'data'}\n"
    )
    code, words = ots("--btc-regtest", "verify", f"{complete}.ots")
    assert code == 0, words


def test_the_client_refuses_what_a_deep_reorg_made_void(sandbox, ots, complete):
    sandbox.reorg(6, drop=True)
    sandbox.mine(3)
    code, words = ots("--bitcoin-node", sandbox.node_auth_url, "verify", f"{complete}.ots")
    assert code == 1
    assert "Digest does not match merkleroot" in words


def test_the_client_names_the_highest_block_when_the_chain_is_too_short(sandbox, ots, complete):
    ots_file = Path(f"{complete}.ots")
    with ots_file.open("rb") as file:
        proof = DetachedTimestampFile.deserialize(StreamDeserializationContext(file))
    heights = [a.height for _, a in proof.timestamp.all_attestations() if hasattr(a, "height")]
    assert heights == [sandbox.height - 5]
    with Sandbox(complete.parent / "other", calendars=1) as shorter:
        code, words = ots("--bitcoin-node", shorter.node_auth_url, "verify", ots_file)
    assert code == 1
    assert f"{heights[0]} not found; {heights[0] - 1} is highest known block" in words


def test_a_wrong_password_is_refused(sandbox, ots, complete):
    wrong = sandbox.node_url.replace("://", "://anchord:wrong@")
    assert ots("--bitcoin-node", wrong, "verify", f"{complete}.ots")[0] != 0
    assert "getblockcount" not in sandbox.requests["node"]
