"""Pulling bundles from mirrors: fetch what is new, check it, take it in, remember it.

What is true if we crash: a bundle is in the store before the table of pulls says so. So an
interrupted pull goes on where it stopped, and fetches again at most what it had in hand; taking a
bundle in twice changes nothing. A shard of an index is remembered only when all its bundles are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from anchord.core.bundle import MAX_BUNDLE_BYTES, Bundle
from anchord.core.keyring import Keyring
from anchord.core.model import Document
from anchord.core.reference import Reference
from anchord.core.state import MAX_STATE_BYTES
from anchord.core.trust import Keys
from anchord.engine.pull_check import (
    Checked,
    check_bundle,
    compare_state,
    contents,
    read_document,
)
from anchord.engine.pull_index import Index, read_shards
from anchord.engine.pull_names import (
    Place,
    Target,
    TreeNames,
    Wanted,
    by_pattern,
    own_targets,
    stems_of,
)
from anchord.engine.pull_report import Differences, Kind, MirrorReport, Pulled
from anchord.errors import ProtocolError, TransientError
from anchord.ports.log import Pull
from anchord.ports.mirror import Absent, Fetched, NotModified

if TYPE_CHECKING:
    from anchord.core.tree_index import Shard
    from anchord.ports import Clock, RecordStore
    from anchord.ports.store import Store

FETCHED, ABSENT, REFUSED, FAILED = "fetched", "absent", "refused", "failed"
"""States in the table of pulls."""
PATIENCE = 3
"""Failures in a row after which a mirror is left for the next pull."""
FRESH_S = 3600
"""For so long a bundle without ETag and Last-Modified is not fetched again."""
_CHUNK_BYTES = 16 << 20

Progress = Callable[[str, int, int], None]


class PullOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a person may choose of a pull."""

    targets: tuple[Target, ...] = ()
    """These records only; none: all the mirror lists, or all of the store."""
    states: bool = True
    limit: int | None = None
    """Most bundles fetched of one mirror."""
    dry_run: bool = False


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """What a pull works with."""

    store: Store
    records: RecordStore
    keyring: Keyring
    clock: Clock
    differences: Differences
    on_progress: Progress


def pull(places: Sequence[Place], parts: Parts, options: PullOptions) -> Pulled:
    """Pull from mirrors, one after the other; what one does wrong never stops the rest.

    Raises:
        StoreBusyError: another process held the store too long; what was pulled before is in.
    """
    reports, new, known = [], 0, 0
    for place in places:
        one = _Pulling(place, parts, options)
        try:
            one.run()
        except TransientError as error:
            one.stop(str(error))
        finally:
            one.flush()
        reports.append(one.report)
        new, known = new + one.new, known + one.known
    return Pulled(mirrors=reports, new=new, known=known)


class _LimitReachedError(Exception):
    """As many bundles as were wished for have come."""


class _Pulling:
    """One mirror as it is pulled."""

    def __init__(self, place: Place, parts: Parts, options: PullOptions) -> None:
        self._place, self._parts, self._options = place, parts, options
        self._keys = Keys(parts.keyring)
        self._source = place.source
        self._documents: list[Document] = []
        self._pulls: list[Pull] = []
        self._bytes = 0
        self._failures = 0
        self._lost_states = 0
        self._moved: list[tuple[str, str]] = []
        self.report = MirrorReport(name=place.mirror.name, address=place.source.name)
        self.new = 0
        self.known = 0

    def run(self) -> None:
        """Pull all of it."""
        index = Index(self._place, self._parts.keyring)
        shards = index.read()
        self.report.index = index.standing
        for kind, what in index.found:
            self._tell(kind, what)
        try:
            if shards is None:
                self._by_records()
            else:
                self._by_index(shards)
        except _LimitReachedError:
            self.report.complete = False
        self._settle_moved(index)

    def _by_records(self) -> None:
        chosen = self._options.targets
        chunks = [list(chosen)] if chosen else own_targets(self._parts.store)
        for targets in chunks:
            wanted = [one for target in targets for one in by_pattern(self._place, target)]
            self._take(wanted)

    def _by_index(self, shards: Sequence[Shard]) -> None:
        names = TreeNames(self._place)
        chosen = self._options.targets
        stems = stems_of(chosen) if chosen else None
        given = read_shards(
            self._source, names.folder, shards, self._parts.store.pulls, skip=stems is None
        )
        total, listed = len(shards), set[str]()
        for place, (shard, lines, trouble) in enumerate(given, 1):
            name = names.folder + shard.name
            if trouble is not None:
                self._tell(*trouble)
                self.report.complete = False
            elif lines is not None:
                wanted = list(names.bundles(lines, stems))
                listed.update(one.stem for one in wanted)
                whole = self._take(wanted)
                if whole and stems is None and not self._options.dry_run:
                    self._note(name, FETCHED, bytes.fromhex(shard.sha256))
            else:
                self.report.settled_shards += 1
            self._parts.on_progress(self.report.name, place, total)
        # Parts of the index that could not be read may list it.
        for target in chosen if self.report.complete else ():
            if listed.isdisjoint(stems_of([target])):
                self.report.absent += 1
                stem = target.suffix or target.digest
                self._tell(Kind.ABSENT, "it was asked for, and the index does not list it", stem)

    def _take(self, wanted: Sequence[Wanted]) -> bool:
        """Fetch some bundles; tell whether nothing of them is left to do."""
        states = [one.state for one in wanted if one.state is not None]
        known = self._parts.store.pulls.get(
            self._source.name, [*(one.name for one in wanted), *states]
        )
        whole = True
        for one in wanted:
            old = known.get(one.name)
            if old is not None and self._settled(one, old):
                self.report.unchanged += 1
            elif self._options.dry_run:
                self.report.wanted += 1
            else:
                whole &= self._fetch(one, old)
            if one.sha256 is None:
                self._parts.on_progress(self.report.name, self.report.asked, 0)
        return whole

    def _settled(self, one: Wanted, old: Pull) -> bool:
        """Tell whether a bundle need not even be asked for."""
        if old.state != FETCHED:
            return False
        if one.sha256 is not None:
            return old.sha256 is not None and old.sha256.hex() == one.sha256
        bare = old.etag is None and old.last_modified is None
        return bare and self._parts.clock.now() - (old.fetched_at or 0) < FRESH_S

    def _fetch(self, one: Wanted, old: Pull | None) -> bool:
        """Ask for one bundle; tell whether that came to an end."""
        limit = self._options.limit
        if limit is not None and self.report.fetched + self.report.refused >= limit:
            raise _LimitReachedError
        self.report.asked += 1
        kept = old if old is not None and old.state == FETCHED else None
        etag, modified = (kept.etag, kept.last_modified) if kept else (None, None)
        try:
            got = self._source.get(one.name, etag, modified, MAX_BUNDLE_BYTES)
        except (TransientError, ProtocolError) as error:
            self._failed(one, error)
            return False
        self._failures = 0
        if isinstance(got, NotModified):
            self.report.unchanged += 1
        elif isinstance(got, Absent):
            self._absent(one, old)
        else:
            return self._came(one, got, kept)
        return True

    def _failed(self, one: Wanted, error: TransientError | ProtocolError) -> None:
        """Remember a failed try; a mirror that fails again and again is left alone."""
        transient = isinstance(error, TransientError)
        self._tell(Kind.UNREACHABLE if transient else Kind.UNUSABLE, str(error), one.stem)
        self.report.complete = False
        self._note(one.name, FAILED, None, note=str(error))
        self._failures = self._failures + 1 if transient else 0
        if transient and (self._failures >= PATIENCE or getattr(error, "retry_after", None)):
            raise TransientError(f"{self._failures} failures in a row: {error}")

    def _absent(self, one: Wanted, old: Pull | None) -> None:
        self.report.absent += 1
        if one.sha256 is not None:
            self._moved.append((one.stem, "the index lists its bundle, and it is not there"))
        elif old is not None and old.state == FETCHED:
            self._tell(Kind.STALE, "its bundle was there before and is gone", one.stem)
        self._note(one.name, ABSENT, None)

    def _came(self, one: Wanted, got: Fetched, old: Pull | None) -> bool:
        digest = sha256(got.data).digest()
        as_listed = one.sha256 in (None, digest.hex())
        if not as_listed:
            what = f"its bundle has sha256 {digest.hex()}, the index says {one.sha256}"
            self._moved.append((one.stem, what))
        checked = check_bundle(got.data, one.stem, self._parts.keyring)
        if not isinstance(checked, Checked):
            kind, what = checked
            self.report.refused += 1
            self._tell(kind, what, one.stem)
            self._note(one.name, REFUSED, digest, note=what)
            return False
        self.report.fetched += 1
        if old is not None and old.sha256 != digest:
            self._compare_before(one, checked.bundle, old)
        compared = self._state(one, checked.bundle)
        self._documents.append(checked.document)
        self._bytes += len(got.data)
        # A bundle whose state did not come is asked for once more, for its state's sake.
        self._note(one.name, FETCHED if compared else FAILED, digest, got)
        if self._lost_states >= PATIENCE:
            raise TransientError(f"{self._lost_states} states in a row did not come")
        return as_listed and compared

    def _compare_before(self, one: Wanted, bundle: Bundle, old: Pull) -> None:
        """Hold a bundle against the one that the mirror served before: events never go."""
        before = stored_document(self._parts.store, bundle.digest, old.sha256)
        if before is None:
            return
        lost = contents(read_document(before).bundle.events).keys() - contents(bundle.events).keys()
        if lost:
            what = f"served {len(lost)} events before that it lacks now: {min(lost)}"
            self._tell(Kind.STALE, what, one.stem)

    def _state(self, one: Wanted, bundle: Bundle) -> bool:
        """Fetch a record's state and hold it against its bundle; it is never taken over.

        Returns:
            Whether that is done; False: it could not be fetched.
        """
        if one.state is None or not self._options.states:
            return True
        try:
            got = self._source.get(one.state, None, None, MAX_STATE_BYTES)
        except (TransientError, ProtocolError) as error:
            transient = isinstance(error, TransientError)
            kind = Kind.UNREACHABLE if transient else Kind.UNUSABLE
            self._tell(kind, f"its state: {error}", one.stem)
            self._lost_states += transient
            return not transient
        self._lost_states = 0
        if isinstance(got, Fetched):
            self.report.states += 1
            for kind, what in compare_state(got.data, bundle, self._keys):
                self._tell(kind, what, one.stem)
        return True

    def _settle_moved(self, index: Index) -> None:
        """Tell a forged file from one that was published anew while we were reading."""
        if not self._moved:
            return
        anew = index.changed()
        for stem, what in self._moved:
            self._tell(Kind.CHANGED_MEANWHILE if anew else Kind.FILE_DIFFERS, what, stem)

    def _note(
        self,
        name: str,
        state: str,
        digest: bytes | None,
        got: Fetched | None = None,
        note: str | None = None,
    ) -> None:
        self._pulls.append(
            Pull(
                mirror=self._source.name,
                name=name,
                state=state,
                sha256=digest,
                etag=got.etag if got else None,
                last_modified=got.last_modified if got else None,
                fetched_at=self._parts.clock.now(),
                note=note and note[:500],
            )
        )
        if len(self._pulls) >= self._source.at_once or self._bytes >= _CHUNK_BYTES:
            self.flush()

    def flush(self) -> None:
        """Take in what is in hand, then remember that."""
        if self._documents:
            added = self._parts.records.add(self._documents, self._parts.clock.now())
            self.new, self.known = self.new + added.new, self.known + added.known
        if self._pulls:
            self._parts.store.pulls.put(self._pulls)
        self._documents, self._pulls, self._bytes = [], [], 0

    def stop(self, why: str) -> None:
        """Leave the rest for the next pull."""
        self.report.complete = False
        self._tell(Kind.UNREACHABLE, why)

    def _tell(self, kind: Kind, what: str, record: str | None = None) -> None:
        self._parts.differences.add(kind, self.report.name, what, record)


def stored_document(store: Store, digest: bytes, wanted: bytes | None) -> bytes | None:
    """Return the foreign bundle of a record that has a certain SHA-256, None when it is gone."""
    for record in store.records.find(Reference(digest=digest), 1):
        for raw in store.records.documents(record.id):
            if sha256(raw).digest() == wanted:
                return raw
    return None
