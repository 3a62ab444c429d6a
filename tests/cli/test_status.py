"""`anchord status`: counts, waits and health, cheap and without a connection."""

from __future__ import annotations

import hashlib
import json
import socket

import pytest
from opentimestamps.core.notary import PendingAttestation
from opentimestamps.core.timestamp import Timestamp
from support.ots_oracle import written_file
from support.parties import URI_A, URI_B
from support.workplace import Workplace, bare, sample

from anchord.core.model import Adoption
from anchord.errors import NetworkError

KEYS = {
    "now", "records", "events", "oldest_waiting_at", "oldest_waiting_s", "next_attempt", "waits",
    "not_asked", "calendars", "authorities", "headers", "parked", "stored", "workers",
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    return Workplace(tmp_path)


def test_an_empty_store_has_all_keys_and_nothing_due(place):
    found = place.json("status")
    assert set(found) == KEYS
    assert set(found["records"].values()) == {0}
    assert found["next_attempt"] is None
    assert "nothing is due" in place.run("status").stdout


def test_counts_follow_the_records(place):
    place.add(sample(1), sample(2))
    found = place.json("status")
    assert found["records"]["not_anchored"] == 2
    assert found["next_attempt"] == {"at": "next pass", "why": "seal 2 waiting record(s)"}
    assert found["oldest_waiting_s"] > 0
    place.step()
    found = place.json("status")
    assert (found["records"]["submitted"], found["events"]["signed"]) == (2, 2)
    assert ".calendar.example.org" in found["next_attempt"]["why"]
    place.mine()
    place.step(1000)
    found = place.json("status")
    assert (found["records"]["anchored"], found["events"]) == (2, {"signed": 4, "due": 0})
    assert found["oldest_waiting_s"] is None
    assert "deeper in the chain" in found["next_attempt"]["why"]


def test_calendars_that_nobody_configured_are_named_and_not_waited_for(place):
    uri = "https://elsewhere.example.org"
    digest = hashlib.sha256(b"adopted").digest()
    stamp = Timestamp(digest)
    stamp.attestations.add(PendingAttestation(uri))
    place.add(Adoption(record=bare(digest), ots=written_file(stamp)))
    place.step()
    found = place.json("status")
    assert found["not_asked"] == [{"uri": uri, "commitments": 1}]
    assert {wait["where"] for wait in found["waits"]} == {URI_A, URI_B}
    assert "calendar.example.org" in found["next_attempt"]["why"]
    assert f"      1 commitment(s) at {uri}\n" in place.run("status").stdout
    (adopted,) = [b for b in place.json("show", digest.hex())["batches"] if b["kind"] == "adopted"]
    (wait,) = adopted["waits"]
    assert (wait["where"], wait["status"], wait["next_attempt_at"]) == (uri, "stranger", None)
    assert "no configured calendar" in place.run("show", digest.hex()).stdout


def test_too_few_confirmations_are_the_reason_for_the_next_check(place):
    place.add(sample(1))
    place.step()
    place.mine(2)
    place.step(1000)
    found = place.json("status")
    assert found["records"]["attested"] == 1
    assert "3 of 6 confirmations" in found["next_attempt"]["why"]


def test_a_calendar_that_fails_is_shown_with_its_error(place):
    place.add(sample(1))
    place.calendars[1].fail_with = NetworkError("bob does not answer")
    place.step()
    found = place.json("status")
    alice, bob = found["calendars"]
    assert (alice["failures"], bob["failures"]) == (0, 1)
    assert bob["last_error"] == "bob does not answer"
    text = place.run("status").stdout
    assert "1 failure(s) in a row" in text
    assert "bob does not answer" in text


def test_the_header_file_is_described_without_a_connection(place, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("no connection may be opened")

    monkeypatch.setattr(socket, "socket", refuse)
    (source,) = place.json("status")["headers"]
    assert (source["source"], source["height"]) == ("file", 100)
    (place.folder / "headers.bin").unlink()
    (source,) = place.json("status")["headers"]
    assert "anchord headers sync" in source["problem"]


def test_online_asks_the_sources(place):
    place.chain.grow(3)
    place.write_headers()
    (source,) = json.loads(place.run("status", "--online", "--json").stdout)["headers"]
    assert (source["height"], source["problem"]) == (103, None)


def test_parked_work_comes_with_the_way_back(place):
    from anchord.core.model import BatchChange

    place.add(sample(1))
    place.step()
    with place.app() as app:
        columns = {"state": "parked", "note": "a person must look", "next_check_at": None}
        app.store.batches.change([BatchChange(batch_id=1, columns=columns)])
    found = place.json("status")
    assert found["parked"] == [
        {"batch": 1, "kind": "sealed", "size": 1, "reason": "a person must look"}
    ]
    assert "anchord retry 1" in place.run("status").stdout


def test_lines_fit_80_columns_where_addresses_allow(place):
    place.add(sample(1))
    place.step()
    for line in place.run("status").stdout.splitlines():
        assert len(line) <= 80 or "http" in line or "/" in line


def test_a_network_that_was_changed_under_a_store_is_said_and_stops_a_pass(place):
    place.anchor(sample(1))
    text = place.config.read_text("utf-8")
    place.config.write_text(text.replace('"regtest"', '"mainnet"'), "utf-8")
    found = place.run("status")
    assert found.exit_code == 0
    assert "headers.network" in found.stderr
    ran = place.run("run-once")
    assert ran.exit_code == 2
    assert "bitcoin-regtest" in ran.stderr
