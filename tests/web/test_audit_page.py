"""The newest audit, shown as the operator's own command wrote it."""

from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.asking import Asked
from support.workplace import Workplace, sample

from anchord.app.report import json_document
from anchord.app.report.reading import read_document
from anchord.errors import RefusedError


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    made = Workplace(tmp_path_factory.mktemp("place"))
    made.anchor(sample(1), sample(2))
    made.add(sample(3))
    done = made.run(
        "audit", "-q", "-o", str(made.folder / "audit.json"), "--fail-under", "anchored=100"
    )
    assert done.exit_code == 1, done.output
    return made


@pytest.fixture(scope="module")
def raw(place: Workplace) -> bytes:
    return (place.folder / "audit.json").read_bytes()


def page(place: Workplace, name: str) -> tuple[int, str]:
    with Asked(place.config, audit_report=name) as asked:
        answer = asked.ask("/audit")
        return answer.status, html.unescape(answer.body.decode())


def test_a_report_that_is_read_back_is_the_one_that_was_written(raw):
    assert json_document.render(read_document(raw)).encode() == raw


def test_the_page_says_what_the_report_says(place, raw):
    status, text = page(place, "audit.json")
    assert status == 200
    report = json.loads(raw)
    for reason in report["reasons"]:
        assert reason in text
    for finding in report["findings"]:
        assert finding["code"] in text
        assert finding["todo"] in text
    assert "fail-under anchored=100" in text
    assert "missed" in text
    assert report["checkpoint"].split("\n")[0] in text
    with Asked(place.config, audit_report="audit.json") as asked:
        shown = json.loads(asked.ask("/audit.json").body)
    whole = json.loads(raw)
    assert str(place.folder) in whole["source"]
    assert shown == {**whole, "source": "anchord.db"}


def test_where_the_store_lies_on_the_operators_machine_is_not_shown(place):
    status, text = page(place, "audit.json")
    assert (status, str(place.folder) in text) == (200, False)


def test_a_newer_report_takes_the_place_of_the_one_before(place, raw, tmp_path):
    file = tmp_path / "audit.json"
    file.write_bytes(raw)
    with Asked(place.config, audit_report=str(file)) as asked:
        assert asked.ask("/audit").status == 200
        newer = json.loads(raw)
        newer["source"] = "another store <script>alert(1)<script>\u202e"
        other = tmp_path / "new.json"
        other.write_text(json.dumps(newer), "utf-8")
        other.replace(file)
        text = asked.ask("/audit").body.decode()
        assert "another store &lt;script&gt;" in text
        assert "\u202e" not in text


def test_no_report_a_lost_one_and_a_damaged_one_are_told_of(place, raw, tmp_path):
    assert page(place, "")[0] == 200
    status, text = page(place, "nowhere.json")
    assert (status, "not there yet" in text) == (404, True)
    broken = tmp_path / "broken.json"
    broken.write_bytes(raw[:-20])
    status, text = page(place, str(broken))
    assert (status, "cannot be shown" in text) == (503, True)
    with Asked(place.config) as asked:
        assert asked.ask("/audit.json").status == 404


@given(st.data())
def test_a_damaged_report_is_refused_or_still_a_report(raw, data):
    start = data.draw(st.integers(0, len(raw)))
    stop = data.draw(st.integers(start, min(start + 40, len(raw))))
    damaged = raw[:start] + data.draw(st.binary(max_size=20)) + raw[stop:]
    try:
        found = read_document(damaged)
    except RefusedError:
        return
    json_document.render(found)
