"""OpenTimestamps calendars over HTTP: one POST per batch, one GET per commitment.

The HTTP face is opentimestamps-server's (otsserver/rpc.py); the client side follows
python-opentimestamps (opentimestamps/calendar.py), with the checks that one leaves out: every
answer is held against what was asked before anything of it is used.
"""

from __future__ import annotations

import http.client
from collections.abc import Sequence

from anchord.adapters.http import Client, Response, authority, base_url, clean, require_ok
from anchord.core.proof import MAX_ANSWER_BYTES, check_submit_answer, check_upgrade_answer
from anchord.errors import ConfigError
from anchord.ports import NotYet, PendingPoint, Submitted, Upgraded

_ACCEPT = {"Accept": "application/vnd.opentimestamps.v1"}
_SUBMIT = {**_ACCEPT, "Content-Type": "application/x-www-form-urlencoded"}
"""What the standard client sends; urllib gives its POSTs this type although the body is raw."""

_STATUS_OF = {
    "Pending confirmation in Bitcoin blockchain": "journal",
    "Timestamped by transaction ": "transaction",
}
"""How the 404 texts of otsserver/rpc.py begin; "Not found" and all others mean "unknown"."""


class HttpCalendar:
    """One calendar; implements `anchord.ports.Calendar`. Threads may share it.

    Args:
        url: where digests are submitted: https, or http on loopback; a path is kept.
        uris: the pending URIs it may answer with; only these are ever asked, matched exactly.
        client: sends the requests.

    Raises:
        ConfigError: an address that is not plain https, or no uris.
    """

    def __init__(self, url: str, uris: Sequence[str], client: Client) -> None:
        self._submit_url = base_url(url, f"calendar {clean(authority(url))}: url") + "/digest"
        self._bases = {uri: base_url(uri, f"calendar {url}: uris") for uri in uris}
        if not self._bases:
            raise ConfigError(f"calendar {url}: uris is empty; name the URIs it answers with")
        self._url = url
        self._client = client

    def __repr__(self) -> str:
        return f"HttpCalendar({self._url!r})"

    @property
    def url(self) -> str:
        """Where digests are submitted, as configured."""
        return self._url

    @property
    def uris(self) -> tuple[str, ...]:
        """The pending URIs it may answer with and is asked under."""
        return tuple(self._bases)

    def submit(self, digest: bytes) -> Submitted:
        """POST one digest.

        Raises:
            TransientError: unreachable, slow, overloaded. It may hold the digest all the same:
                a second submit makes a second commitment, which is harmless.
            ProtocolError: the answer is not a pending timestamp of this digest.
        """
        response = self._client.post(
            self._submit_url, body=digest, headers=_SUBMIT, max_bytes=MAX_ANSWER_BYTES
        )
        require_ok(response, self._url)
        points = check_submit_answer(response.body, digest, self.uris)
        pendings = tuple(PendingPoint(uri, commitment) for uri, commitment in points)
        return Submitted(response.body, pendings)

    def upgrade(self, uri: str, commitment: bytes) -> Upgraded | NotYet:
        """GET the path to Bitcoin of one commitment.

        The commitment is the message at the pending attestation; asking with the submitted
        digest would answer "Not found" for ever (opentimestamps-server issue 116).

        Raises:
            ConfigError: `uri` is not one of `uris`; nothing was sent.
            TransientError: unreachable, slow, overloaded.
            ProtocolError: the answer does not lead from this commitment to Bitcoin only.
        """
        base = self._bases.get(uri)
        if base is None:
            raise ConfigError(
                f"calendar {self._url} is not asked under {clean(uri)!r}: add that to its uris "
                "in the configuration if the calendar is yours or known to you"
            )
        response = self._client.get(
            f"{base}/timestamp/{commitment.hex()}", headers=_ACCEPT, max_bytes=MAX_ANSWER_BYTES
        )
        if response.status == http.client.NOT_FOUND:
            return _not_yet(response)
        require_ok(response, uri)
        check_upgrade_answer(response.body, commitment)
        return Upgraded(response.body)


def _not_yet(response: Response) -> NotYet:
    detail = clean(response.body)
    known = (status for text, status in _STATUS_OF.items() if detail.startswith(text))
    return NotYet(next(known, "unknown"), detail)
