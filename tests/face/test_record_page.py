"""A record's page: every fact of it comes from the bundle, and nothing in the bundle can act."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.crowd import KEYS, READER, RECORD, STRANGER, VALID, citation
from support.evidence import bundle_with
from support.face_views import (
    HOSTILE,
    TITLE,
    Seen,
    bare,
    hostile,
    of_events,
    receipt_for,
    rich,
    titled,
)

from anchord.app.face.assets import ASSETS
from anchord.app.face.page import page
from anchord.app.face.rendering import CSP
from anchord.app.face.site import ROOT, Site, place_of
from anchord.engine.viewing import view_of

HERE = Site()
THERE = Site(base_url="https://pith.example.org", name="Example")
VIEWS = {"rich": rich(cited_by=120), "hostile": hostile(), "bare": bare(),
         "titled": titled(), "empty": of_events()}  # fmt: skip


def seen(view, site=HERE):
    return Seen(page(view, site))


def anchor(view):
    found = [one.proved for one in view.merged.standing if one.proved.claims is not None]
    assert found
    return view.merged.anchored


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_is_inline_and_nothing_comes_from_elsewhere(name):
    found = seen(VIEWS[name])
    for tag, attributes in found.elements:
        assert tag != "style"
        assert "style" not in attributes
        assert not any(key.startswith("on") for key in attributes), attributes
    loaded = [one.get("src") or one["href"] for tag, one in found.elements
              if tag in ("script", "img") or one.get("rel") in ("stylesheet", "icon")]  # fmt: skip
    below = place_of(VIEWS[name].bundle)
    known = {*ASSETS, f"{below}/badge.svg"}
    assert {one.removeprefix(ROOT) for one in loaded} <= known
    policy = [one["content"] for _, one in found.elements if "http-equiv" in one]
    assert policy == [CSP]
    assert "unsafe" not in CSP


@pytest.mark.parametrize("name", VIEWS)
def test_links_are_web_addresses_or_lead_below_the_root(name):
    for link in seen(VIEWS[name]).links:
        assert link.startswith(("https://", "http://", ROOT, "#")), link
        assert "trusted@" not in link
        assert link.isascii()


@pytest.mark.parametrize("name", VIEWS)
def test_ids_are_unique_and_labels_lead_to_one(name):
    found = [one for _, one in seen(VIEWS[name]).elements]
    names = [one["id"] for one in found if "id" in one]
    assert len(names) == len(set(names))
    assert {one["aria-labelledby"] for one in found if "aria-labelledby" in one} <= set(names)
    assert not any(tag == "img" and "alt" not in one for tag, one in seen(VIEWS[name]).elements)


def test_no_text_of_a_stranger_turns_writing_around_or_is_endless():
    raw = page(hostile(), HERE).decode()
    assert not set(raw) & set("\u202e\u202d\u2066\u2067\u2068\u200f\x1b\x07")
    assert HOSTILE[-4000:] not in raw.partition("Canonical record JSON")[0]
    assert len(raw) < 120_000


@settings(max_examples=40, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60).filter(str.strip))
def test_what_elements_a_page_has_does_not_depend_on_what_strangers_write(text):
    def shape(text):
        raw = json.loads(bundle_with(RECORD, [VALID["author"]], [READER]))
        raw["source_aliases"].append({"alias_kind": "k" + text, "alias_value": "v" + text})
        raw["events"].append({"event_type": "x" + text, "event_id": "i" + text, "created_at": text})
        raw["receipt"] = receipt_for(RECORD.digest, builder="b" + text)
        return Seen(page(view_of(json.dumps(raw).encode(), KEYS), HERE)).shape

    assert shape(text) == shape("plain")


def test_a_page_says_what_a_record_is_called_and_what_is_done():
    view = rich()
    words = seen(view).words
    assert words.count(view.bundle.number) >= 1
    assert view.bundle.digest.hex() in words
    for word in view.state["current"]["completeness"].values():
        assert word in words
    assert words.index("Bitcoin timestamp") < words.index("Internet Archive")
    assert words.index("Internet Archive") < words.index("Author claim")


def test_the_block_is_told_by_height_hash_and_time_with_the_proof_beside():
    view = rich()
    claims = anchor(view).claims
    found = seen(view)
    assert f"block {claims.height}" in found.words
    assert claims.hash in found.words
    assert claims.time.replace("T", " ").replace("Z", " UTC") in found.words
    assert f"{ROOT}{place_of(view.bundle)}/proof.ots" in found.links
    assert "made for tests: the timestamp proves nothing" in found.words


def test_what_is_open_is_said_to_be_and_offers_no_proof():
    view = of_events()
    found = seen(view)
    assert found.words.count(" open ") == 5
    assert not any(link.endswith("proof.ots") for link in found.links)


def test_what_was_only_submitted_is_neither_done_nor_open():
    words = seen(of_events(VALID["submitted"])).words
    assert "Bitcoin timestamp submitted" in words
    assert "https://calendar.example.org" in words


def test_a_copy_is_told_with_its_address_and_moment():
    found = seen(of_events(VALID["capture"], VALID["item"]))
    capture = VALID["capture"]["payload"]
    assert capture["capture_url"] in found.links
    assert "Capture of 2024-08-01 11:00:00 UTC" in found.words
    identifier = VALID["item"]["payload"]["identifier"]
    assert f"https://archive.org/details/{identifier}" in found.links
    assert "Internet Archive 2 copies" in found.words


def test_what_fell_is_shown_as_fallen_and_why():
    taken_back = seen(of_events(VALID["capture"], VALID["withdraws capture"])).words
    assert "Internet Archive open" in taken_back
    assert "Does not count. Withdrawn" in taken_back
    assert "reorg" in taken_back
    twice = seen(of_events(VALID["item"], VALID["other file"])).words
    assert "Internet Archive open" in twice
    assert twice.count("Its signer also said the contrary") >= 2


def test_citations_stand_under_their_relations_and_all_events_under_their_verdicts():
    view = rich()
    words = seen(view).words
    assert "This record extends doi:10.1000/182" in words
    state = view.state
    assert f"Invalid ({state['invalid_event_count']})" in words
    assert f"Not verified ({state['unverified_event_count']})" in words
    assert f"Valid ({state['valid_event_count']})" in words
    for one in view.merged.unverified:
        assert " ".join(one.reason.split())[:120] in words


def test_claims_of_strangers_open_no_row():
    words = seen(of_events(citation("cites", STRANGER))).words
    assert "Citations open 1 event of this kind does not count; see below under Events." in words
    assert "Not verified (1)" in words


def test_who_cites_is_listed_and_the_rest_counted():
    found = seen(rich(cited_by=120))
    assert f"{ROOT}pith/{'B' * 26}" in found.links
    assert f"{ROOT}record/{'ab' * 32}" in found.links
    assert "117 more." in found.words


@pytest.mark.parametrize("beside", [{"title": TITLE}, {"about": [{"title": TITLE.upper()}]}])
def test_a_title_is_shown_as_stated_where_the_record_has_its_hash(beside):
    stated = beside.get("title") or beside["about"][0]["title"]
    assert " ".join(stated.split()) in seen(titled(**beside)).words


@pytest.mark.parametrize("beside", [{}, {"title": "Another"}, {"title": 7}, {"name": TITLE}])
def test_no_other_title_is_shown(beside):
    found = seen(titled(**beside))
    assert not [one for tag, one in found.elements if one.get("class") == "title"]
    assert "Another" not in found.words


def test_the_paper_is_linked_by_its_source():
    found = seen(titled())
    assert "https://arxiv.org/abs/1704.05008v2" in found.links
    assert "arxiv:1704.05008 v2 · 2017-04-17 · cs.SE" in found.words


def test_a_receipt_is_shown_with_whether_it_holds():
    digest = titled().bundle.digest
    good = seen(titled(receipt=receipt_for(digest, builder="builder-1"))).words
    assert "The signature holds" in good
    assert "builder-1" in good
    bad = receipt_for(hashlib.sha256(b"other").digest())
    assert "The signature does not hold" in seen(titled(receipt=bad)).words
    unknown = {**receipt_for(digest), "key_id": "nobody-2024"}
    assert (
        "Not verified: key nobody-2024 is not in the keyring" in seen(titled(receipt=unknown)).words
    )
    assert "holds no receipt" in seen(titled()).words


def test_only_a_site_with_an_address_names_it():
    here, there = seen(titled()), seen(titled(), THERE)
    assert "pith.example.org" not in here.words + " ".join(here.links)
    canonical = [one["href"] for _, one in there.elements if one.get("rel") == "canonical"]
    assert canonical == [f"{THERE.base_url}/{place_of(titled().bundle)}"]


def test_a_page_is_the_same_whenever_it_is_made():
    assert page(rich(), THERE) == page(rich(), THERE)
