"""The fast way finds what the slow way finds: a record stands as `verify` and the merge say."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.audited import CHAIN, audit, broken
from support.workplace import Workplace, bare, sample

from anchord.core.bundle import read_bundle
from anchord.core.merge import merge
from anchord.core.trust import Keys
from anchord.engine.dossier import Expected
from anchord.engine.export import record_bundle
from anchord.engine.header_view import HeaderView
from anchord.engine.verification import verify_record

STEPS = st.lists(
    st.sampled_from(["add", "bare", "pass", "mine", "wait", "reorg"]), min_size=3, max_size=7
)


def live(place: Workplace, steps: list[str]) -> None:
    for number, step in enumerate(steps, 1):
        if step == "add":
            place.add(sample(number), sample(number + 100))
        elif step == "bare":
            place.add(bare(bytes([number]) * 32))
        elif step == "mine" and any(one.waiting(place.chain) for one in place.calendars):
            place.mine()
        elif step == "reorg" and len(place.chain.headers) > 110:
            place.chain.reorg(6)
        place.step(5_000 if step == "wait" else 61)


def slow(place: Workplace) -> dict[str, int]:
    """Count records by how they stand, one at a time."""
    counts: dict[str, int] = {}
    with place.app() as app:
        keys = Keys(app.keyring)
        headers = HeaderView([place.chain], CHAIN, 6)
        for rows in app.store.records.walk():
            for record in rows:
                same = Expected(record.digest, "its row")
                report = verify_record(
                    app.store, record, app.keyring, (), lambda *_, same=same: same, headers, "x"
                )
                assert report.result != "failed", report
                read = read_bundle(record_bundle(app.store, app.keyring, record))
                merged = merge(read.digest, read.number, read.canonical, read.events, keys)
                state = "anchored" if merged.anchored and report.block_height else "other"
                counts[state] = counts.get(state, 0) + 1
    return counts


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_records_stand_as_the_merge_and_verify_say(steps):
    with tempfile.TemporaryDirectory() as folder:
        place = Workplace(Path(folder))
        live(place, ["add", *steps])
        # The chain as anchord last saw it: what it did not notice yet is not the store's fault.
        for _ in range(2):
            place.step(100_000)
        report = audit(place)
        assert broken(report) == {}
        expected = slow(place)
        assert report.completeness.anchored.get("anchored", 0) == expected.get("anchored", 0)
        assert report.completeness.records == sum(expected.values())
