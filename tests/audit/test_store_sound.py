"""A sound store is found sound, whatever is in it; and what was not covered is said."""

from __future__ import annotations

import pytest
from support.audited import audit, broken, database, reorganised_place, whole_place
from support.parties import FakeSigner
from support.workplace import Workplace, sample

from anchord.core.finding import Severity
from anchord.core.keyring import make_keyring


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Workplace:
    return whole_place(tmp_path_factory.mktemp("whole"))


def test_a_store_with_one_of_everything_is_sound(place):
    report = audit(place)
    assert broken(report) == {}
    assert (report.result, report.reasons) == ("sound", ())
    assert report.completeness.records == report.coverage.records == 5
    assert report.completeness.anchored == {"anchored": 5}
    assert report.completeness.stored == {"not stored": 3, "stored": 2}
    assert report.coverage.signatures == report.coverage.events > 10
    assert report.coverage.checkpoints >= 2
    assert report.checkpoint
    assert report.chain == "bitcoin-regtest"
    assert [f.code for f in report.findings if f.severity is Severity.NOTE] == ["not-covered"]


def test_a_reorganisation_that_was_withdrawn_and_anchored_again_is_sound(tmp_path):
    place = reorganised_place(tmp_path)
    report = audit(place)
    assert broken(report) == {}
    assert report.completeness.anchored == {"anchored": 2}


def test_without_headers_nothing_is_anchored_and_the_result_says_so(place):
    empty = place.chain.__class__(height=0)
    report = audit(place, chain=empty)
    assert report.result == "not proved"
    assert report.completeness.anchored == {"submitted": 5}
    assert report.coverage.headers_missing == 3


def test_without_the_key_nothing_is_believed(place):
    other = FakeSigner("other-2024")
    report = audit(place, keys=make_keyring([other.public()]))
    assert set(broken(report)) >= {"key-unknown", "checkpoint-signature-wrong"}
    assert "anchored" not in report.completeness.anchored
    given = audit(place, keys=make_keyring([]), given=list(_keys(place)))
    assert given.result == "sound"


def _keys(place):
    with place.app() as app:
        return [key for key in app.keyring if key.own]


def test_an_audit_changes_neither_the_file_nor_the_folder(place):
    def seen():
        return {
            file.name: file.read_bytes()
            for file in sorted(place.folder.iterdir())
            if file.is_file() and file.name.startswith("anchord.db")
        }

    before = seen()
    audit(place, jobs=1)
    assert seen() == before
    assert database(place).name in before


def test_a_sample_verifies_so_many_and_counts_all(place):
    report = audit(place, sample=2, seed=7)
    assert (report.coverage.records, report.coverage.records_counted) == (2, 5)
    assert report.completeness.anchored == {"anchored": 5}
    assert "2 records drawn with seed 7" in (report.sampled or "")
    assert report == audit(place, sample=2, seed=7)


def test_since_a_checkpoint_only_what_is_new_is_verified(tmp_path):
    place = whole_place(tmp_path)
    first = audit(place)
    assert first.checkpoint is not None
    again = audit(place, since=first.checkpoint.encode())
    assert (again.coverage.records, again.coverage.signatures) == (0, 0)
    assert again.completeness == first.completeness
    place.anchor(sample(20), sample(21))
    later = audit(place, since=first.checkpoint.encode())
    assert broken(later) == {}
    assert later.result == "sound"
    assert later.coverage.records == 2
    assert later.completeness == audit(place).completeness
    assert "checkpoint given" in (later.sampled or "")
