"""What follows from a refusal of an upload or of a question about items.

Sources: IAS3 (https://archive.org/developers/ias3.html, "Rate limits"), and what happened to
others: https://github.com/jjjake/internetarchive/issues 133, 276, 289, 298, 312, 341, 392, 427,
462, 555, 574, 578, 641, and https://github.com/harvard-lil/perma/pull/3263.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from anchord.core.item import Headroom
from anchord.core.retry import next_attempt
from anchord.core.storage import Refused

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_WAITS_S = (_MINUTE, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 6 * _HOUR, _DAY)
"""After the first, second, ... failure that counts; after the last a person looks."""
_TRIES_AT_ONCE = 3
_BREAKER = 5
"""So many refusals in a row are the service's trouble, not the file's."""
_BREAK_S = 30 * _MINUTE

_PERMANENT = {
    "InvalidBucketName": "the service does not take the identifier, or not from this account",
    "name-taken": "the item holds another file of this name, which is never overwritten",
    "foreign": "the item belongs to somebody else: choose another prefix",
    "dark": "the item was taken down: write to info@archive.org",
    "bad-name": "the file's name cannot be sent",
    "spool-damaged": "the file in the spool is not what was packed: check the disk",
}
_STOPPING = {
    "spam": "uploads are taken for spam: write to info@archive.org, then run "
    "`anchord retry --archive`",
    "AccessDenied": "the account may not do this: check keys and collection, then run "
    "`anchord retry --archive`",
}
_DENIALS = {
    "http-401",
    "http-403",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "AccountProblem",
    "InvalidSecurity",
}
_RACES = {"OperationAborted", "BucketAlreadyExists"}
_UNSETTLED = {"offline", "http-503", "ServiceUnavailable"}
"""An outage in the middle of an upload: what was sent may have been taken."""


class ItemDecision(msgspec.Struct, frozen=True, kw_only=True):
    """What is done about one refusal."""

    scope: Literal["file", "lane"]
    """What waits: this file, or everything that goes to the account."""
    at: int
    """Not before this moment; for `park` and `stop` it says nothing."""
    counted: bool
    """Whether it is one of the file's failed tries."""
    park: bool = False
    """The file waits for a person."""
    stop: bool = False
    """The lane waits for a person."""
    alert: str | None = None
    """A line for `anchord status`."""
    strikes: int = 0
    """The lane's refusals in a row, this one included."""
    read_first: bool = False
    """The file may be there: read the item's metadata before it is sent again."""


def decide(refused: Refused, now: int, *, attempts: int, strikes: int) -> ItemDecision:
    """Return what follows.

    Args:
        refused: what was said.
        now: Unix seconds.
        attempts: the file's failed tries that count, without this one.
        strikes: the lane's refusals in a row, without this one.
    """
    code = "AccessDenied" if refused.code in _DENIALS else refused.code
    row = strikes + 1
    if code in _STOPPING:
        alert = f"{_STOPPING[code]} ({refused.message})"
        return ItemDecision(
            scope="lane", at=now, counted=False, stop=True, alert=alert, strikes=row
        )
    if code in _PERMANENT:
        alert = f"{_PERMANENT[code]} ({refused.message})"
        return ItemDecision(
            scope="file", at=now, counted=True, park=True, alert=alert, strikes=strikes
        )
    if code == "BadDigest":
        return _digest(refused, now, attempts, strikes)
    if code in _RACES:
        # Not counted, so the lane's strikes make the wait longer: one to five minutes.
        at = _later(now, min(row, 5) * _MINUTE, refused)
        return ItemDecision(scope="file", at=at, counted=False, strikes=row, read_first=True)
    if code == "tasks-pending":
        at = _later(now, 5 * _MINUTE, refused)
        return ItemDecision(scope="file", at=at, counted=False, strikes=strikes, read_first=True)
    return _pause(code, refused, now, row) or _failure(refused, now, attempts, row)


def over_limit(headroom: Headroom) -> Refused:
    """Return the refusal that check_limit stands for when it says "over"."""
    own = [left for left in (headroom.account_left, headroom.item_left) if left is not None]
    mine = any(left <= 0 for left in own) or headroom.global_left is None
    return Refused(
        code="SlowDown" if mine else "SlowDown-global",
        message=headroom.message or "check_limit says that the upload service takes no more now",
    )


def _digest(refused: Refused, now: int, attempts: int, strikes: int) -> ItemDecision:
    """Our bytes broke on the way: at once again, and after the third time a person looks."""
    if attempts + 1 < _TRIES_AT_ONCE:
        return ItemDecision(scope="file", at=now, counted=True, strikes=strikes)
    alert = f"an upload arrived broken {_TRIES_AT_ONCE} times ({refused.message})"
    return ItemDecision(scope="file", at=now, counted=True, park=True, alert=alert, strikes=strikes)


def _pause(code: str, refused: Refused, now: int, row: int) -> ItemDecision | None:
    """Return a pause of the whole lane; such a refusal says nothing against the file."""
    alert = None
    if code == "SlowDown-global":
        at = _later(now, 15 * _MINUTE, refused)
    elif code in {"SlowDown", "http-509"}:
        at = _later(now, 5 * _MINUTE, refused)
    elif code == "http-429":
        at = _doubling(now, row, refused, shortest_s=_MINUTE, longest_s=_BREAK_S)
    elif code in _UNSETTLED:
        at = _doubling(now, row, refused, shortest_s=5 * _MINUTE, longest_s=_BREAK_S)
    elif code == "connection-refused":
        # Its firewall closes for an hour, and each time for twice as long
        # (edgi-govdata-archiving/wayback issue 137).
        at = _doubling(now, row, refused, shortest_s=_HOUR, longest_s=_DAY)
        alert = "archive.org refuses connections from this address"
    elif code in {"certificate", "elsewhere"}:
        at = _later(now, _BREAK_S, refused)
        alert = f"what answers for archive.org is not archive.org ({refused.message})"
    else:
        return None
    return ItemDecision(
        scope="lane",
        at=at,
        counted=False,
        alert=alert,
        strikes=row,
        read_first=code in _UNSETTLED,
    )


def _failure(refused: Refused, now: int, attempts: int, row: int) -> ItemDecision:
    """500, an empty answer, a reset, a timeout, words nobody knows: the file may be there."""
    if row > _BREAKER:
        alert = f"archive.org failed {row} times in a row (last: {refused.message})"
        at = _later(now, _BREAK_S, refused)
        return ItemDecision(
            scope="lane", at=at, counted=False, alert=alert, strikes=row, read_first=True
        )
    if attempts >= len(_WAITS_S):
        alert = f"an upload failed {attempts + 1} times (last: {refused.message})"
        return ItemDecision(
            scope="file",
            at=now,
            counted=True,
            park=True,
            alert=alert,
            strikes=row,
            read_first=True,
        )
    at = _later(now, _WAITS_S[attempts], refused)
    return ItemDecision(scope="file", at=at, counted=True, strikes=row, read_first=True)


def _later(now: int, wait_s: int, refused: Refused) -> int:
    return _doubling(now, 1, refused, shortest_s=wait_s, longest_s=wait_s)


def _doubling(now: int, row: int, refused: Refused, *, shortest_s: int, longest_s: int) -> int:
    return next_attempt(
        now, row, shortest_s=shortest_s, longest_s=longest_s, retry_after_s=refused.retry_after_s
    )
