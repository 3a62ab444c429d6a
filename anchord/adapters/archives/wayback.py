"""The Wayback Machine over HTTP: Save Page Now, its index (CDX) and its replay.

Requests follow the "Save Page Now 2 Public API Docs" (linked from
https://archive.org/details/spn-2-public-api-docs) and the README of
https://github.com/internetarchive/wayback/tree/master/wayback-cdx-server. The keys go to Save Page
Now only: index and replay are public, and read without them.
"""

from __future__ import annotations

import re
import secrets
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TypeVar

from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.hosts import stand_in
from anchord.adapters.archives.unknown import log_unknown
from anchord.adapters.http import USER_AGENT, Client, Response
from anchord.core.capture import (
    read_account,
    read_index,
    read_replay,
    read_statuses,
    read_submit,
    read_system,
)
from anchord.core.capture_proof import FIELDS
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    Existing,
    IndexPage,
    Memento,
    NotThere,
    Reported,
    Running,
    SystemStatus,
)
from anchord.errors import ConfigError, NetworkError, ProtocolError

WAYBACK_URL = "https://web.archive.org"

JOBS_PER_READ = 50
INDEX_ROWS = 5_000
"""Rows asked for at once; what follows comes with the resume key."""

SAVE_MAX_BYTES = 8 << 20
"""A status tells of up to 500 resources and 500 links, and there are up to 50 in an answer."""
INDEX_MAX_BYTES = 16 << 20
REPLAY_MAX_BYTES = 32 << 20

TIMEOUT_S = 60.0
INDEX_TIMEOUT_S = 90.0
"""The index often takes longer than 15, sometimes 52 seconds."""

_KEY = re.compile(r"[!-9;-~]{1,200}")
"""What a header carries unharmed; a colon would shift the border between the two."""
_CONTACT = re.compile(r"[!-'*-~]+(?: [!-'*-~]+)*")
_RESUME = re.compile(r"[A-Za-z0-9._~%+*!-]+")
"""A key as the index gives it: ready for a URL."""
_ECHO_MIN = 8

T = TypeVar("T")


class Wayback:
    """Implements `anchord.ports.archive.CaptureArchive`. Threads may share it.

    Args:
        url: where the service is: `WAYBACK_URL`, or a stand-in on loopback.
        keys: of the account that captures; None: index and replay only, which are public.
        contact: a URL or an address for its operators, who ask for one in the User-Agent.
        timeout_s: total time of a call.
        index_timeout_s: total time of a look into the index.
        max_replay_bytes: longest memento that is fetched.

    Raises:
        ConfigError: an address that is neither the archive's nor on loopback; keys or a contact
            that no header can carry.
    """

    def __init__(
        self,
        url: str,
        keys: Keys | None,
        *,
        contact: str,
        timeout_s: float = TIMEOUT_S,
        index_timeout_s: float = INDEX_TIMEOUT_S,
        max_replay_bytes: int = REPLAY_MAX_BYTES,
    ) -> None:
        self._base = stand_in(url, WAYBACK_URL, "archive.captures.web_url") or WAYBACK_URL
        if keys is not None and not (_KEY.fullmatch(keys.access) and _KEY.fullmatch(keys.secret)):
            raise ConfigError(
                "expected an access and a secret key as https://archive.org/account/s3.php shows "
                "them (letters, digits, no colon, no space), got something else: check the file"
            )
        self._keys = keys
        self._client = Client(timeout_s, _agent(contact))
        self._index_client = Client(index_timeout_s, _agent(contact))
        self._max_replay_bytes = max_replay_bytes

    def __repr__(self) -> str:
        return f"Wayback({self._base!r})"

    @property
    def where(self) -> str:
        """Its base address, as capture URLs begin."""
        return self._base

    def submit(
        self, url: str, *, within_s: int | None, plain: bool
    ) -> Accepted | Existing | Refused:
        """Ask for a capture of `url`.

        Flags are sent only where they are on, as the documentation has it; an answer of the page's
        own that is an error is never kept (no `capture_all`).
        """
        fields = {"url": url, "skip_first_archive": "1"}
        fields |= {"force_get": "1"} if plain else {"js_behavior_timeout": "0"}
        if within_s is not None:
            fields["if_not_archived_within"] = str(max(within_s, 0))
        return self._save(
            "/save", fields, lambda said: read_submit(said.status, said.headers, said.body, url)
        )

    def statuses(self, job_ids: Sequence[str]) -> dict[str, Running | Reported | Refused] | Refused:
        """Read up to 50 jobs in one call; those beyond are left out like unknown ones."""
        asked = tuple(job_ids[:JOBS_PER_READ])
        if not asked:
            return {}
        return self._save(
            "/save/status",
            {"job_ids": ",".join(asked)},
            lambda said: read_statuses(said.status, said.headers, said.body, asked),
        )

    def account(self) -> AccountStatus | Refused:
        """Read slots and day counts; the random part keeps caches out."""
        return self._save(
            f"/save/status/user?_t={secrets.token_hex(8)}",
            None,
            lambda said: read_account(said.status, said.headers, said.body),
        )

    def system(self) -> SystemStatus | Refused:
        """Read whether the service is overloaded."""
        return self._save(
            "/save/status/system",
            None,
            lambda said: read_system(said.status, said.headers, said.body),
        )

    def index(
        self, url: str, *, first: str, last: str, prefix: bool = False, resume: str | None = None
    ) -> IndexPage | Refused:
        """List captures of `url` from `first` to `last`."""
        query = {
            "url": url,
            "output": "json",
            "fl": ",".join(FIELDS),
            "from": first,
            "to": last,
            "limit": str(INDEX_ROWS),
            "gzip": "false",
            "showResumeKey": "true",
        }
        if prefix:
            query["matchType"] = "prefix"
        target = f"{self._base}/cdx/search/cdx?{urllib.parse.urlencode(query, errors='replace')}"
        if resume is not None:
            # It is given ready for a URL; to encode it again would make another key of it.
            ready = _RESUME.fullmatch(resume)
            target += f"&resumeKey={resume if ready else urllib.parse.quote_plus(resume)}"
        return _asked(
            "/cdx/search/cdx",
            lambda: self._index_client.get(target, max_bytes=INDEX_MAX_BYTES),
            lambda said: read_index(said.status, said.headers, said.body),
            INDEX_MAX_BYTES,
        )

    def replay(
        self, timestamp: str, url: str, contains: str | None
    ) -> Memento | NotThere | Refused:
        """Fetch the raw bytes (`id_`) of one memento, without following anything."""
        page = url.partition("#")[0]
        target = f"{self._base}/web/{timestamp}id_/{page}"
        return _asked(
            "/web",
            lambda: self._client.get(target, max_bytes=self._max_replay_bytes + 1),
            lambda said: (
                read_replay(said.status, said.headers, said.body, timestamp, page, contains)
                if _tells_its_length(said)
                else Refused(code="no-answer", message="the memento does not tell its length")
            ),
            self._max_replay_bytes,
        )

    def _save(
        self, path: str, fields: dict[str, str] | None, read: Callable[[Response], T]
    ) -> T | Refused:
        """Ask Save Page Now, which wants the keys and, against HTML, to be told of JSON."""
        keys = self._keys
        if keys is None:
            raise ConfigError("captures need the account's keys: set archive.credentials_file")
        target = self._base + path
        headers = {
            "Accept": "application/json",
            "Authorization": f"LOW {keys.access}:{keys.secret}",
        }

        def send() -> Response:
            if fields is None:
                return self._client.get(target, headers=headers, max_bytes=SAVE_MAX_BYTES)
            form = {**headers, "Content-Type": "application/x-www-form-urlencoded"}
            body = urllib.parse.urlencode(fields, errors="replace").encode()
            return self._client.post(target, headers=form, body=body, max_bytes=SAVE_MAX_BYTES)

        return _asked(
            path.partition("?")[0], lambda: _without_keys(send(), keys), read, SAVE_MAX_BYTES
        )


def _without_keys(said: Response, keys: Keys) -> Response:
    """Blot the keys out of an answer that repeats them: its words go to logs and screens."""
    body = said.body
    for key in (keys.secret, keys.access):
        if len(key) >= _ECHO_MIN:
            body = body.replace(key.encode(), b"***")
    return Response(said.status, said.headers, body)


def _tells_its_length(said: Response) -> bool:
    """Tell whether a body that was cut short would have been noticed (RFC 9112, 6.3)."""
    return any(name in said.headers for name in ("Content-Length", "Transfer-Encoding"))


def _agent(contact: str) -> str:
    if not _CONTACT.fullmatch(contact):
        raise ConfigError(
            "archive.contact: expected a URL or an address in plain ASCII without parentheses, "
            f"got {contact!r:.80}"
        )
    return f"{USER_AGENT} (+{contact})"


def _asked(
    path: str, send: Callable[[], Response], read: Callable[[Response], T], max_bytes: int
) -> T | Refused:
    """Send once and read the answer; whatever goes wrong on the way is a refusal, too."""
    try:
        said = send()
    except NetworkError as error:
        code = "connection-refused" if error.refused else "no-answer"
        return Refused(code=code, message=str(error))
    except ProtocolError as error:
        code = "too-large" if error.too_long else "unknown-answer"
        return Refused(code=code, message=str(error))
    # Of an answer other than 2xx the client keeps the beginning only, which has another hash.
    if len(said.body) > max_bytes:
        return Refused(code="too-large", message=f"expected at most {max_bytes:,} bytes, got more")
    told = read(said)
    kind = said.headers.get("Content-Type", "")
    log_unknown(f"the Wayback Machine, {path},", told, said.status, kind, said.body)
    return told
