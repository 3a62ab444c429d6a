"""A webhook: signed events posted as they are, in the manner of Standard Webhooks 1.0.

`webhook-id` is the event's id (several in one request: a hash over their ids), the same at every
try, so whoever receives it drops what came before. `webhook-signature` is HMAC-SHA256 over
`id.timestamp.body` (https://www.standardwebhooks.com, "Verifying webhook authenticity"); it shows
who sent the request, the event's own signature shows who stands for it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import time
from typing import TYPE_CHECKING

from anchord.adapters.http import Client, authority, base_url, clean, require_ok
from anchord.adapters.outlets.secret import signing_keys
from anchord.errors import ProtocolError
from anchord.ports.outlet import CALL_S, Closed, Partly, Wants

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from anchord.adapters.http import Response
    from anchord.ports import Clock
    from anchord.ports.outlet import Delivery

MAX_BODY = 4 << 20
"""Bytes of one request; events beyond go in the next, and one that is longer is refused."""
_REFUSALS = (400, 409, 413, 415, 422, 500, 501)
"""Answers that are about what was sent; a server that is overloaded or away gives others."""


class WebhookOutlet:
    """Posts events.

    Args:
        name: of the outlet.
        url: where to; https, or http on loopback.
        secret_file: `whsec_...`, one a line.
        client: the way out; it follows no redirect, so nothing is sent where nobody said.
        clock: for `webhook-timestamp`.
        at_once: most events in one request; more than 1 makes the body JSON Lines.
        events: the event types it takes; empty: all.
        from_now: what was before is not sent.

    Raises:
        ConfigError: the address may not be posted to, or the secret cannot be used.
    """

    kind = "webhook"
    wants: Wants = "event"

    def __init__(
        self,
        name: str,
        url: str,
        secret_file: Path,
        client: Client,
        clock: Clock,
        *,
        at_once: int = 1,
        events: Collection[str] = (),
        from_now: bool = False,
    ) -> None:
        self.name, self.events, self.from_now = name, events, from_now
        self.at_once = at_once
        base_url(url, f"outlets ({name}): url")
        self._url, self._who = url, authority(url)
        self._secret_file, self._client, self._clock = secret_file, client, clock
        signing_keys(secret_file)

    def hand_over(self, deliveries: Sequence[Delivery]) -> Mapping[int, str] | Partly | Closed:
        """Post events, several in one request where that is allowed; a 2xx takes them.

        Of several that are refused together each is posted alone.

        Raises:
            TransientError: no answer, or 408, 429, 5xx; with the time of Retry-After.
            ProtocolError: a redirect, or another answer that is about us and not an event.
            ConfigError: the secret cannot be read.
        """
        keys, ends = signing_keys(self._secret_file), time.monotonic() + CALL_S
        refused: dict[int, str] = {}
        waiting = _within(deliveries)[::-1]
        while waiting:
            group = waiting.pop()
            if group[0] is not deliveries[0] and time.monotonic() > ends:
                return Partly(refused, group[0].seq)
            words = self._post(group, keys)
            if isinstance(words, Closed):
                return words
            if words is not None and len(group) > 1:
                waiting += [[one] for one in reversed(group)]
            elif words is not None:
                refused[group[0].seq] = words
        return refused

    def close(self) -> None:
        """There is nothing to release."""

    def _post(self, group: Sequence[Delivery], keys: Sequence[bytes]) -> str | Closed | None:
        """Make one request; return why it was refused."""
        body = _body(group, lines=self.at_once > 1)
        if len(body) > MAX_BODY:
            return f"it has {len(body):,} bytes, and at most {MAX_BODY:,} are sent"
        message_id, now = _id(group), self._clock.now()
        headers = {
            "Content-Type": "application/x-ndjson" if self.at_once > 1 else "application/json",
            "webhook-id": message_id,
            "webhook-timestamp": str(now),
            "webhook-signature": " ".join(signature(key, message_id, now, body) for key in keys),
        }
        try:
            response = self._client.post(
                self._url, body=body, headers=headers, status_suffices=True
            )
        except ProtocolError as error:
            if error.too_long:  # it took the event, and had much to say about it
                return None
            raise
        return self._meaning(response)

    def _meaning(self, response: Response) -> str | Closed | None:
        status = response.status
        if 200 <= status < 300:
            return None
        if status == http.client.GONE:
            return Closed(
                f"{self._who} wants no more events (410): nothing is sent any more. If it shall "
                f"go on, mend it, then run: anchord retry --outlet {self.name}"
            )
        if status in _REFUSALS:
            why = clean(response.body)
            return f"{self._who} refused it ({status}{why and f': {why}'})"
        require_ok(response, self._who)
        return None


def signature(key: bytes, message_id: str, moment: int, body: bytes) -> str:
    """Return one signature of `webhook-signature`."""
    signed = f"{message_id}.{moment}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def _id(group: Sequence[Delivery]) -> str:
    if len(group) == 1:
        return group[0].event_id
    ids = "\n".join(one.event_id for one in group)
    return "batch:" + hashlib.sha256(ids.encode()).hexdigest()


def _body(group: Sequence[Delivery], *, lines: bool) -> bytes:
    if not lines:
        return group[0].document
    return b"".join(one.document + b"\n" for one in group)


def _within(deliveries: Sequence[Delivery], most: int = MAX_BODY) -> list[list[Delivery]]:
    """Cut deliveries into requests that are not too long."""
    groups: list[list[Delivery]] = []
    size = 0
    for one in deliveries:
        size += len(one.document) + 1
        if not groups or size > most:
            groups.append([])
            size = len(one.document) + 1
        groups[-1].append(one)
    return groups
