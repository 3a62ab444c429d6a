"""What the Wayback Machine said, as values; `anchord.core.capture` reads its answers into them."""

from __future__ import annotations

import msgspec


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A job was made, or one of the same URL is known."""

    job_id: str
    message: str = ""
    delay_s: int = 0
    """How much later the service said that it will begin."""


class Existing(msgspec.Struct, frozen=True, kw_only=True):
    """No job: a recent capture of this URL exists. Look for it in the index."""

    message: str


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A job is pending; the same is said of jobs that expired or never were."""

    job_id: str


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """A job ended in success, which proves nothing yet."""

    job_id: str
    timestamp: str
    """14 digits, UTC."""
    original_url: str
    """The final URL, made whole where the service gave only a path."""
    http_status: int | None
    original_job_id: str | None
    """Given when the capture is an older one."""
    raw: bytes
    """The status object, as canonical JSON."""


class AccountStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the account may do now. None: the service did not say."""

    available: int
    processing: int
    daily_captures: int | None = None
    daily_captures_limit: int | None = None
    daily_status: int | None = None
    daily_status_limit: int | None = None


class SystemStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether Save Page Now is well."""

    ok: bool
    message: str


class IndexRow(msgspec.Struct, frozen=True):
    """One capture the index lists."""

    urlkey: str
    timestamp: str
    original: str
    mimetype: str
    statuscode: str
    """"-" in a revisit record."""
    digest: str
    length: str


class IndexPage(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of the index; `resume` asks for what follows."""

    rows: tuple[IndexRow, ...]
    resume: str | None = None


class Memento(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly the capture that was asked for, replayed raw."""

    timestamp: str
    http_status: int
    """Of the archived answer."""
    sha256: bytes
    """Of the body as it came on the wire."""
    size: int
    x_archive_src: str
    contains: bool
    """Whether the text that was asked for is in it, content coding undone."""


class NotThere(msgspec.Struct, frozen=True, kw_only=True):
    """The capture does not replay (yet): another one was offered, or none."""

    reason: str
