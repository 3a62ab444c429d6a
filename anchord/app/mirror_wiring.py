"""From what a person typed to the mirrors that are pulled from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anchord.adapters.http import Client
from anchord.adapters.http.address import host_of
from anchord.adapters.mirrors.folder import FolderMirror
from anchord.adapters.mirrors.http import HttpMirror, checked_url, loopback
from anchord.core.mirror_manifest import (
    MANIFEST,
    MAX_MANIFEST_BYTES,
    RETIRED,
    WELL_KNOWN,
    Manifest,
    Mirror,
    is_absolute,
    place_of,
    read_manifest,
    resolve,
    within,
)
from anchord.engine.pull_names import Place
from anchord.errors import ConfigError, RefusedError
from anchord.ports.mirror import Fetched

if TYPE_CHECKING:
    from anchord.ports.mirror import MirrorSource

TIMEOUT_S = 60.0
"""For one file, from the first byte to the last."""


class Opener:
    """Opens mirrors.

    Args:
        rate: most requests a second to one mirror.
        only_this: leave out the other mirrors that a manifest names.
        on_refused: told the name of each mirror in a manifest that is not asked, and why.
    """

    def __init__(
        self, rate: float, *, only_this: bool, on_refused: Callable[[str, str], None]
    ) -> None:
        self._rate, self._only_this, self._on_refused = rate, only_this, on_refused
        self._client = Client(TIMEOUT_S, private=frozenset())

    def open(self, text: str) -> list[Place]:
        """Return the mirrors that a URL, a folder or a manifest file stands for.

        Raises:
            ConfigError: no such folder, or a URL that is not asked.
            RefusedError: there is no manifest, or none that may be followed.
            TransientError, ProtocolError: it cannot be fetched.
        """
        if text.startswith(("http://", "https://")):
            return self._of_url(text)
        if not text or "://" in text:
            raise ConfigError(
                f"{text!r:.200} is no mirror: expected an address with https:// (http:// on this "
                "machine), a folder, or a manifest file"
            )
        path = Path(text)
        if path.is_file():
            source = FolderMirror(path.parent)
            manifest = _manifest(source, [path.name])
            return list(self._elsewhere(manifest, None, source, local=False))
        source = FolderMirror(path)
        manifest = _manifest(source, [MANIFEST, WELL_KNOWN + MANIFEST])
        return self._of_folder(manifest, source)

    def _of_folder(self, manifest: Manifest, source: FolderMirror) -> list[Place]:
        """Read the folder's own entry from the folder, whatever address it is meant to have."""
        waiting = list(manifest.mirrors)
        own = next((one for one in waiting if one.index is not None), waiting[0])
        waiting.remove(own)
        here = Place(mirror=own, source=source, locate=lambda text: _inside(text, own))
        if self._only_this:
            return [here]
        rest = Manifest(
            generated_at=manifest.generated_at,
            merge_version=manifest.merge_version,
            mirrors=tuple(waiting),
            raw=manifest.raw,
        )
        return [here, *self._elsewhere(rest, None, source, local=False)]

    def _of_url(self, url: str) -> list[Place]:
        url = checked_url(url, "the mirror")
        local = loopback(url)
        # What a person named may lie anywhere, and a mirror of this machine may name any other.
        private = None if local else frozenset({host_of(url).lower()})
        self._client = Client(TIMEOUT_S, private=private)
        names = [url]
        if not url.endswith(".json"):
            names = [f"{url}/{MANIFEST}", f"{url}/{WELL_KNOWN}{MANIFEST}"]
        source = HttpMirror(url, self._client, self._rate, local=local)
        manifest = _manifest(source, names)
        return list(self._elsewhere(manifest, place_of(names[0]), source, local=local))

    def _elsewhere(
        self, manifest: Manifest, place: str | None, source: MirrorSource, *, local: bool
    ) -> Iterator[Place]:
        """Yield the manifest's mirrors by their own addresses."""
        for mirror in manifest.mirrors:
            if mirror.status == RETIRED:
                continue
            bundles = resolve(mirror.bundle_pattern, place)
            own = place is not None and bundles.startswith(place)
            if self._only_this and place is not None and not own:
                continue
            if not is_absolute(bundles):
                yield Place(mirror=mirror, source=source, locate=_locator(None))
                continue
            try:
                name = _address(mirror, bundles, place, local=local)
            except ConfigError as error:
                self._on_refused(mirror.name, str(error))
                continue
            web = HttpMirror(name, self._client, self._rate, local=local)
            yield Place(mirror=mirror, source=web, locate=_locator(place))


def _address(mirror: Mirror, bundles: str, place: str | None, *, local: bool) -> str:
    """Return what a mirror is called in the store."""
    stated = bundles.partition("{")[0]
    if mirror.base_url is not None and (place or is_absolute(mirror.base_url)):
        stated = resolve(mirror.base_url, place)
    elif place is not None and bundles.startswith(place):
        stated = place
    name = checked_url(stated.rstrip("/"), f"mirror {mirror.name!r:.80}")
    if loopback(name) and not local:
        raise ConfigError(f"{name} is this machine, and the manifest that names it is not of it")
    return name


def _locator(place: str | None) -> Callable[[str], str]:
    return lambda text: resolve(text, place)


def _inside(address: str, mirror: Mirror) -> str:
    """Return the path in a folder of what will be served at an address of the mirror."""
    if not is_absolute(address):
        return resolve(address, None)
    return within(address, mirror.base_url) or address


def _manifest(source: MirrorSource, names: list[str]) -> Manifest:
    for name in names:
        got = source.get(name, None, None, MAX_MANIFEST_BYTES)
        if isinstance(got, Fetched):
            manifest = read_manifest(got.data)
            if not manifest.mirrors:
                raise RefusedError(f"{name}: the manifest names no mirror")
            return manifest
    raise RefusedError(
        f"{source.name} has no {MANIFEST}, nor one in {WELL_KNOWN}: expected a mirror's address, "
        "its folder, or the manifest's own address"
    )
