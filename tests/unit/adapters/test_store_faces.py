"""What pages ask of a store: lists and filters agree with the ledger, whatever happened to it."""

from __future__ import annotations

import hashlib
import itertools
import random

import pytest
import sqlalchemy as sa
from msgspec import structs
from support.check_standings import check_standings, facets
from support.crowd import RECORD, citation
from support.evidence import bundle_with
from support.passes import bare
from support.stored_rows import NOW, fill, new_series
from support.stores import made
from support.workplace import sample

from anchord.adapters.store import citations, faces, finding, standings
from anchord.adapters.store.ledger import insert_series
from anchord.adapters.store.schema import events
from anchord.adapters.store.sql import SqlStore
from anchord.core.event import (
    ANCHORED,
    CAPTURED,
    ITEM_STORED,
    SUBMITTED,
    WITHDRAWN,
    chain_next,
)
from anchord.core.keyring import OWN_TARGETS, PublicKey, make_keyring
from anchord.core.model import Document, SignedRow
from anchord.errors import RefusedError
from anchord.ports.face import ANCHORED_WORDS, STORED_WORDS

pytestmark = pytest.mark.both_stores
KEY = PublicKey(key_id="k", public_key=bytes(32), signer_id="registry.example.org")
KEYRING = make_keyring([KEY])
DAY_S = 86_400
KINDS = (SUBMITTED, ANCHORED, CAPTURED, ITEM_STORED)


@pytest.fixture
def store(tmp_path):
    opened = SqlStore(made(tmp_path))
    yield opened
    opened.close()


def asking(store):
    def ask(statement):
        with store._database.reading() as connection:
            return connection.execute(sa.text(statement)).all()

    return ask


def said(store, event_type, records, at=NOW, withdraws=None):
    """Append what a new series says of records; return the series."""
    with store._database.writing() as connection:
        new = new_series(event_type, created_at=at, withdraws=withdraws, stop=len(records))
        number = insert_series(connection, 1, new)
    seq, chain = store.ledger.head()
    rows = []
    for record in records:
        seq += 1
        digest, signature = hashlib.sha256(b"%d" % seq).digest(), bytes(64)
        chain = chain_next(chain, digest, signature)
        rows.append(SignedRow(seq, record, number, False, digest, signature, chain))
    store.ledger.append([], rows)
    return number


def live_through(store, draw, rounds):
    """Say and take back at random; return nothing that the ledger does not."""
    made_of = {}
    for turn in range(rounds):
        at = NOW + turn * DAY_S // 2
        taken = [number for number in made_of if made_of[number]]
        if taken and draw.random() < 0.3:
            number = draw.choice(taken)
            some = sorted(draw.sample(made_of[number], draw.randint(1, len(made_of[number]))))
            made_of[number] = [one for one in made_of[number] if one not in some]
            said(store, WITHDRAWN, some, at, withdraws=number)
        else:
            some = sorted(draw.sample(range(1, 31), draw.randint(1, 30)))
            made_of[said(store, draw.choice(KINDS), some, at)] = list(some)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_kept_beside_the_ledger_is_what_it_says(store, seed):
    fill(store, 30)
    live_through(store, random.Random(seed), 25)
    ask = asking(store)
    check_standings(ask)
    kept = ["SELECT * FROM standings ORDER BY chunk", "SELECT * FROM days ORDER BY day"]
    before = [ask(each) for each in kept]
    with store._database.writing() as connection:
        standings.rebuild(connection)
    assert [ask(each) for each in kept] == before, "made anew it is the same"


def pages(store, limit, **wanted):
    """Return the row ids of a whole list, part by part."""
    found, before = [], None
    for _ in range(200):
        part = store.faces.page(before=before, limit=limit, **{"keyring": KEYRING, **wanted})
        assert len(part.rows) <= limit
        found += part.rows
        if part.next is None:
            return found
        before = part.next
    raise AssertionError("the list has no end")


@pytest.fixture
def large(store):
    """More records than a row of standings has, some in every state, the last ones in none."""
    fill(store, 4_500)
    said(store, SUBMITTED, range(1, 4_400))
    number = said(store, ANCHORED, range(1, 4_300))
    said(store, CAPTURED, range(7, 4_450, 40))
    said(store, ITEM_STORED, range(4_000, 4_200))
    said(store, WITHDRAWN, range(100, 140), withdraws=number)
    return store


def words(names):
    anchored = "submitted" if "submitted" in names else "not anchored"
    return (
        "anchored" if "anchored" in names else anchored,
        "stored" if "stored" in names else "not stored",
    )


def test_every_list_holds_exactly_those_that_fit_newest_first(large):
    stand = facets(asking(large))
    every = {one: words(stand.get(one, ())) for one in range(1, 4_501)}
    for anchored, stored in itertools.product((None, *ANCHORED_WORDS), (None, *STORED_WORDS)):
        found = pages(large, 700, anchored=anchored, stored=stored)
        fit = [
            one
            for one, (first, second) in every.items()
            if anchored in (None, first) and stored in (None, second)
        ]
        assert [row.id for row in found] == fit[::-1], (anchored, stored)
        assert all((row.anchored, row.stored) == every[row.id] for row in found)


def test_a_question_looks_at_a_bounded_part_and_says_where_to_go_on(large, monkeypatch):
    whole = [row.id for row in pages(large, 50, stored="not stored", anchored="submitted")]
    monkeypatch.setattr(finding, "_MOST", 1)
    monkeypatch.setattr(faces, "_ROUNDS", 1)
    first = large.faces.page(before=None, limit=5000, anchored="anchored", stored="stored",
                             keyring=KEYRING)  # fmt: skip
    assert first.next == 4_096
    assert [row.id for row in pages(large, 50, stored="not stored", anchored="submitted")] == whole


def test_a_false_standing_shows_no_false_word(large):
    with large._database.writing() as connection:
        connection.execute(sa.text("UPDATE standings SET states = :all"), {"all": b"\x07" * 4096})
    found = pages(large, 2_000, anchored="anchored", stored="stored")
    stand = facets(asking(large))
    assert found
    assert all({"anchored", "stored"} <= stand[row.id] for row in found)


@pytest.mark.parametrize(
    ("key", "anchored", "stored"),
    [(None, "not anchored", "not stored"),
     ({"key_id": "another"}, "not anchored", "not stored"),
     ({"targets": OWN_TARGETS[:1]}, "anchored", "not stored"),
     ({"targets": OWN_TARGETS[1:]}, "not anchored", "stored"),
     ({"revoked_at": NOW - 1}, "not anchored", "not stored"),
     ({"revoked_at": NOW}, "anchored", "stored"),
     ({"valid_from": NOW + 1}, "not anchored", "not stored"),
     ({"valid_until": NOW - 1}, "not anchored", "not stored")],
)  # fmt: skip
def test_what_a_key_signed_that_was_not_to_be_believed_counts_for_nothing(
    store, key, anchored, stored
):
    fill(store, 3)
    said(store, ANCHORED, range(1, 4))
    said(store, CAPTURED, range(1, 4))
    keyring = make_keyring([] if key is None else [structs.replace(KEY, **key)])
    rows = [*pages(store, 2, keyring=keyring), *store.faces.listed([1, 2, 3], keyring)]
    assert {(row.anchored, row.stored) for row in rows} == {(anchored, stored)}
    fit = pages(store, 2, keyring=keyring, anchored="anchored")
    assert len(fit) == (3 if anchored == "anchored" else 0)


def test_a_withdrawal_by_a_key_that_was_not_to_be_believed_takes_nothing_back(store):
    fill(store, 1)
    number = said(store, ANCHORED, [1])
    said(store, WITHDRAWN, [1], NOW + 10, withdraws=number)
    assert store.faces.listed([1], KEYRING)[0].anchored == "not anchored"
    revoked = make_keyring([structs.replace(KEY, revoked_at=NOW + 5)])
    assert store.faces.listed([1], revoked)[0].anchored == "anchored"


@pytest.mark.parametrize("column", ["event_id", "signature", "chain"])
@pytest.mark.parametrize("spoilt", [1, 2])
def test_of_a_record_with_a_damaged_row_nothing_is_said(store, column, spoilt):
    """Its damaged row may be the one that took the others back."""
    fill(store, 5)
    number = said(store, ANCHORED, [1, 2])
    said(store, CAPTURED, [3])
    said(store, WITHDRAWN, [2], withdraws=number)
    said(store, CAPTURED, [5])
    last = max(event.seq for event in store.faces.recent(None, 9) if event.record_id == spoilt)
    with store._database.writing() as connection:
        changed = sa.update(events).where(events.c.seq == last)
        connection.execute(changed.values({column: b"\1" * (64 if column == "signature" else 32)}))
    (row,) = store.faces.listed([spoilt], KEYRING)
    assert (row.anchored, row.stored) == ("not anchored", "not stored")
    assert last not in {event.seq for event in store.faces.recent(None, 9)}
    assert spoilt not in {row.id for row in pages(store, 2, anchored="anchored")}


def test_one_kind_of_source_is_found_among_all(store):
    store.add([*bare(40), *(sample(number) for number in range(5)), *bare(40, "other")], NOW)
    assert len(pages(store, 3, source="arxiv")) == 5
    assert len(pages(store, 3, source="arxiv", stored="not stored")) == 5
    assert pages(store, 3, source="arxiv", stored="stored") == []
    assert pages(store, 3, source="x' OR 1=1 --") == []
    (first,) = store.faces.page(before=None, limit=1, source="arxiv", keyring=KEYRING).rows
    assert first.name.startswith("pith:20")


@pytest.mark.parametrize("before", [0, 1, -5, 2**40, 2**80])
@pytest.mark.parametrize("word", [None, "not stored"])
def test_any_number_is_a_place_to_go_on_at(large, before, word):
    found = large.faces.page(before=before, limit=10, stored=word, keyring=KEYRING)
    assert len(found.rows) == (10 if before > 1 else 0)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"anchored": "yes"}, {"stored": ""}])
def test_what_no_list_has_is_refused(store, wrong):
    with pytest.raises(RefusedError):
        store.faces.page(**{"before": None, "limit": 10, "keyring": KEYRING, **wrong})


def test_events_are_told_newest_last_and_from_any_place_on(large):
    newest = large.faces.recent(None, 3)
    head = large.ledger.head()[0]
    assert [event.seq for event in newest] == [head - 2, head - 1, head]
    assert newest[-1].event_type == WITHDRAWN
    assert newest[-1].record_id == 139
    assert [event.seq for event in large.faces.recent(10, 2)] == [11, 12]
    assert large.faces.recent(head, 5) == []


def test_records_are_listed_in_the_order_asked_for(large):
    found = large.faces.listed([9, 4_500, 99_999, 1], KEYRING)
    assert [row.id for row in found] == [9, 4_500, 1]
    assert large.faces.listed([], KEYRING) == []


def test_the_history_ends_with_what_is_so_now(store):
    fill(store, 30)
    live_through(store, random.Random(9), 20)
    days = store.faces.history()
    stand = facets(asking(store)).values()
    assert [day.day for day in days] == sorted({day.day for day in days})
    assert days[-1].records == 30
    assert days[-1].anchored == sum("anchored" in names for names in stand)
    assert days[-1].stored == sum("stored" in names for names in stand)
    assert days[-1].complete == sum({"anchored", "stored"} <= names for names in stand)
    assert all(min(day.anchored, day.stored) >= day.complete >= 0 for day in days)


def test_who_cites_is_known_from_the_documents_as_they_come_in(store):
    cited = sample(3)
    event = citation("supports", arxiv=cited.source_id)
    store.add([cited, Document(record=RECORD, raw=bundle_with(RECORD, [event]))], NOW)
    mine, other = row_of(store, cited), row_of(store, RECORD)
    assert store.faces.citing([mine, other]) == {mine.id: [other.id], other.id: []}
    with store._database.writing() as connection:
        citations.rebuild(connection)
    assert store.faces.citing([mine]) == {mine.id: [other.id]}


def row_of(store, record):
    return next(row for rows in store.records.walk() for row in rows if row.digest == record.digest)
