"""Rows changed by hand: every reading command notices, or says what is still true."""

from __future__ import annotations

import copy
import hashlib
import shutil

import pytest
from support.workplace import Workplace, bare, sample

NAME = "2507.00001"
COMMANDS = {
    "show": ("show", NAME, "--json"),
    "export": ("export", NAME, "-o", "-"),
    "bundle": ("export", NAME, "--bundle", "-o", "-"),
    "all": ("export", "--all", "-o", "-"),
    "bundles": ("export", "--all", "--bundle", "-o", "-"),
    "verify": ("verify", NAME),
}

FLIP = (
    "SET {0} = CAST(substr({0}, 1, length({0}) / 2) || x'FF' "
    "|| substr({0}, length({0}) / 2 + 2) AS BLOB)"
)

TAMPERED = {
    "canonical bytes": (
        "UPDATE bodies SET canonical = CAST(replace(canonical, 'cs.DL', 'cs.AI') AS BLOB)",
        ("show", "bundle", "bundles", "verify"),
    ),
    "canonical bytes lost": (
        "DELETE FROM bodies",
        ("show", "bundle", "bundles", "verify"),
    ),
    "version": (
        "UPDATE records SET source_version = 2 WHERE source_id = '2507.00001'",
        ("show", "bundle", "bundles", "verify"),
    ),
    "name": (
        (
            "UPDATE records SET source_id = '2507.0000' || (3 - substr(source_id, 10)) "
            "WHERE source_id IS NOT NULL"
        ),
        ("show", "bundle", "bundles", "verify"),
    ),
    "digest": (
        "UPDATE records SET digest = zeroblob(32) WHERE source_id = '2507.00001'",
        tuple(COMMANDS),
    ),
    "proof": ("UPDATE batches " + FLIP.format("proof"), ("show", "export", "all", "verify")),
    "block": ("UPDATE batches SET block_height = block_height + 1", ("show", "export", "all")),
    "block hash": ("UPDATE batches SET block_hash = zeroblob(32)", ("show",)),
    "block time": ("UPDATE batches SET block_time = block_time - 86400", ("show",)),
    "kind": ("UPDATE batches SET kind = 'other'", ("show", "export", "bundle", "verify")),
    "state": ("UPDATE batches SET state = 'proved'", tuple(COMMANDS)),
    "signature": (
        "UPDATE events " + FLIP.format("signature"),
        ("show", "bundle", "bundles", "verify"),
    ),
    "chain": ("UPDATE events SET chain = zeroblob(32)", ("show", "bundle", "bundles", "verify")),
    "event id": (
        "UPDATE events SET event_id = zeroblob(32)",
        ("show", "bundle", "bundles", "verify"),
    ),
    "what was signed": (
        "UPDATE series SET payload = replace(payload, 'own headers', 'two headers')",
        ("show", "bundle", "bundles", "verify"),
    ),
}


@pytest.fixture(scope="module")
def anchored(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("anchored"))
    place.anchor(sample(1), sample(2), bare(hashlib.sha256(b"a file").digest(), "a file"))
    return place


@pytest.fixture
def place(anchored, tmp_path):
    """A copy of the anchored folder."""
    place = copy.copy(anchored)
    place.folder = tmp_path / "copy"
    shutil.copytree(anchored.folder, place.folder)
    return place


def change(place, statement):
    with place.app() as app, app.store._engine.begin() as connection:
        assert connection.exec_driver_sql(statement).rowcount >= 1


def test_an_untouched_store_answers_everything(place):
    for words in COMMANDS.values():
        assert place.run(*words).exit_code == 0


@pytest.mark.parametrize("name", TAMPERED)
def test_what_was_changed_by_hand_is_noticed_and_not_given_away(place, name):
    statement, commands = TAMPERED[name]
    change(place, statement)
    for command in commands:
        result = place.run(*COMMANDS[command])
        assert result.exit_code in (1, 4), (command, result.output)


def test_a_state_alone_makes_no_record_anchored(place):
    place.add(sample(3))
    place.step()
    change(place, "UPDATE batches SET state = 'anchored', block_height = 101, block_time = 1")
    result = place.run("show", "2507.00003")
    assert result.exit_code == 4
    assert "anchored" not in result.stdout


def test_nothing_is_appended_to_a_ledger_whose_end_was_changed(place):
    from anchord.errors import FatalError

    place.add(sample(3))
    change(place, "UPDATE events SET signature = zeroblob(64)")
    with pytest.raises(FatalError, match="nothing is appended"):
        place.step()
