"""`anchord db`: what is in the store, and its migration, all of it or nothing."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.old_store import at_first_schema
from support.workplace import CONFIG, Workplace, run, sample

from anchord.adapters.store.schema import REVISION, metadata
from anchord.adapters.store.serving import serving


@pytest.fixture
def old(tmp_path: Path) -> Path:
    at_first_schema(tmp_path / "anchord.db")
    (tmp_path / "anchord.toml").write_text(CONFIG, "utf-8")
    return tmp_path / "anchord.toml"


def said(config: Path, *words: str, code: int = 0) -> Any:
    result = run("-c", str(config), "db", *words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def test_rows_of_every_table_are_told(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.add(sample(1), sample(2))
    told = said(place.config, "status")
    assert told["rows"].keys() == metadata.tables.keys()
    assert told["rows"]["records"] == 2
    assert (told["schema"], told["current"], told["held_by"]) == (REVISION, True, None)
    assert told["bytes"] > 0
    assert "2  records" in place.run("db", "status").stdout


def test_a_store_of_before_is_told_and_not_touched(old: Path) -> None:
    before = (old.parent / "anchord.db").read_bytes()
    told = said(old, "status", code=2)
    assert (told["schema"], told["needed"], told["rows"]) == ("0001", REVISION, {})
    assert (old.parent / "anchord.db").read_bytes() == before


def test_it_is_migrated_once(old: Path) -> None:
    assert said(old, "upgrade") == {"before": "0001", "schema": REVISION, "migrated": True}
    assert said(old, "upgrade") == {"before": REVISION, "schema": REVISION, "migrated": False}
    assert said(old, "status")["current"]


def test_a_store_that_passes_run_on_is_not_migrated(old: Path) -> None:
    with (old.parent / "anchord.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run("-c", str(old), "db", "upgrade").exit_code == 3
    assert said(old, "status", code=2)["schema"] == "0001"


def test_a_store_that_is_served_is_not_migrated_and_the_service_is_named(old: Path) -> None:
    with serving(old.parent / "anchord.db", 1_722_513_600):
        result = run("-c", str(old), "db", "upgrade")
        assert result.exit_code == 3
        assert str(os.getpid()) in result.stderr
        assert "anchord run" in said(old, "status", code=2)["held_by"]


@pytest.mark.parametrize("content", [None, b""])
def test_a_store_that_is_not_there_is_not_made(content: bytes | None, old: Path) -> None:
    path = old.parent / "anchord.db"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    result = run("-c", str(old), "db", "upgrade")
    assert result.exit_code == 2
    assert "anchord init" in result.stderr
    assert not path.exists() or path.read_bytes() == b""
