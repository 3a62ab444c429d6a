"""What goes through the pipes between anchord and its upload process, and how it is framed.

A frame is a 4-byte length and a MessagePack value. One question, one reply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

MAX_QUESTION_BYTES = 48 * 1024
"""Less than a pipe holds, so that writing a question never waits for its reader."""
MAX_REPLY_BYTES = 17 << 20
_LENGTH_BYTES = 4


class Opening(msgspec.Struct, frozen=True, tag=True):
    """The first frame: whose account, and where the services are."""

    access: str
    secret: str
    contact: str
    """Ends the User-Agent."""
    api_url: str | None
    """On loopback; None: archive.org."""
    s3_url: str | None
    """On loopback; None: s3.us.archive.org."""

    def __repr__(self) -> str:
        return "Opening()"

    __str__ = __repr__


class AskMetadata(msgspec.Struct, frozen=True, tag=True):
    """Read an item's metadata."""

    identifier: str


class AskTasks(msgspec.Struct, frozen=True, tag=True):
    """Read the summary of an item's tasks."""

    identifier: str


class AskLimit(msgspec.Struct, frozen=True, tag=True):
    """Read check_limit."""

    identifier: str


class AskAccount(msgspec.Struct, frozen=True, tag=True):
    """Read check_auth."""


class Put(msgspec.Struct, frozen=True, tag=True):
    """Upload one file, if the file is what it should be."""

    identifier: str
    name: str
    path: str
    md5: str
    metadata: dict[str, str]


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """Download a file and hash it."""

    identifier: str
    name: str
    max_bytes: int


class Answered(msgspec.Struct, frozen=True, tag=True):
    """What a service answered, whatever the status."""

    status: int
    body: bytes
    retry_after: str = ""
    date: str = ""
    framed: bool = True
    """The answer told its length."""


class Skipped(msgspec.Struct, frozen=True, tag=True):
    """The library found nothing to send."""


class Hashed(msgspec.Struct, frozen=True, tag=True):
    """A download, whole."""

    size: int
    sha256: bytes


class Failed(msgspec.Struct, frozen=True, tag=True):
    """No usable answer."""

    code: str
    message: str


Question = AskMetadata | AskTasks | AskLimit | AskAccount | Put | Fetch
Reply = Answered | Skipped | Hashed | Failed

encode = msgspec.msgpack.Encoder().encode
decode_opening = msgspec.msgpack.Decoder(Opening).decode
decode_question: Callable[[bytes], Question] = msgspec.msgpack.Decoder[Any](Question).decode
decode_reply: Callable[[bytes], Reply] = msgspec.msgpack.Decoder[Any](Reply).decode


def frame(message: Opening | Question | Reply) -> bytes:
    """Return `message` as it goes through a pipe."""
    data = encode(message)
    return len(data).to_bytes(_LENGTH_BYTES, "big") + data


def read_frame(read: Callable[[int], bytes], max_bytes: int) -> bytes | None:
    """Return the next frame's value; None at the end of the pipe, or for a frame that is none.

    Args:
        read: returns exactly as many bytes as asked for, or fewer at the end.
        max_bytes: longer frames are not read.
    """
    head = read(_LENGTH_BYTES)
    size = int.from_bytes(head, "big")
    if len(head) != _LENGTH_BYTES or size > max_bytes:
        return None
    data = read(size)
    return data if len(data) == size else None
