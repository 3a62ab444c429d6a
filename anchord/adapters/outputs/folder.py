"""Export into a folder: one file a record, whole or not at all, nothing better replaced."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from anchord.adapters.disk import read_small
from anchord.adapters.outputs.part import clear_abandoned, hold, part_of
from anchord.errors import ConfigError, FatalError

Written = Literal["new", "same", "updated", "kept"]
_LONGEST = 1 << 28
"""More than any bundle, proof or certificate has."""


class FolderOutput:
    """Writes files into a folder.

    Args:
        folder: made when it is not there.
        replaces: tells from old and new bytes whether the new ones say all that the old ones do.
        force: replace whatever is there.
        durable: each file is on the disk when `put` returns; else `close` waits for all of them.

    Raises:
        ConfigError: the folder cannot be made.
    """

    def __init__(
        self,
        folder: Path,
        replaces: Callable[[bytes, bytes], bool],
        *,
        force: bool = False,
        durable: bool = True,
    ) -> None:
        self._folder, self._replaces = folder, replaces
        self._force, self._durable = force, durable
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._names = {entry.name for entry in os.scandir(folder)}
            self._names -= clear_abandoned(folder, self._names)
        except OSError as error:
            raise ConfigError(
                f"{folder} cannot be a folder to export to: {error.strerror}"
            ) from None

    def put(self, name: str, data: bytes) -> Written:
        """Write one file; "kept": another file is there that says something ours does not.

        Raises:
            FatalError: the disk refused.
        """
        path = self._folder / name
        try:
            outcome = self._compare(path, data)
            if outcome in ("new", "updated"):
                self._write(path, data)
                self._names.add(name)
        except OSError as error:
            raise FatalError(
                f"{path} cannot be written: {error.strerror}; make room, then export again"
            ) from None
        return outcome

    def close(self) -> None:
        """Wait until everything is on the disk."""
        if not self._durable:
            os.sync()

    def _compare(self, path: Path, data: bytes) -> Written:
        if path.name not in self._names:
            return "new"
        if path.stat().st_size > _LONGEST:
            return "updated" if self._force else "kept"  # whatever it is, it is none of ours
        old = read_small(path, _LONGEST)
        if old == data:
            return "same"
        # An empty file is what a power cut can leave of a rename that was not synced.
        return "updated" if self._force or not old or self._replaces(old, data) else "kept"

    def _write(self, path: Path, data: bytes) -> None:
        """Write beside and rename: a reader, or a crash, sees the old file or the new one."""
        beside = part_of(path)
        try:
            with beside.open("wb") as file:
                hold(file)
                file.write(data)
                if self._durable:
                    file.flush()
                    os.fsync(file.fileno())
            beside.replace(path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
