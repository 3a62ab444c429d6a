"""Making the configured sources."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.core.model import Scheme
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from anchord.adapters.sources.sql import SqlSource
    from anchord.app.config import Loaded
    from anchord.app.source_config import SourceConfig
    from anchord.app.wiring import App
    from anchord.ports.source import Source

CREDENTIAL = "anchord-source-"
"""Beginning of the name of a systemd credential with a source's password."""
_NAME_CHARACTERS = 500
_STEP_S = 5
"""Seconds of asking before what came is taken in."""


def open_sources(app: App) -> list[Source]:
    """Return the configured sources, in their order; nothing is opened and nobody is asked."""
    makers: dict[str, Callable[[App, SourceConfig], Source]] = {
        "sql": _sql,
        "pith": _pith,
        "folder": _folder,
    }
    return [makers[one.kind](app, one) for one in app.config.sources]


def look_over(app: App, one: SourceConfig) -> str:
    """Return what a source reads, when all that it names here can be used; nobody is asked.

    Raises:
        ConfigError: an address, a driver, a file or a folder cannot be used.
    """
    if one.kind == "folder":
        path = app.loaded.resolve(one.path)
        if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
            raise ConfigError(f"expected a folder that this user can read in path, got {path}")
        return str(path)
    if one.kind == "sql":
        _sql(app, one).check()
        return f"{one.table or 'a query'}, by a driver that is installed"
    _pith(app, one)
    if "{id}" not in one.url:
        return f"the mirror {one.url}"
    return f"{sum(1 for _ in _names(app.loaded, one)):,} name(s) at {one.url}"


def _sql(app: App, one: SourceConfig) -> SqlSource:
    from anchord.adapters.sources.sql import SqlOptions, SqlSource

    options = SqlOptions(
        query=one.query,
        table=one.table,
        key=one.key,
        start=one.start,
        scheme=Scheme(one.scheme),
        url_hosts=frozenset(one.url_hosts),
        again_every_s=one.again_every_s,
        timeout_s=one.timeout_s,
    )
    url = _database_url(app.loaded, one)
    return SqlSource(one.name, one.every_s, url, _password(app.loaded, one), options)


def _database_url(loaded: Loaded, one: SourceConfig) -> str:
    """Return the URL with a relative SQLite path made absolute, as for the store.

    Raises:
        ConfigError: it is none.
    """
    import sqlalchemy as sa

    try:
        parsed = sa.make_url(one.url)
    except (sa.exc.ArgumentError, ValueError):
        raise ConfigError(
            f"sources ({one.name}): url is no database URL: expected e.g. "
            "postgresql://reader@db.example.org/registry"
        ) from None
    if parsed.get_backend_name() == "sqlite" and parsed.database:
        parsed = parsed.set(database=str(loaded.resolve(parsed.database)))
    return parsed.render_as_string(hide_password=False)


def _password(loaded: Loaded, one: SourceConfig) -> Callable[[], str] | None:
    """Return what reads the password when it is needed: from its file, else the credential."""
    path: Path | None = loaded.resolve(one.password_file) if one.password_file else None
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if path is None and folder and (Path(folder) / f"{CREDENTIAL}{one.name}").exists():
        path = Path(folder) / f"{CREDENTIAL}{one.name}"
    if path is None:
        return None
    file = path

    def read() -> str:
        from anchord.adapters.outlets.secret import read_lines

        return read_lines(file, f"password_file of the source {one.name}")[0]

    return read


def _pith(app: App, one: SourceConfig) -> Source:
    if "{id}" not in one.url:
        from anchord.app.source_mirror import MirrorSource

        return MirrorSource(one.name, one.every_s, one.url, one.rate, app)
    from anchord.adapters.http import Client
    from anchord.adapters.http.address import host_of, is_loopback
    from anchord.adapters.mirrors.http import HttpMirror
    from anchord.adapters.sources.resolver import ACCEPT, Resolver

    local = is_loopback(host_of(one.url))
    web = HttpMirror(one.name, Client(one.timeout_s), one.rate, local=local, accept=ACCEPT)
    return Resolver(
        one.name,
        one.every_s,
        one.url,
        lambda: _names(app.loaded, one),
        web,
        lambda: app.store.pulls,
        scheme=Scheme(one.scheme),
        again_every_s=one.again_every_s,
        at_once=int(one.rate * _STEP_S),
    )


def _names(loaded: Loaded, one: SourceConfig) -> Iterator[str]:
    """Yield the names a resolver is asked for; blank lines and lines after # are passed over."""
    if not one.ids_file:
        yield from one.ids
        return
    path = loaded.resolve(one.ids_file)
    try:
        with path.open("r", encoding="utf-8-sig", errors="replace") as file:
            while line := file.readline(_NAME_CHARACTERS):
                name = line.strip()
                if name and not name.startswith("#"):
                    yield name
    except OSError as error:
        raise ConfigError(
            f"sources ({one.name}): {path} cannot be read ({error.strerror}): correct ids_file"
        ) from None


def _folder(app: App, one: SourceConfig) -> Source:
    from anchord.adapters.sources.watched import WatchedFolder
    from anchord.app.cli.add import own_files

    skip = own_files(app.loaded)
    # What an outlet writes must not come back as new.
    skip += [app.loaded.resolve(out.path) for out in app.config.outlets if out.path]
    return WatchedFolder(
        one.name,
        one.every_s,
        app.loaded.resolve(one.path),
        settle_s=one.settle_s,
        scheme=Scheme(one.scheme),
        skip=skip,
    )
