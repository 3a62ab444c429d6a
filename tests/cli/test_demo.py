from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile
from support.running import anchord
from support.serving import eventually


def test_the_demo_anchors_and_verifies_the_four_seed_records(tmp_path: Path) -> None:
    ran = anchord("demo", "--dir", tmp_path, "--json")
    assert ran.code == 0
    assert ran.json["sandbox"] is True
    rows = ran.json["records"]
    assert [row["result"] for row in rows] == ["proved"] * 4
    assert {row["pith_number"] for row in rows} == {
        "pith:2025:LOHGU5AX7BHMWC5MXWWMKZIY2K",
        "pith:2025:6LJO423GK7BICIA37XSAA6QSCA",
        "pith:2024:7BMK4ZKTPUTUY3JKWBANNPOFR5",
        "pith:2023:CFNEGUD6Y5RYZH4FUUJMH2WXZO",
    }
    assert all(row["strip"][1] == "anchored" for row in rows)
    assert all(row["strip"][2] == "stored" for row in rows)


def test_a_stranger_with_only_the_key_finds_what_the_demo_published_sound(tmp_path: Path) -> None:
    ran = anchord("demo", "--dir", tmp_path, "--json")
    audit = ran.json["audit"]
    assert audit["result"] == "sound"
    assert audit["records"] == audit["anchored"] == audit["stored"] == 4
    assert audit["inclusions"] == audit["events"] == 16
    desk = {file.name for file in (tmp_path / "auditor").iterdir()}
    assert desk == {"key.json", "report.json", "report.html"}
    said = tmp_path / "published" / "pith" / "LOHGU5AX7BHMWC5MXWWMKZIY2K" / "bundle.json"
    said.write_bytes(said.read_bytes().replace(b'"block_height":131', b'"block_height":231', 1))
    again = anchord(
        "audit", tmp_path / "published", "--key", tmp_path / "auditor" / "key.json",
        "--headers", tmp_path / "headers.bin", "--network", "regtest", "--json",
    )  # fmt: skip
    assert again.code == 1
    assert again.json["result"] == "broken"


def test_every_copy_the_demo_signed_for_is_fetched_again_with_the_signed_hash(
    tmp_path: Path,
) -> None:
    ran = anchord("demo", "--dir", tmp_path, "--json")
    for row in ran.json["records"]:
        assert row["strip"][2] == "stored"
        assert len(row["copies"]) == 2
        assert all(copy["fetched"] for copy in row["copies"])
        assert any("id_/https://arxiv.org/abs/" in copy["url"] for copy in row["copies"])
        assert any(row["canonical_sha256"] in copy["url"] for copy in row["copies"])


def test_the_demo_leaves_proofs_the_standard_library_reads(tmp_path: Path) -> None:
    ran = anchord("demo", "--dir", tmp_path, "--json")
    headers = (tmp_path / "headers.bin").read_bytes()
    for row in ran.json["records"]:
        file = tmp_path / "ots" / f"{row['pith_number'].rpartition(':')[2]}.ots"
        context = BytesDeserializationContext(file.read_bytes())
        proof = DetachedTimestampFile.deserialize(context)
        assert proof.file_digest.hex() == row["canonical_sha256"]
        roots = {
            headers[80 * item.height + 36 : 80 * item.height + 68]
            for message, item in proof.timestamp.all_attestations()
            if isinstance(item, BitcoinBlockHeaderAttestation)
        }
        messages = {
            message
            for message, item in proof.timestamp.all_attestations()
            if isinstance(item, BitcoinBlockHeaderAttestation)
        }
        assert messages == roots


def test_the_demo_says_that_it_is_not_bitcoin_and_keeps_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "anchord", "demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "4 of 4 proofs verified, 4 of 4 records stored" in done.stdout
    assert "Sandbox, not Bitcoin." in done.stdout
    assert "sandbox, not Bitcoin" in done.stderr


def test_the_demo_shows_its_records_until_it_is_told_to_stop(tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "anchord", "demo", "--dir", str(tmp_path), "--serve"]
    log = tmp_path.with_suffix(".log")
    with (
        log.open("w") as err,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=err, text=True) as demo,
    ):
        try:
            assert demo.stdout is not None
            lines = iter(demo.stdout.readline, "")
            told = (re.match(r"Look at the records: (http://[0-9.:]+/)", line) for line in lines)
            address = next(found[1] for found in told if found)
            eventually(lambda: "anchord serves" in log.read_text("utf-8"))
            for path in ("", "pith/LOHGU5AX7BHMWC5MXWWMKZIY2K", "index.json"):
                with urllib.request.urlopen(address + path, timeout=30) as answer:
                    assert answer.status == 200
            demo.send_signal(signal.SIGINT)
            assert demo.wait(30) == 0
        finally:
            demo.kill()
