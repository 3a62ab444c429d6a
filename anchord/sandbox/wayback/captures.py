"""The archive's captures, findable by page, by beginning of a page, and by time."""

from __future__ import annotations

import base64
import bisect
import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from anchord.sandbox.wayback.urlkey import urlkey

LAST = "99999999999999"


class Capture(msgspec.Struct, kw_only=True):
    """One stored answer of one URL."""

    url: str
    urlkey: str
    timestamp: str
    """14 digits, unique among the captures of its key."""
    status: int
    content_type: str
    headers: tuple[tuple[str, str], ...]
    """The other headers of the answer."""
    body: bytes
    location: str | None
    source: str
    """Name of the WARC file; Save Page Now's begin with `spn2-`."""
    made_at: float
    visible_at: float
    available_at: float
    job: int | None
    """Serial number of the job that made it; None: somebody else's."""
    gone_at: float | None = None
    gone_but_listed: bool = False
    """The index still lists it when it is gone."""
    revisit: bool = False

    @property
    def digest(self) -> str:
        """SHA-1 of the payload in base32, as the index has it."""
        return base64.b32encode(hashlib.sha1(self.body).digest()).decode()  # noqa: S324

    def lives(self, now: float) -> bool:
        """Tell whether it exists, visible or not."""
        return self.gone_at is None or now < self.gone_at

    def replays(self, now: float) -> bool:
        """Tell whether it can be replayed now."""
        return self.visible_at <= now and self.lives(now)

    def listed(self, now: float) -> bool:
        """Tell whether the index lists it now."""
        return self.visible_at <= now and (self.lives(now) or self.gone_but_listed)


class Captures:
    """All captures. Not for several threads at once: the service holds its lock."""

    def __init__(self) -> None:
        self._by_key: dict[str, list[Capture]] = {}
        self._keys: list[str] = []
        self._by_time: list[tuple[str, str]] = []

    def __iter__(self) -> Iterator[Capture]:
        """Yield all, page by page."""
        for captures in self._by_key.values():
            yield from captures

    def add(self, capture: Capture) -> None:
        """Keep a capture; its key and timestamp must not be taken."""
        if capture.urlkey not in self._by_key:
            bisect.insort(self._keys, capture.urlkey)
        of_key = self._by_key.setdefault(capture.urlkey, [])
        bisect.insort(of_key, capture, key=lambda one: one.timestamp)
        bisect.insort(self._by_time, (capture.timestamp, capture.urlkey))

    def of(self, key: str) -> list[Capture]:
        """Return the captures of one key, oldest first."""
        return self._by_key.get(key, [])

    def find(self, key: str, timestamp: str) -> Capture | None:
        """Return exactly this one."""
        of_key = self.of(key)
        at = bisect.bisect_left(of_key, timestamp, key=lambda one: one.timestamp)
        return of_key[at] if at < len(of_key) and of_key[at].timestamp == timestamp else None

    def newest(self, url: str, now: float) -> Capture | None:
        """Return the youngest living capture of a URL, visible or not.

        The archive itself knows what it has made before its index does.
        """
        of_key = self.of(urlkey(url))
        return next((one for one in reversed(of_key) if one.url == url and one.lives(now)), None)

    def within(self, first_key: str, last_key: str, first: str, last: str) -> Iterable[Capture]:
        """Return captures whose keys lie in [first_key, last_key) and times in [first, last].

        `last` may be a beginning: everything that begins with it is within. Sorted by key and
        time. Looks through whichever is less: the keys or the moments.
        """
        until = last + LAST[len(last) :]
        keys = slice(
            bisect.bisect_left(self._keys, first_key), bisect.bisect_left(self._keys, last_key)
        )
        times = slice(
            bisect.bisect_left(self._by_time, (first, "")),
            bisect.bisect_right(self._by_time, (until, "\U0010ffff")),
        )
        if times.stop - times.start < keys.stop - keys.start:
            found = sorted(
                (key, timestamp)
                for timestamp, key in self._by_time[times]
                if first_key <= key < last_key
            )
            return [one for key, at in found if (one := self.find(key, at))]
        return (
            one
            for key in self._keys[keys]
            for one in self._by_key[key]
            if first <= one.timestamp <= until
        )
