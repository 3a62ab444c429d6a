"""What the archive says in a shape nobody knows is logged: short, on one line, without keys."""

from __future__ import annotations

import logging

import pytest
from support.http_server import Asked, ScriptedServer, reply

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.unknown import log_unknown
from anchord.adapters.archives.wayback import Wayback
from anchord.core.storage import Refused

UNKNOWN = Refused(code="unknown-answer", message="?")
KNOWN = Refused(code="http-429", message="slow down")


@pytest.mark.parametrize("told", [UNKNOWN, {"a": KNOWN, "b": UNKNOWN}])
def test_an_unknown_answer_is_logged_once_short_and_on_one_line(
    told: object, caplog: pytest.LogCaptureFixture
) -> None:
    log_unknown("somebody", told, 200, "text/html", b"line\nline\x1b[31m" + b"x" * 10_000)
    (record,) = caplog.records
    text = record.getMessage()
    assert record.levelno == logging.WARNING
    assert text.isprintable()
    assert "line line" in text
    assert len(text) < 2_300


@pytest.mark.parametrize("told", [KNOWN, None, {"a": KNOWN}, {}])
def test_what_is_understood_is_not_logged(told: object, caplog: pytest.LogCaptureFixture) -> None:
    log_unknown("somebody", told, 200, "text/html", b"x")
    assert caplog.records == []


def test_keys_that_an_unknown_answer_echoes_are_not_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def echo(asked: Asked) -> list[bytes]:
        return [reply(asked.headers["authorization"].encode(), headers="Content-Type: text/x\r\n")]

    keys = Keys("DISTINCTIVEACCESS", "DISTINCTIVESECRET")
    with ScriptedServer(echo) as server:
        archive = Wayback(server.url, keys, contact="https://example.org/")
        told = archive.submit("https://example.org/a", within_s=60, plain=False)
    assert isinstance(told, Refused)
    assert told.code == "unknown-answer"
    (record,) = caplog.records
    assert "LOW ***:***" in record.getMessage()
    assert "DISTINCTIVE" not in record.getMessage()
