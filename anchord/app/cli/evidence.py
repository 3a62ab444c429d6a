"""Finding what `anchord verify` is asked about: targets, and what to compare with.

Nothing here needs a configuration unless a record of a store is asked for.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from anchord.app.cli.witnesses import Witnesses
from anchord.core.bundle import MAX_BUNDLE_BYTES
from anchord.core.canonical import pith_suffix
from anchord.core.proof import MAX_PROOF_BYTES
from anchord.engine.dossier import Dossier, Expected
from anchord.errors import ConfigError, RefusedError, VerificationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from anchord.engine.report import Report

_DIGEST_NAME = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}", re.ASCII)
_SUFFIX_NAME = re.compile(r"[A-Za-z2-7]{26}", re.ASCII)


class Verifier:
    """Verifies targets one after another; what they share is opened once, on first use.

    Args:
        config_path: configuration named by the person, or None.
        about: file the evidence is about.
        digest: digest it is about, in hex.
        tsa_ca: files of certificates that tokens of time-stamping authorities must lead to.
        asked: the options of `witness_options`, for `Witnesses`.

    Raises:
        ConfigError: options that contradict each other, or files that cannot be used.
    """

    def __init__(
        self,
        config_path: str | None,
        *,
        about: str | None,
        digest: str | None,
        tsa_ca: Sequence[str],
        **asked: Any,
    ) -> None:
        self._witnesses = Witnesses(config_path, **asked)
        self._tsa_ca = tsa_ca
        self._about, self._digest = about, given_digest(digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._witnesses.close()

    def each(self, targets: Sequence[str]) -> Iterator[Report]:
        """Yield a report a target; one that cannot be read is reported, not raised.

        Raises:
            ConfigError: a person must act first.
        """
        for target in targets:
            try:
                yield from self._verify(target)
            except (RefusedError, VerificationError) as error:
                yield Dossier(target, "unknown", self._witnesses.view).refuse("target", error)

    def _verify(self, target: str) -> Iterator[Report]:
        from anchord.core.trust import Keys
        from anchord.engine.item_verification import is_day_manifest, verify_day_manifest
        from anchord.engine.verification import verify_bundle, verify_ots

        if target != "-" and not Path(target).is_file():
            yield from self._records(target)
            return
        raw, who = read_target(target), self._witnesses
        if is_day_manifest(raw):
            keys = Keys(who.keyring, who.given)
            yield verify_day_manifest(target, raw, keys, partial(_beside, Path(target).parent))
        elif raw.lstrip()[:1] == b"{":
            yield verify_bundle(
                target, raw, who.keyring, who.given, self._comparison(target), who.view,
                self._trusted,
            )  # fmt: skip
        else:
            yield verify_ots(target, raw, self._comparison(target), who.view)

    def _records(self, target: str) -> Iterator[Report]:
        from anchord.app.cli.references import find_records
        from anchord.engine.verification import verify_record

        if target.endswith((".ots", ".json")):
            raise RefusedError(f"no file {target}: expected an .ots, a bundle, or a record's name")
        who = self._witnesses
        if who.app is None:
            raise ConfigError(
                f"{target} is no file here, and without a configuration there is no store to find "
                "a record in: name one with -c FILE or ANCHORD_CONFIG"
            )
        store = who.app.store
        for record in find_records(store, target):
            yield verify_record(
                store, record, who.keyring, who.given, self._comparison(target), who.view, target,
                self._trusted,
            )  # fmt: skip

    @cached_property
    def _trusted(self) -> list[Certificate]:
        return self._witnesses.trusted(self._tsa_ca)

    # -------------------------------------------------------------- what to compare with

    def _comparison(self, target: str) -> Comparison:
        return Comparison(target, self._about, self._digest)


class Comparison:
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


def given_digest(text: str | None) -> bytes | None:
    """Return the digest of `--digest`, None for None.

    Raises:
        ConfigError: no hex digits of a digest.
    """
    if text is None:
        return None
    with contextlib.suppress(ValueError):
        raw = bytes.fromhex(text.strip().lower().removeprefix("sha256:"))
        if len(raw) in (20, 32):
            return raw
    raise ConfigError(f"--digest: expected 64 (or 40) hex digits, got {text!r:.80}")


def read_target(target: str) -> bytes:
    """Return the bytes of a file (-: standard input), no more of them than evidence may have.

    Raises:
        RefusedError: it cannot be read.
    """
    limit = max(MAX_BUNDLE_BYTES, MAX_PROOF_BYTES) + 1
    try:
        if target == "-":
            return sys.stdin.buffer.read(limit)
        with Path(target).open("rb") as file:
            return file.read(limit)
    except OSError as error:
        raise RefusedError(f"{target} cannot be read: {error.strerror}") from None
