"""The ways captures go by: their paces, days and pauses, and what the last answers were.

One client per account and per address: the service counts all of our calls together, so every
grant and every pause is a row, and a restart forgets none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from anchord.core import pacing
from anchord.core.capture_rules import Decision, decide_reading, rule_of
from anchord.core.storage import Lane, Refused
from anchord.core.wayback import AccountStatus
from anchord.engine.capture_glance import GlancedCaptures

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.engine.storing import StoringParts

SPN, STATUS, INDEX, REPLAY = "spn", "status", "index", "replay"
_SERVICE = (SPN, STATUS, INDEX, REPLAY)
_HOST = "host:"
_DAILY_LIMIT = 30_000
"""Captures an account may make in a day, where the service does not say (SPN2 Public API)."""
_LAST_CODES = 10
_STATUS_AT_ONCE = 3
"""The account tells that a job has ended, its status how, and the account that its slot is free."""
_LONGEST_GRID_S = 600
_STOPPING_STRIKES = 3
_SUSTAINED = 8
"""Refusals "too many requests" in a row, more than an hour in all, after which a reader rests."""
_REST_S = 6 * 3_600
_TOO_MANY = "http-429"
_PROBED = frozenset({"unauthorized-key", "forbidden-key"})
"""Stops that the service brings about under load, too, with a key that is right
(https://github.com/overcast07/wayback-machine-spn-scripts/issues/27): the account is asked after an
hour, doubling, which costs nothing, and one submit is tried when it answers."""
_PROBE_S = 3_600
_PROBES = 6
"""After so many in vain the account is asked once a day or so."""


class SpnSeen(msgspec.Struct, frozen=True, kw_only=True):
    """What the account said of itself, and how the last submits ended. Kept as JSON."""

    account: AccountStatus | None = None
    read_at: int = 0
    codes: tuple[str, ...] = ()
    """Of the last ten outcomes; empty text is a success."""


class HostSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How a captured host fares. Kept as JSON."""

    tried: int = 0
    failed: int = 0
    """Of these, ended by what the host itself answered: not found, no access, ..."""
    code: str = ""
    """The last of these answers."""


_Seen = TypeVar("_Seen", SpnSeen, HostSeen)


class CaptureLanes:
    """Lanes of the store, with the numbers of the policy."""

    def __init__(self, parts: StoringParts) -> None:
        policy = parts.capture_policy
        self._parts = parts
        self._table = parts.parts.store.storage.lanes
        self.captures = GlancedCaptures(parts.parts.store.storage.captures)
        self._policy = policy
        self._known: dict[str, Lane] | None = None
        self._unwritten: dict[str, Lane] = {}
        self._buckets = {
            SPN: pacing.per_minute(policy.submits_per_minute),
            INDEX: pacing.per_minute(policy.index_per_minute),
            REPLAY: pacing.per_minute(policy.replays_per_minute),
        }

    # ------------------------------------------------------------------ rows

    def get(self, name: str, now: int) -> Lane:
        """Return a lane, healed of what a clock that ran ahead left."""
        if self._known is None:
            self._known = {lane.name: lane for lane in self._table.all()}
        return pacing.healed(self._known.get(name) or Lane(name=name), now)

    def put(self, lane: Lane) -> None:
        """Change a lane; written by `flush`, or with the next change of a capture."""
        if self._known is None:
            self._known = {each.name: each for each in self._table.all()}
        self._known[lane.name] = lane
        self._unwritten[lane.name] = lane

    def unwritten(self) -> tuple[Lane, ...]:
        """Return what is to be written, for a transaction that `written` reports the end of."""
        return tuple(self._unwritten.values())

    def written(self) -> None:
        """Note that everything unwritten was written."""
        self._unwritten.clear()

    def flush(self) -> None:
        """Write what is unwritten. If we crash before, a count or a success is forgotten."""
        if self._unwritten:
            self._table.put(*self.unwritten())
            self.written()

    def forget(self) -> None:
        """Write, and read anew next time: a person may have started a lane again meanwhile."""
        self.flush()
        self._known = None
        self.captures.forget()

    # ------------------------------------------------------------------ paces

    def free_at(self, name: str, now: int) -> int | None:
        """Return the first moment a call may go by a lane; None: a person must act first."""
        lane = self.get(name, now)
        opens = pacing.open_at(lane, now)
        if opens is None:
            return None
        return pacing.free_at(lane, self._bucket(lane, now), opens)

    def idle_s(self, name: str, now: int) -> int:
        """Return for how long no call went by a lane; since ever when none did."""
        return max(now - max(self.get(name, now).grants, default=0), 0)

    def take(self, name: str, now: int) -> None:
        """Grant a call now. To be written before the call is made."""
        lane = self.get(name, now)
        self.put(pacing.take(lane, self._bucket(lane, now), now))

    def works(self, name: str, now: int, alert: str | None = None) -> None:
        """Note a success; `alert` is what a person should see all the same."""
        lane = self.get(name, now)
        well = pacing.works(lane, now)
        if well is not lane:
            self.put(msgspec.structs.replace(well, alert=alert))

    def gathered(self, now: int, at: int) -> int:
        """Return `at` or a little later, so that neighbours are due together and asked at once."""
        grid_s = min(max((at - now) // 5, 1), _LONGEST_GRID_S)
        return -(-at // grid_s) * grid_s

    def later(self, now: int, at: int) -> int:
        """Return `at`, or up to a fifth later, so that clients do not come back together."""
        wait_s = at - now
        return at if wait_s <= 0 else max(at, now + int(self._parts.jitter(wait_s)))

    # ------------------------------------------------------------------ refusals

    def refuse_reading(self, name: str, refused: Refused, now: int) -> None:
        """Let the lane of a refused look wait; nothing is charged to what was looked for."""
        lane = self.get(name, now)
        decision = decide_reading(refused, now, strikes=lane.strikes, last_code=lane.code)
        if refused.code == _TOO_MANY and decision.strikes >= _SUSTAINED:
            decision = msgspec.structs.replace(
                decision, at=now + _REST_S, alert=f"{name}: too many requests, for more than an "
                "hour: check that no other client runs here; it is asked again every few hours",
            )  # fmt: skip
        self.apply(name, refused, decision, now)
        if decision.stop and name == STATUS:
            # Without the account's word nothing can be submitted either.
            self.apply(SPN, refused, decision, now)

    def apply(self, name: str, refused: Refused, decision: Decision, now: int) -> None:
        """Let a lane wait, or stop it.

        A firewall is about our address: every lane to the service waits for it
        (https://github.com/edgi-govdata-archiving/wayback/issues/137: an hour, doubling).
        """
        lane = self.get(name, now)
        if decision.stop:
            alert = decision.alert or f"{name}: {refused.message}"
            self.put(
                pacing.stopped(lane, now, code=refused.code, note=refused.message, alert=alert,
                               strikes=decision.strikes)
            )  # fmt: skip
            self.flush()
            return
        behind = rule_of(refused.code) is rule_of("connection-refused") and name in _SERVICE
        for each in _SERVICE if behind else (name,):
            strikes = decision.strikes if each == name else None
            self.pause(each, now, decision.at or now, refused, strikes, decision.alert)

    def pause(
        self,
        name: str,
        now: int,
        until: int,
        refused: Refused,
        strikes: int | None = None,
        alert: str | None = None,
    ) -> None:
        """Let a lane pause, and spread its return; strikes stay when none are given."""
        lane = self.get(name, now)
        lane = pacing.paused(
            lane, self.later(now, until), now, code=refused.code, note=refused.message,
            strikes=lane.strikes if strikes is None else strikes,
        )  # fmt: skip
        self.put(msgspec.structs.replace(lane, alert=alert or lane.alert))
        self.flush()

    def reopen(self, name: str, now: int) -> None:
        """Forget why the lane paused, and not how often it had to."""
        lane = self.get(name, now)
        self.put(msgspec.structs.replace(lane, code=None, note=None, changed_at=now))
        self.flush()

    def probe_at(self, now: int) -> int | None:
        """Return when an account that stopped over its key is asked again; None: it did not."""
        lane = self.get(SPN, now)
        if not (lane.stopped and lane.code in _PROBED):
            return None
        vain = min(max(lane.strikes - _STOPPING_STRIKES, 0), _PROBES - 1)
        return lane.changed_at + (_PROBE_S << vain)

    def probe(self, now: int) -> None:
        """Note that the account is asked; to be called before it is."""
        lane = self.get(SPN, now)
        self.put(msgspec.structs.replace(lane, changed_at=now, strikes=lane.strikes + 1))
        self.flush()

    def go_on(self, now: int) -> None:
        """The account answered: what stopped over its key goes on, and stops at the next refusal.

        The alert stays until a submit is taken.
        """
        for name in (SPN, STATUS):
            lane = self.get(name, now)
            if lane.stopped and lane.code in _PROBED:
                self.put(msgspec.structs.replace(lane, stopped=False, until=None, changed_at=now))
        self.flush()

    def strike(self, name: str, code: str, strikes: int, now: int) -> None:
        """Note trouble of one capture that may be the whole lane's."""
        lane = self.get(name, now)
        self.put(msgspec.structs.replace(lane, code=code, strikes=strikes, changed_at=now))

    # ------------------------------------------------------------------ the account

    def account(self, now: int) -> SpnSeen:
        """Return what the account said last, and how the last submits ended."""
        return _seen(self.get(SPN, now), SpnSeen)

    def note_account(self, account: AccountStatus, now: int) -> None:
        """Keep what the account says; when its day is used up, submits pause.

        Nobody documents when the service's day ends, so the account is asked again every hour.
        """
        lane = self.get(SPN, now)
        seen = msgspec.structs.replace(_seen(lane, SpnSeen), account=account, read_at=now)
        lane = msgspec.structs.replace(lane, seen=msgspec.json.encode(seen))
        self.put(lane)
        if self.left_today(now) <= 0:
            said = Refused(code="daily-share", message="the day's share of captures is used up")
            until = min(pacing.day_end(now), now + 3600)
            self.pause(SPN, now, until, said, lane.strikes)

    def left_today(self, now: int, since_account: int = 0) -> int:
        """Return how many submits the day's share still holds.

        Args:
            now: Unix seconds.
            since_account: submits made since the account was read.
        """
        lane = self.get(SPN, now)
        account = _seen(lane, SpnSeen).account
        limit = account.daily_captures_limit if account is not None else None
        share = int((_DAILY_LIMIT if limit is None else limit) * self._policy.daily_share)
        made = account.daily_captures if account is not None else None
        return share - max(pacing.used_on(lane, now), (made or 0) + since_account)

    def note_outcome(self, code: str, now: int) -> tuple[str, ...]:
        """Keep how a submit or a job ended (empty: well); return the last ten."""
        lane = self.get(SPN, now)
        seen = _seen(lane, SpnSeen)
        codes = (*seen.codes, code)[-_LAST_CODES:]
        if any((*seen.codes, code)):
            seen = msgspec.structs.replace(seen, codes=codes)
            self.put(msgspec.structs.replace(lane, seen=msgspec.json.encode(seen)))
        return codes

    # ------------------------------------------------------------------ hosts

    def paused_hosts(self, now: int) -> dict[str, int | None]:
        """Return hosts not to be captured now, and until when; None: until a person acts."""
        found: dict[str, int | None] = {}
        self.get(SPN, now)
        for name in self._known or ():
            if name.startswith(_HOST):
                opens = pacing.open_at(self.get(name, now), now)
                if opens != now:
                    found[name.removeprefix(_HOST)] = opens
        return found

    def change_host(self, host: str, now: int, change: Callable[[HostSeen], HostSeen]) -> HostSeen:
        """Count something of a host; return the counts."""
        lane = self.get(host_lane(host), now)
        seen = change(_seen(lane, HostSeen))
        self.put(msgspec.structs.replace(lane, seen=msgspec.json.encode(seen)))
        return seen

    def alert(self, name: str, now: int, alert: str | None) -> None:
        """Put up a line for `anchord status`, or take it down."""
        lane = self.get(name, now)
        if lane.alert != alert:
            self.put(msgspec.structs.replace(lane, alert=alert, changed_at=now))

    def _bucket(self, lane: Lane, now: int) -> pacing.Bucket:
        if lane.name != STATUS:
            return self._buckets[lane.name]
        # What is left of the day's reads is spread over what is left of the day.
        left = self._policy.status_per_day - pacing.used_on(lane, now)
        account = self.account(now).account
        if account is not None and account.daily_status_limit is not None:
            left = min(left, account.daily_status_limit - (account.daily_status or 0))
        return pacing.spread(left, now, _STATUS_AT_ONCE)


def host_lane(host: str) -> str:
    """Return the name of a captured host's lane."""
    return _HOST + host


def _seen(lane: Lane, kind: type[_Seen]) -> _Seen:
    return kind() if lane.seen is None else msgspec.json.decode(lane.seen, type=kind)
