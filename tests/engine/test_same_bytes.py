"""Two mirrors that were fed the same have the same bundles and states, however it came."""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest
from support.crowd import KEYRING, RECORD, VALID, citation
from support.evidence import bundle_with
from support.parties import START, open_store
from support.workplace import Workplace, sample

from anchord.core.model import Document
from anchord.core.number import pith_number
from anchord.core.state import state_bytes
from anchord.core.trust import Keys
from anchord.engine.export import record_bundle

SPACED = json.dumps({"bundle_type": "x", "events": [VALID["graph"]], "seen": [1.0]}, indent=1)


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """What three others say of one record: one anchored it, one cites it, one has an old copy."""
    place = Workplace(tmp_path_factory.mktemp("third"))
    place.anchor(sample(1))
    name = pith_number(RECORD.digest, RECORD.year or "")
    whole = place.run("bundle", name).stdout_bytes
    old = json.loads(whole)
    del old["events"][1:], old["inclusion"]
    old["source_aliases"][0]["created_at"] = "2020-01-01T00:00:00Z"
    claims = json.loads(bundle_with(RECORD, [citation("extends"), VALID["created"]]))
    del claims["source_aliases"]
    return [
        Document(record=RECORD, raw=raw)
        for raw in (whole, json.dumps(old).encode(), json.dumps(claims).encode(), SPACED.encode())
    ]


def published(folder, batches):
    """Return bundle and state of a store into which documents came in batches."""
    folder.mkdir()
    with contextlib.closing(open_store(folder)) as store:
        for number, batch in enumerate(batches):
            store.add(batch, START + 3600 * number)
        (record,) = [one for chunk in store.records.walk() for one in chunk]
        bundle = record_bundle(store, KEYRING, record)
    return bundle, state_bytes(bundle, Keys(KEYRING))


def test_neither_order_nor_batches_nor_repetition_show(documents, tmp_path):
    found = set()
    for number, order in enumerate([*itertools.permutations(documents)][::3]):
        one, two, *rest = order
        batches = ([order], [[one], [two], rest], [[one, two], [one, *rest]])[number % 3]
        found.add(published(tmp_path / str(number), batches))
    ((bundle, _),) = found
    for document in documents[:1]:
        events = json.loads(document.raw)["events"]
        assert all(event in json.loads(bundle)["events"] for event in events)


def test_a_mirror_of_a_mirror_publishes_the_same(documents, tmp_path):
    bundle, state = published(tmp_path / "first", [documents])
    copy = Document(record=RECORD, raw=bundle)
    assert published(tmp_path / "second", [[copy]]) == (bundle, state)
    assert published(tmp_path / "third", [documents[2:], [copy], documents[:1]]) == (bundle, state)


def test_what_only_one_mirror_has_is_all_that_differs(documents, tmp_path):
    whole, _ = published(tmp_path / "first", [documents])
    part, _ = published(tmp_path / "second", [documents[:2]])
    assert whole != part
    both = [Document(record=RECORD, raw=raw) for raw in (part, whole)]
    assert published(tmp_path / "joined", [both])[0] == whole
