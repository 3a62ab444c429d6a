"""The options that name keys and block headers, the same for all commands that check evidence.

A module of its own, light, so that `--help` loads nothing of what the options lead to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

NETWORKS = ("mainnet", "testnet4", "signet", "regtest")

_OPTIONS = (
    click.option("--key", "--public-key", "keys", multiple=True, metavar="FILE",
                 type=click.Path(exists=True, dir_okay=False),
                 help="Public key document of a signer you trust; may be repeated."),
    click.option("--headers", metavar="FILE", type=click.Path(exists=True, dir_okay=False),
                 help="Header file to check against; see `anchord headers`."),
    click.option("--network", type=click.Choice(NETWORKS),
                 help="Network of --headers, --node and --explorer (default: mainnet)."),
    click.option("--node", metavar="URL", help="Bitcoin Core node to ask, with --cookie."),
    click.option("--cookie", metavar="FILE", help="The node's .cookie file."),
    click.option("--explorer", "explorers", multiple=True, metavar="URL",
                 help="Esplora server to ask; at least two, which must agree."),
    click.option("--offline", is_flag=True,
                 help="Own header file only: no connection is opened."),
    click.option("--confirmations", type=click.IntRange(min=1), metavar="N",
                 help="Blocks asked for (default: of the configuration, or 6)."),
)  # fmt: skip
"""In the order `--help` lists them; each is an argument of `witnesses.Witnesses`."""

F = TypeVar("F", bound="Callable[..., object]")


def witness_options(function: F) -> F:
    """Add the options to a command; they arrive as the arguments of `witnesses.Witnesses`."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function
