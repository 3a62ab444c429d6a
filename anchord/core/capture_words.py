"""The Wayback Machine's refusals: which code is meant, whatever form it came in.

Errors come as HTTP 200 with a `status_ext`, as a message without one, as an HTML page, or as a
bare HTTP status, so the body is asked first and the status last. Codes of the service are those
of the "Save Page Now 2 Public API Docs" (linked from
https://archive.org/details/spn-2-public-api-docs) without "error:"; the texts were seen in
https://github.com/overcast07/wayback-machine-spn-scripts (issues 19, 27, PR 43) and
https://github.com/akamhy/waybackpy/issues/97.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anchord.core.http_date import retry_after_s
from anchord.core.storage import Refused
from anchord.core.strictjson import parse
from anchord.errors import RefusedError

OWN_CODES = {
    "http-NNN": "an HTTP status with nothing in the body that says more",
    "http-429": "too fast, or the slots are full; also said as a text about captures per minute",
    "http-403": "a page that is not JSON: how an address is blocked",
    "unauthorized-key": "the service does not know the key (401, or the text)",
    "forbidden-key": "the key may not do this (403 in JSON)",
    "daily-captures-limit": "the account's captures of the day are used up",
    "offline": "the whole service is down, or its system status is critical",
    "connection-refused": "nobody listens, or a firewall blocks our address; nothing was sent",
    "no-answer": "time ran out or the connection broke: it may have been carried out",
    "too-large": "the answer is longer than we read",
    "excluded": "the archive does not show this site",
    "unknown-error": "it says error, and not which",
    "unknown-answer": "an answer of a shape that we do not know",
}
"""Codes of ours; every other one is the service's own."""

MAX_WORDS = 300
"""Characters of the service's words that are kept."""
_LOOKED_AT = 4_000
MAX_JSON_BYTES = 1 << 25
"""Longest answer that is read as JSON; callers cut before that."""

NOT_JSON = object()
"""What `read_json` gives for an answer that is not JSON."""

_TAG = re.compile(r"<(script|style)\b[^>]*>.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_CODE = re.compile(r"(?:error:)?([a-z0-9][a-z0-9_-]{0,63})")
_TARGET_STATUS = re.compile(r"\(HTTP status=([0-9]{3})\)", re.IGNORECASE)

_TEXTS = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"IP address is in our block list", "blocked-client-ip"),
        (r"service block list", "blocked-url"),
        (r"This host has been already captured", "too-many-daily-captures-host"),
        (r"This URL has been already captured", "too-many-daily-captures"),
        (r"cannot make more than \S+ captures per day", "daily-captures-limit"),
        (r"daily not-logged-in captures limit", "daily-captures-limit"),
        (r"more than \S+ (?:captures )?per minute|captures per minute", "http-429"),
        (r"the limit of active (?:Save Page Now )?sessions", "user-session-limit"),
        (r"need to be logged in", "unauthorized-key"),
        (r"(?:are|is) temporarily offline", "offline"),
        (r"paused because they notified us", "too-many-requests"),
        (r"resolve host", "invalid-host-resolution"),
        (r"URL syntax is not valid", "invalid-url-syntax"),
        (r"cannot find the requested resource", "not-found"),
        (r"Live page is not available", "cannot-fetch"),
        (r"RecursionError", "recursion"),
        (r"Job failed", "job-failed"),
    )
)
"""Messages that come without a `status_ext`, in the order in which they are looked for."""

_TARGET_CODES = {
    400: "bad-request",
    401: "unauthorized",
    403: "no-access",
    404: "not-found",
    405: "method-not-allowed",
    410: "not-found",
    429: "too-many-requests",
    500: "internal-server-error",
    501: "not-implemented",
    502: "bad-gateway",
    503: "service-unavailable",
    504: "gateway-timeout",
    505: "http-version-not-supported",
    509: "bandwidth-limit-exceeded",
    511: "network-authentication-required",
    999: "blocked",
}
"""What the captured host answered -> the code the service has for it."""


def lowered(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers by their names in lower case."""
    return {name.lower(): headers[name] for name in headers}


def words(said: bytes | str) -> str:
    """Return foreign words fit for people and logs: no markup, no controls, 300 characters."""
    text = said[:_LOOKED_AT].decode("utf-8", "replace") if isinstance(said, bytes) else said
    plain = _TAG.sub(" ", text[:_LOOKED_AT])
    return " ".join("".join(c if c.isprintable() else " " for c in plain).split())[:MAX_WORDS]


def is_page(headers: Mapping[str, str]) -> bool:
    """Tell whether the answer says of itself that it is for people or not text at all."""
    kind = lowered(headers).get("content-type", "").partition(";")[0].strip().lower()
    return not (kind in ("", "text/plain") or kind.endswith(("/json", "+json")))


def read_json(headers: Mapping[str, str], body: bytes) -> Any:
    """Return the value of a JSON answer, or `NOT_JSON`; the type is looked at first."""
    if is_page(headers):
        return NOT_JSON
    try:
        return parse(body, max_bytes=MAX_JSON_BYTES)
    except RefusedError:
        return NOT_JSON


def code_of_text(text: str) -> str | None:
    """Return the code that a message without `status_ext` stands for."""
    for pattern, code in _TEXTS:
        if pattern.search(text):
            return code
    target = _TARGET_STATUS.search(text)
    return _TARGET_CODES.get(int(target[1]), "job-failed") if target else None


def code_of_object(said: Mapping[str, Any]) -> str | None:
    """Return the code of an error object; None when it is not one."""
    stated, message = said.get("status_ext"), said.get("message")
    if isinstance(stated, str) and (match := _CODE.fullmatch(stated.strip().lower())):
        return match[1]
    by_text = code_of_text(words(message)) if isinstance(message, str) else None
    if by_text is None and (stated is not None or said.get("status") == "error"):
        return "unknown-error"
    return by_text


def object_refused(said: Mapping[str, Any], code: str) -> Refused:
    """Return the refusal that an error object of the service is."""
    parts = (said.get(key) for key in ("message", "exception"))
    text = next((words(part) for part in parts if isinstance(part, str) and words(part)), "")
    keys = ", ".join(words(str(key)[:40]) for key in list(said)[:20])
    return Refused(code=code, message=text or f"an answer without a message; it has: {keys}"[:300])


def save_refused(status: int, headers: Mapping[str, str], body: bytes) -> Refused:
    """Return the refusal that an answer of Save Page Now is, of whatever shape."""
    said = read_json(headers, body)
    if isinstance(said, dict):
        code = code_of_object(said)
        code = code or _code_of_status(status, {401: "unauthorized-key", 403: "forbidden-key"})
        refused = object_refused(said, code)
    else:
        code = code_of_text(words(body)) or _code_of_status(status, {401: "unauthorized-key"})
        refused = Refused(code=code, message=_what_came(status, body))
    return _with_wait(refused, headers)


def reading_refused(status: int, headers: Mapping[str, str], body: bytes) -> Refused:
    """Return the refusal that an answer of the index or of the replay is.

    There a page's words may be those of an archived page, so only the status counts; beside it
    the service's own page of being offline.
    """
    code = _code_of_status(status, {})
    if status >= 500 and code_of_text(words(body)) == "offline":
        code = "offline"
    return _with_wait(Refused(code=code, message=_what_came(status, body)), headers)


def unknown(what: str, body: bytes | str) -> Refused:
    """Return the refusal of an answer that is not `what` was expected."""
    return Refused(
        code="unknown-answer",
        message=f"expected {what}, got: {words(body) or 'nothing'}"[:MAX_WORDS],
    )


def _what_came(status: int, body: bytes) -> str:
    return f"HTTP {status}: {words(body) or 'no words'}"[:MAX_WORDS]


def _code_of_status(status: int, named: Mapping[int, str]) -> str:
    if not 100 <= status <= 999 or 200 <= status < 300:
        return "unknown-answer"
    return named.get(status, f"http-{status}")


def _with_wait(refused: Refused, headers: Mapping[str, str]) -> Refused:
    wait = retry_after_s(headers)
    if wait is None:
        return refused
    return Refused(code=refused.code, message=refused.message, retry_after_s=wait)
