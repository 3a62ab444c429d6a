"""Both further witnesses from one end to the other: made, shown, and checked by a stranger."""

from __future__ import annotations

import base64
import json
import shutil

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from support.authorities import openssl, openssl_accepts
from support.json_documents import record
from support.parties import FakeChain
from support.schemas import assert_valid
from support.workplace import run

from anchord.sandbox.authority import issue
from anchord.sandbox.run import Sandbox

NAME = "2507.00001v1"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder where one record was anchored with both witnesses, and its exports."""
    openssl()
    folder = tmp_path_factory.mktemp("place")
    with Sandbox(folder, tick_s=0.02, archive=False, mine_every_s=0.05) as sandbox:
        config = str(sandbox.write_config())
        (folder / "one.jsonl").write_text(json.dumps(record(1, 1)), "utf-8")
        for words in (
            ["init", str(folder)], ["add", str(folder / "one.jsonl")],
            ["run-once", "--wait", "--deadline", "60"], ["headers", "sync"],
            ["export", "--bundle", NAME, "-o", str(folder / "out")],
        ):  # fmt: skip
            result = run("-c", config, *words)
            assert result.exit_code == 0, (words, result.output)
        key = run("-c", config, "key", "public", "--json")
        (folder / "key.json").write_text(key.stdout, "utf-8")
        yield folder, config, sandbox


def document(place, *words, code=0):
    result = run("-c", place[1], *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_show_and_status_tell_of_both(place):
    (batch,) = document(place, "show", NAME)["batches"]
    assert batch["not_before"]["height"] < batch["block"]["height"]
    assert batch["not_before"]["signed"] is True
    (token,) = batch["tokens"]
    assert token["signed_by"] == "CN=anchord sandbox time stamps"
    text = run("-c", place[1], "show", NAME).stdout
    assert f"not before  block {batch['not_before']['height']}" in text
    assert f"existed before {token['time']}, says CN=anchord sandbox" in text
    (authority,) = document(place, "status")["authorities"]
    assert (authority["kept"], authority["pending"], authority["last_error"]) == (1, 0, None)
    assert "1 token(s)" in run("-c", place[1], "status").stdout


def stranger(place, tmp_path, *words):
    """Verify the bundle where nothing but the files named is at hand."""
    folder = place[0]
    (bundle,) = (folder / "out").glob("*.json")
    shutil.copy(bundle, tmp_path / "bundle.json")
    return run("verify", str(tmp_path / "bundle.json"), "--key", str(folder / "key.json"), *words)


@pytest.fixture
def away(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANCHORD_CONFIG", raising=False)


def test_a_stranger_with_headers_and_the_root_checks_both(place, tmp_path, away):
    folder = place[0]
    headers = ["--headers", str(folder / "headers.bin"), "--network", "regtest"]
    root = folder / "sandbox/authority-1/root.pem"
    result = stranger(place, tmp_path, *headers, "--tsa-ca", str(root), "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    (before,), (token,) = report["not_before"], report["tokens"]
    assert before["outcome"] == "verified"
    assert before["block_time"] < report["existed_before"]
    assert token["outcome"] == "trusted"
    bundle = json.loads((tmp_path / "bundle.json").read_text("utf-8"))
    assert_valid("bundle", bundle)
    (event,) = [one for one in bundle["events"] if one["event_type"] == "timestamp_anchored"]
    assert token["commitment"] == event["payload"]["rfc3161"][0]["commitment"]
    text = stranger(place, tmp_path, *headers, "--tsa-ca", str(root)).stdout
    assert "the timestamp was made after block" in " ".join(text.split())
    assert "when the record was made, that does not say" in " ".join(text.split())
    assert "its root is trusted" in text


def test_without_headers_and_root_both_are_told_and_not_believed(place, tmp_path, away):
    result = stranger(place, tmp_path, "--json")
    report = json.loads(result.stdout)
    assert [one["outcome"] for one in report["not_before"]] == ["not checked"]
    assert [one["outcome"] for one in report["tokens"]] == ["root not trusted"]
    text = " ".join(stranger(place, tmp_path).stdout.split())
    assert "root not trusted: give it with --tsa-ca" in text


def test_a_root_that_is_another_one_is_not_believed_and_spoils_nothing(place, tmp_path, away):
    other = tmp_path / "other.pem"
    root = issue("another root", None, authority=True).certificate
    other.write_bytes(root.public_bytes(Encoding.PEM))
    folder = place[0]
    headers = ["--headers", str(folder / "headers.bin"), "--network", "regtest"]
    result = stranger(place, tmp_path, *headers, "--tsa-ca", str(other), "--json")
    report = json.loads(result.stdout)
    assert (result.exit_code, report["result"]) == (0, "proved")
    (token,) = report["tokens"]
    assert token["outcome"] == "root not trusted"
    assert "leads to none of the roots given" in token["detail"]
    other.write_text("no certificate", "utf-8")
    refused = stranger(place, tmp_path, "--tsa-ca", str(other))
    assert (refused.exit_code, str(other) in refused.output + refused.stderr) == (2, True)


def test_headers_of_another_chain_refute_the_block(place, tmp_path, away):
    folder = place[0]
    headers = (folder / "headers.bin").read_bytes()
    FakeChain(height=len(headers) // 80 - 1).write(tmp_path / "other.bin")
    result = stranger(
        place, tmp_path, "--headers", str(tmp_path / "other.bin"), "--network", "regtest", "--json"
    )
    report = json.loads(result.stdout)
    assert (result.exit_code, report["result"]) == (1, "failed")
    assert [one["outcome"] for one in report["not_before"]] == ["does not hold"]


def test_the_store_is_verified_with_the_configured_roots(place, tmp_path):
    report = document(place, "verify", NAME)
    assert [one["outcome"] for one in report["tokens"]] == ["trusted"]
    assert [one["outcome"] for one in report["not_before"]] == ["verified"]


def test_openssl_accepts_what_stands_in_the_event(place, tmp_path):
    folder = place[0]
    (bundle,) = (folder / "out").glob("*.json")
    events = json.loads(bundle.read_text("utf-8"))["events"]
    (event,) = [one for one in events if one["event_type"] == "timestamp_anchored"]
    assert_valid("event", event)
    (stated,) = event["payload"]["rfc3161"]
    token, digest = base64.b64decode(stated["token_b64"]), bytes.fromhex(stated["commitment"])
    root = folder / "sandbox/authority-1/root.pem"
    assert openssl_accepts(token, digest, root, tmp_path)


def test_a_certificate_names_both_as_far_as_they_were_checked(place, tmp_path, away):
    folder = place[0]
    (bundle,) = (folder / "out").glob("*.json")
    words = ["certificate", str(bundle), "--headers", str(folder / "headers.bin")]
    words += ["--network", "regtest", "--format", "html", "-o", "-"]
    root = folder / "sandbox/authority-1/root.pem"
    text = run(*words, "--tsa-ca", str(root)).stdout
    assert "the timestamp, not the record, is younger than block" in text
    assert "by CN=anchord sandbox time stamps" in text
    assert "root not checked" not in text
    assert "CN=anchord sandbox time stamps, root not checked" in run(*words).stdout


def test_an_authority_that_is_away_is_told_and_holds_up_nothing(place):
    folder, config, sandbox = place
    sandbox.fault("authority-1", "dead")
    (folder / "two.jsonl").write_text(json.dumps(record(2, 1)), "utf-8")
    assert run("-c", config, "add", str(folder / "two.jsonl")).exit_code == 0
    assert run("-c", config, "run-once").exit_code == 3
    (batch,) = document(place, "show", "2507.00002v1")["batches"]
    assert (batch["state"], batch["not_before"]["signed"]) == ("submitted", False)
    (token,) = batch["tokens"]
    assert (token["time"], token["attempts"]) == (None, 1)
    text = run("-c", config, "show", "2507.00002v1").stdout
    assert f"no token    {token['url']}: " in text
    (authority,) = document(place, "status")["authorities"]
    assert authority["pending"] == 1
    assert "connection failed" in authority["last_error"]
    assert "1 batch(es) wait" in run("-c", config, "status").stdout
    sandbox.clear_faults()
    assert run("-c", config, "run-once", "--wait", "--deadline", "60").exit_code == 0
    (batch,) = document(place, "show", "2507.00002v1")["batches"]
    assert batch["state"] == "anchored"
    assert batch["tokens"][0]["time"] is not None
