"""The sandbox's Wayback Machine without a network: requests in, answers out, a clock that waits."""

from __future__ import annotations

import io
import json
from email.message import Message
from typing import Any
from urllib.parse import urlencode

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.faults import KINDS, Fault
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.service import ACCESS, SECRET, WaybackService
from anchord.sandbox.web import Answer, Request

KEY = f"LOW {ACCESS}:{SECRET}"
NOON = 1_800_014_400.0
"""2027-01-15 12:00:00 UTC."""
PAGE = "https://arxiv.org/abs/2401.00001v1"
STEADY = Rules(duration_s=(20, 20), slot_lag_s=(0, 0), index_lag_s=(60, 60))
"""The real limits, with delays that do not vary."""


class Archive:
    """A service on a clock of its own."""

    def __init__(self, rules: Rules = STEADY, *, start: float = NOON, **parts: Any) -> None:
        self.clock = SandboxClock(start, frozen=True)
        self.service = WaybackService(self.clock, rules=rules, **parts)
        self.site = self.service.site

    def ask(
        self,
        method: str,
        path: str,
        form: dict[str, Any] | None = None,
        *,
        key: str | None = KEY,
        accept: str | None = "application/json",
        fault: Fault | None = None,
    ) -> Answer:
        """Make one request."""
        headers = Message()
        body = urlencode(form or {}).encode()
        given = {"Authorization": key, "Accept": accept, "Content-Length": str(len(body))}
        for name, value in given.items():
            if value is not None:
                headers[name] = value
        return self.service.answer(Request(method, path, headers, io.BytesIO(body).read, fault))

    def save(self, url: str = PAGE, fault: Fault | None = None, **form: Any) -> Any:
        """Submit a URL; return the JSON answer, which must come with status 200."""
        answer = self.ask("POST", "/save", {"url": url} | form, fault=fault)
        assert answer.status == 200, answer
        return json.loads(answer.body)

    def status(self, job_id: str) -> Any:
        """Read a job."""
        return json.loads(self.ask("GET", f"/save/status/{job_id}").body)

    def statuses(self, job_ids: list[str]) -> list[Any]:
        """Read many jobs at once."""
        answer = self.ask("POST", "/save/status", {"job_ids": ",".join(job_ids)})
        return json.loads(answer.body)

    def user(self, query: str = "?_t=1") -> Any:
        """Read the account."""
        return json.loads(self.ask("GET", f"/save/status/user{query}").body)

    def done(self, url: str = PAGE, fault: Fault | None = None, **form: Any) -> Any:
        """Submit, wait until the job has ended, and return its status."""
        job = self.save(url, fault, **form)["job_id"]
        self.clock.advance(55)
        return self.status(job)

    def captured(self, url: str = PAGE, **form: Any) -> str:
        """Capture a URL, wait until it is listed, and return the timestamp."""
        status = self.done(url, **form)
        assert status["status"] == "success", status
        self.clock.advance(300)
        return status["timestamp"]

    def cdx(self, url: str = PAGE, **query: Any) -> list[list[str]]:
        """List captures, without the row of names."""
        full = {"url": url, "output": "json"} | query
        answer = self.ask("GET", f"/cdx/search/cdx?{urlencode(full, doseq=True)}")
        assert answer.status == 200, answer
        return json.loads(answer.body or b"[]")[1:]

    def replay(self, timestamp: str, url: str = PAGE, flag: str = "id_") -> Answer:
        """Fetch a memento."""
        return self.ask("GET", f"/web/{timestamp}{flag}/{url}")


def header(answer: Answer, name: str) -> str | None:
    """Return a header of an answer."""
    found = [value for key, value in answer.headers if key.lower() == name.lower()]
    return found[0] if found else None


def fault(kind: str, **options: Any) -> Fault:
    """Return a fault as the board hands it out."""
    assert kind in KINDS
    return Fault(kind, None, None, options)
