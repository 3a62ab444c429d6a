"""Making the configured outlets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.errors import ConfigError

if TYPE_CHECKING:
    from anchord.app.config import Loaded
    from anchord.app.outlet_config import OutletConfig
    from anchord.ports import Clock
    from anchord.ports.outlet import Outlet

CREDENTIAL = "anchord-outlet-"
"""Beginning of the name of a systemd credential with an outlet's secret."""


def open_outlets(loaded: Loaded, clock: Clock) -> list[Outlet]:
    """Return the configured outlets, in their order; nothing is sent and nobody is asked.

    Raises:
        ConfigError: an address, a secret or a statement cannot be used.
    """
    return [_opened(loaded, clock, one) for one in loaded.config.outlets]


def look_over(loaded: Loaded, clock: Clock, one: OutletConfig) -> str:
    """Return where an outlet hands over, when all that it names can be used; nobody is asked.

    Raises:
        ConfigError: an address, a driver, a file, a folder or a statement cannot be used.
    """
    if one.kind == "folder":
        path = loaded.resolve(one.path)
        there = next(parent for parent in (path, *path.parents) if parent.exists())
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            raise ConfigError(f"expected a folder that this user can write in path, got {there}")
        return str(path) if there == path else f"{path}, to be made"
    outlet = _opened(loaded, clock, one)
    outlet.close()
    if one.kind == "webhook":
        return f"{one.url}, with a secret that can be used"
    secret = _secret(loaded, one.name, one.password_file)
    if secret is not None:
        from anchord.adapters.outlets.secret import read_lines

        read_lines(secret, "password_file")
    return f"{len(one.statements)} statement(s), by a driver that is installed"


def _opened(loaded: Loaded, clock: Clock, one: OutletConfig) -> Outlet:
    if one.kind == "folder":
        return _folder(loaded, one)
    return _webhook(loaded, clock, one) if one.kind == "webhook" else _sql(loaded, one)


def _folder(loaded: Loaded, one: OutletConfig) -> Outlet:
    from anchord.adapters.outlets.folder import FolderOutlet

    path = loaded.resolve(one.path)
    return FolderOutlet(one.name, path, events=tuple(one.events), from_now=one.from_now)


def _webhook(loaded: Loaded, clock: Clock, one: OutletConfig) -> Outlet:
    from anchord.adapters.http import Client
    from anchord.adapters.outlets.webhook import WebhookOutlet

    secret = _secret(loaded, one.name, one.secret_file)
    if secret is None:
        raise ConfigError(
            f"outlets ({one.name}): a webhook needs a secret: name its file in secret_file, or "
            f"give the systemd credential {CREDENTIAL}{one.name}"
        )
    return WebhookOutlet(
        one.name,
        one.url,
        secret,
        Client(one.timeout_s),
        clock,
        at_once=one.events_per_request,
        events=tuple(one.events),
        from_now=one.from_now,
    )


def _sql(loaded: Loaded, one: OutletConfig) -> Outlet:
    from anchord.adapters.outlets.sql import SqlOutlet

    return SqlOutlet(
        one.name,
        _database_url(loaded, one.url),
        {str(kind): sql for kind, sql in one.statements.items()},
        password_file=_secret(loaded, one.name, one.password_file),
        timeout_s=one.timeout_s,
        from_now=one.from_now,
    )


def _database_url(loaded: Loaded, url: str) -> str:
    """Return the URL with a relative SQLite path made absolute, as for the store."""
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        return url  # refused, with words, where it is opened
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return url
    return parsed.set(database=str(loaded.resolve(parsed.database))).render_as_string(
        hide_password=False
    )


def _secret(loaded: Loaded, name: str, file: str) -> Path | None:
    """Return the file of an outlet's secret: the configured one, else the systemd credential."""
    if file:
        return loaded.resolve(file)
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    credential = Path(folder) / f"{CREDENTIAL}{name}" if folder else None
    return credential if credential is not None and credential.exists() else None
