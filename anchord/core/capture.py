"""What Save Page Now answers, read into values; whatever bytes come, a value comes out.

The shapes are those of the "Save Page Now 2 Public API Docs" (linked from
https://archive.org/details/spn-2-public-api-docs) and of reports of what the service really says.
Index and replay are read in `capture_proof`, refusals in `capture_words`, addresses compared in
`capture_url`. A status that says success proves nothing; see
https://github.com/internetarchive/wayback-machine-webextension/issues/945.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from anchord.core.canonical import canonical_bytes
from anchord.core.capture_proof import holds, read_index, read_replay
from anchord.core.capture_url import (
    capture_url,
    expected_redirect,
    is_stamp,
    moment_of,
    same_host,
    same_page,
    stamp_of,
    whole_url,
)
from anchord.core.capture_words import (
    NOT_JSON,
    code_of_object,
    object_refused,
    read_json,
    save_refused,
    unknown,
    words,
)
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    Existing,
    Reported,
    Running,
    SystemStatus,
)
from anchord.errors import RefusedError

__all__ = [
    "capture_url",
    "expected_redirect",
    "holds",
    "moment_of",
    "read_account",
    "read_index",
    "read_replay",
    "read_statuses",
    "read_submit",
    "read_system",
    "same_page",
    "stamp_of",
    "whole_url",
]

_JOB_ID = re.compile(r"(?!(?i:null|none)$)[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
_SAME_SNAPSHOT = re.compile(r"The same snapshot had been made", re.IGNORECASE)
_BEGINS_LATER = re.compile(r"capture will (?:begin|start) in ", re.IGNORECASE)
_SPAN = re.compile(r"([0-9]{1,6})\s*(s|m|h)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3_600}
_LONGEST_DELAY_S = 86_400
_URL_OR_PATH = re.compile(r"(?:https?:/)?/\S{0,8190}", re.IGNORECASE)

Job = Running | Reported | Refused
"""What is known of one job."""


# ---------------------------------------------------------------------- submit


def read_submit(
    status: int, headers: Mapping[str, str], body: bytes, url: str
) -> Accepted | Existing | Refused:
    """Read the answer to a submit of `url`."""
    said = read_json(headers, body) if 200 <= status < 300 else NOT_JSON
    if isinstance(said, dict):
        return _submitted(said, url) or save_refused(status, headers, body)
    text = words(body)
    if 200 <= status < 300 and _SAME_SNAPSHOT.search(text):
        return Existing(message=text)
    return save_refused(status, headers, body)


def _submitted(said: dict[str, Any], url: str) -> Accepted | Existing | None:
    """Return what a JSON object says, None for anything but a job or a recent capture."""
    if _is_error(said) or _of_another_host(said, url):
        return None
    told = said.get("message")
    message = words(told) if isinstance(told, str) else ""
    job_id = said.get("job_id")
    if isinstance(job_id, str) and _JOB_ID.fullmatch(job_id):
        return Accepted(job_id=job_id, message=message, delay_s=_delay_s(message))
    if _SAME_SNAPSHOT.search(message):
        return Existing(message=message)
    return None


def _of_another_host(said: dict[str, Any], url: str) -> bool:
    """Tell whether the answer names a page of another host: a mix-up on the way."""
    echoed = said.get("url")
    web = isinstance(echoed, str) and echoed.lower().startswith(("http://", "https://"))
    return web and not same_host(url, str(echoed))


def _delay_s(message: str) -> int:
    """Return the seconds of "Your capture will begin in 30s." or "... start in 2 hours"."""
    begins = _BEGINS_LATER.search(message)
    if begins is None:
        return 0
    spans = _SPAN.findall(message[begins.end() : begins.end() + 60])
    total = sum(int(count) * _SECONDS[unit.lower()] for count, unit in spans)
    return min(total, _LONGEST_DELAY_S)


# ---------------------------------------------------------------------- status


def read_statuses(
    status: int, headers: Mapping[str, str], body: bytes, job_ids: Collection[str]
) -> dict[str, Job] | Refused:
    """Read the answer to a status read of `job_ids`: an object, or a list in any order.

    Jobs that were not asked for are ignored, jobs that are not told of are left out. An object
    without a job id is of the job that was asked for when there was only one.
    """
    said = read_json(headers, body) if 200 <= status < 300 else NOT_JSON
    told = [said] if isinstance(said, dict) and _tells_of_a_job(said) else said
    if not isinstance(told, list):
        return save_refused(status, headers, body)
    found: dict[str, Job] = {}
    for job in told:
        job_id = _job_id(job, job_ids)
        if job_id is not None:
            found[job_id] = _job(job, job_id)
    if not found and isinstance(said, dict) and code_of_object(said) is not None:
        return save_refused(status, headers, body)
    return found


def _tells_of_a_job(said: dict[str, Any]) -> bool:
    return "status" in said or _is_error(said)


def _is_error(said: dict[str, Any]) -> bool:
    """Tell an error object; at submits `status` was seen missing beside `status_ext`."""
    return said.get("status") == "error" or said.get("status_ext") is not None


def _job_id(job: object, asked: Collection[str]) -> str | None:
    if not isinstance(job, dict):
        return None
    job_id = job.get("job_id")
    if job_id is None and len(asked) == 1:
        return next(iter(asked))
    return job_id if isinstance(job_id, str) and job_id in asked else None


def _job(job: dict[str, Any], job_id: str) -> Job:
    state = job.get("status")
    if _is_error(job):
        return object_refused(job, code_of_object(job) or "unknown-error")
    if state == "pending":
        return Running(job_id=job_id)
    if state != "success":
        return unknown("a job pending, successful or failed", f"{state}")
    return _reported(job, job_id) or unknown(
        "a success with its timestamp and its address", f"{job}"
    )


def _reported(job: dict[str, Any], job_id: str) -> Reported | None:
    """Return a success whose every field is of its kind, else None."""
    timestamp, url = job.get("timestamp"), job.get("original_url")
    http_status, older = job.get("http_status"), job.get("original_job_id")
    lawful = (
        is_stamp(timestamp)
        and isinstance(url, str)
        and _URL_OR_PATH.fullmatch(url)
        and url.isprintable()
        and (http_status is None or (type(http_status) is int and 100 <= http_status <= 999))
        and (older is None or (isinstance(older, str) and _JOB_ID.fullmatch(older)))
    )
    if not lawful:
        return None
    try:
        raw = canonical_bytes(job)
    except RefusedError:
        return None
    return Reported(
        job_id=job_id,
        timestamp=str(timestamp),
        original_url=str(url),
        http_status=http_status,
        original_job_id=older,
        raw=raw,
    )


# ---------------------------------------------------------------------- account and system


def read_account(status: int, headers: Mapping[str, str], body: bytes) -> AccountStatus | Refused:
    """Read what the account may do now; keys that we do not know are ignored."""
    said = read_json(headers, body) if 200 <= status < 300 else NOT_JSON
    available = _count(said, "available")
    if available is None:
        return save_refused(status, headers, body)
    return AccountStatus(
        available=available,
        processing=_count(said, "processing") or 0,
        daily_captures=_count(said, "daily_captures"),
        daily_captures_limit=_count(said, "daily_captures_limit"),
        daily_status=_count(said, "daily_status"),
        daily_status_limit=_count(said, "daily_status_limit"),
    )


def read_system(status: int, headers: Mapping[str, str], body: bytes) -> SystemStatus | Refused:
    """Read whether the service is well; a critical state comes as HTTP 502 and means offline."""
    said = read_json(headers, body) if 200 <= status < 300 else NOT_JSON
    state = said.get("status") if isinstance(said, dict) else None
    if isinstance(state, str) and state not in ("", "error"):
        return SystemStatus(ok=state == "ok", message="" if state == "ok" else words(state))
    refused = save_refused(status, headers, body)
    if status in (502, 503):
        return Refused(code="offline", message=refused.message, retry_after_s=refused.retry_after_s)
    return refused


def _count(said: object, key: str) -> int | None:
    """Return a count of the account; one below zero is none, one that is no number unsaid."""
    value = said.get(key) if isinstance(said, dict) else None
    return min(max(value, 0), 2**31) if type(value) is int else None
