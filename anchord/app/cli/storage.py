"""The facet `stored` for `anchord status`: counts, lanes, alerts, what is missing, what is next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from anchord.app.archive_rate import SAMPLE, backlog_words, day_rate, rate_document
from anchord.app.cli.output import utc
from anchord.app.cli.storage_words import code_words, lane_lines, lane_words
from anchord.core.pacing import used_on
from anchord.core.storage import CaptureState, FileState, StoredWhen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anchord.app.wiring import App
    from anchord.core.storage import Lane, StoredCounts

_SHOWN = 10
_NOTES = frozenset({"claims", "marks"})
"""Rows that remember something; nothing goes by them."""


def describe(app: App) -> dict[str, Any]:
    """Return how the facet stands, with stable keys; cheap at any number of records."""
    tables, now = app.store.storage, app.clock.now()
    counts = tables.counts()
    lanes = tables.lanes.all()
    return {
        "when": app.config.archive.stored_when.value,
        "records": records_stored(app.config.archive.stored_when, counts),
        "captures": {state.value: counts.captures.get(state, 0) for state in CaptureState},
        "extra_captures": {state.value: counts.extras.get(state, 0) for state in CaptureState},
        "unclaimed": counts.unclaimed,
        "without_page": _without_page(app, counts),
        "bundles": {state.value: counts.files.get(state, 0) for state in FileState},
        "unpacked": counts.unpacked,
        "lanes": [_lane(lane, now) for lane in lanes if lane.name not in _NOTES],
        "alerts": alerts(lanes),
        "missing": app.archive_gaps(),
        "parked": _parked(app),
        "rate": _rate(app, counts, lanes),
        "next_attempt_at": utc(next_moment(app, lanes)),
    }


def records_stored(when: StoredWhen, counts: StoredCounts) -> dict[str, int]:
    """Return how many records have earned the word, and by what."""
    earned = {
        StoredWhen.CAPTURE: counts.by_capture,
        StoredWhen.ITEM: counts.by_item,
        StoredWhen.BOTH: counts.by_both,
        StoredWhen.EITHER: counts.by_capture + counts.by_item - counts.by_both,
    }
    return {
        "stored": earned[when],
        "by_capture": counts.by_capture,
        "by_item": counts.by_item,
        "by_both": counts.by_both,
    }


_CAPTURES_BY: dict[tuple[str, ...], tuple[CaptureState, ...]] = {
    ("spn", "status"): (CaptureState.WAITING,),
    ("status",): (CaptureState.SENDING, CaptureState.SUBMITTED),
    ("index",): (CaptureState.LOOKING, CaptureState.REPORTED, CaptureState.STORED),
    ("replay",): (CaptureState.INDEXED,),
}
"""The lanes a capture in a state goes on by; a submit needs the account's word on a free slot."""
_FILES_BY: dict[tuple[str, ...], tuple[FileState, ...]] = {
    ("items",): (FileState.PACKED, FileState.SENDING),
    ("metadata",): (FileState.SENT, FileState.STORED),
}


def next_moment(app: App, lanes: list[Lane]) -> int | None:
    """Return when a capture or a file is due next, as far as its lanes are open then."""
    tables = app.store.storage
    due = [(by, tables.captures.next_moment(states)) for by, states in _CAPTURES_BY.items()]
    due += [(by, tables.items.next_moment(states)) for by, states in _FILES_BY.items()]
    stopped = {lane.name for lane in lanes if lane.stopped}
    until = {lane.name: lane.until or 0 for lane in lanes}
    return min(
        (
            max(moment, *(until.get(name, 0) for name in by))
            for by, moment in due
            if moment is not None and stopped.isdisjoint(by)
        ),
        default=None,
    )


def _lane(lane: Lane, now: int) -> dict[str, Any]:
    paused = lane.until if lane.until is not None and lane.until > now else None
    waits = lane.stopped or paused is not None
    return {
        "lane": lane.name,
        "where": lane_words(lane.name),
        "stopped": lane.stopped,
        "paused_until": utc(paused),
        "used_today": used_on(lane, now),
        "code": lane.code if waits else None,
        "note": lane.note if waits else None,
    }


def stuck(app: App) -> bool:
    """Tell whether all that is on its way to the archive stands before a stopped lane."""
    tables = app.store.storage
    stopped = {lane.name for lane in tables.lanes.all() if lane.stopped}
    if not stopped:
        return False
    going = [
        tables.captures.next_moment([one for one in states if one is not CaptureState.STORED])
        for by, states in _CAPTURES_BY.items()
        if stopped.isdisjoint(by)
    ]
    going += [
        tables.items.next_moment([one for one in states if one is not FileState.STORED])
        for by, states in (*_FILES_BY.items(), ((), (FileState.GONE,)))
        if stopped.isdisjoint(by)
    ]
    return all(moment is None for moment in going)


def _without_page(app: App, counts: StoredCounts) -> int | None:
    """Return how many records have no page to capture; None while some were not looked at."""
    if counts.unclaimed:
        return None
    return max(sum(app.store.counts.by_state().values()) - sum(counts.captures.values()), 0)


def alerts(lanes: list[Lane]) -> list[str]:
    """Return what a person must know of; what several lanes say is told once."""
    return list(dict.fromkeys(_alert(lane) for lane in lanes if lane.alert or lane.stopped))


def _alert(lane: Lane) -> str:
    return lane.alert or f"{lane_words(lane.name)}: {code_words(lane.code, lane.note)}"


def _parked(app: App) -> list[dict[str, Any]]:
    tables = app.store.storage
    found: list[dict[str, Any]] = [
        {"what": "capture", "name": one.url, "code": one.code, "reason": one.note}
        for one in tables.captures.in_state((CaptureState.PARKED,), _SHOWN)
    ]
    found += [
        {"what": "file", "name": f"{one.identifier}/{one.name}", "code": one.code,
         "reason": one.note}
        for one in tables.items.in_state((FileState.PARKED,), _SHOWN)
    ]  # fmt: skip
    return found


def _rate(app: App, counts: StoredCounts, lanes: list[Lane]) -> dict[str, Any]:
    """Return what a day brings, by what the account last said of itself."""
    seen = next((lane.seen for lane in lanes if lane.name == "spn" and lane.seen), b"{}")
    account = json.loads(seen).get("account") or {}
    rate = day_rate(
        app.config.archive.captures,
        slots=None,
        daily_limit=account.get("daily_captures_limit"),
        made=app.store.storage.captures.in_state((CaptureState.STORED,), SAMPLE),
    )
    return rate_document(rate, counts, unsealed=app.store.records.waiting()[0])


# ---------------------------------------------------------------------- for people


def alert_lines(document: dict[str, Any]) -> list[str]:
    """Return what a person must act on, to be shown first."""
    lines = [f"ALERT {alert}" for alert in document["alerts"]]
    if any(lane["stopped"] for lane in document["lanes"]):
        lines.append("      mend it first, then: anchord retry --archive")
    return lines


def lines(document: dict[str, Any], now: str) -> Iterator[str]:
    """Yield the facet for people."""
    records = document["records"]
    policy = {"either": "capture or item", "capture": "a capture", "item": "an item",
              "both": "capture and item"}[document["when"]]  # fmt: skip
    yield "Internet Archive"
    yield f"{records['stored']:>12,} stored ({policy})"
    if document["without_page"] and document["when"] in ("capture", "both"):
        yield f"{document['without_page']:>12,} without a page to capture, so never stored"
    yield from _rows(document["captures"], "capture(s)", "captures")
    yield from _rows(document["extra_captures"], "extra capture(s)", "captures")
    yield from _rows(document["bundles"], "bundle(s)", "bundles")
    yield from document["missing"]
    for lane in document["lanes"]:
        if lane["used_today"] or lane["stopped"] or lane["paused_until"]:
            yield from lane_lines(lane)
    if not any(one.startswith(("nothing", "no page")) for one in document["missing"]):
        yield from _rate_lines(document["rate"])
    if document["next_attempt_at"]:
        overdue = document["next_attempt_at"] <= now
        yield f"next            {'next pass' if overdue else document['next_attempt_at']}"
    for one in document["parked"]:
        yield f"parked: {one['what']} {one['name']}"
        yield f"      {code_words(one['code'], one['reason'])}"
    if document["parked"]:
        yield "      bring them back with `anchord retry --archive`"


def _rows(states: dict[str, int], unit: str, kind: str) -> Iterator[str]:
    words = STATE_WORDS[kind]
    for state, count in states.items():
        if count:
            yield f"{count:>12,} {unit} {words[state]}"


STATE_WORDS = {
    "captures": {
        "waiting": "wait to be made",
        "sending": "being handed in",
        "submitted": "running",
        "looking": "looked for in the index",
        "reported": "reported, not in the index yet",
        "indexed": "in the index, not replayed yet",
        "stored": "stored",
        "parked": "parked",
    },
    "bundles": {
        "packed": "packed, not uploaded",
        "sending": "being uploaded",
        "sent": "uploaded, not seen in the item yet",
        "stored": "stored",
        "parked": "parked",
        "gone": "lost, packed again",
    },
}


def _rate_lines(rate: dict[str, Any]) -> Iterator[str]:
    if not rate["backlog"]:
        return
    per_day, bound = f"{rate['captures_per_day']:,}", rate["bound_by"]
    yield f"day rate        {per_day} captures a day, bound by {bound}"
    yield f"backlog         {backlog_words(rate)}"
