"""The log of the service: a line for each thing that happened, for people or as JSON."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from typing import TYPE_CHECKING, Any

from anchord.app.cli.output import printable, utc

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = logging.getLogger("anchord.service")
_LOUD = {"WARNING": "", "ERROR": "ALERT ", "CRITICAL": "ALERT "}


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


class _Text(logging.Formatter):
    """Lines for people; the moment is left to the journal where there is one."""

    def __init__(self, *, with_time: bool) -> None:
        super().__init__()
        self._with_time = with_time

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        moment = f"{utc(int(record.created))} " if self._with_time else ""
        return f"{moment}anchord: {_LOUD.get(record.levelname, '')}{printable(_words(record))}"


class _Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        return json.dumps(
            {
                "at": utc(int(record.created)),
                "level": record.levelname.lower(),
                "event": getattr(record, "event", "note"),
                "message": printable(_words(record)),
                **getattr(record, "facts", {}),
            },
            ensure_ascii=False,
        )


def _words(record: logging.LogRecord) -> str:
    return " ".join(record.getMessage().split())


@contextlib.contextmanager
def logging_as(form: str) -> Iterator[None]:
    """Let everything anchord logs go to stderr as "text" or "json" within the block."""
    logger = logging.getLogger("anchord")
    before, level = logger.handlers[:], logger.level
    handler = logging.StreamHandler(sys.stderr)
    with_time = "JOURNAL_STREAM" not in os.environ
    handler.setFormatter(_Json() if form == "json" else _Text(with_time=with_time))
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers[:] = before
        logger.setLevel(level)
