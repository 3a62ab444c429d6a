"""Putting the parts together: the only place that knows both the engine and the adapters.

Everything is opened on first use, so that a reading command never asks for a passphrase and a
command without headers never opens a socket.
"""

from __future__ import annotations

import os
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

from anchord.adapters.store.sql import SqlStore
from anchord.app.config import Config, Loaded, load
from anchord.app.database_address import with_passfile
from anchord.engine.parts import Parts, Policy
from anchord.errors import ConfigError
from anchord.ports import BulkSigner

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from anchord.adapters.http import Client
    from anchord.core.keyring import Keyring
    from anchord.engine.archiving import Archiving
    from anchord.ports import Calendar, Clock, HeaderSource, Signer
    from anchord.ports.authority import TimestampAuthority
    from anchord.ports.outlet import Outlet
    from anchord.ports.source import Source


class SystemClock:
    """The machine's clock; within one process it never goes backwards."""

    def __init__(self) -> None:
        self._last = 0

    def now(self) -> int:
        """Return whole Unix seconds, UTC."""
        self._last = max(self._last, int(time.time()))
        return self._last


def store_url(loaded: Loaded) -> str:
    """Return the store's URL with the paths in it made absolute.

    Raises:
        ConfigError: not a URL, no database in it, or a path that is not UTF-8.
    """
    try:
        url = sa.make_url(loaded.config.store.url)
    except sa.exc.ArgumentError:
        msg = f"{loaded.path}: store.url is no URL: expected e.g. sqlite:///anchord.db"
        raise ConfigError(msg) from None
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        msg = f"{loaded.path}: store.url names no file: expected e.g. sqlite:///anchord.db"
        raise ConfigError(msg)
    if url.get_backend_name() == "postgresql":
        return with_passfile(url, loaded.resolve).render_as_string(hide_password=False)
    if url.get_backend_name() != "sqlite" or not url.database:
        return loaded.config.store.url
    path = loaded.resolve(url.database)
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError:
        msg = f"the store's path {str(path)!r} is not UTF-8: SQLite cannot open it; rename a folder"
        raise ConfigError(msg) from None
    return url.set(database=str(path)).render_as_string(hide_password=False)


def chain_name(network: str) -> str:
    """Return what events call the chain; test networks can never be taken for Bitcoin."""
    return "bitcoin" if network == "mainnet" else f"bitcoin-{network}"


class App:
    """One configured anchord, used as a context manager."""

    def __init__(self, loaded: Loaded, clock: Clock | None = None) -> None:
        self.loaded = loaded
        self.clock: Clock = clock or SystemClock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.loaded.config

    @cached_property
    def store(self) -> SqlStore:
        """The store; refused when it is absent or of another schema."""
        uris = [uri for calendar in self.config.anchoring.calendars for uri in calendar.uris]
        return SqlStore(store_url(self.loaded), uris)

    @cached_property
    def key_dir(self) -> Path:
        """The folder of keys."""
        return self.loaded.resolve(self.config.signer.key_dir)

    @cached_property
    def keyring(self) -> Keyring:
        """Own and foreign public keys."""
        from anchord.adapters.signers.keyring import load_keyring

        return load_keyring(self.key_dir)

    @cached_property
    def signer(self) -> Signer:
        """The active signing key, opened."""
        from anchord.adapters.signers.file import open_signer

        signer_id = self.config.signer.signer_id
        now = self.clock.now()
        return open_signer(self.key_dir, self._passphrase_file(), os.environ, signer_id, now)

    def signer_for(self, key_id: str, at: int) -> Signer:
        """Open an older key of ours, to finish a series that was begun with it at a moment."""
        from anchord.adapters.signers.file import open_signer_for

        return open_signer_for(self.key_dir, key_id, self._passphrase_file(), os.environ, at)

    def _passphrase_file(self) -> Path | None:
        name = self.config.signer.passphrase_file
        return self.loaded.resolve(name) if name else None

    @cached_property
    def client(self) -> Client:
        """The one way out over HTTP."""
        from anchord.adapters.http import Client

        return Client(self.config.anchoring.timeout_s)

    @cached_property
    def calendars(self) -> list[Calendar]:
        """The configured calendars."""
        from anchord.adapters.calendars import HttpCalendar

        return [
            HttpCalendar(calendar.url, calendar.uris, self.client)
            for calendar in self.config.anchoring.calendars
        ]

    @cached_property
    def headers(self) -> list[HeaderSource]:
        """The configured header sources, in the order of the configuration."""
        makers: dict[str, Callable[[], HeaderSource]] = {
            "file": self._header_file,
            "node": self._node,
            "explorers": self._explorers,
        }
        return [makers[name]() for name in dict.fromkeys(self.config.headers.sources)]

    def _header_file(self) -> HeaderSource:
        from anchord.adapters.headers.headerfile import HeaderFileSource

        part = self.config.headers.file
        return HeaderFileSource(
            self.loaded.resolve(part.path),
            self.config.headers.network,
            part.peers,
            part.min_peers,
            part.timeout_s,
            self.clock,
        )

    def _node(self) -> HeaderSource:
        from anchord.adapters.headers.bitcoind import NodeSource

        part = self.config.headers.node
        return NodeSource(
            part.url,
            client=self.client,
            network=self.config.headers.network,
            cookie_file=self.loaded.resolve(part.cookie_file) if part.cookie_file else None,
            user=part.user,
            password_file=self.loaded.resolve(part.password_file) if part.password_file else None,
        )

    def _explorers(self) -> HeaderSource:
        from anchord.adapters.headers.esplora import ExplorerSource
        from anchord.core.network import network as network_of

        part = self.config.headers.explorers
        genesis = network_of(self.config.headers.network).genesis
        return ExplorerSource(
            part.urls, client=self.client, min_agree=part.min_agree, genesis=genesis
        )

    @cached_property
    def authorities(self) -> list[TimestampAuthority]:
        """The configured time-stamping authorities; opening them reads their certificates."""
        from anchord.adapters.tsa import HttpAuthority

        return [
            HttpAuthority(one.url, self.loaded.resolve(one.certificates), self.client, os.urandom)
            for one in self.config.anchoring.authorities
        ]

    @cached_property
    def sources(self) -> list[Source]:
        """The configured sources; nothing is opened before they are looked at."""
        from anchord.app.source_wiring import open_sources

        return open_sources(self)

    @cached_property
    def outlets(self) -> list[Outlet]:
        """The configured outlets; opening them reads their secrets."""
        from anchord.app.outlet_wiring import open_outlets

        return open_outlets(self.loaded, self.clock)

    def parts(self, on_progress: Callable[[str, int, int], None] | None = None) -> Parts:
        """Return what a pass works with."""
        from anchord.adapters.http import authority

        anchoring = self.config.anchoring
        policy = Policy(
            min_answers=anchoring.min_answers,
            timeout_s=anchoring.timeout_s,
            min_batch_interval_s=anchoring.min_batch_interval_s,
            poll_min_s=anchoring.poll_min_s,
            poll_max_s=anchoring.poll_max_s,
            resubmit_after_s=anchoring.resubmit_after_s,
            confirmations=anchoring.confirmations,
            final_confirmations=anchoring.final_confirmations,
            sign_submitted=anchoring.sign_submitted,
            not_before=anchoring.not_before,
            authorities=tuple(authority.url for authority in anchoring.authorities),
            checkpoint_every_s=self.config.ledger.checkpoint_every_s,
            origin=self.config.ledger.origin or self.config.signer.signer_id,
            chain=chain_name(self.config.headers.network),
            wayback_url=self.config.archive.captures.web_url.rstrip("/"),
            item_host=authority(self.config.archive.items.api_url),
        )
        return Parts(
            store=self.store,
            policy=policy,
            signer=self.signer,
            signer_for=self.signer_for,
            calendars=self.calendars,
            authorities=self.authorities,
            headers=self.headers,
            sources=self.sources,
            keyring=lambda: self.keyring,
            outlets=self.outlets,
            draw=os.urandom,
            on_progress=on_progress or (lambda _stage, _done, _total: None),
        )

    def archiving(self, parts: Parts) -> AbstractContextManager[Archiving | None]:
        """Return the way to the Internet Archive, to be entered; it gives None when nothing may go.

        Entering raises ConfigError for keys that cannot be used, and TransientError while another
        process uses the account.
        """
        from anchord.app.archive_wiring import open_archiving

        return open_archiving(self, parts)

    def archive_gaps(self) -> list[str]:
        """Return what keeps records from being stored; empty when nothing does."""
        from anchord.app.archive_wiring import gaps

        return gaps(self.loaded)

    def close(self) -> None:
        """Release what was opened; may be called twice."""
        if "headers" in self.__dict__:
            for source in self.headers:
                source.close()
        for outlet in self.__dict__.get("outlets", ()):
            outlet.close()
        if "store" in self.__dict__:
            self.store.close()
        if isinstance(self.__dict__.get("signer"), BulkSigner):
            self.__dict__["signer"].close()


def open_app(config_path: str | None) -> App:
    """Read the configuration and return the application; nothing is opened yet.

    Raises:
        ConfigError: no configuration, or one that cannot be used.
    """
    return App(load(config_path))
