"""Manual pages, written from the command line's own help and the configuration's own keys.

They are roff with the man macros (groff_man(7)), plain enough for mandoc too. Nothing is said here
that `--help` does not say, so they cannot disagree.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

import click

from anchord import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXIT = re.compile(r"\s*Exit codes?:\s*")
_KEEP = "\b"
"""How click marks a paragraph that keeps its lines."""
_GENERAL = (
    (0, "done"),
    (1, "a verification failed, or some input was refused"),
    (2, "a person must act: configuration, keys, arguments"),
    (3, "temporary: work remains, try again later"),
    (4, "anchord's own state is unsafe: stop and look"),
)
_ENVIRONMENT = (
    ("ANCHORD_CONFIG", "Configuration file, when -c does not name one."),
    ("ANCHORD__SECTION__KEY", "Any key of the configuration; see anchord.toml(5)."),
    ("ANCHORD_TRACEBACK", "Set to 1, shows where an unforeseen error came from."),
    ("CREDENTIALS_DIRECTORY", "Credentials that systemd gives; see systemd.exec(5)."),
)


def pages(cli: click.Command, day: str) -> Iterator[tuple[str, str]]:
    """Yield file name and text of every page.

    Args:
        cli: the whole command line.
        day: `YYYY-MM-DD`, for the foot of the pages.
    """
    settings = cli.context_settings
    for words, context in _commands(cli, click.Context(cli, info_name="anchord", **settings)):
        yield f"{'-'.join(words)}.1", _page(words, context, day)
    yield "anchord.toml.5", _configuration(day)


def _commands(
    command: click.Command, context: click.Context
) -> Iterator[tuple[list[str], click.Context]]:
    """Yield each command with its words, depth first."""
    words = context.command_path.split()
    yield words, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from _commands(inner, click.Context(inner, info_name=name, parent=context))


def _page(words: list[str], context: click.Context, day: str) -> str:
    command, name = context.command, "-".join(words)
    short = command.get_short_help_str(200).rstrip(".")
    usage = " ".join(command.collect_usage_pieces(context))
    about, examples, ending = _parted(command)
    lines = [*_head(name, 1, day), ".SH NAME", f"{_text(name)} \\- {_text(short)}"]
    lines += [".SH SYNOPSIS", f"\\fB{_text(' '.join(words))}\\fR {_text(usage)}"]
    lines += [".SH DESCRIPTION", *about]
    lines += _options(command, context)
    if isinstance(command, click.Group):
        lines += _subcommands(command, context)
    if examples:
        lines += [".SH EXAMPLES", *examples]
    lines += [".SH EXIT STATUS", *(ending or _table((str(c), w) for c, w in _GENERAL))]
    if len(words) == 1:
        lines += [".SH ENVIRONMENT", *_table(_ENVIRONMENT)]
    lines += [".SH SEE ALSO", _see(words)]
    return "\n".join(lines) + "\n"


def _head(name: str, section: int, day: str) -> list[str]:
    title = _text(name.upper())
    return [
        f'.TH "{title}" {section} "{day}" "anchord {__version__}" "anchord"',
        ".nh",  # options and addresses must stay whole words, to be copied
        ".ad l",
    ]


def _parted(command: click.Command) -> tuple[list[str], list[str], list[str]]:
    """Return a command's help in three parts: what it does, examples, exit codes."""
    about: list[str] = []
    examples: list[str] = []
    ending: list[str] = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(command.help or "")):
        kept = part.startswith(_KEEP)
        body = part.removeprefix(_KEEP).strip("\n")
        if _EXIT.match(body):
            ending = _paragraph(_EXIT.sub("", body, count=1))
        elif kept and body.startswith("Example"):
            examples = _verbatim(body.split("\n")[1:])
        elif kept:
            about += _verbatim(body.split("\n"))
        else:
            about += _paragraph(body)
    return about, examples, ending


def _paragraph(text: str) -> list[str]:
    return [".PP", _text(" ".join(text.split()))]


def _verbatim(lines: list[str]) -> list[str]:
    return [".PP", ".nf", ".RS 4", *(_text(inspect.cleandoc(line)) for line in lines), ".RE", ".fi"]


def _table(rows: Iterator[tuple[str, str]] | tuple[tuple[str, str], ...]) -> list[str]:
    found = []
    for term, words in rows:
        found += [".TP", f"\\fB{_text(term)}\\fR", _text(" ".join(words.split())) or "\\&"]
    return found


def _options(command: click.Command, context: click.Context) -> list[str]:
    records = [
        one.get_help_record(context)
        for one in command.get_params(context)
        if isinstance(one, click.Option)
    ]
    return [".SH OPTIONS", *_table(tuple(one for one in records if one is not None))]


def _subcommands(group: click.Group, context: click.Context) -> list[str]:
    rows = []
    for name in group.list_commands(context):
        inner = group.get_command(context, name)
        if inner is not None:
            rows.append((name, inner.get_short_help_str(200)))
    return [".SH COMMANDS", *_table(tuple(rows))]


def _see(words: list[str]) -> str:
    above = "-".join(words[:-1]) if len(words) > 1 else ""
    names = [f"{above}(1)"] if above else []
    return ", ".join(_text(name) for name in [*names, "anchord.toml(5)"])


def _configuration(day: str) -> str:
    from anchord.app.config_environment import variable
    from anchord.app.config_keys import keys

    lines = [*_head("anchord.toml", 5, day), ".SH NAME"]
    lines += ["anchord.toml \\- configuration of anchord", ".SH DESCRIPTION"]
    lines += _paragraph(
        "One TOML file, anchord.toml in the folder where a command is run, or the one that -c or "
        "ANCHORD_CONFIG names. A key that is left out has its default, a key anchord does not "
        "know is refused. Paths are relative to the file. Secrets are files, never values."
    )
    lines += [".SH KEYS"]
    for key in keys():
        alone = f"Environment: {variable(key.name)}." if key.of_table is None else ""
        default = f"Default: {key.default_text}." if key.default is not None else "No default."
        lines += [".TP", f"\\fB{_text(key.name)}\\fR ({_text(key.type)})"]
        lines += [_text(" ".join(f"{key.meaning} {default} {alone}".split()))]
    lines += [".SH SEE ALSO", "anchord(1), anchord\\-config(1)"]
    return "\n".join(lines) + "\n"


def _text(text: str) -> str:
    """Return text that roff shows as it is, whatever it begins with and holds."""
    text = text.replace("\\", "\\(rs").replace("-", "\\-").replace("`", "\\(ga")
    text = text.replace("'", "\\(aq").replace("^", "\\(ha").replace("~", "\\(ti")
    text = "".join(c if c < "\x7f" else f"\\[u{ord(c):04X}]" for c in text)
    return f"\\&{text}" if text.startswith(".") else text
