"""Addresses of databases, as the configuration and command lines name them: without a password.

A configuration is shown, copied and put into backups; a password stands in a file of its own.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlalchemy as sa

PASSFILE = (
    "put it into a password file (https://www.postgresql.org/docs/current/libpq-pgpass.html), mode "
    "0600, and name that in the address: postgresql://USER@HOST/DATABASE?passfile=FILE"
)
"""What to do with the password of the store's database."""
_BETWEEN = re.compile(r"(?!https?:)[^:]*://[^:/]*:[^@]*@")
"""A password between user and host, as SQLAlchemy reads an address: it may have slashes in it.
In an address of the web that may be a port and a path; there is `adapters.http.address` for it."""
_SECRET_OPTIONS = frozenset(("password", "passwd", "pwd", "sslpassword"))
"""Of libpq and other drivers."""


def holds_password(url: str) -> bool:
    """Return whether a password stands in an address: before the host, or among the options."""
    options = urllib.parse.parse_qsl(url.partition("?")[2], keep_blank_values=True)
    return bool(_BETWEEN.match(url)) or bool(
        _SECRET_OPTIONS & {name.lower() for name, _ in options}
    )


def passfile(url: str) -> str | None:
    """Return the password file that an address of PostgreSQL names."""
    if not url.startswith("postgresql"):
        return None
    return dict(urllib.parse.parse_qsl(url.partition("?")[2])).get("passfile")


def with_passfile(url: sa.URL, resolve: Callable[[str], Path]) -> sa.URL:
    """Return the address with its password file where `resolve` finds it.

    The driver would look from the folder that a command is run in.
    """
    named = url.query.get("passfile")
    if not isinstance(named, str) or not named:
        return url
    return url.update_query_dict({"passfile": str(resolve(named))})
