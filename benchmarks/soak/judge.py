"""The judge: nothing is believed that the stand-ins' own state, or bare arithmetic, does not say.

Rows are read by SQL of its own; whole events come from `anchord export`, as a stranger gets them.
Ids, signatures, chain and proofs are recomputed with `hashlib`, `cryptography` and the standard
OpenTimestamps library; what the events claim is held against the chain the stand-ins mined, the
mementos they replay and the files they keep.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec
import sqlalchemy as sa
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
from opentimestamps.core.op import OpSHA256
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile

from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.soak.world import World

SUBMITTED, ANCHORED, CAPTURED, ITEM, WITHDRAWN = (
    "timestamp_submitted", "timestamp_anchored", "capture_stored", "item_stored",
    "facet_withdrawn",
)  # fmt: skip
_SHOWN = 20


class Verdict(msgspec.Struct, kw_only=True):
    """What the judge found; each list holds words, and must be empty."""

    lost: list[str] = []
    """Was taken in, or said to be, and is not there."""
    doubled: list[str] = []
    """Is there more than once."""
    false: list[str] = []
    """Says what is not so."""
    stuck: list[str] = []
    """Will not come to its end by itself."""
    figures: dict[str, Any] = {}

    def problems(self) -> int:
        """Return how many."""
        return sum(len(getattr(self, name)) for name in KINDS)

    def lines(self) -> Iterator[str]:
        """Yield the findings for people."""
        for name in KINDS:
            found = getattr(self, name)
            yield f"  {name:<44}{len(found):>16,}"
            yield from (f"      {words}" for words in found[:_SHOWN])


KINDS = ("lost", "doubled", "false", "stuck")


class Rows:
    """The rows of a store, in one consistent view, by SQL that is not anchord's."""

    def __init__(self, world: World) -> None:
        url = world.place.url
        if url.startswith("sqlite"):
            url = f"sqlite:///file:{world.folder.absolute() / 'anchord.db'}?mode=ro&uri=true"
        self._engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        self._connection = self._engine.connect()
        # Else each statement would see its own moment, and somebody may be writing.
        if self._engine.dialect.name == "postgresql":
            self._connection.execution_options(isolation_level="REPEATABLE READ")
        else:
            self._connection.exec_driver_sql("BEGIN")
        self._connection.execution_options(stream_results=True)

    def __call__(self, statement: str, **values: Any) -> Iterator[Any]:
        """Yield what a statement selects."""
        return iter(self._connection.execute(sa.text(statement), values))

    def close(self) -> None:
        """Let go."""
        self._connection.close()
        self._engine.dispose()


class RowJudge:
    """Checks what only rows show: the chain, what was taken in, and what there is twice.

    Each call goes on where the last one ended; a new judge begins at the first row.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._chain, self._place = bytes(32), 0
        self._ids: set[bytes] = set()
        self.kinds: Counter[str] = Counter()
        """How many events of each type there are."""

    def __call__(self, verdict: Verdict) -> None:
        """Check the records, and what was appended since."""
        keys = public_keys(self._world)
        with contextlib.closing(Rows(self._world)) as rows:
            digests = [bytes(row[0]).hex() for row in rows("SELECT digest FROM records")]
            series = {row.id: row for row in rows("SELECT id, event_type, key_id FROM series")}
            verdict.doubled += _twice("record", digests)
            missing = self._world.truth.keys() - set(digests)
            verdict.lost += [f"record {one} was added and is not in the store" for one in missing]
            for row in rows(
                "SELECT seq, series_id, event_id, signature, chain FROM events "
                "WHERE seq > :place ORDER BY seq",
                place=self._place,
            ):
                made_by = series[row.series_id]
                self._check(row, keys[made_by.key_id], verdict)
                self.kinds[made_by.event_type] += 1

    def _check(self, row: Any, key: Ed25519PublicKey, verdict: Verdict) -> None:
        identity, signature = bytes(row.event_id), bytes(row.signature)
        self._chain = hashlib.sha256(self._chain + identity + signature).digest()
        if row.seq != self._place + 1 or bytes(row.chain) != self._chain:
            verdict.false.append(f"ledger row {row.seq} does not follow row {self._place}")
        self._place, self._chain = row.seq, bytes(row.chain)
        if identity in self._ids:
            verdict.doubled.append(f"event {identity.hex()} in ledger row {row.seq}")
        self._ids.add(identity)
        if not _signed(key, signature, identity):
            verdict.false.append(f"the signature of ledger row {row.seq} does not hold")


def judge(world: World, verdict: Verdict) -> None:
    """Check everything, after all came to its end."""
    of_rows = RowJudge(world)
    of_rows(verdict)
    kinds = of_rows.kinds
    _check_rest(world, verdict)
    truth = _Truth(world)
    seen: Counter[str] = Counter()
    exported: Counter[str] = Counter()
    for line in _bundles(world):
        bundle = json.loads(line)
        digest = _record_digest(bundle)
        seen[digest] += 1
        if digest not in world.truth:
            verdict.false.append(f"record {digest} was never added")
            continue
        _check_record(world, truth, digest, bundle["events"], verdict, exported)
    verdict.doubled += [f"record {one} was exported {n} times" for one, n in seen.items() if n > 1]
    gone = world.truth.keys() - seen.keys()
    verdict.stuck += [f"record {digest} has no proof" for digest in gone]
    if exported != kinds:
        verdict.lost.append(f"the ledger has {dict(kinds)}, the bundles hold {dict(exported)}")
    verdict.figures["events"] = dict(sorted(kinds.items()))
    verdict.figures["mementos gone after they were signed for"] = truth.vanished()


def public_keys(world: World) -> dict[str, Ed25519PublicKey]:
    """Return the keys that may have signed, read from the keyring's file."""
    rows = tomllib.loads((world.folder / "keys" / "keyring.toml").read_text("utf-8"))["keys"]
    return {
        row["key_id"]: Ed25519PublicKey.from_public_bytes(base64.b64decode(row["public_key_b64"]))
        for row in rows
    }


# ---------------------------------------------------------------------- one record


def _check_record(
    world: World, truth: _Truth, digest: str, events: list[dict[str, Any]], verdict: Verdict,
    exported: Counter[str],
) -> None:  # fmt: skip
    for event in events:
        exported[event["event_type"]] += 1
        if why := truth.forged(event, digest):
            verdict.false.append(f"record {digest}: {event['event_type']}: {why}")
    taken_back = [e["payload"]["withdraws"] for e in events if e["event_type"] == WITHDRAWN]
    verdict.doubled += _twice(f"record {digest}: withdrawal of", taken_back)
    live = [e for e in events if e["event_id"] not in taken_back and e["event_type"] != WITHDRAWN]
    by_place: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for event in live:
        by_place[event["event_type"], _place(event)].append(event)
        if why := truth.denies(event, digest):
            verdict.false.append(f"record {digest}: {event['event_type']}: {why}")
    for (kind, _), found in by_place.items():
        # What was handed in again after a reorganisation was submitted again, and says so.
        if len(found) > 1 and kind != SUBMITTED:
            verdict.doubled.append(f"record {digest} has {len(found)} live {kind}")
    wanted = [ANCHORED, ITEM, *([CAPTURED] if world.truth[digest] else [])]
    have = {kind for kind, _ in by_place}
    verdict.stuck += [f"record {digest} has no {kind}" for kind in wanted if kind not in have]


def _place(event: dict[str, Any]) -> str:
    """Return what a record may have one live event of."""
    payload = event["payload"]
    return str(payload.get("original_url", payload.get("archive", "")))


class _Truth:
    """What the stand-ins know."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._keys = public_keys(world)
        self._roots = {
            height: (header[36:68], hashlib.sha256(hashlib.sha256(header).digest()).digest()[::-1])
            for height, header in enumerate(world.sandbox.chain.headers())
        }
        self._mementos = {
            (one.url, one.timestamp): (
                one.replays,
                one.status,
                hashlib.sha256(one.body).hexdigest(),
            )
            for one in world.sandbox.wayback.service.mementos()
        }
        self._zips: dict[tuple[str, str], dict[str, str]] = {}

    def vanished(self) -> int:
        """Return how many mementos do not replay."""
        return sum(not replays for replays, _, _ in self._mementos.values())

    def forged(self, event: dict[str, Any], digest: str) -> str | None:
        """Return what is wrong with an event by itself."""
        body = {k: v for k, v in event.items() if k not in ("event_id", "signature_b64")}
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        identity = hashlib.sha256(text.encode()).digest()
        if event["event_id"] != f"sha256:{identity.hex()}":
            return "its id does not recompute"
        if event["payload"]["canonical_sha256"] != digest:
            return "it is about another record"
        key = self._keys.get(event["signer"]["key_id"])
        if key is None or not _signed(key, base64.b64decode(event["signature_b64"]), identity):
            return "its signature does not hold"
        return None

    def denies(self, event: dict[str, Any], digest: str) -> str | None:
        """Return what the stand-ins say against a live event."""
        look = {ANCHORED: self._anchor, CAPTURED: self._capture, ITEM: self._item}
        found = look.get(event["event_type"])
        return None if found is None else found(event["payload"], digest)

    def _anchor(self, payload: dict[str, Any], digest: str) -> str | None:
        root, name = self._roots.get(payload["block_height"], (b"", b""))
        if payload["block_hash"] != name.hex():
            return f"block {payload['block_height']} is another one"
        raw = base64.b64decode(payload["proof_b64"])
        if hashlib.sha256(raw).hexdigest() != payload["proof_sha256"]:
            return "its proof has another hash"
        ots = DetachedTimestampFile.deserialize(BytesDeserializationContext(raw))
        if not isinstance(ots.file_hash_op, OpSHA256) or ots.file_digest.hex() != digest:
            return "its proof is about other bytes"
        paths = [
            (item.height, message)
            for message, item in ots.timestamp.all_attestations()
            if isinstance(item, BitcoinBlockHeaderAttestation)
        ]
        for at, message in paths:
            if self._roots.get(at, (b"", b""))[0] != message:
                return f"its proof leads to block {at}, which has another root"
        if (payload["block_height"], root) not in paths:
            return "its proof does not lead to the block"
        return None

    def _capture(self, payload: dict[str, Any], _digest: str) -> str | None:
        moment = "".join(one for one in payload["captured_at"] if one.isdigit())
        found = self._mementos.get((payload["final_url"], moment))
        if found is None:
            return f"there is no memento of {moment}"
        replays, status, sha256 = found
        if not replays or status != 200 or sha256 != payload["sha256"]:
            return f"the memento of {moment} does not replay what was signed"
        return None

    def _item(self, payload: dict[str, Any], digest: str) -> str | None:
        members = self._members(payload)
        if payload["member"] != f"{digest}.json":
            return "its member is another record's"
        if members.get(payload["member"]) != payload["member_sha256"]:
            return f"{payload['identifier']}/{payload['file']} does not hold the member signed for"
        return None

    def _members(self, payload: dict[str, Any]) -> dict[str, str]:
        """Return the hashes of a ZIP's members; none where it is not the one that was signed."""
        place = payload["identifier"], payload["file"]
        if place not in self._zips:
            self._zips[place] = self._read_zip(payload)
        return self._zips[place]

    def _read_zip(self, payload: dict[str, Any]) -> dict[str, str]:
        archive = self._world.sandbox.items.archive
        item = archive.item(payload["identifier"])
        version = None if item is None or item.dark else item.files.get(payload["file"])
        if version is None:
            return {}
        path = archive.blob(version)
        if hashlib.sha256(path.read_bytes()).hexdigest() != payload["sha256"]:
            return {}
        with zipfile.ZipFile(path) as packed:
            return {
                name: hashlib.sha256(packed.read(name)).hexdigest() for name in packed.namelist()
            }


# ---------------------------------------------------------------------- the whole store

_NEVER_DONE = {
    "record(s) wait for a batch": "SELECT COUNT(*) FROM records WHERE batch_id IS NULL",
    "series of events not signed to their end":
        "SELECT COUNT(*) FROM series WHERE next < stop",
    "batch(es) not anchored":
        "SELECT COUNT(*) FROM batches WHERE state <> 'anchored' AND driving > 0",
    "capture(s) not stored": "SELECT COUNT(*) FROM captures WHERE state <> 'stored'",
    "file(s) not stored": "SELECT COUNT(*) FROM files WHERE state <> 'stored'",
    "capture(s) not seen again":
        "SELECT COUNT(*) FROM captures WHERE next_attempt_at IS NOT NULL",
    "file(s) not seen again": "SELECT COUNT(*) FROM files WHERE next_attempt_at IS NOT NULL",
}  # fmt: skip


def _check_rest(world: World, verdict: Verdict) -> None:
    with contextlib.closing(Rows(world)) as rows:
        for what, statement in _NEVER_DONE.items():
            ((count,),) = rows(statement)
            if count:
                verdict.stuck.append(f"{count} {what}")
    verdict.stuck += [f"record of {len(line)} bytes was never added" for line, _ in world.waiting]


def done(world: World) -> bool:
    """Tell whether nothing is on its way any more: by rows alone, so that it can be asked often."""
    verdict = Verdict()
    _check_rest(world, verdict)
    with contextlib.closing(Rows(world)) as rows:
        ((pages,),) = rows("SELECT COUNT(*) FROM captures")
        ((packed,),) = rows(
            "SELECT COUNT(*) FROM events JOIN series ON series.id = series_id "
            "WHERE event_type = :kind",
            kind=ITEM,
        )
    wanted = sum(world.truth.values())
    return not verdict.problems() and pages >= wanted and packed >= len(world.truth)


def _bundles(world: World) -> Iterator[bytes]:
    """Yield every record's bundle as `anchord export` gives it."""
    command = [sys.executable, "-m", "anchord", "-c", str(world.config), "export", "--all",
               "--bundle", "-q", "-o", "-"]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        yield from process.stdout or ()
    if process.returncode:
        raise RuntimeError(f"the export ended with exit code {process.returncode}")


def _record_digest(bundle: dict[str, Any]) -> str:
    record = bundle.get("canonical_record")
    text = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _twice(what: str, values: list[str]) -> list[str]:
    return [f"{what} {one}: {n} times" for one, n in Counter(values).items() if n > 1]


def _signed(key: Ed25519PublicKey, signature: bytes, message: bytes) -> bool:
    try:
        key.verify(signature, message)
    except InvalidSignature:
        return False
    return True
