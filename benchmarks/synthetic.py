"""Input of any size, the same for the same seed: Pith records, headers, small files.

Nothing here is real: ids lie outside those arXiv has given out, and hashes are of numbers.
"""

from __future__ import annotations

import json
import random
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.core.network import network

if TYPE_CHECKING:
    from collections.abc import Iterator

_CATEGORIES = ["cs.DC", "cs.CR", "hep-th", "math.NT", "q-bio.PE", "stat.ML"]
_LICENCES = [
    "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
    "http://creativecommons.org/licenses/by/4.0/",
    "http://creativecommons.org/licenses/by-sa/4.0/",
    "",
]


def records(count: int, seed: int) -> Iterator[str]:
    """Yield `count` Pith records as lines of JSON, of the size and shape of real ones."""
    draw = random.Random(seed)
    for number in range(count):
        year, month, day = draw.randrange(2007, 2026), draw.randrange(1, 13), draw.randrange(1, 29)
        clock = draw.randrange(86400)
        at = f"{year}-{month:02}-{day:02}T{clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}Z"
        extra = draw.sample(_CATEGORIES, draw.randrange(3))
        record = {
            "metadata": {
                "abstract_canon_sha256": draw.randbytes(32).hex(),
                "cross_cats_sorted": sorted(extra),
                "license": draw.choice(_LICENCES),
                "primary_cat": draw.choice(_CATEGORIES),
                "submitted_at": at,
                "title_canon_sha256": draw.randbytes(32).hex(),
            },
            "schema_version": "1.0",
            "source": {
                "id": f"{year % 100:02}{month:02}.9{number:07}",
                "kind": "arxiv",
                "version": draw.randrange(1, 4),
            },
        }
        yield json.dumps(record, separators=(",", ":"))


def write_records(file: Path, count: int, seed: int = 1) -> None:
    """Write JSON Lines of `count` records."""
    with file.open("w", encoding="utf-8") as out:
        out.writelines(line + "\n" for line in records(count, seed))


def write_headers(file: Path, count: int) -> None:
    """Write `count` regtest headers, genesis included, each with its (easy) proof of work."""
    genesis = network("regtest").genesis
    moment = int.from_bytes(genesis[68:72], "little")
    tail = genesis[72:76]
    before = sha256(sha256(genesis).digest()).digest()
    with file.open("wb") as out:
        out.write(genesis)
        for height in range(1, count):
            root = sha256(height.to_bytes(4, "little")).digest()
            # 450 s apart, so that the last of a million is not in the future.
            at = (moment + 450 * height).to_bytes(4, "little")
            head = b"\x00\x00\x00\x20" + before + root + at + tail
            nonce = 0
            while True:  # every second hash is below the easiest target
                raw = head + nonce.to_bytes(4, "little")
                before = sha256(sha256(raw).digest()).digest()
                if before[31] < 0x7F:
                    break
                nonce += 1
            out.write(raw)


def write_files(folder: Path, count: int) -> list[Path]:
    """Write `count` small files and return their paths."""
    folder.mkdir()
    files = [folder / f"{number:06}.txt" for number in range(count)]
    for number, file in enumerate(files):
        file.write_text(f"file {number}\n", encoding="utf-8")
    return files
