"""Static tiles of a log: paths and contents, as C2SP tlog-tiles names them.

https://c2sp.org/tlog-tiles: `tile/<L>/<N>` holds 256 hashes of a level, `tile/entries/<N>` the 256
entries below them; N is written in groups of three digits (`x001/x234/067`), and a tile that is not
full yet has its width as a suffix (`.p/<W>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from anchord.core.log import MAX_SIZE
from anchord.core.log_tree import HEIGHT, WIDTH
from anchord.errors import RefusedError

_PATH = re.compile(
    r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?", re.ASCII
)
_MAX_LEVEL = 63
_MAX_ENTRY = 0xFFFF


class TileName(msgspec.Struct, frozen=True):
    """One tile of a log."""

    level: int | None
    """None: entries."""
    number: int
    width: int = WIDTH
    """How many hashes or entries it holds; less than 256 at the log's end."""

    @property
    def path(self) -> str:
        """Where it is published, below the log's address."""
        groups = [f"{self.number % 1000:03d}"]
        rest = self.number // 1000
        while rest:
            groups.append(f"x{rest % 1000:03d}")
            rest //= 1000
        level = "entries" if self.level is None else str(self.level)
        partial = "" if self.width == WIDTH else f".p/{self.width}"
        return f"tile/{level}/{'/'.join(reversed(groups))}{partial}"

    @property
    def start(self) -> int:
        """The place of its first hash within its level, or of its first entry."""
        return self.number * WIDTH

    @property
    def stop(self) -> int:
        """One beyond the place of its last."""
        return self.start + self.width


def parse_path(path: str) -> TileName:
    """Return the tile a path names.

    Raises:
        RefusedError: not such a path, or not in its one spelling.
    """
    match = _PATH.fullmatch(path)
    if match is not None:
        level = None if match[1] == "entries" else int(match[1])
        number = int(match[2].replace("x", "").replace("/", ""))
        width = int(match[3]) if match[3] else WIDTH
        found = TileName(level, number, width)
        if found.path == path and (level or 0) <= _MAX_LEVEL and number <= MAX_SIZE // WIDTH:
            return found
    raise RefusedError(f"expected the path of a tile, as tile/0/x001/234.p/56, got {path!r:.120}")


def tiles(size: int, since: int = 0) -> Iterator[TileName]:
    """Yield the tiles of hashes of a log, level by level.

    Args:
        size: entries in the log.
        since: leave out what a log of that size had in full already.
    """
    level = 0
    while size:
        for number in range(since // WIDTH, size // WIDTH):
            yield TileName(level, number)
        if size % WIDTH:
            yield TileName(level, size // WIDTH, size % WIDTH)
        size, since, level = size >> HEIGHT, since >> HEIGHT, level + 1


def entry_tiles(size: int, since: int = 0) -> Iterator[TileName]:
    """Yield the tiles of entries of a log; arguments as of `tiles`."""
    for name in tiles(size, since):
        if name.level:
            return
        yield TileName(None, name.number, name.width)


def entry_bundle(entries: Sequence[bytes]) -> bytes:
    """Return the contents of a tile of entries: each after its length in two bytes.

    Raises:
        RefusedError: too many entries, or one that is too long.
    """
    if len(entries) > WIDTH or any(len(entry) > _MAX_ENTRY for entry in entries):
        raise RefusedError(f"expected at most {WIDTH} entries of at most {_MAX_ENTRY} bytes")
    return b"".join([len(entry).to_bytes(2, "big") + entry for entry in entries])


def read_entry_bundle(raw: bytes, width: int) -> list[bytes]:
    """Return the entries of a tile.

    Raises:
        RefusedError: not exactly that many whole entries.
    """
    found: list[bytes] = []
    at = 0
    while at < len(raw) and len(found) < width:
        length = int.from_bytes(raw[at : at + 2], "big")
        found.append(raw[at + 2 : at + 2 + length])
        if len(found[-1]) != length or at + 2 > len(raw):
            raise RefusedError(f"entry {len(found) - 1} of the tile is cut off")
        at += 2 + length
    if len(found) != width or at != len(raw):
        raise RefusedError(f"expected {width} entries, got {len(found)} and {len(raw) - at} bytes")
    return found
