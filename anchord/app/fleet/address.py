"""Where the queue is: in the store's own database, as libpq wants to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from anchord.adapters.store.postgres import session_arguments
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from types import ModuleType

_POOL_WAITS_S = 15.0


def procrastinate() -> ModuleType:
    """Return the library that hands out work.

    Raises:
        ConfigError: it, or the driver of PostgreSQL, is not installed.
    """
    try:
        import procrastinate as found
        import psycopg  # noqa: F401 - is it there?
    except ImportError as error:
        raise ConfigError(
            f"workers need what is not installed ({error.name}): pip install 'anchord[fleet]'"
        ) from None
    return found


def connection_arguments(url: str) -> dict[str, Any]:
    """Return what `psycopg.connect` takes for the store's database.

    Raises:
        ConfigError: the store is no PostgreSQL database.
    """
    parsed = sa.make_url(url)
    if parsed.get_backend_name() != "postgresql":
        raise ConfigError(
            "workers need a PostgreSQL store, and store.url names another: serve it with "
            "`anchord run`, or move it with `anchord migrate-store`"
        )
    named = parsed.translate_connect_args(username="user", database="dbname")
    return {**named, **parsed.query, **session_arguments(parsed)}


def pool_arguments(url: str, size: int) -> dict[str, Any]:
    """Return what a pool of at most `size` sessions is made with."""
    return {
        "kwargs": connection_arguments(url),
        "min_size": 1,
        "max_size": size,
        "timeout": _POOL_WAITS_S,
        "reconnect_timeout": _POOL_WAITS_S,
    }
