"""The archive's words: its JSON messages, and pages where it answers with HTML.

The messages are the service's own, as its clients recorded them, because clients decide by them:
SPN2 Public API document; overcast07/wayback-machine-spn-scripts #19, PR #43; akamhy/waybackpy
PR #142; internetarchive/wayback-machine-webextension #1110. The pages are the sandbox's.
"""

from __future__ import annotations

from typing import Any

from anchord.sandbox.web import Answer

HTML = "text/html; charset=utf-8"
_ASK = ' Please email us at "info@archive.org" if you would like to discuss this more.'
NOT_LOGGED_IN = "You need to be logged in to use Save Page Now."
_SESSIONS = (
    "You have already reached the limit of active Save Page Now sessions. "
    "Please wait for a minute and then try again."
)
OVERLOADED = "Save Page Now servers are temporarily overloaded. Your captures may be delayed."
PAUSED = (
    "Please try again in ~10 min. Crawling this host is paused because they notified us that "
    "they are overloaded right now. (HTTP status=429)"
)
_OFFLINE = "Temporarily Offline: Internet Archive services are temporarily offline."
_NOT_ARCHIVED = "The Wayback Machine has not archived that URL."
_EXCLUDED = "This URL has been excluded from the Wayback Machine."
_BLOCKED_SITE = (
    "org.archive.util.io.RuntimeIOException: "
    "org.archive.wayback.exception.AdministrativeAccessControlException: Blocked Site Error\n"
)

TARGET_ERRORS = {
    401: ("unauthorized", "The server requires authentication. (HTTP status=401)."),
    403: ("no-access", "The server refuses access to the resource. (HTTP status=403)."),
    404: ("not-found", "The server cannot find the requested resource."),
    405: ("method-not-allowed", "The method is not allowed. (HTTP status=405)."),
    410: ("not-found", "The server cannot find the requested resource. (HTTP status=410)."),
    429: ("too-many-requests", PAUSED),
    500: ("internal-server-error", "returned an Internal Server error. (HTTP status=500)."),
    501: ("not-implemented", "does not support the request. (HTTP status=501)."),
    502: ("bad-gateway", "returned a Bad Gateway error. (HTTP status=502)."),
    503: ("service-unavailable", "returned a Service Unavailable error. (HTTP status=503)."),
    504: ("gateway-timeout", "returned a Gateway Timeout error. (HTTP status=504)."),
    509: ("bandwidth-limit-exceeded", "has no bandwidth left. (HTTP status=509)."),
    999: ("blocked", "blocks the Wayback Machine. (HTTP status=999)."),
}
"""Status of the target -> code and message of the job (the document's list of error codes)."""


def error(code: str, message: str, **more: Any) -> dict[str, Any]:
    """Return an error object."""
    return {"status": "error", "status_ext": f"error:{code}", "message": message} | more


def target_error(url: str, status: int) -> dict[str, Any]:
    """Return the outcome of a job whose target answered with an error."""
    usual = ("invalid-server-response", f"answered strangely. (HTTP status={status}).")
    code, message = TARGET_ERRORS.get(status, usual)
    whole = message if message[0].isupper() else f"The target URL {url} {message}"
    return error(code, whole, resources=[])


def failed(code: str, url: str) -> dict[str, Any]:
    """Return the outcome of a job that failed by itself."""
    message = "Job failed." if code == "job-failed" else f"Capturing {url} failed."
    return error(code, message, resources=[])


def unresolved(url: str) -> dict[str, Any]:
    """Return the outcome of a job whose host has no address."""
    return error(
        "invalid-host-resolution",
        f"Couldn't resolve host for {url}.",
        exception="[Errno -2] Name or service not known",
        resources=[],
    )


def session_limit() -> dict[str, Any]:
    """All slots are taken."""
    return error("user-session-limit", _SESSIONS)


def day_limit(limit: int) -> dict[str, Any]:
    """The account's captures of the day are used up; no code is known for it."""
    return {
        "status": "error",
        "message": f"You cannot make more than {limit:,} captures per day." + _ASK,
    }


def url_limit(url: str, times: int, *, bare: bool) -> dict[str, Any]:
    """The URL was captured often enough today; `bare`: the shape without a status."""
    message = (
        f"This URL has been already captured {times} times today, which is a daily limit we have "
        "set for that Resource type."
    )
    whole = error("too-many-daily-captures", message)
    if not bare:
        return whole
    del whole["status"]
    return whole | {"message": f"{message} Please try again tomorrow.{_ASK}", "url": url}


def host_limit(times: int) -> dict[str, Any]:
    """The account captured the host often enough today."""
    message = f"This host has been already captured {times} times today by this user account."
    return error("too-many-daily-captures-host", message + _ASK)


def bandwidth_limit() -> dict[str, Any]:
    """The account's bytes of the day are used up."""
    return error(
        "max-daily-bandwidth", "You have reached the daily bandwidth limit of your account." + _ASK
    )


def blocked_ip() -> dict[str, Any]:
    """The client's address is blocked."""
    return error("blocked-client-ip", "Your IP address is in our block list." + _ASK)


def blocked_url() -> dict[str, Any]:
    """The URL is blocked."""
    where = "This URL is in the Save Page Now service block list and cannot be captured."
    return error("blocked-url", where + _ASK)


def invalid_url(url: str) -> dict[str, Any]:
    """This is no URL."""
    return error("invalid-url-syntax", f"{url} URL syntax is not valid.")


def same_snapshot(age_s: float, again_s: float) -> str:
    """There is a recent capture."""
    return (
        f"The same snapshot had been made {_ago(age_s)} ago. "
        f"You can make new capture of this URL after {_span(again_s)}."
    )


def begins_in(seconds: float) -> str:
    """The host's queue is long."""
    if seconds < 60:
        return f"Your capture will begin in {seconds:.0f}s."
    return f"The capture will start in {_span(seconds)}."


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"


def _span(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    whole = minutes % 60 == 0
    return _count(minutes // 60, "hour") if whole else _count(minutes, "minute")


def _ago(seconds: float) -> str:
    hours, minutes = divmod(int(seconds // 60), 60)
    return (_count(hours, "hour") + ", " if hours else "") + _count(minutes, "minute")


# ---------------------------------------------------------------------- pages


def page(status: int, title: str, text: str = "", *headers: tuple[str, str]) -> Answer:
    """Return an HTML answer."""
    body = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1>"
    return Answer(status, f"{body}<p>{text}</p></body></html>\n".encode(), HTML, headers)


def too_many_requests() -> Answer:
    """Too fast; without Retry-After, as measured by its clients."""
    headers = (("x-ts", "429"), ("x-tr", "20"), ("x-rl", "0"), ("x-na", "0"))
    return page(429, "429 Too Many Requests", "Slow down.", ("cache-control", "no-cache"), *headers)


def offline() -> Answer:
    """An outage."""
    return page(503, "Temporarily Offline", _OFFLINE)


def bad_gateway(status: int) -> Answer:
    """A server behind the server is gone."""
    return page(status, {502: "502 Bad Gateway", 504: "504 Gateway Time-out"}.get(status, "Error"))


def not_archived() -> Answer:
    """No such capture."""
    return page(404, "Wayback Machine", _NOT_ARCHIVED, ("x-ts", "404"), ("X-Page-Cache", "MISS"))


def excluded() -> Answer:
    """The site is not shown."""
    reason = "AdministrativeAccessControlException: Blocked Site Error"
    return page(200, "Wayback Machine", _EXCLUDED, ("X-Archive-Wayback-Runtime-Error", reason))


def blocked_site() -> Answer:
    """The index does not list an excluded site."""
    return Answer(403, _BLOCKED_SITE.encode(), "text/plain;charset=UTF-8")


def saving_page(job_id: str) -> Answer:
    """What a client gets that does not ask for JSON."""
    script = f'<script>spn.watchJob("{job_id}", "/_static/", 6000, false);</script>'
    return page(200, "Saving page", script)
