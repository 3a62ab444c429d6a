"""Numbers on the command line: what is no number, or too large to be stored, is refused."""

from __future__ import annotations

import click
import pytest

from anchord.app.cli.main import cli
from anchord.app.cli.ranges import STORED_MAX, Finite, whole


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "x", ""])
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Finite(0).convert(text, None, None)
    assert Finite(0).convert("1.5", None, None) == 1.5


def test_a_whole_number_fits_a_database() -> None:
    assert whole().convert(str(STORED_MAX), None, None) == STORED_MAX
    with pytest.raises(click.BadParameter):
        whole().convert(str(STORED_MAX + 1), None, None)


def every_option(command: click.Command) -> list[click.Parameter]:
    found = list(command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            found += every_option(inner)
    return found


def test_no_command_takes_nan_for_a_number() -> None:
    kinds = [one.type for one in every_option(cli)]
    assert any(isinstance(kind, Finite) for kind in kinds)
    for kind in kinds:
        assert isinstance(kind, Finite) or not isinstance(kind, click.FloatRange)
        assert not isinstance(kind, click.types.FloatParamType) or isinstance(kind, Finite)
