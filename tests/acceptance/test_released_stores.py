"""A store that any released anchord made goes on with the code of today: nothing is lost."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from support.check_ledger import check_all_anchored
from support.released import ReleasedStore, released

from anchord.adapters.store.schema import REVISION

VERSIONS = Path(__file__).resolve().parents[2] / "anchord" / "adapters" / "store" / "migrations"
REVISIONS = sorted(
    found[0]
    for path in (VERSIONS / "versions").glob("*.py")
    if (found := re.match(r"[0-9]{4}", path.name))
)
LEDGER = "SELECT seq, record_id, series_id, event_id, signature, chain FROM events ORDER BY seq"


@pytest.fixture(params=released())
def old(request: pytest.FixtureRequest, tmp_path: Path) -> ReleasedStore:
    return ReleasedStore(tmp_path, request.param)


@pytest.fixture
def upgraded(old: ReleasedStore) -> ReleasedStore:
    before = old.rows(LEDGER)
    assert old.run("db", "upgrade").exit_code == 0
    assert old.rows(LEDGER) == before
    return old


def test_every_schema_before_this_one_has_a_store_here() -> None:
    assert released() == [one for one in REVISIONS if one < REVISION]


def test_an_old_store_is_refused_until_it_is_upgraded(old: ReleasedStore) -> None:
    refused = old.run("status")
    assert refused.exit_code == 2
    assert "anchord db upgrade" in refused.stderr
    assert old.run("db", "upgrade").exit_code == 0
    assert old.json("db", "status")["schema"] == REVISION
    assert old.run("status").exit_code == 0


def test_the_ledger_and_every_claim_hold_after_an_upgrade(upgraded: ReleasedStore) -> None:
    assert upgraded.run("ledger", "check").exit_code in (0, 3)
    report = upgraded.json("audit", "--jobs", "1")
    assert report["result"] == "sound"


def test_proofs_and_events_go_out_as_the_release_wrote_them(upgraded: ReleasedStore) -> None:
    out = upgraded.folder / "out"
    upgraded.run("export", "--all", "-o", str(out))
    found = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in out.iterdir()}
    assert found == upgraded.told["proofs"]
    for digest, bundle in upgraded.told["bundles"].items():
        file = upgraded.folder / f"{digest}.json"
        assert upgraded.run("export", "--bundle", digest, "-o", str(file)).exit_code == 0
        now = json.loads(file.read_text("utf-8"))
        assert now["events"] == bundle["events"]
        assert {name: now.get(name) for name in bundle} == bundle


def test_passes_go_on_until_everything_is_anchored(upgraded: ReleasedStore) -> None:
    signed = len(upgraded.rows(LEDGER))
    for _ in range(4):
        upgraded.step(90_000)
        upgraded.mine()
    for _ in range(3):
        upgraded.step(4_000)
    with upgraded.app() as app:
        check_all_anchored(app.store)
        assert app.store.records.waiting()[0] == 0
    assert len(upgraded.rows(LEDGER)) > signed
    assert upgraded.json("audit", "--jobs", "1")["result"] == "sound"
