"""The log of a published tree: recomputed from its entries, tile by tile, up to what was signed.

Formats: https://c2sp.org/tlog-tiles, https://c2sp.org/tlog-checkpoint, RFC 6962 2.1. Entries are
read once, in order; nothing but the right edge of each level is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from anchord.core import log as merkle_log
from anchord.core.checkpoint import Checkpoint, open_checkpoint, parse
from anchord.core.finding import Part, Severity
from anchord.core.log_tree import HEIGHT, WIDTH
from anchord.core.note import MAX_NOTE_BYTES
from anchord.core.proof import MAX_PROOF_BYTES
from anchord.core.tlog_tile import TileName, entry_tiles, parse_path, read_entry_bundle
from anchord.core.verify import read_proof
from anchord.engine.audit.bundles import ends
from anchord.engine.audit.tree_survey import CHECKPOINT
from anchord.engine.audit.tree_words import KEY_TODO, code_of
from anchord.errors import AnchordError, RefusedError, SignatureError

if TYPE_CHECKING:
    from anchord.engine.audit.outcome import Outcome
    from anchord.engine.audit.tree_anchors import Anchors
    from anchord.engine.audit.tree_keys import TreeKeys
    from anchord.engine.audit.tree_scratch import Scratch
    from anchord.ports.tree import Tree

ENTRY = 96
_TODO = "fetch the tree again; if it stays so, tell others: the log's signer must answer for it"
_Word = tuple[str, str]


class Head(NamedTuple):
    """A log as far as an audit knows it, small enough to be sent to other processes."""

    origin: str
    size: int
    roots: dict[int, bytes]
    """Size -> root, of every size a checkpoint was recomputed for."""
    signers: frozenset[str]
    """Whose events belong into it: those that the keys that signed it, now or before, are of."""

    def covers(self, checkpoint: Checkpoint) -> bool:
        """Tell whether a checkpoint is of this very log, whatever name the log had then."""
        return self.roots.get(checkpoint.size) == checkpoint.root


class LogAuditor:
    """Audits the log of a tree.

    Args:
        tree: where it lies.
        keys: who may have signed it.
        outcome: where findings go.
        scratch: where entries go, to be held against the bundles.
    """

    def __init__(self, tree: Tree, keys: TreeKeys, outcome: Outcome, scratch: Scratch) -> None:
        self._tree, self._keys = tree, keys
        self._outcome, self._scratch = outcome, scratch
        self.note: bytes | None = None
        """The newest checkpoint, once everything below it was recomputed."""
        self._signers: set[str] = set()

    # ------------------------------------------------------------------ checkpoints

    def open(self, where: str, raw: bytes) -> Checkpoint | None:
        """Return what a checkpoint says, if a key that is at least claimed has signed it."""
        try:
            origin = parse(raw).origin
            try:
                found = open_checkpoint(raw, self._keys.verifiers(origin))
            except SignatureError:
                found = open_checkpoint(raw, self._keys.claimed_verifiers(origin))
                self._outcome.doubt("checkpoints are signed by keys nobody gave: " + KEY_TODO)
                for key in self._keys.signed_by(origin, raw):
                    self._outcome.lack(key.key_id)
        except AnchordError as error:
            self._find(code_of(error, "checkpoint"), Part.CHECKPOINT, where, str(error))
            return None
        self._outcome.count("checkpoints")
        self._outcome.count("signatures")
        return found

    def run(self, sizes: Sequence[int], since: Checkpoint | None) -> Head | None:
        """Recompute the log and every checkpoint; None when there is none that can be read.

        Args:
            sizes: of the checkpoints that are kept beside the newest.
            since: an earlier checkpoint the log must have grown from.
        """
        raw = self._read(CHECKPOINT, MAX_NOTE_BYTES, Part.CHECKPOINT)
        newest = None if raw is None else self.open(CHECKPOINT, raw)
        if newest is None:
            return None
        wanted = {size for size in sizes if size <= newest.size} | {newest.size}
        if since is not None and since.size <= newest.size:
            wanted.add(since.size)
        roots = self._recompute(newest.size, sorted(wanted))
        if self._agrees(CHECKPOINT, newest, roots):
            self.note = raw
        if since is not None:
            self._grown(since, newest, roots)
        for size in sorted(sizes):
            self._check_kept(size, newest, roots, raw if size == newest.size else None)
        keys = self._keys.signed_by(newest.origin, raw or b"")
        if keys and all(key.revoked_at is not None for key in keys):
            self._outcome.doubt(
                "checkpoint is signed by a key that was revoked, and nothing says that it was "
                "signed before: get the newest one from the publisher"
            )
        self._signers.update(key.signer_id for key in keys)
        return Head(newest.origin, newest.size, roots, frozenset(self._signers))

    def _agrees(self, where: str, stated: Checkpoint, roots: dict[int, bytes]) -> bool:
        root = roots.get(stated.size)
        if root is None or root == stated.root:
            return root is not None
        self._find(
            "checkpoint-differs", Part.CHECKPOINT, where,
            f"it signs the root {stated.root.hex()} over {stated.size:,} entries, the entries here "
            f"give {root.hex()}: entries were changed, or two logs are shown under one name",
        )  # fmt: skip
        return False

    def _grown(self, since: Checkpoint, newest: Checkpoint, roots: dict[int, bytes]) -> None:
        """Hold the log against the checkpoint an earlier audit kept."""
        name = f"checkpoint {since.size}"
        if self._renamed(name, since, newest, roots):
            return
        if since.origin != newest.origin:
            self._find(
                "log-replaced", Part.CHECKPOINT, name,
                f"the kept checkpoint is of log {since.origin!r:.100}, the tree's log is "
                f"{newest.origin!r:.100}",
            )  # fmt: skip
        elif since.size > newest.size:
            self._find(
                "log-shrunk", Part.CHECKPOINT, name,
                f"an earlier audit saw {since.size:,} entries, the log here has {newest.size:,}: "
                "an older tree is shown, or entries were dropped",
            )  # fmt: skip
        elif roots.get(since.size) not in (None, since.root):
            self._find(
                "log-rewritten", Part.CHECKPOINT, name,
                f"the first {since.size:,} entries have the root {roots[since.size].hex()}, an "
                f"earlier audit saw {since.root.hex()} signed: the log was rewritten",
            )  # fmt: skip

    def _check_kept(
        self, size: int, newest: Checkpoint, roots: dict[int, bytes], same: bytes | None
    ) -> None:
        where = f"log/checkpoints/{size}"
        raw = self._read(where, MAX_NOTE_BYTES, Part.CHECKPOINT)
        if raw is None or (raw == same and self.note == raw):
            return
        kept = self.open(where, raw)
        if kept is None:
            return
        if roots.get(kept.size) == kept.root:
            # A key may have been rotated to another name: what it signed before is still its log.
            by = self._keys.signed_by(kept.origin, raw)
            self._signers.update(key.signer_id for key in by)
        if kept.size == size and self._renamed(where, kept, newest, roots):
            return
        if (kept.origin, kept.size) != (newest.origin, size) or size > newest.size:
            self._find(
                "checkpoint-misplaced", Part.CHECKPOINT, where,
                f"it is of {kept.size:,} entries of {kept.origin!r:.100}, in a log "
                f"{newest.origin!r:.100} of {newest.size:,}",
            )  # fmt: skip
            return
        self._agrees(where, kept, roots)

    def _renamed(
        self, where: str, older: Checkpoint, newest: Checkpoint, roots: dict[int, bytes]
    ) -> bool:
        """Tell whether a checkpoint is of these very entries, under the log's earlier name."""
        if older.origin == newest.origin or roots.get(older.size) != older.root:
            return False
        self._outcome.find(
            "log-renamed", Severity.NOTE, Part.CHECKPOINT, where,
            f"it calls the log {older.origin!r:.100}, the newest one {newest.origin!r:.100}; "
            f"its root is that of the first {older.size:,} entries here: it is the same log",
            "nothing, if its keeper says that the log was renamed (ledger.origin)",
        )  # fmt: skip
        return True

    def check_proofs(self, sizes: dict[int, bool], anchors: Anchors) -> None:
        """Check the `.ots` of checkpoints, down to the headers."""
        for size in sorted(size for size, proof in sizes.items() if proof):
            where = f"log/checkpoints/{size}.ots"
            raw = self._read(where, MAX_PROOF_BYTES, Part.PROOF)
            note = self._read(f"log/checkpoints/{size}", MAX_NOTE_BYTES, Part.CHECKPOINT)
            if raw is None or note is None:
                continue
            try:
                proof = read_proof(raw, sha256(note).digest())
            except AnchordError as error:
                self._find(code_of(error, "proof"), Part.PROOF, where, str(error))
                continue
            for end in ends(proof, None):
                self._outcome.count("proofs")
                anchors.confirm(end, Part.CHECKPOINT, where)

    # ------------------------------------------------------------------ tiles

    def _recompute(self, size: int, wanted: Sequence[int]) -> dict[int, bytes]:
        """Recompute all tiles from the entries; return the roots at the sizes wanted."""
        frontier = merkle_log.Frontier()
        roots: dict[int, bytes] = {}
        levels = Levels(self, size)
        marks = list(wanted)
        for name in entry_tiles(size):
            entries = self._entries(name)
            if entries is None:
                return roots
            self._scratch.add_entries(name.start, b"".join(entries))
            leaves = [merkle_log.leaf_hash(entry) for entry in entries]
            for leaf in leaves:
                frontier.append(leaf)
                if marks and frontier.size == marks[0]:
                    roots[marks.pop(0)] = frontier.root()
            levels.extend(b"".join(leaves))
        levels.finish()
        return roots

    def _entries(self, name: TileName) -> list[bytes] | None:
        where = f"log/{name.path}"
        raw = self._read(where, WIDTH * (ENTRY + 2), Part.TILE)
        if raw is None:
            return None
        try:
            entries = read_entry_bundle(raw, name.width)
        except RefusedError as error:
            self._find("tile-unreadable", Part.TILE, where, str(error))
            return None
        if any(len(entry) != ENTRY for entry in entries):
            what = f"expected entries of {ENTRY} bytes: a digest and a signature"
            self._find("tile-unreadable", Part.TILE, where, what)
            return None
        self._outcome.count("tiles")
        return entries

    def compare(self, name: TileName, hashes: bytes) -> None:
        """Hold a published tile of hashes against what was recomputed."""
        where = f"log/{name.path}"
        raw = self._read(where, WIDTH * merkle_log.HASH, Part.TILE)
        if raw is None:
            return
        self._outcome.count("tiles")
        if raw != hashes:
            place = next(
                (n for n, (a, b) in enumerate(zip(raw, hashes, strict=False)) if a != b),
                min(len(raw), len(hashes)),
            )
            self._find(
                "tile-differs", Part.TILE, where,
                f"{where} has {len(raw):,} bytes, {len(hashes):,} recompute from the entries, "
                f"and byte {place} is the first that differs",
            )  # fmt: skip

    def check_partial(self, paths: Sequence[str], size: int) -> None:
        """Hold tiles that were not full yet when they were published against the full ones."""
        for path in paths:
            try:
                why = self._partial(path, size)
            except RefusedError as error:
                self._find("tile-unreadable", Part.TILE, path, str(error))
                continue
            if why is not None:
                self._find("tile-differs", Part.TILE, path, why)

    def _partial(self, path: str, size: int) -> str | None:
        name = parse_path(path.removeprefix("log/"))
        width = min(WIDTH, (size >> HEIGHT * (name.level or 0)) - name.start)
        if width < name.width:
            return f"it goes beyond a log of {size:,} entries"
        whole = f"log/{TileName(name.level, name.number, width).path}"
        raw, full = self._tree.read(path, 1 << 20), self._tree.read(whole, 1 << 20)
        if raw is None or full is None or full.startswith(raw):
            return None
        return f"it is not the beginning of {whole}: the log was rewritten"

    # ------------------------------------------------------------------ reading

    def _read(self, path: str, limit: int, part: Part) -> bytes | None:
        try:
            raw = self._tree.read(path, limit)
        except RefusedError as error:
            self._find(f"{part.value}-unreadable", part, path, str(error))
            return None
        if raw is None:
            self._find(f"{part.value}-missing", part, path, f"{path} is not there: it was dropped")
        return raw

    def _find(self, code: str, part: Part, subject: str, what: str) -> None:
        self._outcome.find(code, Severity.BROKEN, part, subject, what, _TODO)


class Levels:
    """Tiles of hashes, made anew level by level as leaf hashes come.

    Args:
        log: told of each tile that is complete.
        size: of the log.
    """

    def __init__(self, log: LogAuditor, size: int) -> None:
        self._log = log
        self._open: list[bytearray] = [bytearray()]
        self._done = [0]
        self._size = size

    def extend(self, hashes: bytes) -> None:
        """Take in the leaf hashes of one tile of entries."""
        level = 0
        while True:
            tile = self._open[level]
            tile += hashes
            if len(tile) < WIDTH * merkle_log.HASH:
                return
            self._log.compare(TileName(level, self._done[level]), bytes(tile))
            hashes = merkle_log.root(bytes(tile))
            tile.clear()
            self._done[level] += 1
            level += 1
            if level == len(self._open):
                self._open.append(bytearray())
                self._done.append(0)

    def finish(self) -> None:
        """Compare the tiles at the log's end, which are not full."""
        for level, tile in enumerate(self._open):
            if tile:
                width = len(tile) // merkle_log.HASH
                self._log.compare(TileName(level, self._done[level], width), bytes(tile))
