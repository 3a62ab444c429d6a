"""`anchord config`: the configuration in force, what each key means, and whether it can work."""

from __future__ import annotations

import difflib
import itertools
from typing import TYPE_CHECKING, Any

import click

from anchord.app.cli.output import console, emit_json, printable
from anchord.app.config import Config, load
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from anchord.app.config import Loaded
    from anchord.app.config_keys import Key

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Show the configuration in force, check it, and explain its keys.

    Every key may also be given by the environment: anchoring.min_answers as
    ANCHORD__ANCHORING__MIN_ANSWERS, which wins over the file. Secrets are files, never values.
    """


@command.command(short_help="Print the configuration in force, and where each value is from.")
@click.option("--defaults", is_flag=True, help="The defaults, whatever the file says.")
@click.option("--changed", is_flag=True, help="Only what is not as by default.")
@_JSON
@click.pass_obj
def show(config_path: str | None, defaults: bool, changed: bool, as_json: bool) -> None:
    """Print every key with its value, as TOML that can be used as a file.

    A value that the file or the environment gives is marked so. A password in an address is shown
    as ***.
    """
    from anchord.app.config_keys import flat

    if defaults and changed:
        raise click.UsageError("--defaults and --changed exclude each other")
    loaded = None if defaults else load(config_path)
    values, usual = flat(Config() if loaded is None else loaded.config), flat(Config())
    sources = _sources(loaded, list(values))
    shown = {
        name: _safe(name, value)
        for name, value in values.items()
        if not changed or value != usual[name]
    }
    if not as_json:
        for line in _toml(shown, sources):
            click.echo(printable(line))
        return
    path = None if loaded is None else str(loaded.path)
    said = {name: sources[name] for name in shown}
    emit_json({"path": path, "effective": _nested(shown), "sources": said})


def _sources(loaded: Loaded | None, names: list[str]) -> dict[str, str]:
    """Return where each value comes from: default, file or environment."""
    if loaded is None:
        return dict.fromkeys(names, "default")
    return {
        name: "environment"
        if name in loaded.environment
        else "file"
        if _is_stated(loaded.stated, name)
        else "default"
        for name in names
    }


def _is_stated(raw: Mapping[str, Any], name: str) -> bool:
    at: Any = raw
    for part in name.split("."):
        if not isinstance(at, dict) or part not in at:
            return False
        at = at[part]
    return True


def _safe(name: str, value: Any) -> Any:
    if name != "store.url":
        return value
    import sqlalchemy as sa

    try:
        return sa.make_url(value).render_as_string(hide_password=True)
    except sa.exc.ArgumentError:
        return "***"  # whatever it is, part of it may be a password


def _nested(shown: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in shown.items():
        *tables, last = name.split(".")
        at = found
        for table in tables:
            at = at.setdefault(table, {})
        at[last] = value
    return found


def _toml(shown: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[str]:
    from anchord.app.toml_text import value_text

    first = True
    # Keys of no table come before every table: after one they would be its own.
    ordered = sorted(shown, key=lambda name: "." in name)
    for table, names in itertools.groupby(ordered, key=lambda name: name.rpartition(".")[0]):
        if not first:
            yield ""
        first = False
        if table:
            yield f"[{table}]"
        for name in names:
            source = sources[name]
            mark = "" if source == "default" else f"  # {source}"
            yield f"{name.rpartition('.')[2]} = {value_text(shown[name])}{mark}"


@command.command(short_help="Check files, folders and addresses that the configuration names.")
@_JSON
@click.pass_obj
def check(config_path: str | None, as_json: bool) -> int:
    """Read the configuration, and look at every file, folder and address it names.

    No connection is opened and nothing is written. `anchord doctor` looks at much more.

    Exit code: 0 it can work, 2 a person must act.
    """
    from anchord.app.cli.doctor import tell
    from anchord.app.doctor import configuration
    from anchord.app.doctor.result import exit_code

    loaded = load(config_path)
    results = list(configuration.check(loaded))
    tell(results, as_json=as_json, path=str(loaded.path))
    return exit_code(results)


@command.command(short_help="Tell what a key means: type, default, allowed values.")
@click.argument("key", metavar="KEY")
@_JSON
@click.pass_obj
def explain(config_path: str | None, key: str, as_json: bool) -> None:
    """Tell what KEY means, e.g. anchoring.min_answers; a table's name tells all its keys.

    No configuration is read.
    """
    del config_path
    from anchord.app.config_keys import keys

    wanted = key.strip().strip("[]").lower()
    found = [one for one in keys() if one.name == wanted or one.name.startswith(f"{wanted}.")]
    if not found:
        names = [one.name for one in keys()]
        near = difflib.get_close_matches(wanted, names, 3, 0.5)
        near = near or [name for name in names if name.endswith(f".{wanted}")][:3]
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise ConfigError(f"no key or table {key!r:.80}{hint}; `anchord config show` lists all")
    if as_json:
        emit_json({"keys": [_document(one) for one in found]})
        return
    for number, one in enumerate(found):
        for line in ([""] if number else []) + list(_explained(one)):
            console().print(printable(line), markup=False)


def _document(key: Key) -> dict[str, Any]:
    from anchord.app.config_environment import variable

    return {
        "name": key.name,
        "type": key.type,
        "default": None if key.default is None else key.default_text,
        "meaning": key.meaning,
        "environment": None if key.of_table else variable(key.name),
    }


def _explained(key: Key) -> Iterator[str]:
    said = _document(key)
    yield key.name
    yield f"    {key.meaning}"
    yield f"    type         {key.type}"
    yield f"    default      {said['default'] or 'none: it must be given'}"
    where = said["environment"] or f"not by itself, it is part of {key.of_table}"
    yield f"    environment  {where}"
