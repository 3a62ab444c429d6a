"""A store that became older, and keys that ended, are noticed before anything is signed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.parties import FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare
from support.workplace import run

from anchord.app.config import load
from anchord.app.fleet.sessions import Sessions
from anchord.app.service.heads import HeadWatch
from anchord.errors import ConfigError, FatalError


def test_a_ledger_that_lost_rows_or_has_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    parts = make_parts(tmp_path / "one", calendars=[FakeCalendar()], headers=[FakeChain()])
    go, heads = Passes(parts), HeadWatch()
    heads.check(parts.store.ledger)
    go.add(bare(2))
    go()
    shutil.copytree(tmp_path / "one", tmp_path / "older")
    go.add(bare(1, "later"))
    go(60)
    heads.check(parts.store.ledger)
    heads.check(parts.store.ledger)

    calendars, chain = [FakeCalendar()], [FakeChain()]
    older = make_parts(tmp_path / "older", calendars=calendars, headers=chain)
    with pytest.raises(FatalError, match="older copy"):
        heads.check(older.store.ledger)
    other = Passes(older)
    other.add(bare(3, "another history"))
    other(60)
    assert older.store.ledger.head()[0] > parts.store.ledger.head()[0]
    with pytest.raises(FatalError, match="Nothing is signed"):
        heads.check(older.store.ledger)
    heads.check(parts.store.ledger)


@pytest.mark.parametrize("word", ["rotate", "revoke"])
def test_a_key_that_ended_is_not_held_by_a_service(tmp_path: Path, word: str) -> None:
    (tmp_path / "anchord.toml").write_text("", "utf-8")
    assert run("init", str(tmp_path)).exit_code == 0
    config = tmp_path / "anchord.toml"
    sessions = Sessions(load(str(config)), lambda *_: None)
    with sessions.lend() as session:
        before = session.parts.signer.key_id
        assert not session.keys_changed()
    with sessions.lend() as again:
        assert again is session
        words = ["rotate"] if word == "rotate" else ["revoke", before, "--reason", "lost"]
        done = run("-c", str(config), "key", *words)
        assert done.exit_code == 0, done.stderr
        assert again.keys_changed(), "asked before anything is dated and signed"
    if word == "rotate":
        with sessions.lend() as fresh:
            assert fresh.parts.signer.key_id != before
            assert not fresh.keys_changed()
    else:
        with pytest.raises(ConfigError, match="revoked"), sessions.lend():
            pass
    sessions.close()
