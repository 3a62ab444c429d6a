"""Holding mirrors against each other: what one has of a record, and another has not, or otherwise.

What a mirror served last is the foreign bundle whose SHA-256 the table of pulls has, so mirrors
that were pulled on different days, or in parts, can be compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import combinations
from typing import TYPE_CHECKING

from anchord.engine.pull_check import contents, read_document
from anchord.engine.pull_names import Place, by_pattern, target_of
from anchord.engine.pull_report import Differences, Kind

if TYPE_CHECKING:
    from anchord.core.model import StoredRecord
    from anchord.ports.log import Pull
    from anchord.ports.store import Store

_Events = dict[str, set[bytes]]


def compare(
    store: Store, places: Sequence[Place], whole: frozenset[str], differences: Differences
) -> int:
    """Compare what several mirrors serve of each record; return how many records were compared.

    Args:
        store: with what was pulled.
        places: the mirrors.
        whole: addresses of mirrors whose index was worked through: they lack what is not in it.
        differences: takes what is found.
    """
    if len(places) < 2:
        return 0
    return sum(
        _compare_record(store, record, served, places, whole, differences)
        for chunk in store.records.walk(chunk=256)
        for record, served in _served(store, places, chunk)
    )


def _served(
    store: Store, places: Sequence[Place], records: Sequence[StoredRecord]
) -> Iterator[tuple[StoredRecord, dict[str, Pull]]]:
    """Yield what each mirror said of each record, by the mirror's address."""
    served: dict[int, dict[str, Pull]] = {record.id: {} for record in records}
    for place in places:
        names = {
            one.name: record.id
            for record in records
            for one in by_pattern(place, target_of(record))
        }
        for name, pull in store.pulls.get(place.source.name, list(names)).items():
            known = served[names[name]]
            # A record without a number may lie in two places: that it is in one counts.
            if pull.state == "fetched" or (pull.state == "absent" and pull.mirror not in known):
                known[pull.mirror] = pull
    for record in records:
        yield record, served[record.id]


def _compare_record(
    store: Store,
    record: StoredRecord,
    served: Mapping[str, Pull],
    places: Sequence[Place],
    whole: frozenset[str],
    differences: Differences,
) -> bool:
    have = {
        place.source.name: place.mirror.name
        for place in places
        if place.source.name in served and served[place.source.name].state == "fetched"
    }
    lack = [
        place.mirror.name
        for place in places
        if place.source.name not in have
        and (place.source.name in whole or place.source.name in served)
    ]
    stem = _stem(record)
    if have:
        for name in lack:
            what = f"{', '.join(sorted(have.values()))} has it"
            differences.add(Kind.ABSENT, name, what, stem)
    digests = {served[address].sha256 for address in have}
    if len(digests) > 1:
        _compare_events(_contents(store, record, served, have), stem, differences)
    return len(have) > 1 or bool(have and lack)


def _contents(
    store: Store, record: StoredRecord, served: Mapping[str, Pull], have: Mapping[str, str]
) -> dict[str, _Events]:
    """Return the events that each mirror has, by the mirror's name."""
    raws = {sha256(raw).digest(): raw for raw in store.records.documents(record.id)}
    found: dict[str, _Events] = {}
    for address, name in have.items():
        raw = raws.get(served[address].sha256 or b"")
        if raw is not None:
            found[name] = contents(read_document(raw).bundle.events)
    return found


def _compare_events(by_mirror: Mapping[str, _Events], stem: str, differences: Differences) -> None:
    everything = {name for events in by_mirror.values() for name in events}
    for mirror, events in by_mirror.items():
        lacks = sorted(everything - events.keys())
        if lacks:
            holders = sorted(name for name, other in by_mirror.items() if lacks[0] in other)
            what = f"lacks {len(lacks)} events, such as {lacks[0]}, which {holders[0]} has"
            differences.add(Kind.BEHIND, mirror, what, stem)
    for (one, mine), (other, theirs) in combinations(by_mirror.items(), 2):
        for name in sorted(mine.keys() & theirs.keys()):
            if mine[name] != theirs[name]:
                what = f"its event {name} is another than the one {other} has under that id"
                differences.add(Kind.TWO_CONTENTS, one, what, stem)


def _stem(record: StoredRecord) -> str:
    target = target_of(record)
    return str(target.suffix if target.numbered else target.digest)
