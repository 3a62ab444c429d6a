"""`anchord state` and `anchord bundle`: what stands of a record, and everything that proves it."""

from __future__ import annotations

import base64
import json

import pytest
from support.crowd import OWN, POWERLESS, READER, RECORD, STRANGER, VALID, citation, claim
from support.evidence import bundle_with, withdrawal
from support.workplace import Workplace, bare, run, sample

from anchord.core.bundle import read_bundle
from anchord.core.canonical import pith_number
from anchord.core.key_document import to_document
from anchord.core.state import state_bytes
from anchord.core.trust import Keys
from anchord.core.verify import read_proof

NUMBER = pith_number(RECORD.digest, RECORD.year or "")
NAME = "2507.00001"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """An anchord with one anchored record, about which others have said things."""
    place = Workplace(tmp_path_factory.mktemp("open graph"))
    place.anchor(sample(1))
    place.add(sample(3), bare(bytes(32)))
    targets = ("author", "citation", "replication")
    key = place.folder / "reader.json"
    key.write_text(json.dumps(to_document(READER.public(targets=targets))), "utf-8")
    named = [word for target in targets for word in ("--target", target)]
    assert place.run("key", "trust", str(key), *named).exit_code == 0
    said = {
        "author": claim("author_claim", "author", author={"name": "R. \x1b[31mReader"}, position=1),
        "extends": citation("extends"),
        "supports": citation("supports", arxiv="2507.10392"),
        "gone": citation("cites", doi="10.1000/gone"),
        "replication": VALID["replication"],
        "a stranger's": citation("refutes", STRANGER),
    }
    said["withdraws"] = withdrawal(RECORD, READER, said["gone"]["event_id"], "citation")
    path = place.folder / "claims.json"
    path.write_bytes(bundle_with(RECORD, list(said.values())))
    told = place.json("add", str(path))
    assert told["refused"] == 0, told
    return place


def state(place, *words, **more):
    result = place.run("state", *words, **more)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout_bytes)


@pytest.mark.parametrize("name", [NAME, NUMBER, NUMBER[:18], RECORD.digest.hex()])
def test_a_record_is_found_by_any_of_its_names(place, name):
    assert state(place, name)["pith_number"] == NUMBER
    assert read_bundle(place.run("bundle", name).stdout_bytes).digest == RECORD.digest


def test_a_state_is_one_line_and_the_same_from_the_store_a_file_and_a_pipe(place, tmp_path):
    out = place.run("bundle", NAME).stdout_bytes
    path = tmp_path / "bundle.json"
    assert place.run("bundle", NAME, "-o", str(path)).exit_code == 0
    assert path.read_bytes() == out
    states = {
        place.run("state", NAME).stdout_bytes,
        place.run("state", str(path)).stdout_bytes,
        place.run("state", "-", stdin=out).stdout_bytes,
    }
    (raw,) = states
    assert raw.count(b"\n") == 1
    with place.app() as app:
        assert raw == state_bytes(out, Keys(app.keyring))


def test_a_state_says_what_everybody_said(place):
    found = state(place, NAME)
    current = found["current"]
    assert current["completeness"] == {
        "attested": "attested", "anchored": "anchored", "stored": "not stored", "refs": "refs",
    }  # fmt: skip
    assert [one["payload"]["position"] for one in current["author_claims"]] == [1]
    assert {name: len(events) for name, events in current["citations"].items()} == {
        "supports": 1, "extends": 1,
    }  # fmt: skip
    assert len(current["replications"]) == 1
    assert [one["event_type"] for one in current["withdrawn"]] == ["citation"]
    assert [one["event_id"] for one in found["unverified_events"]] == [
        citation("refutes", STRANGER)["event_id"]
    ]


def test_a_stranger_without_configuration_names_the_keys(place, tmp_path):
    out = place.run("bundle", NAME).stdout_bytes
    unknown = json.loads(run("state", "-", stdin=out).stdout_bytes)
    assert (unknown["valid_event_count"], unknown["invalid_event_count"]) == (0, 0)
    keys = []
    for number, document in enumerate(json.loads(out)["public_keys"]):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(document))
        keys += ["--key", str(path)]
    known = run("state", "-", *keys, stdin=out).stdout_bytes
    assert known == place.run("state", NAME).stdout_bytes


def test_invalid_events_are_told_on_standard_error_and_the_state_is_there(place):
    raw = bundle_with(RECORD, [POWERLESS["another height"], VALID["anchored"]], [OWN])
    key = place.folder / "own.json"
    key.write_text(json.dumps(to_document(OWN.public())))
    result = run("state", "-", "--key", str(key), stdin=raw)
    assert result.exit_code == 0
    found = json.loads(result.stdout_bytes)
    assert (found["valid_event_count"], found["invalid_event_count"]) == (1, 1)
    assert "1 event(s) invalid" in result.stderr


def test_a_summary_is_for_people(place):
    result = place.run("state", NAME, "--summary")
    assert result.exit_code == 0
    assert "attested | anchored | not stored | refs" in result.stdout
    assert "extends" in result.stdout
    assert "unverified" in result.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [(["state", "2507.99999"], 1), (["bundle", "2507.99999"], 1), (["state", "no such name"], 1)],
)
def test_what_is_not_there_is_said(place, words, code):
    assert place.run(*words).exit_code == code


def test_what_is_no_bundle_has_no_state(place):
    assert place.run("state", "-", stdin=b"{}").exit_code == 1
    assert run("state", "2507.00001").exit_code == 2


@pytest.mark.parametrize("name", ["2507.00003", "00" * 32])
def test_a_record_without_any_proof_has_a_bundle_and_a_state(place, name):
    bundle = read_bundle(place.run("bundle", name).stdout_bytes)
    assert bundle.events == ()
    assert state(place, name)["event_count"] == 0


def test_a_bundle_proves_the_record_to_a_stranger_offline(place):
    out = json.loads(place.run("bundle", NAME).stdout_bytes)
    (one,) = [e for e in out["events"] if e["event_type"] == "timestamp_anchored"]

    assert read_proof(base64.b64decode(one["payload"]["proof_b64"]), RECORD.digest).bitcoin
    result = place.run("verify", "-", "--json", stdin=place.run("bundle", NAME).stdout_bytes)
    assert json.loads(result.stdout)["result"] == "proved"


def test_a_file_that_says_more_is_kept(place, tmp_path):
    path = tmp_path / "b.json"
    more = bundle_with(RECORD, [VALID["capture"]])
    path.write_bytes(more)
    assert place.run("bundle", NAME, "-o", str(path)).exit_code == 1
    assert path.read_bytes() == more
    assert place.run("bundle", NAME, "-o", str(path), "--force").exit_code == 0
    assert place.run("bundle", NAME, "-o", str(tmp_path)).exit_code == 2


# ------------------------------------------------------------------ show and verify


def test_show_tells_who_says_what_and_whether_he_is_believed(place):
    out = place.run("show", NAME).stdout
    assert "attested | anchored | not stored | refs" in out
    lines = out.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("author claim"))
    assert "author 1" in lines[at]
    assert "reader.example.org" in lines[at + 1]
    assert "key in the keyring" in lines[at + 1]
    assert "it extends doi:10.1000/182" in out
    assert "WITHDRAWN by" in out
    stranger = next(n for n, line in enumerate(lines) if "refutes" in line)
    assert "not verified" in lines[stranger + 1]
    assert "\x1b" not in out


def test_a_record_nobody_speaks_of_is_open(place):
    found = place.json("show", "2507.00003")
    assert found["strip"] == "not attested | not anchored | not stored | refs pending"
    assert found["claims"]["citations"] == []
    out = place.run("show", "2507.00003").stdout
    assert [line.split()[-1] for line in out.splitlines() if "open" in line] == ["open"] * 3


def test_verify_checks_what_others_say(place):
    found = place.json("verify", NAME)
    assert found["result"] == "proved"
    types = {event["event_type"]: event["signature"] for event in found["events"]}
    assert types["author_claim"] == "trusted"
    assert "inclusion" in {check["check"] for check in found["checks"]}


def test_verify_fails_where_a_signer_says_two_things(place):
    raw = bundle_with(RECORD, [VALID["anchored"], VALID["anchored elsewhere"]], [OWN])
    key = place.folder / "own.json"
    key.write_text(json.dumps(to_document(OWN.public())))
    result = place.run("verify", "-", "--key", str(key), "--json", stdin=raw)
    assert result.exit_code == 1
    assert "says two things of bitcoin-regtest block 101" in json.loads(result.stdout)["reason"]


def test_the_file_that_is_no_bundle_is_named(place, tmp_path):
    for name, raw in (("empty", b""), ("binary", b"\xff\x00"), ("other", b"{}")):
        wrong = tmp_path / name
        wrong.write_bytes(raw)
        result = place.run("state", str(wrong))
        assert (result.exit_code, f"{wrong}: expected a bundle" in result.stderr) == (1, True)
    result = place.run("state", str(tmp_path))
    assert (result.exit_code, "is a folder" in result.stderr) == (2, True)
