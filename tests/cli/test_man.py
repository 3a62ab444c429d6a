"""Manual pages and shell completion: they say what the command line is, and load little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.workplace import run

from anchord.app import manpage
from anchord.app.cli.main import COMMANDS, cli
from anchord.app.config_keys import keys

GROFF = shutil.which("groff")
DAY = "2026-11-30"
PAGES = dict(manpage.pages(cli, DAY))


def contexts(
    command: click.Command = cli, parent: click.Context | None = None, name: str = "anchord"
) -> Iterator[click.Context]:
    context = click.Context(command, info_name=name, parent=parent)
    yield context
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            yield from contexts(found, context, inner)


def formatted(text: str) -> subprocess.CompletedProcess[str]:
    assert GROFF
    return subprocess.run(
        [GROFF, "-man", "-Tutf8", "-ww", "-P-c", "-P-b", "-P-u"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_there_is_a_page_for_every_command_and_one_for_the_configuration() -> None:
    wanted = {"-".join(one.command_path.split()) + ".1" for one in contexts()}
    assert PAGES.keys() == wanted | {"anchord.toml.5"}
    assert {f"anchord-{name}.1" for name in COMMANDS} < wanted


@pytest.mark.parametrize("context", list(contexts()), ids=lambda context: context.command_path)
def test_a_page_names_every_option(context: click.Context) -> None:
    page = PAGES["-".join(context.command_path.split()) + ".1"]
    for one in context.command.params:
        if isinstance(one, click.Option) and not one.hidden:
            for name in one.opts:
                assert manpage._text(name) in page


def test_the_configuration_s_page_names_every_key() -> None:
    for key in keys():
        assert f"\\fB{key.name}\\fR" in PAGES["anchord.toml.5"]


NO_GROFF = pytest.mark.skipif(
    GROFF is None and not os.environ.get("CI"), reason="groff is not installed"
)


@NO_GROFF
@pytest.mark.parametrize("name", list(PAGES))
def test_groff_has_nothing_to_warn_of(name: str) -> None:
    done = formatted(PAGES[name])
    assert (done.returncode, done.stderr) == (0, "")
    assert "NAME" in done.stdout


NASTY = [
    ".TH", ".", "..", "'quote", "it's", "\\", "\\fBbold", "\\&", "--json", "a - b", "`code`", "^~",
    '"', "%d", "\u00e9", "\u20ac", "$(date +%F)", "C:\\new", ".so /etc/passwd", "'\\\" comment",
]  # fmt: skip


@NO_GROFF
def test_whatever_is_said_is_shown_as_it_is() -> None:
    """No macro, no escape, no lost character."""
    text = "".join(f"{manpage._text(one)}\n" for one in NASTY)
    done = formatted(f".pl 10000\n.nf\n{text}")
    assert done.stderr == ""
    # How a minus sign looks is for man.local(5) to say; `man` itself prints the one to be copied.
    shown = done.stdout.replace("\N{MINUS SIGN}", "-")
    assert [line for line in shown.splitlines() if line] == NASTY


def test_pages_are_written_where_man_looks_and_the_same_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1796000000")
    for folder in ("a", "b"):
        assert run("man", str(tmp_path / folder)).exit_code == 0
    found = [
        {
            p.relative_to(tmp_path / f).as_posix(): p.read_bytes()
            for p in (tmp_path / f).rglob("*.*")
        }
        for f in ("a", "b")
    ]
    assert found[0] == found[1]
    assert {"man1/anchord.1", "man5/anchord.toml.5"} < found[0].keys()


# ---------------------------------------------------------------------- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert f"_ANCHORD_COMPLETE={shell}_complete" in done.stdout
    assert "anchord" in done.stdout


def test_bash_reads_its_script() -> None:
    script = run("completion", "bash").stdout
    subprocess.run(["bash", "--norc", "-c", script + "\ncomplete -p anchord"], check=True)


ASK = """
import sys
sys.argv[0] = "anchord"
from anchord.app.cli.main import main
try:
    main()
finally:
    print(*(m for m in sys.modules if m.startswith("anchord.app.cli.")), file=sys.stderr)
"""


def asked(words: str) -> tuple[list[str], set[str]]:
    """Ask as bash does at a Tab; return what it is told, and the commands that were loaded."""
    place = str(len(words.split(" ")) - 1)
    done = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=False,
        env={**os.environ, "COMP_WORDS": words, "COMP_CWORD": place,
             "_ANCHORD_COMPLETE": "bash_complete"},
    )  # fmt: skip
    loaded = {name.rpartition(".")[2].replace("_", "-") for name in done.stderr.split()}
    return done.stdout.splitlines(), loaded & COMMANDS.keys()


def test_commands_are_completed_and_none_is_loaded_for_it() -> None:
    told, loaded = asked("anchord ")
    assert told == [f"plain,{name}" for name in COMMANDS]
    assert loaded == set()


def test_only_the_command_in_question_is_loaded() -> None:
    told, loaded = asked("anchord headers s")
    assert sorted(told) == ["plain,status", "plain,sync"]
    assert loaded == {"headers"}


def test_options_and_files_are_completed() -> None:
    assert "plain,--with-keys" in asked("anchord backup --w")[0]
    assert asked("anchord -c x")[0] == ["file,x"]
    assert "plain,--config" in asked("anchord --c")[0]
