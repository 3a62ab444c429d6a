"""The log of services: a line for each thing that happened, for people or as JSON.

Never a line for each record: a pass over a million of them is one. structlog's processors make the
lines, of what anchord says and of what its libraries say. Whatever strangers wrote (a record's
label, a service's words) is cleaned in one place, so that it can end no line, begin none, move no
cursor, and take the place of no key.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from structlog.processors import JSONRenderer
from structlog.stdlib import ProcessorFormatter

from anchord.app.cli.output import printable, utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from structlog.typing import EventDict, Processor, WrappedLogger

LOG = logging.getLogger("anchord.service")
_LOUD = {"warning": "", "error": "ALERT ", "critical": "ALERT "}
_LONGEST = 2_000
"""Characters of one text; services are not believed to be brief."""
_WIDEST = 64
"""Bits of a number; readers of JSON take no more."""
_DEEPEST = 4
_MOST = 200
"""Members of one list or object."""


def tell(level: int, event: str, words: str, **fields: Any) -> None:
    """Log one thing that happened.

    Args:
        level: of the logging library; ERROR and above are shown as ALERT.
        event: what kind of thing, for machines.
        words: one sentence for people.
        fields: facts for machines; what is 0, empty or None is left out.
    """
    kept = {key: value for key, value in fields.items() if value not in (0, None, {}, [], "")}
    LOG.log(level, words, extra={"event": event, "facts": kept})


@contextlib.contextmanager
def logging_as(form: str, **always: Any) -> Iterator[None]:
    """Let everything anchord logs go to stderr as "text" or "json" within the block.

    Args:
        form: "text" or "json".
        always: facts that stand in every JSON line, e.g. which worker it is.
    """
    logger = logging.getLogger("anchord")
    before, level = logger.handlers[:], logger.level
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form, always))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers[:] = before
        logger.setLevel(level)


def formatter(form: str, always: Mapping[str, Any] | None = None) -> logging.Formatter:
    """Return what makes lines of one form."""
    facts = dict(always or {})

    def gathered(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
        return _gathered(line["_record"], line["event"], facts)

    # The moment is left to the journal where there is one.
    people = _with_time if "JOURNAL_STREAM" not in os.environ else _without_time
    render: Processor = JSONRenderer(ensure_ascii=False) if form == "json" else people
    return ProcessorFormatter(processors=[gathered, render])


def _gathered(record: logging.LogRecord, words: str, always: Mapping[str, Any]) -> EventDict:
    """Return a record of the logging library as the facts of a line; ours cannot be replaced."""
    line = {
        "at": utc(int(record.created)),
        "level": record.levelname.lower(),
        "event": _clean(getattr(record, "event", "note")),
        "message": _clean(" ".join(words.split())),
    }
    facts: Mapping[str, Any] = _clean({**getattr(record, "facts", {}), **always})
    return {**line, **{key: value for key, value in facts.items() if key not in line}}


def _clean(value: Any, depth: int = 0) -> Any:
    """Return a value in which every text is short and printable."""
    if isinstance(value, int) and value.bit_length() > _WIDEST:
        return _text(hex(value))  # in decimal, thousands of digits are refused
    if value is None or isinstance(value, int) or (isinstance(value, float) and isfinite(value)):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        some = list(value.items())[:_MOST]
        return {_text(key): _clean(inner, depth + 1) for key, inner in some}
    if depth < _DEEPEST and isinstance(value, list | tuple):
        return [_clean(inner, depth + 1) for inner in value[:_MOST]]
    return _text(value)


def _text(value: object) -> str:
    text = str(value)
    return printable(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}\N{HORIZONTAL ELLIPSIS}")


def _with_time(_logger: WrappedLogger, _method: str, line: EventDict) -> str:
    return f"{line['at']} {_words(line)}"


def _without_time(_logger: WrappedLogger, _method: str, line: EventDict) -> str:
    return _words(line)


def _words(line: EventDict) -> str:
    return f"anchord: {_LOUD.get(line['level'], '')}{line['message']}"
