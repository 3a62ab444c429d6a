"""Where an export goes, chosen by what the person typed, and counted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from anchord.adapters.outputs.archive import FileSink, PlainOutput, StreamSink, TarOutput
from anchord.adapters.outputs.folder import FolderOutput
from anchord.core.bundle_text import follows, one_line
from anchord.core.proof import attestations, parse_detached
from anchord.errors import ConfigError, RefusedError

if TYPE_CHECKING:
    from anchord.engine.export import Item

EXTENSIONS = {"ots": ".ots", "bundle": ".bundle.json"}


class Output(Protocol):
    """Takes named files; a folder says what became of each."""

    def put(self, name: str, data: bytes) -> str | None:
        """Take one."""
        ...

    def close(self) -> None:
        """End."""
        ...


class Destination:
    """One output, and what went into it.

    Args:
        output: takes the files.
        kind: "ots" or "bundle".
        name: of the one file there will be; None: each has its record's name.
        lines: bundles go out as JSON Lines, so none may have a line break inside. Elsewhere they
            are the bytes that every mirror has, foreign parts as they came.
    """

    def __init__(
        self, output: Output, kind: str, name: str | None = None, *, lines: bool = False
    ) -> None:
        self._output, self._kind, self._name, self._lines = output, kind, name, lines
        self.exported = 0
        self._pending = 0
        self._outcomes = dict.fromkeys(("new", "updated", "same", "kept"), 0)

    def put(self, item: Item) -> None:
        """Write one item."""
        data = item.data
        if self._kind == "bundle":
            data = one_line(data) if self._lines else data + b"\n"
        name = self._name or item.stem + EXTENSIONS[self._kind]
        outcome = self._output.put(name, data) or "new"
        self._outcomes[outcome] += 1
        self.exported += 1
        self._pending += not item.anchored

    def close(self) -> None:
        """End the output."""
        self._output.close()

    def counts(self) -> dict[str, int]:
        """Return what was written, with stable keys."""
        anchored = self.exported - self._pending
        return {
            "exported": self.exported,
            "anchored": anchored,
            "pending": self._pending,
            **self._outcomes,
        }


@contextlib.contextmanager
def open_destination(
    where: str, kind: str, *, many: bool, force: bool, bulk: bool
) -> Iterator[Destination]:
    """Open what `where` means; an archive takes its name only when all of it was written.

    Raises:
        ConfigError: one file for several records or for another kind, or no place to write to.
    """
    packed = where.endswith((".tar.gz", ".tgz"))
    if where == "-":
        sink = StreamSink(sys.stdout.buffer)
        plain = kind == "bundle" or not many
        output = PlainOutput(sink) if plain else TarOutput(sink)
        yield from _closing(Destination(output, kind, lines=many))
    elif packed or where.endswith(".tar"):
        file = FileSink(Path(where), packed=packed)
        try:
            yield from _closing(Destination(TarOutput(file), kind))
        except BaseException:
            file.abandon()
            raise
    else:
        path, name = Path(where), None
        if _is_file(path):
            _check_file(where, kind, many=many)
            path, name = path.parent, path.name
        rule = replaces_ots if kind == "ots" else follows
        folder = FolderOutput(path, rule, force=force, durable=not bulk)
        yield from _closing(Destination(folder, kind, name))


def _is_file(path: Path) -> bool:
    return path.suffix in (".ots", ".json") and not path.is_dir()


def _check_file(where: str, kind: str, *, many: bool) -> None:
    suffix, what = (".ots", "an .ots file") if kind == "ots" else (".json", "a bundle (.json)")
    if many or not where.endswith(suffix):
        raise ConfigError(
            f"-o {where} names one file: expected one record and {what}; for several records name "
            "a folder, an archive (.tar, .tar.gz) or -"
        )


def _closing(destination: Destination) -> Iterator[Destination]:
    yield destination
    destination.close()


def replaces_ots(old: bytes, new: bytes) -> bool:
    """Tell whether proof `new` has every attestation of proof `old`, or ends its waiting.

    A pending attestation may go: what it waited for has come, or never will.
    """
    try:
        before, after = parse_detached(old), parse_detached(new)
    except RefusedError:
        return False
    if (before.algorithm, before.digest) != (after.algorithm, after.digest):
        return False
    held = [item for item in attestations(before.timestamp) if item.attestation.kind != "pending"]
    return set(held) <= set(attestations(after.timestamp))
