r"""Lines of `sha256sum` lists, in every form GNU coreutils writes and reads them.

    <64 hex> <space><space or *><name>       text or binary mode
    SHA256 (<name>) = <64 hex>               --tag, the BSD form

A leading backslash says that `\\`, `\n` and `\r` in the name are escapes (coreutils manual,
md5sum invocation). The digest becomes a record of scheme sha256 with the name as its label; the
named file is not read.
"""

from __future__ import annotations

import re

from anchord.core.model import Record, Scheme
from anchord.errors import RefusedError

_GNU = re.compile(rb"(\\?)([0-9A-Fa-f]{64}) [ *](.+)", re.DOTALL)
_BSD = re.compile(rb"(\\?)SHA256 \((.+)\) = ([0-9A-Fa-f]{64})", re.DOTALL)
_BARE = re.compile(rb"\s*([0-9A-Fa-f]{64})\s*")
_OTHER = re.compile(rb"\\?([A-Za-z0-9/-]+) ?\(.+\) ?= ?[0-9A-Za-z+/=]+", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)
_ESCAPES = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}


def is_checksum_line(line: bytes) -> bool:
    """Return whether `line` is one of the known forms."""
    return bool(_GNU.fullmatch(line) or _BSD.fullmatch(line) or _BARE.fullmatch(line))


def read_checksum_line(line: bytes) -> Record | None:
    """Return the record that `line` (without its line ending) states; None for blank and comment.

    Raises:
        RefusedError: anything else.
    """
    if match := _GNU.fullmatch(line):
        escaped, digest, name = match.groups()
    elif match := _BSD.fullmatch(line):
        escaped, name, digest = match.groups()
    elif match := _BARE.fullmatch(line):
        escaped, digest, name = b"", match[1], b""
    elif not line.strip() or line.lstrip().startswith(b"#"):
        return None
    else:
        raise RefusedError(_problem(line))
    label = text(unescape(name) if escaped else name) or None
    return Record(digest=bytes.fromhex(digest.decode("ascii")), scheme=Scheme.SHA256, label=label)


def unescape(name: bytes) -> bytes:
    """Return the name that coreutils escaped.

    Raises:
        RefusedError: a backslash before anything but backslash, n or r.
    """

    def plain(match: re.Match[bytes]) -> bytes:
        try:
            return _ESCAPES[match[1]]
        except KeyError:
            raise RefusedError(
                f"the escaped name holds {text(match[0])!r}: expected \\\\, \\n or \\r"
            ) from None

    return _ESCAPE.sub(plain, name)


def text(name: bytes) -> str:
    r"""Return a file name as valid text: bytes that are not UTF-8 become `\xNN`."""
    return name.decode("utf-8", "backslashreplace")


def _problem(line: bytes) -> str:
    other = _OTHER.fullmatch(line)
    if other and other[1] != b"SHA256":
        return f"the line is a {text(other[1])} checksum: only SHA256 is taken in"
    return (
        f"the line is no sha256sum line: expected 64 hex digits, two spaces and a name, "
        f"got {text(line[:60])!r}"
    )
