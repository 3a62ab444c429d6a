"""The log of services: whatever anybody wrote, a line is one line, and says who says it."""

from __future__ import annotations

import json
import logging
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.app.service.logs import formatter, logging_as, tell

NASTY = st.text(
    st.sampled_from(list('a \n\r\x00\x1b\x85\u2028\u2029\u202e\udcff"\\{}%s\x7f')), max_size=30
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | NASTY | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
    max_leaves=8,
)
OURS = ("at", "level", "event", "message")


def line_of(form: str, words: str, event: str = "pass", **facts: object) -> str:
    record = logging.LogRecord("anchord.x", logging.INFO, "f", 1, words, None, None)
    record.event, record.facts = event, facts
    return formatter(form).format(record)


@given(NASTY, NASTY, st.dictionaries(NASTY, VALUES, max_size=3))
def test_nothing_in_a_line_can_end_it_begin_another_or_move_a_cursor(words, event, facts):
    for form in ("text", "json"):
        line = line_of(form, words, event, **{f"x{key}": value for key, value in facts.items()})
        assert line.isprintable()
        assert len(line.splitlines()) == 1
        line.encode("utf-8")


@given(NASTY, st.dictionaries(NASTY, VALUES, max_size=3))
def test_a_line_for_machines_is_strict_json_with_our_keys_first(words, facts):
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    given_facts = {f"x{key}": value for key, value in facts.items()}
    value = json.loads(line_of("json", words, **given_facts), parse_constant=refuse)
    assert tuple(value)[:4] == OURS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", value["at"])


@given(st.sampled_from(OURS), NASTY)
def test_no_fact_takes_the_place_of_what_we_say(key, text):
    value = json.loads(line_of("json", "our words", **({} if key == "event" else {key: text})))
    assert (value["event"], value["level"], value["message"]) == ("pass", "info", "our words")
    assert value["at"] != text


def test_a_line_is_bounded_whatever_it_is_given():
    endless: list[object] = []
    for _ in range(50):
        endless = [endless]
    facts = {"text": "x" * 10**6, "many": list(range(10**5)), "deep": endless, "wide": 10**5_000}
    assert len(line_of("json", "y" * 10**6, **facts)) < 20_000


@pytest.mark.parametrize("form", ["text", "json"])
def test_what_libraries_say_is_a_line_like_ours(form, capsys):
    with logging_as(form):
        logging.getLogger("anchord.adapters.x").warning("met %s\n%d", "a\nb", 3)
    (line,) = capsys.readouterr().err.splitlines()
    if form == "json":
        value = json.loads(line)
        assert (value["event"], value["level"], value["message"]) == (
            "note",
            "warning",
            "met a b 3",
        )
    else:
        assert line.endswith("anchord: met a b 3")


def test_a_worker_is_named_in_every_line(capsys):
    with logging_as("json", worker="one"):
        tell(logging.INFO, "pass", "well", count=3)
        logging.getLogger("anchord.y").error("ill")
    values = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [value["worker"] for value in values] == ["one", "one"]
    assert values[0]["count"] == 3


def test_a_fault_in_a_library_shows_no_traceback_to_people(capsys):
    with logging_as("text"):
        try:
            int("broken")
        except ValueError:
            logging.getLogger("anchord.z").exception("a fault")
    text = capsys.readouterr().err
    assert text.splitlines()[0].endswith("anchord: ALERT a fault")
    assert "Traceback" not in text


def test_logging_is_as_it_was_after_the_block():
    logger = logging.getLogger("anchord")
    before = (logger.handlers[:], logger.level)
    with logging_as("json"):
        assert logger.handlers != before[0]
        assert logger.handlers[0].stream is sys.stderr
    assert (logger.handlers[:], logger.level) == before
