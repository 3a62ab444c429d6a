"""The fault table: every call of every port, and every way in which it can go wrong.

Rows come from the Protocols themselves. A method that a port gains later has no row, and the test
of the table fails until somebody has said what its failing means.
"""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from anchord import ports
from anchord.core.storage import Refused
from anchord.errors import ConfigError, DiskError, NetworkError, StoreBusyError
from anchord.ports import archive, authority, log, outlet, source, storage, store
from support.killing import Killed

FAILS = "fails"
HAPPENED = "fails, but it happened"
HANGS = "hangs"
BEFORE = "killed before"
AFTER = "killed after"
FAULTS = (FAILS, HAPPENED, HANGS, BEFORE, AFTER)
DEATHS = (BEFORE, AFTER)


class Port(NamedTuple):
    """One port, and what a call of it says when it fails."""

    protocol: type
    path: str
    """Where a life has it: an attribute of the life, or a table of its store."""
    error: Callable[[], Any]
    """Makes what is raised, or, if it is no exception, returned."""
    reads: str = ""
    """Methods that change nothing: failing though it happened is failing."""


def _busy() -> Exception:
    return StoreBusyError("the store is locked by another process")


def _cut() -> Exception:
    return NetworkError("the connection was cut")


def _refused() -> Refused:
    return Refused(code="no-answer", message="the connection was cut")


def _locked() -> Exception:
    return ConfigError("the key is locked")


def _disk() -> Exception:
    return DiskError("the disk is full")


PORTS = {
    "calendar": Port(ports.Calendar, "calendars", _cut),
    "authority": Port(authority.TimestampAuthority, "authorities", _cut),
    "headers": Port(ports.HeaderSource, "headers", _cut, "refresh tip header"),
    "signer": Port(ports.Signer, "signer", _locked),
    "captures": Port(archive.CaptureArchive, "captures", _refused,
                     "statuses account system index replay"),
    "items": Port(archive.ItemArchive, "items", _refused, "headroom describe fetch"),
    "spool": Port(archive.Spool, "spool", _disk, "path holds"),
    "source": Port(source.Source, "sources", _cut, "look place"),
    "outlet": Port(outlet.Outlet, "outlets", _cut),
    "adding": Port(ports.RecordStore, "store", _busy),
    "records": Port(store.RecordTable, "store.records", _busy,
                    "get find body documents walk waiting"),
    "batches": Port(store.BatchTable, "store.batches", _busy,
                    "last_sealed_at get of_record in_state due_checks tiles index_of"),
    "calls": Port(store.CallTable, "store.calls", _busy,
                  "due_submissions still answered due_pendings orphaned waiting_for"),
    "ledger": Port(store.LedgerTable, "store.ledger", _busy,
                   "open_series series_of anchored_payload get_series head last_moment of_record "
                   "ids_in_series walk"),
    "log": Port(log.LogTable, "store.log", _busy,
                "sizes place_of leaf_hashes entries nodes last covering checkpoints waiting "
                "carried"),
    "tokens": Port(log.TokenTable, "store.tokens", _busy, "due of_batch health"),
    "lookup": Port(store.LookupTable, "store.lookup", _busy,
                   "records bodies documents events sealed adopted"),
    "lanes": Port(storage.LaneTable, "store.storage.lanes", _busy, "get all"),
    "capture rows": Port(storage.CaptureTable, "store.storage.captures", _busy,
                         "unclaimed due in_state get of_record next_moment glance count"),
    "item rows": Port(storage.ItemTable, "store.storage.items", _busy,
                      "packable open_item packed_to members_packed item items files file due "
                      "in_state next_moment ranges member_sha256s file_of"),
    "source rows": Port(source.SourceTable, "store.sources", _busy, "get all"),
    "outlet rows": Port(outlet.OutletTable, "store.outlets", _busy,
                        "get all due held next_moment rows counts"),
}  # fmt: skip
"""Every port a pass works through."""

_SHOW, _STORE = "tests/cli/test_show.py", "tests/unit/adapters/test_store.py"
_KILLED, _CAPTURES = "tests/acceptance/test_kill_table.py", "tests/engine/test_capture_faults.py"
_ITEMS, _AUDIT = "tests/engine/test_itemising_faults.py", "tests/audit/test_audit_beside_passes.py"
_LOG, _CALENDARS = "tests/unit/adapters/test_store_log.py", "tests/engine/test_faults.py"
_RECEIVING, _DELIVERING = "tests/engine/test_receiving.py", "tests/engine/test_delivering.py"

ELSEWHERE = {
    ("captures", "system"): _CAPTURES, ("captures", "statuses"): _CAPTURES,
    ("source", "place"): _RECEIVING,
    ("records", "get"): _SHOW, ("records", "find"): _SHOW, ("records", "body"): _SHOW,
    ("records", "documents"): _SHOW, ("records", "walk"): "tests/engine/test_export.py",
    ("batches", "of_record"): _SHOW, ("batches", "unpark"): _STORE,
    ("batches", "last_sealed_at"): _CALENDARS,
    ("calls", "resubmit"): _KILLED, ("calls", "postpone_submission"): _CALENDARS,
    ("calls", "bring_forward"): "tests/engine/test_continuity.py",
    ("ledger", "split"): _KILLED, ("ledger", "of_record"): _SHOW, ("ledger", "series_of"): _KILLED,
    ("ledger", "last_moment"): "tests/engine/test_clock_ahead.py", ("ledger", "walk"): _AUDIT,
    ("log", "place_of"): _LOG, ("log", "entries"): _LOG, ("log", "nodes"): _LOG,
    ("log", "checkpoints"): _LOG, ("log", "carried"): _LOG, ("log", "covering"): _LOG,
    ("tokens", "postpone"): "tests/engine/test_tokens.py",
    ("tokens", "health"): "tests/engine/test_tokens.py",
    ("tokens", "intend"): "tests/engine/test_tokens.py",
    ("lookup", "sealed"): "tests/engine/test_publishing.py",
    ("lookup", "adopted"): "tests/engine/test_packing.py",
    ("capture rows", "claim_again"): "tests/unit/adapters/test_store_captures.py",
    ("capture rows", "of_record"): _SHOW, ("capture rows", "next_moment"): _CAPTURES,
    ("capture rows", "bring_forward"): "tests/engine/test_continuity.py",
    ("item rows", "pass_over"): "tests/engine/test_packing.py",
    ("item rows", "packed_to"): _ITEMS, ("item rows", "file_of"): _SHOW,
    ("item rows", "members_packed"): _ITEMS,
    ("source rows", "all"): _RECEIVING, ("source rows", "failed"): _RECEIVING,
    ("source rows", "forget"): _RECEIVING,
    ("outlet rows", "all"): _DELIVERING, ("outlet rows", "begin"): _DELIVERING,
    ("outlet rows", "fail"): _DELIVERING, ("outlet rows", "next_moment"): _DELIVERING,
    ("outlet rows", "rows"): _DELIVERING, ("outlet rows", "counts"): _DELIVERING,
    ("outlet rows", "revive"): _DELIVERING, ("outlet rows", "due"): _DELIVERING,
}  # fmt: skip
"""Methods that commands call and no pass, or a pass only now and then; and the test that lets them
fail."""

NOT_IN_A_PASS = {
    "Clock": "tests/engine/test_clock_ahead.py",
    "RecordSource": "tests/unit/adapters/test_sources_files.py",
    "BulkSigner": "tests/unit/adapters/test_signers_worker.py",
    "Store": _STORE,
    "StorageTables": "tests/unit/adapters/test_store_captures.py",
    "PullTable": "tests/acceptance/test_kill_pull.py",
    "AuditTable": _AUDIT,
    "ReadingStore": _AUDIT,
    "MirrorSource": "tests/acceptance/test_kill_pull.py",
    "FaceTable": "tests/web/test_readers.py",
    "TreeSink": "tests/engine/test_publishing.py",
    "Tree": "tests/audit/test_audit_tree.py",
    "MementoReader": "tests/engine/test_audit_online.py",
    "ItemReader": "tests/engine/test_audit_online.py",
}
"""Protocols no pass works through, and the test that lets them fail."""


class Row(NamedTuple):
    """One method of one port, and one way in which it goes wrong."""

    port: str
    method: str
    fault: str


def methods(protocol: type) -> list[str]:
    """Return the names of the methods a Protocol has of its own or from another."""
    found: list[str] = []
    for kind in reversed(protocol.__mro__):
        if kind.__module__.startswith("anchord."):
            found += [
                name for name, value in vars(kind).items()
                if inspect.isfunction(value) and not name.startswith("_") and name not in found
            ]  # fmt: skip
    return found


def rows(port: str, fault: str) -> list[Row]:
    """Return the rows of one port and one fault: of what only reads, it fails or is killed."""
    one = PORTS[port]
    twofold = fault in (HAPPENED, AFTER)
    return [
        Row(port, name, fault)
        for name in methods(one.protocol)
        if name != "close" and not (twofold and name in one.reads.split())
    ]


class Strikes:
    """Lets each call of each port go wrong once, the n-th time it is made.

    A process that is killed does nothing more: every later call of it is killed, too.

    Args:
        fault: of `FAULTS`; None: none, the calls are counted only.
        nth: which call of each method is struck, from 1.
        wait: called where a call hangs.
    """

    def __init__(
        self, fault: str | None, nth: int = 1, wait: Callable[[], None] = lambda: None
    ) -> None:
        self._fault, self._nth, self._wait = fault, nth, wait
        self._lock = threading.Lock()
        self.calls: Counter[Row] = Counter()
        self.names = {port: {row.method for row in rows(port, fault or FAILS)} for port in PORTS}
        self.struck: list[Row] = []
        self.dead = False

    def begin(self) -> None:
        """Let a new process begin."""
        self.dead = False

    def around(self, port: str, inner: Any) -> Any:
        """Return a port's object with its methods guarded."""
        return _Guarded(inner, self, port)

    def call(self, port: str, name: str, function: Callable[[], Any]) -> Any:
        """Make one call, or let it go wrong."""
        if not self._strikes(Row(port, name, self._fault or "")):
            return function()
        if self._fault == BEFORE:
            self._die()
        if self._fault == HANGS:
            self._wait()
        if self._fault in (HAPPENED, AFTER):
            _done(function())
        if self._fault == AFTER:
            self._die()
        return _said(PORTS[port].error())

    def _strikes(self, row: Row) -> bool:
        with self._lock:
            if self.dead:
                raise Killed
            self.calls[row] += 1
            strikes = self._fault is not None and self.calls[row] == self._nth
            if strikes:
                self.struck.append(row)
            return strikes

    def _die(self) -> None:
        self.dead = True
        raise Killed


class _Guarded:
    """An object whose methods named go through `Strikes.call`."""

    def __init__(self, inner: Any, strikes: Strikes, port: str) -> None:
        self._inner, self._strikes, self._port = inner, strikes, port

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in self._strikes.names[self._port]:
            return found
        if inspect.isgeneratorfunction(found):
            return self._streamed(name, found)
        return lambda *args, **kwargs: self._strikes.call(
            self._port, name, lambda: found(*args, **kwargs)
        )

    def _streamed(self, name: str, found: Callable[..., Iterator[Any]]) -> Any:
        """Strike when the first piece is asked for; a generator does nothing before."""

        def stream(*args: Any, **kwargs: Any) -> Iterator[Any]:
            yield from self._strikes.call(self._port, name, lambda: found(*args, **kwargs))

        return stream


def _done(result: Any) -> None:
    """Let a generator do what it does."""
    if inspect.isgenerator(result):
        for _ in result:
            pass


def _said(answer: Any) -> Any:
    if isinstance(answer, BaseException):
        raise answer
    return answer
