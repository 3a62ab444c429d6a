"""Noticing that keys are others than those that were opened, before one that ended signs more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.adapters.signers.keyring import FILE

if TYPE_CHECKING:
    from pathlib import Path


class KeyWatch:
    """Made before keys are opened, and asked after the moment of a pass is taken.

    So what a key signs is never dated later than the end of the key.

    Args:
        folder: of the keys.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE
        self._seen = self._mark()

    def changed(self) -> bool:
        """Tell whether the keyring was replaced, as every change of it does."""
        return self._mark() != self._seen

    def _mark(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size
