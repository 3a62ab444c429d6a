"""The files of a published tree, written whole: hundreds of thousands, so with few calls each."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from anchord.adapters.outputs.part import part_name

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


def compare(path: str, data: bytes) -> str:
    """Return "same", "updated" where other bytes lie there, or "new" where none do.

    Raises:
        OSError: it cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return "new"
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size != len(data):
            return "updated"
        with open(handle, "rb", closefd=False) as file:
            return "same" if file.read(len(data) + 1) == data else "updated"
    finally:
        os.close(handle)


def beside(path: str, data: bytes, *, durable: bool = False) -> str:
    """Write a file beside its name, whole; return where.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    written = _beside_name(path)
    try:
        handle = os.open(written, _CREATE, 0o666)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(written, _CREATE, 0o666)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
    except BaseException:
        _gone(written)
        raise
    return written


def replace(written: str, path: str) -> None:
    """Give a file that lies beside its name that name.

    Raises:
        OSError: that cannot be; nothing is left of it.
    """
    try:
        os.replace(written, path)  # noqa: PTH105 - for every file of a tree
    except BaseException:
        _gone(written)
        raise


def linked(path: str, source: str) -> bool:
    """Give a file a second name; False where that cannot be.

    Raises:
        OSError: another file has the name, and keeps it.
    """
    try:
        _link(source, path)  # whole at once, where there is no other yet
    except FileExistsError:
        return _relinked(path, source)
    except OSError:
        return False
    return True


def _link(source: str, path: str) -> None:
    try:
        os.link(source, path)
    except FileNotFoundError:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        os.link(source, path)


def _relinked(path: str, source: str) -> bool:
    written = _beside_name(path)
    try:
        _gone(written)
        os.link(source, written)
    except OSError:
        return False
    replace(written, path)
    return True


def same_file(path: str, other: str) -> bool:
    """Tell whether two names are of one file."""
    try:
        return os.path.samestat(os.stat(path), os.stat(other))  # noqa: PTH116 - as above
    except FileNotFoundError:
        return False


def _beside_name(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/{part_name(name)}"


def _gone(path: str) -> None:
    Path(path).unlink(missing_ok=True)
