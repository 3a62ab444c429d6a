"""`anchord show`: any name of a record, and no guess."""

from __future__ import annotations

import hashlib

import pytest
from support.workplace import Workplace, bare, sample


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("shown"))
    place.anchor(sample(1), sample(2), bare(hashlib.sha256(b"x").digest(), "x.txt"))
    place.add(sample(1, extra=True))
    return place


def test_every_alias_leads_to_the_record(place):
    document = place.json("show", "2507.00002")
    names = [alias["alias_value"] for alias in document["aliases"]]
    names += [document["pith_number"], document["canonical_sha256"], document["record_id"]]
    for name in names:
        assert place.json("show", name)["canonical_sha256"] == document["canonical_sha256"]


def test_a_hash_only_record_is_shown_by_its_digest(place):
    document = place.json("show", hashlib.sha256(b"x").hexdigest())
    assert document["pith_number"] is None
    assert (document["label"], document["scheme"]) == ("x.txt", "sha256")
    assert document["state"] == "anchored"


def test_several_matches_are_listed_and_none_is_chosen(place):
    found = place.json("show", "2507.00001", code=1)
    assert len(found["matches"]) == 2
    text = place.run("show", "2507.00001").stdout
    assert all(match["name"] in text for match in found["matches"])


def test_no_match_says_which_names_are_understood(place):
    for name in ("2507.09999", "what?", "AAAAAAAA"):
        result = place.run("show", name)
        assert result.exit_code == 1
        assert "arXiv id" in str(result.exception)


def test_an_anchored_record_shows_block_and_events(place):
    document = place.json("show", "2507.00002")
    assert document["strip"] == "not attested | anchored | not stored | refs pending"
    (batch,) = document["batches"]
    assert batch["block"]["height"] == 101
    assert [event["event_type"] for event in document["events"]] == [
        "timestamp_submitted",
        "timestamp_anchored",
    ]
    text = place.run("show", "2507.00002").stdout
    assert "existed before 2024-07-26" in text
    assert batch["block"]["hash"] in text
    assert all(event["event_id"] in text for event in document["events"])


def test_full_shows_the_canonical_record(place):
    document = place.json("show", "--full", "2507.00002")
    raw = document["canonical_record"].encode()
    assert hashlib.sha256(raw).hexdigest() == document["canonical_sha256"]
    assert document["events"][0]["event"]["event_id"] == document["events"][0]["event_id"]


def test_what_waits_is_said_in_the_calendars_three_states(tmp_path):
    place = Workplace(tmp_path)
    place.add(sample(1))
    assert "not anchored" in place.run("show", "2507.00001").stdout
    place.step()
    alice, bob = place.calendars
    alice.status, bob.forgets = "journal", True
    place.step()
    document = place.json("show", "2507.00001")
    assert document["strip"] == "not attested | submitted | not stored | refs pending"
    words = {wait["where"]: wait["words"] for wait in document["batches"][0]["waits"]}
    assert words[alice.uris[0]] == "in the calendar's journal"
    assert words[bob.uris[0]] == "the calendar does not know it"
    assert all(wait["next_attempt_at"] for wait in document["batches"][0]["waits"])
    place.calendars[0].status = "transaction"
    place.step()
    assert "in a transaction" in place.run("show", "2507.00001").stdout or "in transaction" in (
        place.run("show", "2507.00001").stdout
    )


def test_withdrawn_events_are_marked(tmp_path):
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    place.chain.reorg(6)
    place.chain.grow(5)
    place.step(90_000)
    document = place.json("show", "2507.00001")
    marks = {event["event_type"]: event["withdrawn_by"] for event in document["events"]}
    assert marks["timestamp_anchored"] == document["events"][-1]["event_id"]
    assert "WITHDRAWN" in place.run("show", "2507.00001").stdout
