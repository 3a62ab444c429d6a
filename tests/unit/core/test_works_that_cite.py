"""Which record a citation is about: by digest, by number, by paper and version, by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.workplace import sample

from anchord.core.citing import cited_names, cites, names_of
from anchord.core.number import pith_number, record_id

MINE, OTHER = sample(1), sample(2)
NUMBER = pith_number(MINE.digest, MINE.year or "")


def event(**work):
    return {"event_type": "citation", "payload": {"relation": "cites", "cited": work}}


def is_mine(**work):
    return cites(event(**work), MINE.digest, MINE.source_id, MINE.source_version)


MEANT = [
    {"record_id": record_id(MINE.digest)},
    {"pith_number": NUMBER},
    {"pith_number": NUMBER, "record_id": record_id(MINE.digest), "doi": "10.1000/182"},
    {"url": f"https://papers.example.org/pith/{NUMBER.rpartition(':')[2]}"},
    {"arxiv": MINE.source_id},
    {"arxiv": f"{MINE.source_id}v{MINE.source_version}"},
    {"doi": f"10.48550/arXiv.{MINE.source_id}"},
    {"url": f"https://arxiv.org/abs/{MINE.source_id}"},
    {"doi": "10.1000/182", "arxiv": MINE.source_id},
]
NOT_MEANT = [
    {},
    {"record_id": record_id(OTHER.digest)},
    {"record_id": record_id(OTHER.digest), "arxiv": MINE.source_id},
    {"pith_number": pith_number(OTHER.digest, "2001"), "record_id": record_id(MINE.digest)},
    {"arxiv": f"{MINE.source_id}v{(MINE.source_version or 0) + 1}"},
    {"arxiv": OTHER.source_id},
    {"doi": "10.1000/182"},
    {"url": "https://example.org/"},
    {"title": MINE.source_id},
    {"arxiv": f"{MINE.source_id}\x00"},
    {"arxiv": 7},
]


@pytest.mark.parametrize("work", MEANT, ids=range(len(MEANT)))
def test_what_names_a_record_is_found_under_a_name_of_it(work):
    assert is_mine(**work)
    assert cited_names([event(**work)]) & set(names_of(MINE.digest, MINE.source_id))


@pytest.mark.parametrize("work", NOT_MEANT, ids=range(len(NOT_MEANT)))
def test_what_names_another_one_or_none_is_not_about_it(work):
    assert not is_mine(**work)


def test_a_paper_that_is_no_arxiv_one_is_found_by_its_doi():
    assert cites(event(doi="10.1000/ABC"), MINE.digest, "10.1000/abc", None)


WORKS = st.dictionaries(
    st.sampled_from(["record_id", "pith_number", "arxiv", "doi", "url"]),
    st.one_of(
        st.text(max_size=40),
        st.sampled_from([text for work in MEANT + NOT_MEANT for text in work.values()]),
        st.none(),
    ),
)


@given(WORKS)
def test_whatever_cites_a_record_is_found_under_a_name_of_it(work):
    names = cited_names([event(**work)])
    assert all(name.isprintable() for name in names), "a database takes it"
    if is_mine(**work):
        assert names & set(names_of(MINE.digest, MINE.source_id))


@pytest.mark.parametrize("broken", [{}, {"payload": None}, {"payload": {"cited": [1]}}])
def test_what_is_no_citation_cites_nothing(broken):
    assert cited_names([{"event_type": "citation", **broken}]) == set()
    assert cited_names([{**event(arxiv="2507.00001"), "event_type": "other"}]) == set()
