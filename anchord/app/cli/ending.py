"""How a command ends when something unforeseen happens: one line, an exit code, no traceback.

Faults anchord foresees are `AnchordError`s. What is left is the machine (disk, permissions,
streams) and faults of anchord itself; `ANCHORD_TRACEBACK=1` shows where the latter happened.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from anchord.app.cli.output import one_line
from anchord.errors import ConfigError, FatalError

DEBUG = "ANCHORD_TRACEBACK"
"""Environment variable: set it to 1 to see where an unforeseen error came from."""
_READER_GONE = 141
"""What a shell shows for a program that ended by SIGPIPE (128 + 13)."""
_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})


class ReaderGoneError(BaseException):
    """Nobody reads our standard output any more; no fault, and nothing to be caught."""


def settle_streams() -> None:
    """Let a standard stream that was closed before the start be the null device.

    Otherwise the first file that is opened would get its number, and words for a terminal could
    end up in a header file; and every command would have to ask whether it may print.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        handle = os.open(os.devnull, os.O_RDWR)
        if handle != number:
            os.dup2(handle, number)
            os.close(handle)
        stream = os.fdopen(number, mode, encoding="utf-8", closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def fall(error: BaseException) -> NoReturn:
    """End the process for an error nobody foresaw."""
    if isinstance(error, ReaderGoneError | BrokenPipeError):
        _leave(_READER_GONE)
    if os.environ.get(DEBUG) == "1":
        traceback.print_exception(error)
    code, words = _told(error)
    sys.stderr.write(one_line(f"anchord: {words}") + "\n")
    _leave(code)


def _told(error: BaseException) -> tuple[int, str]:
    """Return an exit code and what a person can do."""
    if isinstance(error, OSError):
        where = f"{os.fsdecode(error.filename)}: " if error.filename else ""
        reason = f"{where}{error.strerror or error}".encode("utf-8", "replace").decode()
        if error.errno in _DISK:
            return FatalError.exit_code, f"{reason}; make room or repair the disk, then run again"
        return ConfigError.exit_code, f"{reason}; check the path and its permissions"
    if isinstance(error, MemoryError):
        return FatalError.exit_code, "out of memory; nothing that was confirmed before is lost"
    text = str(error).encode("utf-8", "replace").decode().partition("\n")[0]
    return FatalError.exit_code, (
        f"unexpected {type(error).__name__} at {_place(error)}: {text:.300}; this is a fault of "
        f"anchord: please report it. {DEBUG}=1 shows the details"
    )


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "an unknown place"
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


def _leave(code: int) -> NoReturn:
    """Exit without another complaint about what standard output still holds."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
    sys.exit(code)
