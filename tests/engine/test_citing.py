"""Who cites a record: what stands of it, by the keyring, and nobody else."""

from __future__ import annotations

import pytest
from support.crowd import KEYRING, KEYS, READER, RECORD, STRANGER, citation
from support.evidence import bundle_with, withdrawal
from support.stored_rows import NOW
from support.stores import made
from support.workplace import sample

from anchord.adapters.store.sql import SqlStore
from anchord.core.model import Document
from anchord.core.number import pith_number, record_id
from anchord.core.trust import Keys
from anchord.engine.citing import Citations
from anchord.engine.viewing import record_view

CITED = sample(3)
NUMBER = pith_number(CITED.digest, CITED.year or "")
CITES = citation("supports", pith_number=NUMBER)


@pytest.fixture
def store(tmp_path):
    opened = SqlStore(made(tmp_path))
    opened.add([CITED, RECORD], NOW)
    yield opened
    opened.close()


def cited_by(store, *documents, keys=KEYS):
    items = [Document(record=RECORD, raw=bundle_with(RECORD, events)) for events in documents]
    store.add(items, NOW)
    return Citations(keys).of(store, [row_of(store, CITED)]).get(1, ((), 0))


def row_of(store, record):
    return next(row for rows in store.records.walk() for row in rows if row.digest == record.digest)


def test_a_citation_that_stands_is_told_with_who_signed_it(store):
    ((found,), count) = cited_by(store, [CITES])
    assert count == 1
    assert found.name == pith_number(RECORD.digest, RECORD.year or "")
    assert (found.relation, found.event_id) == ("supports", CITES["event_id"])
    assert found.signer_id == READER.signer_id


def test_it_is_told_once_in_however_many_documents_it_came(store):
    other = citation("extends", arxiv="2507.99999")
    assert cited_by(store, [CITES], [CITES, other])[1] == 1


def test_one_that_was_taken_back_in_another_document_is_not_told(store):
    taken_back = withdrawal(RECORD, READER, CITES["event_id"], "citation")
    assert cited_by(store, [CITES], [taken_back]) == ((), 0)


def test_what_its_signer_contradicts_is_not_told(store):
    assert cited_by(store, [CITES], [citation("refutes", pith_number=NUMBER)]) == ((), 0)


@pytest.mark.parametrize(
    "event",
    [
        citation("supports", by=STRANGER, pith_number=NUMBER),
        {**CITES, "signature_b64": citation("cites", pith_number=NUMBER)["signature_b64"]},
        {key: value for key, value in CITES.items() if key != "signature_b64"},
        citation("supports", record_id=record_id(sample(4).digest)),
    ],
    ids=["a stranger's", "forged", "unsigned", "of another record"],
)
def test_nobody_else_is_told(store, event):
    assert cited_by(store, [event]) == ((), 0)


def test_another_keyring_tells_another_story(store):
    assert cited_by(store, [CITES], keys=Keys(())) == ((), 0)


def test_what_is_remembered_is_not_told_of_other_documents(store):
    store.add([Document(record=RECORD, raw=bundle_with(RECORD, [CITES]))], NOW)
    citations, mine = Citations(KEYS), row_of(store, CITED)
    assert citations.of(store, [mine]) == citations.of(store, [mine]) != {}
    taken_back = withdrawal(RECORD, READER, CITES["event_id"], "citation")
    store.add([Document(record=RECORD, raw=bundle_with(RECORD, [taken_back]))], NOW)
    assert citations.of(store, [mine]) == {}


def test_a_record_s_view_says_who_cites_it(store):
    store.add([Document(record=RECORD, raw=bundle_with(RECORD, [CITES]))], NOW)
    view = record_view(store, KEYRING, row_of(store, CITED))
    assert [one.event_id for one in view.cited_by] == [CITES["event_id"]]
    assert view.cited_by_count == 1
    assert record_view(store, KEYRING, row_of(store, RECORD)).cited_by == ()
