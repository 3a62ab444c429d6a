"""What can go wrong with items on command; the board of the sandbox takes these kinds in.

Plain data (words, groups, routes, options), so that the board's module can import it.
"""

from __future__ import annotations

IAS3 = "ias3"
"""The upload host, and its group."""
ARCHIVE_ORG = "archive-org"
ARCHIVE = "archive"
"""The group of `archive-org`."""

_Row = tuple[str, frozenset[str], frozenset[str] | None, frozenset[str]]


def _put(words: str, *options: str) -> _Row:
    return words, frozenset({IAS3}), frozenset({"put"}), frozenset(options)


def _limit(words: str) -> _Row:
    return words, frozenset({IAS3}), frozenset({"check-limit"}), frozenset()


def _site(words: str, *routes: str) -> _Row:
    return words, frozenset({ARCHIVE}), frozenset(routes), frozenset()


ITEM_KINDS: dict[str, _Row] = {
    "slow-down": _put(
        "refuses an upload with 503 SlowDown (scope: global, accesskey, bucket, simulated)", "scope"
    ),
    "spam": _put("takes the upload for spam, and every later one of the account too"),
    "bucket-lock": _put("refuses with 409 OperationAborted: another upload holds the item"),
    "bucket-exists": _put("refuses with 409 BucketAlreadyExists: the namespace is shared"),
    "bad-digest": _put("gets other bytes than a stated Content-MD5 says: 400 BadDigest"),
    "access-denied": _put("refuses the keys with 403 AccessDenied"),
    "internal-error": _put("refuses with 500 InternalError"),
    "empty-500": _put("refuses with an empty 500"),
    "stored-500": _put("stores the file, then answers an empty 500"),
    "stored-cut": _put("stores the file, then cuts the connection"),
    "task-error": _put("takes the file, then the item's tasks stop in error"),
    "task-paused": _put("takes the file, then the item's tasks are paused"),
    "over-limit": _limit("says that it is over its limit"),
    "limit-html": _limit("answers check_limit with a page instead of JSON"),
    "auth-error": (
        "knows no such account at check_auth",
        frozenset({IAS3}),
        frozenset({"check-auth"}),
        frozenset(),
    ),
    "item-missing": _site("says {} for an item that is there", "metadata"),
    "item-dark": _site("says that the item was taken down", "metadata"),
    "servers-unavailable": _site(
        "lists no file, and says that the servers which hold the item are unavailable", "metadata"
    ),
    "metadata-html": _site("answers with a page instead of JSON", "metadata", "tasks"),
    "download-missing": _site("answers 404 for a file that is there", "download", "data"),
    "download-503": _site("answers 503 with a page", "download", "data"),
    "download-corrupt": _site("sends other bytes of the same length", "data"),
}
"""Every fault of the two services: words, groups, routes, options."""
