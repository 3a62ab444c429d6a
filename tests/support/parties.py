"""Stand-ins for the outside parties, as small implementations of the ports.

`FakeChain` grows real regtest headers (their proof of work takes two hashes each), so a chain can
also be written out as a header file. `FakeCalendar` answers as the real server does and builds its
proofs with the `opentimestamps` library, which the project's own code is not part of.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpPrepend, OpSHA256
from opentimestamps.core.serialize import BytesSerializationContext
from opentimestamps.core.timestamp import Timestamp, make_merkle_tree

from anchord.adapters.store.sql import SqlStore
from anchord.core.checkpoint import parse_text
from anchord.core.header import Header, block_hash, parse_header, target_of
from anchord.core.keyring import Keyring, PublicKey, make_keyring
from anchord.core.network import REGTEST
from anchord.engine.parts import Parts, Policy
from anchord.errors import AnchordError, ConfigError
from anchord.ports import NotYet, PendingPoint, Submitted, Tip, Upgraded
from support.stores import kept, made

START = 1_722_513_600
"""2024-08-01T12:00:00Z: when tests begin; in the past of any machine that runs them."""
FIRST_BLOCK = START - 600 * 1000
"""nTime of a chain's first block: a thousand blocks fit in before tests begin."""
BITS = 0x207FFFFF
URL_A, URI_A = "https://a.pool.example.org", "https://alice.calendar.example.org"
URL_B, URI_B = "https://b.pool.example.org", "https://bob.calendar.example.org"


class FakeClock:
    """A clock that a test moves."""

    def __init__(self, now: int = START) -> None:
        self.moment = now

    def now(self) -> int:
        return self.moment

    def advance(self, seconds: int) -> int:
        self.moment += seconds
        return self.moment


class FakeSigner:
    """Signs with a key made from a seed."""

    def __init__(self, key_id: str = "test-2024", signer_id: str = "registry.example.org") -> None:
        self._private = Ed25519PrivateKey.from_private_bytes(
            hashlib.sha256(key_id.encode()).digest()
        )
        self.key_id = key_id
        self.signer_id = signer_id

    @property
    def public_key(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def sign(self, digest: bytes) -> bytes:
        assert len(digest) == 32
        return self._private.sign(digest)

    def sign_note(self, text: bytes) -> bytes:
        parse_text(text.decode("utf-8"))
        return self._private.sign(text)

    def public(self, **changes: Any) -> PublicKey:
        values = {"key_id": self.key_id, "public_key": self.public_key, "signer_id": self.signer_id}
        return PublicKey(**{**values, **changes})

    def keyring(self, *more: PublicKey) -> Keyring:
        return make_keyring([self.public(own=True, active=True), *more])


class Stopping(FakeSigner):
    """Refuses to sign after so many signatures."""

    left = 10**9

    def sign(self, digest: bytes) -> bytes:
        self.left -= 1
        if self.left < 0:
            raise ConfigError("the key is locked")
        return super().sign(digest)


class FakeChain:
    """A header source over a chain that a test mines.

    Args:
        name: what `checked_with` says.
        height: blocks to begin with, beside the genesis block.
        time: nTime of the first of these.
    """

    def __init__(
        self, name: str = "own headers", height: int = 100, time: int = FIRST_BLOCK
    ) -> None:
        self.name = name
        self.headers = [REGTEST.genesis]
        self.fail_with: AnchordError | None = None
        self.refreshed = 0
        self._time = time
        self._made = 0
        for _ in range(height):
            self.mine()

    def mine(self, merkle_root: bytes | None = None) -> int:
        """Add a block; return its height. `merkle_root` is in the header's own byte order."""
        self._made += 1
        root = merkle_root or hashlib.sha256(b"block %d" % self._made).digest()
        at = self._time + 600 * (self._made - 1)
        self.headers.append(solve(block_hash(self.headers[-1]), root, at))
        return len(self.headers) - 1

    def grow(self, blocks: int) -> int:
        """Add blocks that carry nothing; return the new height."""
        for _ in range(blocks):
            self.mine()
        return len(self.headers) - 1

    def reorg(self, depth: int) -> None:
        """Replace the last `depth` blocks by one more other block than they were."""
        del self.headers[-depth:]
        self.grow(depth + 1)

    def holds(self, height: int, merkle_root: bytes) -> bool:
        """Tell whether the block at `height` has that root."""
        return (
            height < len(self.headers)
            and parse_header(self.headers[height]).merkle_root == merkle_root
        )

    def write(self, path: Path) -> None:
        """Write the chain as a header file of network regtest."""
        path.write_bytes(b"".join(self.headers))

    def refresh(self) -> None:
        self.refreshed += 1
        self._fail()

    def tip(self) -> Tip:
        self._fail()
        last = self.headers[-1]
        return Tip(len(self.headers) - 1, block_hash(last)[::-1], parse_header(last).time)

    def header(self, height: int) -> bytes | None:
        self._fail()
        return self.headers[height] if 0 <= height < len(self.headers) else None

    def close(self) -> None:
        pass

    def _fail(self) -> None:
        if self.fail_with is not None:
            raise self.fail_with


def solve(prev: bytes, root: bytes, time: int) -> bytes:
    """Return a header whose hash meets the regtest target."""
    for nonce in range(10_000):
        raw = Header(0x20000000, prev, root, time, BITS, nonce).pack()
        if int.from_bytes(block_hash(raw), "little") <= target_of(BITS):
            return raw
    raise AssertionError("no nonce found")


class _Commitment:
    """What a calendar promised, and the path it has since."""

    def __init__(self, message: bytes) -> None:
        self.message = message
        self.path: Timestamp | None = None
        self.height = -1
        self.root = b""


class FakeCalendar:
    """A calendar. `log` lists its calls as ("submit", digest) and ("upgrade", uri, commitment).

    Attributes:
        fail_with: raised by every call while set; `fail_submit`, `fail_upgrade` by one kind.
        status: what it says of a commitment that is not mined yet.
        forgets: it says "unknown" whatever it is asked for.
    """

    def __init__(self, url: str = URL_A, uris: Sequence[str] = (URI_A,)) -> None:
        self.url = url
        self.uris = tuple(uris)
        self.log: list[tuple[Any, ...]] = []
        self.fail_with: AnchordError | None = None
        self.fail_submit: AnchordError | None = None
        self.fail_upgrade: AnchordError | None = None
        self.status = "journal"
        self.forgets = False
        self._commitments: dict[bytes, _Commitment] = {}
        self._lock = threading.Lock()

    def submit(self, digest: bytes) -> Submitted:
        """Answer as the server does: nonce, hash, time before, mac behind, pending."""
        with self._lock:
            self.log.append(("submit", digest))
            self._fail(self.fail_submit)
            count = len(self._commitments)
            seed = hashlib.sha256(f"{self.url} {count}".encode()).digest()
            start = Timestamp(digest)
            aggregated = start.ops.add(OpAppend(seed[:16])).ops.add(OpSHA256())
            dated = aggregated.ops.add(OpPrepend((START + count).to_bytes(4, "big")))
            end = dated.ops.add(OpAppend(seed[16:24]))
            end.attestations.add(PendingAttestation(self.uris[0]))
            self._commitments[end.msg] = _Commitment(end.msg)
            return Submitted(_serialised(start), (PendingPoint(self.uris[0], end.msg),))

    def upgrade(self, uri: str, commitment: bytes) -> Upgraded | NotYet:
        with self._lock:
            self.log.append(("upgrade", uri, commitment))
            assert uri in self.uris
            self._fail(self.fail_upgrade)
            known = self._commitments.get(commitment)
            if known is None or self.forgets:
                return NotYet("unknown", "Not found")
            if known.path is None:
                return NotYet(self.status, "Pending confirmation in Bitcoin blockchain")
            return Upgraded(_serialised(known.path))

    def mine(self, chain: FakeChain) -> int:
        """Put what waits, and what a reorg undid, into one block; return its height."""
        return mine_together(chain, self)

    def lie(self, height: int) -> None:
        """Claim that the block at `height` carries what waits."""
        for known in self.waiting(None):
            path = Timestamp(known.message)
            path.ops.add(OpSHA256())
            _finish([(known, path)], height)

    def waiting(self, chain: FakeChain | None) -> list[_Commitment]:
        """Return commitments without a path, or with one that leads to no block of `chain`."""
        return [
            known
            for known in self._commitments.values()
            if known.path is None
            or (chain is not None and not chain.holds(known.height, known.root))
        ]

    def _fail(self, error: AnchordError | None) -> None:
        if self.fail_with is not None or error is not None:
            raise self.fail_with or error  # type: ignore[misc]


def mine_together(chain: FakeChain, *calendars: FakeCalendar) -> int:
    """Let the transactions of several calendars stand in one block; return its height."""
    leaves: list[tuple[_Commitment, Timestamp]] = []
    tips: list[Timestamp] = []
    for number, calendar in enumerate(calendars):
        mine = []
        for known in calendar.waiting(chain):
            known.path = Timestamp(known.message)
            mine.append((known, known.path))
        if mine:
            tips.append(_transaction(number, _hashed_tree([path for _, path in mine])))
            leaves += mine
    assert tips, "no calendar has anything to put into a block"
    root = _block_root(tips)
    height = chain.mine(root)
    _finish(leaves, height)
    return height


def _hashed_tree(paths: list[Timestamp]) -> Timestamp:
    """Join commitments as `make_merkle_tree` does."""
    return make_merkle_tree([path.ops.add(OpSHA256()) for path in paths])


def _transaction(number: int, tip: Timestamp) -> Timestamp:
    """Wrap a calendar's tip in the bytes of a transaction; the result is its id."""
    before = hashlib.sha256(b"transaction %d" % number).digest()
    whole = tip.ops.add(OpPrepend(before + b"\x6a\x20")).ops.add(OpAppend(b"\x00\x00\x00\x00"))
    return whole.ops.add(OpSHA256()).ops.add(OpSHA256())


def _block_root(transactions: list[Timestamp]) -> bytes:
    """Join transactions under a coinbase as a block does."""
    beside = hashlib.sha256(b"coinbase").digest()
    for transaction in transactions:
        left = transaction.ops.add(OpPrepend(beside)).ops.add(OpSHA256()).ops.add(OpSHA256())
        beside = left.msg
    # Earlier transactions reach the root by what was hashed in after them.
    for place, transaction in enumerate(transactions[:-1]):
        node = _end(transaction)
        for later in transactions[place + 1 :]:
            node = node.ops.add(OpAppend(later.msg)).ops.add(OpSHA256()).ops.add(OpSHA256())
    return beside


def _end(timestamp: Timestamp) -> Timestamp:
    """Return the one end of a path that does not fork."""
    while timestamp.ops:
        (timestamp,) = timestamp.ops.values()
    return timestamp


def _finish(leaves: list[tuple[_Commitment, Timestamp]], height: int) -> None:
    for known, path in leaves:
        end = _end(path)
        if not end.attestations:
            end.attestations.add(BitcoinBlockHeaderAttestation(height))
        known.path, known.height, known.root = path, height, end.msg


def _serialised(timestamp: Timestamp) -> bytes:
    context = BytesSerializationContext()
    timestamp.serialize(context)
    return context.getbytes()


def make_parts(
    folder: Path,
    *,
    calendars: Sequence[Any] | None = None,
    headers: Sequence[Any] | None = None,
    signer: FakeSigner | None = None,
    signer_for: Callable[[str, int], Any] | None = None,
    store: SqlStore | None = None,
    draw: Callable[[int], bytes] | None = None,
    on_progress: Callable[[str, int, int], None] | None = None,
    **policy: Any,
) -> Parts:
    """Return parts over a real store in `folder` (made when it is not there yet).

    Without arguments: two calendars, one chain of 100 blocks, one key, m = 2 of 2, and six
    confirmations. Everything in `policy` replaces a number of the policy. Close the store with
    `parts.store.close()`.
    """
    calendars = [FakeCalendar(), FakeCalendar(URL_B, (URI_B,))] if calendars is None else calendars
    numbers = {
        "min_answers": min(2, len(calendars)),
        "timeout_s": 5.0,
        "min_batch_interval_s": 0,
        "poll_min_s": 60,
        "poll_max_s": 900,
        "resubmit_after_s": 86_400,
        "confirmations": 6,
        "final_confirmations": 100,
        "sign_submitted": True,
        "chain": "bitcoin-regtest",
        **policy,
    }
    return Parts(
        store=store or open_store(folder, [uri for calendar in calendars for uri in calendar.uris]),
        policy=Policy(**numbers),
        signer=signer or FakeSigner(),
        signer_for=signer_for or _no_other_key,
        calendars=calendars,
        headers=[FakeChain()] if headers is None else headers,
        draw=draw or _Drawing(),
        on_progress=on_progress or (lambda _stage, _done, _total: None),
    )


def open_store(folder: Path, known_uris: Sequence[str] = (URI_A, URI_B)) -> SqlStore:
    """Open the store in `folder`, made when it is not there yet."""
    return kept(SqlStore(made(folder), known_uris))


def _no_other_key(key_id: str, _at: int) -> Any:
    raise ConfigError(f"no key {key_id!r} here")


class _Drawing:
    """Bytes that differ from call to call and are the same in every run."""

    def __init__(self) -> None:
        self._calls = 0

    def __call__(self, count: int) -> bytes:
        self._calls += 1
        return hashlib.shake_128(b"draw %d" % self._calls).digest(count)
