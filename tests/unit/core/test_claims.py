"""What others say about a record: understood where it says something, refused where it cannot."""

from __future__ import annotations

import json

import pytest
from support.crowd import KEYS, NUMBER, OTHER, READER, RECORD, citation, claim
from support.evidence import body_of, sign, withdrawal

from anchord.core.canonical import pith_number, record_id
from anchord.core.claims import KINDS, RELATIONS, read_claim
from anchord.core.merge import merge
from anchord.core.verify_event import read_event, withdrawn
from anchord.errors import VerificationError

ORCID = "0000-0002-1825-0097"
"""The example of https://support.orcid.org (its check character is right)."""
DOI = {"doi": "10.1000/182"}


def read(event_type, **payload):
    return read_claim(event_type, "sha256:aa", payload, RECORD.digest)


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_citation_has_one_of_eight_relations_and_a_direction(relation):
    assert read("citation", relation=relation, cited=DOI).text == f"it {relation} doi:10.1000/182"
    text = read("citation", relation=relation, citing={"arxiv": "hep-th/9804177"}).text
    assert text == f"arXiv:hep-th/9804177 {relation} it"
    assert len(RELATIONS) == 8


@pytest.mark.parametrize("kind", KINDS)
def test_a_replication_has_a_kind_and_a_report(kind):
    found = read("replication", kind=kind, report={"url": "https://example.org/report"})
    assert (found.word, found.text) == (kind, f"{kind} in https://example.org/report")


def test_the_most_exact_name_of_a_work_is_shown():
    work = {"url": "https://example.org/x", "pith_number": pith_number(OTHER.digest, "2002")}
    assert work["pith_number"] in read("citation", relation="cites", cited=work).text


def test_an_author_claim_names_a_person():
    found = read("author_claim", author={"name": "R. Reader", "orcid": ORCID}, position=2)
    assert found.text == f"R. Reader, ORCID {ORCID}, author 2"


WRONG = [
    ("author_claim", {}),
    ("author_claim", {"author": {"name": " "}}),
    ("author_claim", {"author": {"name": "x" * 301}}),
    ("author_claim", {"author": {"name": "R.", "orcid": "0000-0002-1825-0098"}}),
    ("author_claim", {"author": {"name": "R.", "orcid": "0000-0002-1825-009"}}),
    ("author_claim", {"author": {"name": "R."}, "position": 0}),
    ("author_claim", {"author": {"name": "R."}, "position": True}),
    ("citation", {"relation": "cites"}),
    ("citation", {"relation": "Cites", "cited": DOI}),
    ("citation", {"relation": "cites", "cited": DOI, "citing": DOI}),
    ("citation", {"relation": "cites", "cited": {}}),
    ("citation", {"relation": "cites", "cited": {"title": "A title alone"}}),
    ("citation", {"relation": "cites", "cited": {**DOI, "title": ""}}),
    ("citation", {"relation": "cites", "cited": {"doi": "182"}}),
    ("citation", {"relation": "cites", "cited": {"url": "javascript:alert(1)"}}),
    ("citation", {"relation": "cites", "cited": {"url": "https://example.org/\u0000"}}),
    ("citation", {"relation": "cites", "cited": {"pith_number": NUMBER}}),
    ("citation", {"relation": "cites", "cited": {"record_id": record_id(RECORD.digest)}}),
    ("replication", {"kind": "replication"}),
    ("replication", {"kind": "rumour", "report": DOI}),
    ("replication", {"kind": "replication", "report": "10.1000/182"}),
]


@pytest.mark.parametrize(("event_type", "payload"), WRONG, ids=range(len(WRONG)))
def test_what_says_nothing_is_refused_with_its_reason(event_type, payload):
    with pytest.raises(VerificationError, match=event_type):
        read(event_type, **payload)


def verdict(*events):
    return merge(RECORD.digest, NUMBER, RECORD.canonical, events, KEYS)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (citation("supports"), citation("refutes")),
        (
            claim("replication", "replication", kind="replication", report=DOI),
            claim("replication", "replication", kind="falsification", report=DOI),
        ),
        (
            claim("author_claim", "author", author={"name": "R.", "orcid": ORCID}, position=1),
            claim("author_claim", "author", author={"name": "R.", "orcid": ORCID}, position=2),
        ),
    ],
)
def test_one_signer_says_one_of_two(first, second):
    found = verdict(first, second)
    assert (len(found.valid), len(found.standing), len(found.equivocations)) == (2, 0, 1)


def test_a_claim_needs_a_key_that_may_make_it_and_the_target_of_its_kind():
    beside = sign(body_of(RECORD, READER, {"relation": "cites", "cited": DOI},
                          event_type="citation", target="author"), READER)  # fmt: skip
    (one,) = verdict(beside).invalid
    assert "expected citation" in one.reason


def test_a_signer_takes_back_his_own_claims():
    said = citation("extends")
    gone = withdrawal(RECORD, READER, said["event_id"], "citation")
    proved = [read_event(one, RECORD.digest, NUMBER, KEYS) for one in (said, gone)]
    assert withdrawn(proved) == {said["event_id"]: gone["event_id"]}


def test_an_unsigned_claim_is_nobodys():
    said = {name: value for name, value in citation("extends").items() if name != "signature_b64"}
    assert "lacks what a signed event has" in verdict(said).invalid[0].reason
    posing = json.loads(json.dumps(said))
    posing["signer"]["signer_type"] = "pith_registry"
    (one,) = verdict(posing).unverified
    assert "no rule" in one.reason
