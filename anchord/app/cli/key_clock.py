"""The moment at which a key ends: never before what it has signed, unless a person says so."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from anchord.core.moment import utc
from anchord.errors import AnchordError, ConfigError

if TYPE_CHECKING:
    from anchord.app.config import Loaded

ACCEPT = click.option(
    "--accept-clock",
    is_flag=True,
    help="Take the clock for right, though the newest event says that it went back.",
)


def check_moment(loaded: Loaded, now: int, *, accept: bool) -> None:
    """Refuse to end a key at a moment that is over: events it signed since would not count.

    A store that cannot be read now, or is elsewhere, holds up nobody who has to end a key.

    Args:
        loaded: the configuration.
        now: when the key is to end, Unix seconds.
        accept: the newest event may be later: the clock was wrong then.

    Raises:
        ConfigError: the newest event is later.
    """
    last = None if accept else _newest(loaded)
    if last is not None and now < last:
        raise ConfigError(
            f"the clock shows {utc(now)}, and the newest event is of {utc(last)}: ended now, the "
            "key's events since would not count. Set the clock right and say it again; if it is "
            "right now and was wrong then, add --accept-clock"
        )


def _newest(loaded: Loaded) -> int | None:
    from anchord.adapters.store.reading import SqlReadingStore
    from anchord.app.wiring import store_url

    with contextlib.suppress(AnchordError):
        store = SqlReadingStore(store_url(loaded))
        try:
            return store.ledger.last_moment()
        finally:
            store.close()
    return None
