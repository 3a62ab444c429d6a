"""A stand-in for archive.org items and a spool, as small implementations of the ports.

`FakeItems` keeps what it was given, shows it when it likes, and lies about uploads in the ways the
real service was seen to: each upload takes the next word of `lies`.
"""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from anchord.core.item import Fetched, FileSeen, Headroom, ItemSeen, Sent
from anchord.core.storage import Refused
from anchord.ports.archive import Packed

DAY = 86_400
LAG_S = 45
"""Until a file is shown."""

LIES = (
    "ok", "late", "never", "500-stored", "500-lost", "cut-stored", "slow", "slow-global", "spam",
    "bad-digest", "wrong-md5", "race", "half-listed",
)  # fmt: skip


class _Kept(msgspec.Struct):
    data: bytes
    shown_at: int
    wrong: str = ""
    """"md5" or "none": what the listing has instead of the md5."""

    def listing(self) -> FileSeen:
        md5 = hashlib.md5(self.data, usedforsecurity=False).hexdigest()
        stated = {"": md5, "md5": "0" * 32, "none": None}[self.wrong]
        sha1 = hashlib.sha1(self.data, usedforsecurity=False).hexdigest()
        return FileSeen(size=len(self.data), md5=stated, sha1=sha1)


class FakeItems:
    """Items in memory.

    Attributes:
        lies: how the next uploads go, the first first; when it is empty, they go well.
        reads: how the next metadata reads go: "ok" or a code of refusal.
        dark: identifiers that are taken down now.
        foreign: identifiers that are somebody else's.
        left: tasks that check_limit leaves, or a code of refusal.
        puts: (identifier, name) of every body that arrived.
        faults: laws that were broken by the caller.
        shown: what the last read of an item said.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.kept: dict[str, dict[str, _Kept]] = {}
        self.lies: list[str] = []
        self.reads: list[str] = []
        self.dark: set[str] = set()
        self.foreign: set[str] = set()
        self.broken_downloads: set[str] = set()
        self.pending: set[str] = set()
        self.failed: set[str] = set()
        self.left: int | str = 400
        self.puts: list[tuple[str, str]] = []
        self.calls: list[str] = []
        self.faults: list[str] = []
        self.shown: dict[str, ItemSeen] = {}
        self.metadata: dict[str, dict[str, str]] = {}
        self._bodies: dict[tuple[str, str], bytes] = {}

    # ------------------------------------------------------------------ the port

    def headroom(self, identifier: str) -> Headroom | Refused:
        with self._lock:
            assert identifier
            self.calls.append("headroom")
            if isinstance(self.left, str):
                return Refused(code=self.left, message="told so")
            left = self.left
            return Headroom(
                over_limit=left <= 0, account_left=left, item_left=left, global_left=1000
            )

    def describe(self, identifier: str) -> ItemSeen | Refused:
        with self._lock:
            self.calls.append("describe")
            code = self.reads.pop(0) if self.reads else "ok"
            if code != "ok":
                return Refused(code=code, message="told so")
            self.shown[identifier] = self._seen(identifier)
            return self.shown[identifier]

    def upload(
        self, identifier: str, name: str, path: Path, md5: bytes, metadata: Mapping[str, str]
    ) -> Sent | Refused:
        with self._lock:
            self.calls.append("upload")
            data = path.read_bytes()
            if hashlib.md5(data, usedforsecurity=False).digest() != md5:
                self.faults.append(f"{name} was not what was noted")
            seen = self._seen(identifier)
            there = self._there(seen, name, data)
            if there is not None:
                return there
            self.puts.append((identifier, name))
            if self._bodies.setdefault((identifier, name), data) != data:
                self.faults.append(f"{name} was sent with two bodies")
            self.metadata.setdefault(identifier, dict(metadata))
            return self._lie(identifier, name, data)

    def fetch(self, identifier: str, name: str) -> Fetched | Refused:
        with self._lock:
            self.calls.append("fetch")
            found = self.kept.get(identifier, {}).get(name)
            if found is None or identifier in self.dark:
                return Refused(code="not-served", message="HTTP 404")
            data = found.data + (b"!" if name in self.broken_downloads else b"")
            return Fetched(size=len(data), sha256=hashlib.sha256(data).digest())

    def close(self) -> None:
        pass

    # ------------------------------------------------------------------ the weather

    def clear(self) -> None:
        """Let the sun shine: everything goes well from now on."""
        self.lies, self.reads, self.left = [], [], 400
        for found in (self.dark, self.foreign, self.broken_downloads, self.pending, self.failed):
            found.clear()
        for files in self.kept.values():
            for file in files.values():
                file.wrong = ""

    def lose(self, identifier: str, name: str) -> None:
        """Lose a file that was shown."""
        self.kept.get(identifier, {}).pop(name, None)

    def holds(self, identifier: str, name: str) -> bytes | None:
        """Return what is really there, shown or not."""
        found = self.kept.get(identifier, {}).get(name)
        return None if found is None else found.data

    def _seen(self, identifier: str) -> ItemSeen:
        dark = identifier in self.dark
        shown = {
            name: file.listing()
            for name, file in self.kept.get(identifier, {}).items()
            if file.shown_at <= self._clock()
        }
        foreign = identifier in self.foreign
        return ItemSeen(
            exists=bool(shown) or dark or foreign,
            dark=dark,
            files={} if dark or foreign else shown,
            pending_tasks=identifier in self.pending,
            failed_tasks=identifier in self.failed,
            owned=None if dark or not (shown or foreign) else not foreign,
        )

    def _there(self, seen: ItemSeen, name: str, data: bytes) -> Sent | Refused | None:
        if seen.dark:
            return Refused(code="dark", message="the item is dark")
        if seen.owned is False:
            return Refused(code="foreign", message="the item is not ours")
        listed = seen.files.get(name)
        if listed is None or listed.md5 is None:
            return None
        if listed == _Kept(data, 0).listing():
            return Sent(skipped=True)
        return Refused(code="name-taken", message=f"{name} is there with other bytes")

    def _lie(self, identifier: str, name: str, data: bytes) -> Sent | Refused:
        lie = self.lies.pop(0) if self.lies else "ok"
        codes = {
            "500-lost": "http-500", "slow": "SlowDown", "slow-global": "SlowDown-global",
            "spam": "spam", "bad-digest": "BadDigest", "race": "OperationAborted",
        }  # fmt: skip
        if lie in codes:
            return Refused(code=codes[lie], message=lie)
        if lie != "never":
            lag_s = 5 * DAY if lie == "late" else LAG_S
            wrong = {"wrong-md5": "md5", "half-listed": "none"}.get(lie, "")
            files = self.kept.setdefault(identifier, {})
            files[name] = _Kept(data, self._clock() + lag_s, wrong)
        if lie == "500-stored":
            return Refused(code="http-500", message=lie)
        if lie == "cut-stored":
            return Refused(code="no-answer", message=lie)
        return Sent()


class FakeSpool:
    """A folder without the care a disk needs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(exist_ok=True)
        self.packed: list[str] = []

    def pack(self, name: str, members: Iterable[tuple[str, bytes]], max_bytes: int) -> Packed:
        self.packed.append(name)
        buffer, size, hashes = io.BytesIO(), 0, []
        left_over = None
        with zipfile.ZipFile(buffer, "w") as archive:
            for path, data in members:
                if hashes and size + len(data) > max_bytes:
                    left_over = (path, data)
                    break
                archive.writestr(zipfile.ZipInfo(path), data)
                size += len(data)
                hashes.append(hashlib.sha256(data).digest())
        packed = self.write(name, buffer.getvalue())
        return msgspec.structs.replace(
            packed, members=len(hashes), member_sha256s=b"".join(hashes), left_over=left_over
        )

    def write(self, name: str, data: bytes) -> Packed:
        path = self._folder / name
        path.write_bytes(data)
        return Packed(
            path=path,
            size=len(data),
            md5=hashlib.md5(data, usedforsecurity=False).digest(),
            sha1=hashlib.sha1(data, usedforsecurity=False).digest(),
            sha256=hashlib.sha256(data).digest(),
        )

    def path(self, name: str) -> Path | None:
        path = self._folder / name
        return path if path.is_file() else None

    def holds(self, name: str, sha256: bytes, members: Sequence[tuple[str, bytes]]) -> bool:
        data = (self._folder / name).read_bytes()
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            found = [
                (one, hashlib.sha256(archive.read(one)).digest()) for one in archive.namelist()
            ]
        return hashlib.sha256(data).digest() == sha256 and found == list(members)

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)

    def names(self) -> list[str]:
        """Return what lies in it."""
        return sorted(path.name for path in self._folder.iterdir())


def policy_values(**changes: Any) -> dict[str, Any]:
    """Return the numbers of an item policy for tests: small files, the real waits."""
    return {
        "prefix": "anchord-test", "metadata": {"title": "Records, {day}", "collection": "test"},
        "max_members": 4, "max_bytes": 1_000_000, "item_max_files": 400,
        "item_max_bytes": 20_000_000_000, "flush_after_s": 21_600, "wait_for_anchor_s": 172_800,
        "check_after_s": (60, 300, 1_800, 7_200, 21_600, 86_400, 259_200),
        "confirm_after_s": DAY, "sample_every": 2, "account_headroom": 10, "item_headroom": 5,
        **changes,
    }  # fmt: skip
