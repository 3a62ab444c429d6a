"""A mirror's signed index, read and checked before anything is asked for on its word."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anchord.core.key_document import from_document
from anchord.core.keyring import OWN_TARGETS, Keyring, fingerprint
from anchord.core.tree_index import (
    MAX_INDEX_BYTES,
    MAX_SHARD_BYTES,
    IndexLine,
    Shard,
    read_index,
    read_shard,
    stated_key,
    stated_shards,
)
from anchord.core.trust import Keys
from anchord.engine.pull_check import Found
from anchord.engine.pull_report import Kind
from anchord.errors import (
    DigestMismatchError,
    ProtocolError,
    RefusedError,
    TransientError,
    VerificationError,
)
from anchord.ports.mirror import Fetched

if TYPE_CHECKING:
    from anchord.engine.pull_names import Place
    from anchord.ports.log import PullTable
    from anchord.ports.mirror import MirrorSource

SHARD = tuple[Shard, Sequence[IndexLine] | None, Found | None]


class Index:
    """The index of one mirror.

    Args:
        place: the mirror.
        keyring: what the signature is checked with.
    """

    def __init__(self, place: Place, keyring: Keyring) -> None:
        self._place, self._keyring = place, keyring
        self._raw: bytes | None = None
        self.standing: str | None = None
        """"verified", "unverified", "forged"; None: the mirror has no index."""
        self.found: list[Found] = []
        """What there is to say about it."""

    def read(self) -> tuple[Shard, ...] | None:
        """Return the shards; None where there is no index, or none to be believed.

        Raises:
            TransientError: the mirror cannot be asked now.
        """
        self._check_key()
        self._raw = self._fetch()
        if self._raw is None:
            return None
        try:
            name = stated_key(self._raw)
            if self._keyring.get(name) is None:
                self.standing = "unverified"
                what = f"its index is signed with key {name!r:.80}, which is not in the keyring: "
                what += "what is missing cannot be told from what was withheld. To believe it, "
                what += "compare its fingerprint another way, then `anchord key trust` the "
                what += "mirror's pith-signing-key.json"
                self.found.append((Kind.INDEX_UNVERIFIED, what))
                return stated_shards(self._raw)
            shards = read_index(self._raw, Keys(self._keyring)).shards
        except (RefusedError, VerificationError) as error:
            self.standing = "forged"
            self.found.append((Kind.INDEX_FORGED, f"its index does not hold: {error}"))
            return None
        self.standing = "verified"
        return shards

    def changed(self) -> bool:
        """Tell whether the mirror has another index by now."""
        try:
            return self._fetch() != self._raw
        except TransientError:
            return True

    def _fetch(self) -> bytes | None:
        address = self._place.mirror.index
        if address is None:
            return None
        try:
            got = self._place.source.get(self._place.locate(address), None, None, MAX_INDEX_BYTES)
        except ProtocolError as error:
            self.found.append((Kind.UNUSABLE, f"its index: {error}"))
            return None
        return got.data if isinstance(got, Fetched) else None

    def _check_key(self) -> None:
        """Hold the key that the manifest states against the one of its name in the keyring."""
        document = self._place.mirror.public_key
        if document is None:
            return
        try:
            stated = from_document(document, OWN_TARGETS)
        except RefusedError as error:
            self.found.append((Kind.KEY_DIFFERS, f"the key in its manifest is none: {error}"))
            return
        known = self._keyring.get(stated.key_id)
        if known is not None and known.public_key != stated.public_key:
            what = f"its manifest states {fingerprint(stated.public_key)} as key {stated.key_id!r},"
            what += f" the keyring has {fingerprint(known.public_key)}: one of them is forged"
            self.found.append((Kind.KEY_DIFFERS, what))


def read_shards(
    source: MirrorSource, folder: str, shards: Sequence[Shard], pulls: PullTable, *, skip: bool
) -> Iterator[SHARD]:
    """Yield each shard with its lines, or with what is wrong with it.

    Args:
        source: the mirror.
        folder: where the tree begins.
        shards: as the index lists them.
        pulls: what is known of the mirror.
        skip: leave out (with None for its lines) what was worked through in this very form.
    """
    known = pulls.get(source.name, [folder + shard.name for shard in shards]) if skip else {}
    for shard in shards:
        name = folder + shard.name
        old = known.get(name)
        if old is not None and old.sha256 == bytes.fromhex(shard.sha256):
            yield shard, None, None
            continue
        try:
            got = source.get(name, None, None, min(shard.size, MAX_SHARD_BYTES))
            if isinstance(got, Fetched):
                yield shard, read_shard(got.data, shard), None
            else:
                yield shard, None, (Kind.INDEX_FORGED, f"{shard.name} is not there")
        except ProtocolError as error:
            kind = Kind.INDEX_FORGED if error.too_long else Kind.UNUSABLE
            yield shard, None, (kind, f"{shard.name}: {error}")
        except (DigestMismatchError, RefusedError) as error:
            yield shard, None, (Kind.INDEX_FORGED, str(error))
