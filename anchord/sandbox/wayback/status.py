"""The reads of Save Page Now: jobs, the account, the system."""

from __future__ import annotations

from typing import Any

from anchord.sandbox.wayback import words
from anchord.sandbox.wayback.limits import Account
from anchord.sandbox.wayback.save import Asked
from anchord.sandbox.wayback.world import World
from anchord.sandbox.web import Answer, json_answer

_USER_CACHE_S = 20
"""Without a changing `_t` the account's status may be this old."""
_QUEUES = ("spn2-captures", "spn2-captures-misc", "spn2-outlinks", "spn2-api", "spn2-api-misc")


class Reading:
    """Answers what is read."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cached: dict[str, tuple[float, dict[str, Any]]] = {}

    def jobs(self, asked: Asked, path: str) -> Answer:
        """Answer GET /save/status/<id> and POST /save/status with job_id or job_ids."""
        if asked.account is None or asked.struck("not-logged-in"):
            return json_answer({"message": words.NOT_LOGGED_IN}, 401)
        single = path.removeprefix("/save/status").strip("/") or asked.form.get("job_id", "")
        many = [one for one in asked.form.get("job_ids", "").split(",") if one]
        if not self._count_read(asked.account, asked.now, max(1, len(many))):
            return words.too_many_requests()
        if single:
            return json_answer(self._world.jobs.status(single, asked.now))
        if not many and "job_id_outlinks" not in asked.form:
            return json_answer({"status": "error", "message": "job_id is missing."}, 400)
        answers = [self._world.jobs.status(one, asked.now) for one in many]
        self._world.random.shuffle(answers)
        return json_answer(answers)

    def _count_read(self, account: Account, now: float, jobs: int) -> bool:
        account.day.turn(now)
        self._world.tally.status_reads += 1
        self._world.tally.status_ids += jobs
        if account.day.status_reads >= self._world.rules.status_reads_per_day:
            self._world.tally.rate_429 += 1
            self._world.tally.rate_429_by["status"] += 1
            return False
        account.day.status_reads += 1
        return True

    def user(self, asked: Asked) -> Answer:
        """Answer GET /save/status/user."""
        self._world.tally.user_reads += 1
        if asked.account is None or asked.struck("not-logged-in"):
            return json_answer({"message": words.NOT_LOGGED_IN}, 401)
        at, document = self._cached.get(asked.access, (0.0, {}))
        if "_t" in asked.query or not 0 <= asked.now - at < _USER_CACHE_S:
            document = self._user(asked.account, asked.now)
            self._cached[asked.access] = (asked.now, document)
        if asked.struck("stale-slots"):
            document = document | {"available": 0, "processing": self._world.rules.slots}
        return json_answer(document)

    def _user(self, account: Account, now: float) -> dict[str, Any]:
        account.day.turn(now)
        rules, taken = self._world.rules, account.taken(now)
        return {
            "processing": taken,
            "available": max(0, rules.slots - taken),
            "daily_captures": account.day.captures,
            "daily_captures_limit": rules.daily_captures,
            "daily_status": account.day.status_reads,
            "daily_status_limit": rules.status_reads_per_day,
            # Keys appear without notice; clients must pass over them.
            "sandbox_unknown": {"since": int(now)},
        }

    def system(self, asked: Asked) -> Answer:
        """Answer GET /save/status/system."""
        self._world.tally.system_reads += 1
        if asked.struck("overloaded"):
            return json_answer({"status": words.OVERLOADED})
        made = self._world.tally.captures_made
        return json_answer(
            {"recent_captures": made, "status": "ok", "queues": dict.fromkeys(_QUEUES, 0)}
        )
