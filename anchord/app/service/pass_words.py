"""What a pass did, on one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.cli.storage_words import report_lines

if TYPE_CHECKING:
    from anchord.engine.run import PassReport

_WORDS = {
    "sealed": "record(s) sealed into a new batch",
    "submitted": "answer(s) from calendars",
    "upgraded": "path(s) to Bitcoin",
    "anchored": "batch(es) anchored",
    "signed": "event(s) signed",
    "failed_calls": "call(s) failed and will be repeated",
}


def words_of(report: PassReport) -> str:
    """Return what was done and what failed; empty when nothing was."""
    document = msgspec.to_builtins(report)
    words = received_words(report)
    words += (f"{document[key]:,} {text}" for key, text in _WORDS.items() if document[key])
    words += (line.strip() for line in report_lines(document["stored"]))
    return ", ".join([*words, *delivered_words(report)])


def received_words(report: PassReport) -> list[str]:
    """Return what came from sources, and what of it was refused."""
    came = report.received
    if came is None:
        return []
    counts = ((came.new, "new record(s) from sources"), (came.adopted, "proof(s) adopted"))
    words = [f"{count:,} {text}" for count, text in counts if count]
    return [*words, f"{came.refused:,} refused: `anchord sources`"] if came.refused else words


def delivered_words(report: PassReport) -> list[str]:
    """Return what outlets were handed, and what they refused."""
    done = report.delivered
    if done is None:
        return []
    words = [f"{done.events:,} event(s) handed over"] if done.events else []
    refused = f"{done.set_aside:,} event(s) refused and set aside: `anchord outlets`"
    return [*words, refused] if done.set_aside else words


def facts(report: PassReport) -> dict[str, Any]:
    """Return the same for machines, with the names of `run-once --json`; zeros are left out."""
    document: dict[str, Any] = _kept(msgspec.to_builtins(report))
    return document


def _kept(value: dict[str, Any]) -> dict[str, Any]:
    inner = {key: _kept(one) if isinstance(one, dict) else one for key, one in value.items()}
    return {key: one for key, one in inner.items() if one}
