"""A folder that always holds the newest bundle of every record with an event."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from typing import TYPE_CHECKING

from anchord.adapters.disk import read_small, sync_folder
from anchord.core.bundle_text import follows
from anchord.core.canonical import pith_suffix
from anchord.errors import TransientError
from anchord.ports.outlet import Wants

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from anchord.ports.outlet import Delivery

SUFFIX = ".bundle.json"
_LONGEST = 1 << 28
"""More than any bundle has."""
_LOCK = ".anchord-outlet.lock"
_OPENED = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_EACH = 8
"""More files than this are cheaper to bring to the disk all at once."""


class FolderOutlet:
    """Replaces files whole: who reads one sees the old bundle or the new one.

    Names are the suffix of the Pith Number or the digest in hex, nothing a record says. A bundle
    never gives way to one that lacks an event of it, so that a slow worker cannot undo a quick one.

    Args:
        name: of the outlet.
        folder: made when it is not there.
        events: the event types it takes; empty: all.
        from_now: what was before is not written.
    """

    kind = "folder"
    wants: Wants = "bundle"
    at_once = 64

    def __init__(
        self, name: str, folder: Path, *, events: Collection[str] = (), from_now: bool = False
    ) -> None:
        self.name, self.events, self.from_now = name, events, from_now
        self._folder = folder

    def hand_over(self, deliveries: Sequence[Delivery]) -> Mapping[int, str]:
        """Write the bundles; all of them are on the disk when it returns.

        One in whose place somebody made a folder is refused by itself.

        If we crash on the way, each file is the old one or the new one, and all are written again;
        what was half written lies under the one name it will be written under.

        Raises:
            TransientError: the disk refused, or another process writes there.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with self._alone():
                free = [one for one in deliveries if not self._obstructed(_name(one))]
                self._write({_name(one): one.document for one in free})
        except OSError as error:
            raise TransientError(
                f"the folder {self._folder} cannot be written to: {error.strerror or error}; make "
                "room or correct its permissions, it is tried again later"
            ) from None
        taken = {one.seq for one in free}
        words = "in the place of its bundle, or of what it is written under, lies a folder: move it"
        return {one.seq: words for one in deliveries if one.seq not in taken}

    def close(self) -> None:
        """There is nothing to release."""

    def _write(self, files: Mapping[str, bytes]) -> None:
        changed = {name: data for name, data in files.items() if self._says_more(name, data)}
        each = len(changed) <= _EACH
        for name, data in changed.items():
            # A name of its own, made anew: nothing is written through a link somebody put there.
            self._beside(name).unlink(missing_ok=True)
            with self._beside(name).open("xb") as file:
                file.write(data)
                if each:
                    file.flush()
                    os.fsync(file.fileno())
        if not each:
            os.sync()
        for name in changed:
            self._beside(name).replace(self._folder / name)
        if changed:
            sync_folder(self._folder)

    def _says_more(self, name: str, data: bytes) -> bool:
        """Tell whether a bundle is to be written: not what is there, and nothing less."""
        path = self._folder / name
        try:
            found = path.lstat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST:
                return True  # whatever it is, it is no bundle of ours
            old = read_small(path, _LONGEST)
        except FileNotFoundError:
            return True
        if old == data:
            return False
        return follows(old, data) or not follows(data, old)

    def _obstructed(self, name: str) -> bool:
        """Tell whether a folder lies where a file shall: it cannot be replaced by one."""
        return any(map(_is_folder, (self._folder / name, self._beside(name))))

    def _beside(self, name: str) -> Path:
        return self._folder / f".{name}.part"

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the only one that writes; the kernel lets go of the lock when we die."""
        handle = os.open(self._folder / _LOCK, _OPENED, 0o600)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise TransientError(
                    f"another process writes to the folder {self._folder} now: it is tried again "
                    "later; if it goes on, give each outlet a folder of its own"
                ) from None
            yield
        finally:
            os.close(handle)


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _name(delivery: Delivery) -> str:
    record = delivery.record
    stem = record.digest.hex() if record.year is None else pith_suffix(record.digest)
    return stem + SUFFIX
