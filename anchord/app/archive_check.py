"""Asking the Internet Archive, once, whether it would take what we have; nothing is changed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from anchord.app import archive_wiring
from anchord.app.archive_rate import SAMPLE, day_rate, rate_document
from anchord.core import capture_rules, item_rules
from anchord.core.item_name import identifier
from anchord.core.pacing import DAY_S, day_of
from anchord.core.storage import CaptureState, Refused
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.adapters.archives.credentials import Keys
    from anchord.adapters.archives.item import ArchiveOrg
    from anchord.adapters.archives.wayback import Wayback
    from anchord.app.wiring import App
    from anchord.core.wayback import AccountStatus

_WELL_KNOWN = "https://archive.org/"
"""What is looked up while there is no page of ours."""
_SUSTAINED = 10
"""Refusals in a row after which every rule that ever stops a lane does."""

_KNOWN_ELSEWHERE = (
    "; the upload service knows the account, and Save Page Now says this under load too: check "
    "again in some minutes before anything else"
)
"""https://github.com/overcast07/wayback-machine-spn-scripts/issues/27."""

Check = dict[str, Any]


def inspect(app: App) -> dict[str, Any]:
    """Ask, and return what was said, with stable keys."""
    missing = app.archive_gaps()
    found: dict[str, Any] = {
        "missing": missing,
        "stopped": [one.name for one in app.store.storage.lanes.all() if one.stopped],
        "blocked": any(not one.startswith(archive_wiring.CHOSEN) for one in missing),
        "account": None,
        "slots": None,
        "uploads": None,
        "checks": [],
        "rate": None,
    }
    with contextlib.suppress(ConfigError):  # it stands among what is missing
        keys = archive_wiring.may_send(app.loaded)
        if keys is not None:
            _ask(app, keys, found)
    return found


def _ask(app: App, keys: Keys, found: dict[str, Any]) -> None:
    with contextlib.closing(archive_wiring.item_archive(app.loaded, keys)) as items:
        found["checks"].append(_keys(items, app, found))
        if archive_wiring.items_on(app.config.archive):
            found["checks"].append(_uploads(items, app, found))
    if archive_wiring.captures_on(app.config.archive):
        wayback = archive_wiring.capture_archive(app.loaded, keys)
        captures = _captures(wayback, app, found)
        if captures["outcome"] == "refused" and found["account"] is not None:
            captures["detail"] += _KNOWN_ELSEWHERE
        found["checks"] += [captures, _service(wayback), _index(wayback, app)]


def _keys(items: ArchiveOrg, app: App, found: dict[str, Any]) -> Check:
    said = items.account()
    if isinstance(said, Refused):
        return _refused_item("keys", said, app.clock.now())
    found["account"] = said.name
    return _check("keys", "ok", f"of the account {said.name}")


def _uploads(items: ArchiveOrg, app: App, found: dict[str, Any]) -> Check:
    now = app.clock.now()
    name = identifier(app.config.archive.items.prefix, day_of(now), 1)
    said = items.headroom(name)
    if isinstance(said, Refused):
        return _refused_item("uploads", said, now)
    found["uploads"] = {
        "item": name,
        "over_limit": said.over_limit,
        "account_left": said.account_left,
        "item_left": said.item_left,
    }
    if said.over_limit:
        return _check("uploads", "temporary", said.message or "the service is at its limit")
    left = "unknown" if said.account_left is None else f"{said.account_left:,}"
    return _check("uploads", "ok", f"{name} can be filled; tasks left: {left}")


def _captures(wayback: Wayback, app: App, found: dict[str, Any]) -> Check:
    said = wayback.account()
    if isinstance(said, Refused):
        found["rate"] = _rate(app, None)
        return _refused_capture("captures", said, app.clock.now())
    found["slots"] = {
        "available": said.available,
        "processing": said.processing,
        "daily_captures": said.daily_captures,
        "daily_captures_limit": said.daily_captures_limit,
    }
    found["rate"] = _rate(app, said)
    made, limit = said.daily_captures, said.daily_captures_limit
    day = "" if made is None or limit is None else f"; {made:,} of {limit:,} made today"
    share = app.config.archive.captures.daily_share
    if made is not None and limit is not None and made >= limit * share:
        return _check("captures", "temporary", f"the day's share is used up{day}")
    return _check("captures", "ok", f"{said.available} slot(s) free{day}")


def _service(wayback: Wayback) -> Check:
    said = wayback.system()
    if isinstance(said, Refused):
        return _refused_capture("service", said, 0)
    return _check("service", "ok" if said.ok else "temporary", said.message or "well")


def _index(wayback: Wayback, app: App) -> Check:
    """Look up one page of ours, or a well-known one, within the last day or two."""
    rows = app.store.storage.captures.in_state(tuple(CaptureState), 1)
    url = rows[0].url if rows else _WELL_KNOWN
    today = day_of(app.clock.now())
    said = wayback.index(url, first=_digits(today - 1), last=_digits(today + 1))
    if isinstance(said, Refused):
        return _refused_capture("index", said, app.clock.now())
    return _check("index", "ok", f"answers; {len(said.rows):,} capture(s) of {url} since yesterday")


def _digits(day: int) -> str:
    from anchord.core.moment import utc

    return utc(day * DAY_S)[:10].replace("-", "")


def _rate(app: App, said: AccountStatus | None) -> dict[str, Any]:
    tables = app.store.storage
    rate = day_rate(
        app.config.archive.captures,
        slots=None if said is None else said.available + said.processing,
        daily_limit=None if said is None else said.daily_captures_limit,
        made=tables.captures.in_state((CaptureState.STORED,), SAMPLE),
    )
    return rate_document(rate, tables.counts(), unsealed=app.store.records.waiting()[0])


def _refused_capture(name: str, said: Refused, now: int) -> Check:
    decision = capture_rules.decide(said, now, attempts=0, strikes=_SUSTAINED)
    return _refused(name, said, person=decision.stop or decision.park, alert=decision.alert)


def _refused_item(name: str, said: Refused, now: int) -> Check:
    decision = item_rules.decide(said, now, attempts=0, strikes=0)
    return _refused(name, said, person=decision.stop or decision.park, alert=decision.alert)


def _refused(name: str, said: Refused, *, person: bool, alert: str | None) -> Check:
    if person:
        return _check(name, "refused", alert or said.message)
    return _check(name, "temporary", f"{said.message} ({said.code})")


def _check(name: str, outcome: str, detail: str) -> Check:
    return {"check": name, "outcome": outcome, "detail": detail}
