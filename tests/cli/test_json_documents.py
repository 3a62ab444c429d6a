"""What `--json` prints is what docs/json.md lists: every key, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import Story, shapes

from anchord.app.cli.main import COMMANDS
from anchord.sandbox.run import Sandbox

TEXT = (Path(__file__).resolve().parents[2] / "docs/json.md").read_text("utf-8")
SECTIONS = dict(
    re.findall(r"^## anchord ([\w -]+)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    story = Story(tmp_path_factory.mktemp("story"))
    with Sandbox(story.folder, tick_s=0.05) as sandbox:
        sandbox.write_config()
        story.tell_all(sandbox)
    story.tell("demo")
    return story.told


def listed(name: str) -> dict[str, set[str]]:
    rows = re.findall(r"^\| `(\S+)` \| ([^|]+) \| [^|]+ \|$", SECTIONS[name], re.MULTILINE)
    return {key: set(kinds.split(" or ")) for key, kinds in rows}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_command_prints_the_keys_that_are_listed(told: dict[str, list[Any]], name: str) -> None:
    printed, wanted = shapes(told[name]), listed(name)
    assert sorted(printed) == sorted(wanted)
    wrong = {key: kinds for key, kinds in printed.items() if not kinds <= wanted[key]}
    assert not wrong


def test_every_command_with_json_is_listed(told: dict[str, list[Any]]) -> None:
    assert set(SECTIONS) == set(told)
    assert set(_commands_with_json()) == {name.partition(" --")[0] for name in SECTIONS}


def _commands_with_json() -> Iterator[str]:
    import click

    from anchord.app.cli.main import cli

    context = click.Context(cli)
    for name in COMMANDS:
        command = cli.get_command(context, name)
        inner = command.commands if isinstance(command, click.Group) else {}
        for words, one in [(name, command), *((f"{name} {sub}", c) for sub, c in inner.items())]:
            assert one is not None
            if any("--json" in option.opts for option in one.params) and words != "sandbox":
                yield words
