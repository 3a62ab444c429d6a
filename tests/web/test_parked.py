"""What is parked, and that the commands on the page bring it back."""

from __future__ import annotations

import html
import re
import shlex
from pathlib import Path

import pytest
import sqlalchemy as sa
from support import monitored
from support.asking import Asked
from support.stores import made
from support.workplace import run

from anchord.adapters.store import schema
from anchord.adapters.store.sql import SqlStore

HOSTILE = "https://papers.example.org/x';touch${IFS}struck;'<script>alert(1)</script>"
"""An address that may be captured, and would do harm in a shell or a page."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    loaded = monitored.filled(tmp_path)
    store = SqlStore(made(tmp_path))
    with store._engine.begin() as connection:
        mine = sa.update(schema.captures).where(schema.captures.c.record_id == 2)
        connection.execute(mine.values(state="parked", url=HOSTILE, code="blocked-url"))
        connection.execute(sa.update(schema.batches).values(note="<b>bold</b>\x07"))
    store.close()
    assert loaded.path == tmp_path / "anchord.toml"
    return tmp_path


def parked_page(folder: Path) -> str:
    with Asked(folder / "anchord.toml") as asked:
        answer = asked.ask("/parked")
        assert answer.status == 200
        return answer.body.decode()


def commands(page: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r"<code data-copy[^>]*>(.*?)</code>", page)]


def test_every_kind_is_there_with_its_reason_and_no_text_of_others_is_markup(folder):
    page = parked_page(folder)
    for title in ("Stopped ways", "Batches", "Captures", "Files of items", "outlet folder refused"):
        assert title in page
    assert "<script>alert" not in page
    assert "<b>bold" not in page
    assert "\x07" not in page
    assert "mend it" in page
    assert "the archive does not take this URL" in page


@pytest.mark.parametrize("one_by_one", [True, False])
def test_the_commands_of_the_page_bring_all_of_it_back_and_do_nothing_else(
    folder, monkeypatch, one_by_one
):
    monkeypatch.chdir(folder)
    found = commands(parked_page(folder))
    assert any(HOSTILE in shlex.split(one) for one in found)
    for command in found if one_by_one else found[::-1]:
        words = shlex.split(command)
        assert words[:2] == ["anchord", "retry"]
        # What a command before it has brought back already is not parked any more: exit code 1.
        assert run("-c", str(folder / "anchord.toml"), *words[1:]).exit_code in (0, 1)
    assert "Nothing is parked." in parked_page(folder)
    assert not list(folder.glob("struck*"))
