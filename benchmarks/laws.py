"""What a simulated day must meet, told from the stand-in's counts, its mementos and the ledger.

The ledger is read as an auditor would: by the events, not by the rows that drive the work.
"""

from __future__ import annotations

import hashlib
import json
import resource
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.event import CAPTURED, WITHDRAWN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from anchord.app.wiring import App
    from anchord.sandbox.wayback.report import Memento, Report
    from anchord.sandbox.wayback.rules import Rules

_ENOUGH = 0.95
"""Share of the submits that the limits allow, which must have been used while work waited."""
_SEEN_S = 2
"""Seconds of a free slot, a capture, at most: how often the account is asked while work waits."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one day came to."""

    name: str
    figures: dict[str, Any]
    laws: dict[str, bool]

    @property
    def broken(self) -> list[str]:
        """The laws that were not met."""
        return [law for law, held in self.laws.items() if not held]

    def lines(self, weather: str, took_s: float) -> Iterator[str]:
        """Yield the report for people."""
        yield f"\n{self.name}, {weather} weather  ({took_s:.0f} s of real time)"
        for name, value in self.figures.items():
            shown = f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(
                value, int) else str(value)  # fmt: skip
            yield f"  {name:<44}{shown:>16}"
        for law, held in self.laws.items():
            yield f"  {'holds ' if held else 'BROKEN'}  {law}"


def judge(
    app: App,
    report: Report,
    mementos: Sequence[Memento],
    *,
    name: str,
    seconds: float,
    records: int,
    passes: int,
    foul: bool,
    over: bool,
    rules: Rules,
) -> Found:
    """Return the figures of a day and whether its laws hold."""
    counts = app.store.storage.counts()
    live, withdrawn, doubled = _ledger(app)
    replaying = {
        (one.url, one.timestamp): hashlib.sha256(one.body).hexdigest()
        for one in mementos
        if one.replays and one.status == 200
    }
    false = [
        payload
        for payload in live
        if replaying.get((payload["final_url"], _digits(payload["captured_at"])))
        != payload["sha256"]
    ]
    states = counts.captures
    known = sum(states.values())
    waiting = known - states.get("stored", 0) - states.get("parked", 0)
    lost = records - counts.unclaimed - known
    allowed = _allowed(report, seconds, rules)
    used = report.accepted + report.duplicates + report.old_outcomes
    requests = {
        "submits": report.submits, "status": report.status_reads, "user": report.user_reads,
        "index": report.cdx_reads, "replay": report.replay_reads,
    }  # fmt: skip
    figures: dict[str, Any] = {
        "records": records,
        "hours": seconds / 3600,
        "passes": passes,
        "captures by state": ", ".join(f"{count:,} {state}" for state, count in states.items()),
        "submits used": used,
        **({} if over else {
            "submits the limits allow": allowed,
            "share of the allowed submits": used / max(allowed, 1),
            "idle slot seconds a capture": report.idle_slot_seconds / max(report.accepted, 1),
        }),
        "captures made by the archive": report.captures_made,
        "events live": len(live),
        "events withdrawn": withdrawn,
        "mementos that vanished": report.vanished,
        "live events whose memento is gone now": len(false),
        "429 earned by our pace": report.rate_429,
        "most submits in a minute": report.max_submits_in_a_minute,
        "session limits hit": report.session_limit_refusals,
        "firewall events": report.firewall_events,
        "URLs captured twice": report.captured_twice,
        "refused": json.dumps(report.refused),
        **{f"requests a capture: {name}": n / max(report.captures_made, 1)
           for name, n in requests.items()},
        "peak MiB of this process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }  # fmt: skip
    laws = {
        "no 429 earned by our own pace": report.rate_429 == 0,
        f"never more than {rules.submits_per_minute} submits in a minute":
            report.max_submits_in_a_minute <= rules.submits_per_minute,
        "no firewall event": report.firewall_events == 0,
        "no URL captured twice": report.captured_twice == 0 and report.live_twice == 0,
        "no capture has two live events": doubled == 0,
        "no record is lost": lost == 0,
    }  # fmt: skip
    if not foul:
        laws |= {
            "every stored event replays": not false,
            "no memento was signed for and withdrawn": withdrawn == 0,
            "every event has its capture": len(live) == states.get("stored", 0),
        }
        if not over and (waiting or counts.unclaimed):
            laws[f"at least {_ENOUGH:.0%} of the allowed submits are used"] = (
                used >= _ENOUGH * allowed
            )
            laws["no slot idles longer than the two seconds it takes to see that it is free"] = (
                report.idle_slot_seconds <= _SEEN_S * report.accepted
            )
    elif over:
        laws["every live event replays, after those that vanished were looked for"] = not false
    if over:
        laws["every record is stored"] = states.get("stored", 0) == records
    return Found(name=name, figures=figures, laws=laws)


def _allowed(report: Report, seconds: float, rules: Rules) -> int:
    """Return how many submits pace and slots allow in that time, at the durations drawn."""
    pace = rules.submits_per_minute * seconds / 60
    held = [duration + sum(rules.slot_lag_s) / 2 for duration in report.durations]
    slots = rules.slots * seconds / (sum(held) / len(held)) if held else pace
    days = rules.daily_captures * max(seconds / 86_400, 1)
    return int(min(pace, slots, days))


def _ledger(app: App) -> tuple[list[dict[str, Any]], int, int]:
    """Return the payloads of live captures, the number withdrawn, and of doubles."""
    series, live, withdrawn = app.store.ledger.get_series, {}, 0
    for chunk in app.store.ledger.walk():
        for row in chunk:
            found = series(row.series_id)
            if found.event_type == CAPTURED:
                live[found.id, row.record_id] = json.loads(found.payload)
            elif found.event_type == WITHDRAWN:
                withdrawn += live.pop((found.withdraws, row.record_id), None) is not None
    places = [(record_id, payload["original_url"]) for (_, record_id), payload in live.items()]
    return list(live.values()), withdrawn, len(places) - len(set(places))


def _digits(moment: str) -> str:
    return "".join(digit for digit in moment if digit.isdigit())
