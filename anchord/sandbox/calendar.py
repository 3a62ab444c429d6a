"""An OpenTimestamps calendar: the HTTP face of opentimestamps-server (otsserver/rpc.py).

The same paths, limits, texts and headers, HTTP/1.0 without keep-alive; behind it a real
aggregator, journal and stamper.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpSHA256
from opentimestamps.core.serialize import BytesDeserializationContext, BytesSerializationContext
from opentimestamps.core.timestamp import Timestamp

from anchord.sandbox.aggregator import Aggregator, Journal
from anchord.sandbox.chain import Chain
from anchord.sandbox.faults import Fault
from anchord.sandbox.loopback import RequestCounts
from anchord.sandbox.stamper import Stamper
from anchord.sandbox.web import TEXT, Answer, HangUpError, Request

MAX_DIGEST = 64
"""Longest digest that is taken (otsserver/rpc.py MAX_DIGEST_LENGTH)."""
CHUNK = 1000
"""Commitments in one piece of the backup (otsserver/backup.py PAGING)."""
_BINARY = "application/octet-stream"
_FOREIGN = "https://calendar.example.org"
_ROUTES = {"/timestamp/": "timestamp", "/experimental/backup/": "backup"}


def _cached(seconds: int) -> tuple[tuple[str, str], ...]:
    return (("Cache-Control", f"public, max-age={seconds}"),)


_MINUTE, _HOUR, _YEAR = _cached(60), _cached(3600), _cached(31536000)


class Calendar:
    """One calendar; a service of the sandbox.

    Args:
        name: what faults and counts call it.
        uri: what its pending attestations say, and where upgrades are asked for.
        stamper: how its commitments get into the chain.
        folder: where its journal and key are kept; None: only in memory.
        tick_s: aggregation interval.
    """

    protocol_version = "HTTP/1.0"

    def __init__(
        self,
        name: str,
        uri: str,
        chain: Chain,
        stamper: Stamper,
        *,
        folder: Path | None,
        tick_s: float,
    ) -> None:
        self.name = name
        self.uri = uri
        self._chain = chain
        self.stamper = stamper
        self.journal = Journal(folder / "journal" if folder else None)
        key = _key(folder / "hmac-key" if folder else None)
        self.aggregator = Aggregator(uri, key, self.journal, tick_s=tick_s)
        self._lock = threading.Lock()
        self._scanned = 0
        self._paused = 0
        self._not_before: dict[bytes, float] = {}
        self.scan()

    def scan(self) -> None:
        """Hand new commitments of the journal to the stamper."""
        with self._lock:
            if self._paused:
                return  # a submit on its way must stay unknown for a while
            new = self.journal.chunk(self._scanned, 1 << 30)
            self._scanned += len(new)
            now = time.monotonic()
            for commitment in new:
                self._not_before.setdefault(commitment, now)
            for commitment in [c for c, at in self._not_before.items() if at <= now]:
                del self._not_before[commitment]
                self.stamper.add(commitment)

    def route(self, method: str, path: str) -> str:
        """Return `digest`, `timestamp`, `tip`, `backup`, `status` or `other`."""
        if method == "POST":
            return "digest" if path == "/digest" else "other"
        plain = {"/": "status", "/tip": "tip"}
        prefixed = [route for prefix, route in _ROUTES.items() if path.startswith(prefix)]
        return plain.get(path) or (prefixed[0] if prefixed else "other")

    def answer(self, request: Request) -> Answer:
        """Answer as the real server does."""
        route = self.route(request.method, request.path)
        if route == "digest":
            return self._digest(request)
        if route == "timestamp":
            return self._timestamp(request)
        if route == "tip":
            return self._tip()
        if route == "backup":
            return self._backup(request.path.removeprefix("/experimental/backup/"))
        if route == "status":
            return self._status(request)
        text = b"not found" if request.method == "POST" else b"Not found"
        return Answer(404, text, TEXT, _HOUR, sized=False)

    def _digest(self, request: Request) -> Answer:
        stated = request.headers["Content-Length"]
        if stated is None:
            return Answer(400, b"invalid Content-Length", sized=False)
        if not stated.isdigit():
            raise HangUpError  # int() of it kills the real server's handler
        if int(stated) > MAX_DIGEST:
            return Answer(400, b"digest too long", sized=False)
        digest = request.read(int(stated))
        wrong = request.fault_is("other-digest")
        late = request.fault_is("not-found-after-submit")
        submit = functools.partial(self._submit_late, late) if late else self._submit
        stamp = submit(os.urandom(32) if wrong else digest)
        self.scan()
        foreign = request.fault_is("foreign-uri")
        if foreign:
            stamp = _with_uri(stamp, foreign.text("uri", _FOREIGN))
        return Answer(200, _serialised(stamp), _BINARY)

    def _submit(self, digest: bytes) -> Timestamp:
        stamp = self.aggregator.submit(digest)
        if stamp is None:
            raise HangUpError
        return stamp

    def _submit_late(self, fault: Fault, digest: bytes) -> Timestamp:
        """Leave a commitment in the journal only for a while, as a busy stamper does."""
        with self._lock:
            self._paused += 1
        try:
            stamp = self._submit(digest)
            commitment = next(leaf.msg for leaf in _leaves(stamp))
            with self._lock:
                self._not_before[commitment] = time.monotonic() + fault.number("delay_s", 1.0)
        finally:
            with self._lock:
                self._paused -= 1
        return stamp

    def _timestamp(self, request: Request) -> Answer:
        try:
            commitment = bytes.fromhex(request.path.removeprefix("/timestamp/"))
        except ValueError:
            return Answer(400, b"commitment must be hex-encoded bytes", TEXT, _YEAR, sized=False)
        self.scan()
        path = self._bent_path(request, commitment)
        if path is not None:
            return Answer(200, path, _BINARY, _YEAR)
        unknown = request.fault_is("not-found") is not None
        reason = (None if unknown else self.stamper.reason(commitment)) or "Not found"
        return Answer(404, reason.encode(), TEXT, _MINUTE, sized=False)

    def _bent_path(self, request: Request, commitment: bytes) -> bytes | None:
        """Return the path of a commitment, or what a fault makes of it."""
        path = self.stamper.path(commitment)
        if request.fault_is("not-found"):
            return None
        if request.fault_is("other-commitment"):
            return self._path_of_another()
        extra = request.fault_is("pending-in-upgrade")
        return _with_pending(commitment, path, extra.text("uri", self.uri)) if extra else path

    def _path_of_another(self) -> bytes:
        """Return a well-formed path that leads from no known commitment to no block."""
        stamp = Timestamp(os.urandom(44))
        end = stamp.ops.add(OpSHA256()).ops.add(OpAppend(os.urandom(32))).ops.add(OpSHA256())
        end.attestations.add(BitcoinBlockHeaderAttestation(self._chain.height))
        return _serialised(stamp)

    def _tip(self) -> Answer:
        self.scan()
        tip = self.stamper.tip()
        if tip is None:
            return Answer(404, sized=False)
        return Answer(200, tip, _BINARY, _cached(10), sized=False)

    def _backup(self, number: str) -> Answer:
        chunk = self.journal.chunk(int(number) * CHUNK, CHUNK) if number.isdigit() else []
        paths = [self.stamper.path(commitment) for commitment in chunk]
        if len(chunk) < CHUNK or None in paths:
            return Answer(404, b"", TEXT, _MINUTE, sized=False)
        pairs = zip(chunk, (path for path in paths if path is not None), strict=True)
        return Answer(200, _backup_bytes(pairs), _BINARY, _YEAR, sized=False)

    def _status(self, request: Request) -> Answer:
        self.scan()
        pending, waiting = self.stamper.counts()
        latest, tip = self.stamper.latest(), self.stamper.tip()
        best = self._chain.tip
        facts: dict[str, object] = {
            "version": "sandbox, not Bitcoin",
            "pending_commitments": f"{pending:,}",
            "txs_waiting_for_confirmation": waiting,
            "most_recent_tx": latest.display_txid if latest else "None",
            "prior_versions": 0,
            "tip": tip.hex() if tip else "None",
            "best_block": best.display_hash,
            "block_height": best.height,
        }
        headers = (*_cached(5), ("Vary", "Accept"))
        # The real server says text/html even for its JSON.
        as_json = request.headers["Accept"] == "application/json"
        body = json.dumps(facts, indent=4) if as_json else _page(facts)
        return Answer(200, body.encode(), "text/html", headers, sized=False)


def _page(facts: dict[str, object]) -> str:
    rows = "".join(f"{name.replace('_', ' ')}: {value}</br>\n" for name, value in facts.items())
    return (
        f"<html><body><p>This is an OpenTimestamps Calendar Server</p><p>\n{rows}</p></body></html>"
    )


def _key(file: Path | None) -> bytes:
    if file is None:
        return os.urandom(32)
    if not file.exists():
        file.write_bytes(os.urandom(32))
    return file.read_bytes()


def _serialised(stamp: Timestamp) -> bytes:
    context = BytesSerializationContext()
    stamp.serialize(context)
    return bytes(context.getbytes())


def _leaves(stamp: Timestamp) -> Iterator[Timestamp]:
    """Yield the timestamps that carry an attestation."""
    stack = [stamp]
    while stack:
        here = stack.pop()
        if here.attestations:
            yield here
        stack.extend(here.ops.values())


def _with_uri(stamp: Timestamp, uri: str) -> Timestamp:
    """Return a copy whose pending attestation names another calendar."""
    copy: Timestamp = Timestamp.deserialize(
        BytesDeserializationContext(_serialised(stamp)), stamp.msg
    )
    for leaf in _leaves(copy):
        leaf.attestations = {PendingAttestation(uri)}
    return copy


def _with_pending(commitment: bytes, path: bytes | None, uri: str) -> bytes:
    """Return a path with a pending attestation at its start, or that attestation alone."""
    stamp = Timestamp(commitment)
    if path is not None:
        stamp = Timestamp.deserialize(BytesDeserializationContext(path), commitment)
    stamp.attestations.add(PendingAttestation(uri))
    return _serialised(stamp)


def _backup_bytes(pairs: Iterator[tuple[bytes, bytes]]) -> bytes:
    """Return a chunk of the backup: every node of every path, as sorted key-value pairs."""
    nodes: dict[bytes, bytes] = {}
    for commitment, path in pairs:
        stack = [Timestamp.deserialize(BytesDeserializationContext(path), commitment)]
        while stack:
            stamp = stack.pop()
            nodes[stamp.msg] = _node(stamp)
            stack.extend(stamp.ops.values())
    context = BytesSerializationContext()
    for pair in sorted(nodes.items()):
        for part in pair:
            context.write_varuint(len(part))
            context.write_bytes(part)
    return bytes(context.getbytes())


def _node(stamp: Timestamp) -> bytes:
    """Return one node as the calendar's database keeps it: attestations, then operations."""
    context = BytesSerializationContext()
    context.write_varuint(len(stamp.attestations))
    for attestation in stamp.attestations:
        attestation.serialize(context)
    context.write_varuint(len(stamp.ops))
    for op in stamp.ops:
        op.serialize(context)
    return bytes(context.getbytes())


class CalendarHandle:
    """One running calendar, as tests and the demo see it."""

    def __init__(self, calendar: Calendar, url: str, counts: RequestCounts) -> None:
        self.name = calendar.name
        self.url = url
        self.uri = calendar.uri
        self._counts = counts

    @property
    def requests(self) -> Counter[str]:
        """How often it was asked: `digest`, `timestamp`, `tip`, `connections`, ..."""
        return self._counts.of(self.name)
