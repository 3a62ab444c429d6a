"""Who is believed: the keys and block headers that evidence is checked against.

Nothing here needs a configuration: without one, the registry's published key and what the person
names are all there is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from anchord.adapters.disk import read_small
from anchord.app.config import load
from anchord.app.wiring import App, SystemClock, chain_name
from anchord.core.key_document import from_document
from anchord.core.keyring import OWN_TARGETS, REGISTRY_KEY, Keyring, PublicKey, make_keyring
from anchord.engine.header_view import HeaderView
from anchord.errors import AnchordError, ConfigError, RefusedError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from anchord.ports import HeaderSource

DEFAULT_CONFIRMATIONS = 6


class Witnesses:
    """Keys and header sources, each opened on first use; a context manager.

    Args:
        config_path: configuration named by the person, or None.
        keys: files of public key documents.
        headers: header file.
        network: of `headers`, `node` and `explorers`.
        node: RPC address of a node.
        cookie: its cookie file.
        explorers: Esplora servers.
        offline: open no connection.
        confirmations: how many blocks are asked for.

    Raises:
        ConfigError: options that contradict each other, or files that cannot be used.
    """

    def __init__(
        self,
        config_path: str | None,
        *,
        keys: Sequence[str],
        headers: str | None,
        network: str | None,
        node: str | None,
        cookie: str | None,
        explorers: Sequence[str],
        offline: bool,
        confirmations: int | None,
    ) -> None:
        if offline and (node or explorers):
            raise ConfigError("--offline opens no connection: leave out --node and --explorer")
        if len(explorers) == 1:
            raise ConfigError("--explorer: expected two servers or more, which must agree, got one")
        self._config_path = config_path
        self.given = [_read_key(Path(name)) for name in keys]
        self._headers_file, self._network = headers, network or "mainnet"
        self._node, self._cookie, self._explorers = node, cookie, explorers
        self._offline, self._confirmations = offline, confirmations
        self._sources: list[HeaderSource] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Release what was opened; opens nothing, may be called twice."""
        for source in self._sources:
            source.close()
        app = self.__dict__.get("app")
        if app is not None:
            app.close()

    @cached_property
    def app(self) -> App | None:
        """The configured anchord, where there is a configuration."""
        named = self._config_path or os.environ.get("ANCHORD_CONFIG")
        if named is None and not Path("anchord.toml").is_file():
            return None
        return App(load(self._config_path))

    @cached_property
    def keyring(self) -> Keyring:
        """The keyring; without one, the registry's published key alone."""
        if self.app is not None and (self.app.key_dir / "keyring.toml").is_file():
            return self.app.keyring
        return make_keyring([REGISTRY_KEY])

    @property
    def confirmations(self) -> int:
        """How many blocks are asked for, the attested one included."""
        if self._confirmations is not None:
            return self._confirmations
        if self.app is not None:
            return self.app.config.anchoring.confirmations
        return DEFAULT_CONFIRMATIONS

    @cached_property
    def view(self) -> HeaderView:
        """The headers: those the person named, else those of the configuration, else none."""
        named = self._named_sources()
        if named:
            self._sources = named
            return HeaderView(named, chain_name(self._network), self.confirmations)
        if self.app is None:
            return HeaderView([], None, self.confirmations)
        self._sources = self._configured_sources(self.app)
        chain = chain_name(self.app.config.headers.network)
        return HeaderView(self._sources, chain, self.confirmations)

    def trusted(self, files: Sequence[str]) -> list[Certificate]:
        """Return the certificates that tokens of time-stamping authorities are held against.

        Args:
            files: those the person named; without any, those of the configuration.

        Raises:
            ConfigError: a file that cannot be used.
        """
        from anchord.adapters.tsa import read_trusted

        named = [(Path(name), "--tsa-ca") for name in files]
        if not named and self.app is not None:
            resolve, anchoring = self.app.loaded.resolve, self.app.config.anchoring
            named = [(resolve(one.certificates), one.url) for one in anchoring.authorities]
        found = [one for path, what in dict.fromkeys(named) for one in read_trusted(path, what)]
        return list(dict.fromkeys(found))

    def _named_sources(self) -> list[HeaderSource]:
        found: list[HeaderSource] = []
        if self._headers_file is not None:
            found.append(_header_file(Path(self._headers_file), self._network, own=False))
        if self._node is not None:
            found.append(_node(self._node, self._network, self._cookie))
        if self._explorers:
            found.append(_explorers(self._explorers, self._network))
        return found

    def _configured_sources(self, app: App) -> list[HeaderSource]:
        if not self._offline:
            return app.headers
        path = app.loaded.resolve(app.config.headers.file.path)
        return [_header_file(path, app.config.headers.network, own=True)]


def _read_key(path: Path) -> PublicKey:
    try:
        value = json.loads(read_small(path))
        if not isinstance(value, dict):
            raise RefusedError("expected a public key document, got JSON that is no object")
        inner = value.get("public_key")
        states = (inner if isinstance(inner, dict) else value).get("targets")
        return from_document(value, () if states else (*OWN_TARGETS, *REGISTRY_KEY.targets))
    except (ValueError, RecursionError):
        raise ConfigError(
            f"--key {path}: expected a public key document, as `anchord key public` prints it, "
            "got no JSON"
        ) from None
    except OSError as error:
        raise ConfigError(f"--key {path} cannot be read: {error.strerror}") from None
    except AnchordError as error:
        raise ConfigError(f"--key {path}: {error}") from None


def _header_file(path: Path, network: str, *, own: bool) -> HeaderSource:
    from anchord.adapters.headers.headerfile import HeaderFileSource

    return HeaderFileSource(path, network, (), 1, 1.0, SystemClock(), recall=own)


def _node(url: str, network: str, cookie: str | None) -> HeaderSource:
    from anchord.adapters.headers.bitcoind import NodeSource
    from anchord.adapters.http import Client

    file = None if cookie is None else Path(cookie)
    return NodeSource(url, client=Client(10.0), network=network, cookie_file=file)


def _explorers(urls: Sequence[str], network: str) -> HeaderSource:
    from anchord.adapters.headers.esplora import ExplorerSource
    from anchord.adapters.http import Client
    from anchord.core.network import network as network_of

    return ExplorerSource(
        list(urls),
        client=Client(10.0),
        min_agree=max(2, len(urls)),
        genesis=network_of(network).genesis,
    )
