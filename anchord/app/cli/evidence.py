"""Finding what `anchord verify` is asked about: targets, keys, headers, and what to compare with.

Nothing here needs a configuration unless a record of a store is asked for.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from anchord.app.config import load
from anchord.app.wiring import App, SystemClock, chain_name
from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.core.canonical import pith_suffix
from anchord.core.key_document import from_document
from anchord.core.keyring import OWN_TARGETS, REGISTRY_KEY, Keyring, PublicKey, make_keyring
from anchord.core.proof import MAX_PROOF_BYTES
from anchord.engine.dossier import Dossier, Expected
from anchord.engine.header_view import HeaderView
from anchord.errors import AnchordError, ConfigError, RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.engine.report import Report
    from anchord.ports import HeaderSource

DEFAULT_CONFIRMATIONS = 6
_DIGEST_NAME = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}", re.ASCII)
_SUFFIX_NAME = re.compile(r"[A-Za-z2-7]{26}", re.ASCII)


class Verifier:
    """Verifies targets one after another; what they share is opened once, on first use.

    Args:
        config_path: configuration named by the person, or None.
        about: file the evidence is about.
        digest: digest it is about, in hex.
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
        about: str | None,
        digest: str | None,
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
        self._about, self._digest = about, _hex(digest)
        self._given = [_read_key(Path(name)) for name in keys]
        self._headers_file, self._network = headers, network or "mainnet"
        self._node, self._cookie, self._explorers = node, cookie, explorers
        self._offline, self._confirmations = offline, confirmations
        self._sources: list[HeaderSource] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        for source in self._sources:
            source.close()
        if self._app is not None:
            self._app.close()

    def each(self, targets: Sequence[str]) -> Iterator[Report]:
        """Yield a report a target; one that cannot be read is reported, not raised.

        Raises:
            ConfigError: a person must act first.
        """
        for target in targets:
            try:
                yield from self._verify(target)
            except (RefusedError, VerificationError) as error:
                yield Dossier(target, "unknown", self._view).refuse("target", error)

    def _verify(self, target: str) -> Iterator[Report]:
        from anchord.core.trust import Keys
        from anchord.engine.item_verification import is_day_manifest, verify_day_manifest
        from anchord.engine.verification import verify_bundle, verify_ots

        if target != "-" and not Path(target).is_file():
            yield from self._records(target)
            return
        raw = _read(target)
        if is_day_manifest(raw):
            keys = Keys(self._keyring, self._given)
            yield verify_day_manifest(target, raw, keys, partial(_beside, Path(target).parent))
        elif raw.lstrip()[:1] == b"{":
            yield verify_bundle(
                target, raw, self._keyring, self._given, self._comparison(target), self._view
            )
        else:
            yield verify_ots(target, raw, self._comparison(target), self._view)

    def _records(self, target: str) -> Iterator[Report]:
        from anchord.app.cli.references import find_records
        from anchord.engine.verification import verify_record

        if target.endswith((".ots", ".json")):
            raise RefusedError(f"no file {target}: expected an .ots, a bundle, or a record's name")
        if self._app is None:
            raise ConfigError(
                f"{target} is no file here, and without a configuration there is no store to find "
                "a record in: name one with -c FILE or ANCHORD_CONFIG"
            )
        store = self._app.store
        for record in find_records(store, target):
            yield verify_record(
                store, record, self._keyring, self._given, self._comparison(target), self._view,
                target,
            )  # fmt: skip

    # -------------------------------------------------------------- what to compare with

    def _comparison(self, target: str) -> _Comparison:
        return _Comparison(target, self._about, self._digest)

    # -------------------------------------------------------------- keys and headers

    @cached_property
    def _app(self) -> App | None:
        """The configured anchord, where there is a configuration."""
        named = self._config_path or os.environ.get("ANCHORD_CONFIG")
        if named is None and not Path("anchord.toml").is_file():
            return None
        return App(load(self._config_path))

    @cached_property
    def _keyring(self) -> Keyring:
        """The keyring; without one, the registry's published key alone."""
        if self._app is not None and (self._app.key_dir / "keyring.toml").is_file():
            return self._app.keyring
        return make_keyring([REGISTRY_KEY])

    @cached_property
    def _view(self) -> HeaderView:
        asked = self._confirmations
        if asked is None:
            config = None if self._app is None else self._app.config.anchoring
            asked = DEFAULT_CONFIRMATIONS if config is None else config.confirmations
        named = self._named_sources()
        if named:
            self._sources = named
            return HeaderView(named, chain_name(self._network), asked)
        if self._app is None:
            return HeaderView([], None, asked)
        self._sources = self._configured_sources(self._app)
        return HeaderView(self._sources, chain_name(self._app.config.headers.network), asked)

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
        if not path.is_file():
            return []
        return [_header_file(path, app.config.headers.network, own=True)]


class _Comparison:
    """What a digest is compared with: --file, --digest, the file beside it, or its own name."""

    def __init__(self, target: str, about: str | None, digest: bytes | None) -> None:
        self._target, self._about, self._digest = target, about, digest

    def __call__(self, algorithm: str, digest: bytes) -> Expected | None:
        """Return what was found, or None."""
        if self._digest is not None:
            return Expected(self._digest, "the digest given")
        if self._about is not None:
            return _hash_file(Path(self._about), algorithm)
        beside = self._beside()
        if beside is not None:
            return _hash_file(beside, algorithm)
        return self._named(algorithm, digest)

    def _named(self, algorithm: str, digest: bytes) -> Expected | None:
        """Compare with the file's name, where that is a digest or a Pith Number's suffix.

        A file that is named for one record and is about another was swapped or misnamed.
        """
        name = Path(self._target).name.split(".")[0].removeprefix("sha256:")
        if _DIGEST_NAME.fullmatch(name) and len(name) == 2 * len(digest):
            return Expected(bytes.fromhex(name), "what its name says")
        if algorithm != "sha256" or not _SUFFIX_NAME.fullmatch(name):
            return None
        whole = name.upper() == pith_suffix(digest)
        if not whole and name.upper() != name:
            return None  # a word of 26 letters, as far as anybody knows
        first = base64.b32decode(name.upper() + "A" * 6)[:16]
        return Expected(digest if whole else first, "the beginning that its name says")

    def _beside(self) -> Path | None:
        if not self._target.endswith(".ots"):
            return None
        path = Path(self._target.removesuffix(".ots"))
        return path if path.is_file() else None


def _beside(folder: Path, name: str) -> tuple[int, bytes] | None:
    """Return size and SHA-256 of a file in a folder, or None; a name that leads away is no file."""
    file = folder / name
    if Path(name).name != name or not file.is_file():
        return None
    found = _hash_file(file, "sha256")
    return file.stat().st_size, found.digest


def _hash_file(path: Path, algorithm: str) -> Expected:
    try:
        with path.open("rb") as file:
            return Expected(hashlib.file_digest(file, algorithm).digest(), f"that of {path}")
    except ValueError:
        raise RefusedError(
            f"this Python cannot compute {algorithm}: give the digest of {path} with --digest"
        ) from None
    except OSError as error:
        raise RefusedError(f"{path} cannot be read: {error.strerror}") from None


def _hex(text: str | None) -> bytes | None:
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        raw = bytes.fromhex(text.strip().lower().removeprefix("sha256:"))
        if len(raw) in (20, 32):
            return raw
    raise ConfigError(f"--digest: expected 64 (or 40) hex digits, got {text!r:.80}")


def _read(target: str) -> bytes:
    limit = max(MAX_BUNDLE_BYTES, MAX_PROOF_BYTES) + 1
    try:
        if target == "-":
            return sys.stdin.buffer.read(limit)
        with Path(target).open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise RefusedError(f"{target} cannot be read: {error.strerror}") from None


def _read_key(path: Path) -> PublicKey:
    try:
        value = json.loads(path.read_text("utf-8"))
        if not isinstance(value, dict):
            raise RefusedError("got JSON that is no object")
        inner = value.get("public_key")
        states = (inner if isinstance(inner, dict) else value).get("targets")
        return from_document(value, () if states else (*OWN_TARGETS, *REGISTRY_KEY.targets))
    except (OSError, ValueError, AnchordError) as error:
        raise ConfigError(f"--key {path}: expected a public key document: {error}") from None


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
