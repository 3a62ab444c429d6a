"""Verifying what anchord put into an item: its signed day manifest, and the files beside it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from anchord.core.item_name import TYPE, DayFile, DayManifest, read_day_manifest
from anchord.core.strictjson import UNREADABLE
from anchord.engine.dossier import TRUST_WORDS
from anchord.engine.report import Check, Report, Result
from anchord.errors import RefusedError, VerificationError

if TYPE_CHECKING:
    from anchord.core.trust import Keys

_NAMED = re.compile(r"manifest-([0-9]{4}-[0-9]{2}-[0-9]{2}(?:-[0-9]+)?)\.json")

Hashed = Callable[[str], tuple[int, bytes] | None]
"""Size and SHA-256 of a file beside the manifest, by its name; None when it is not there."""


class _Kind(msgspec.Struct):
    type: str = ""


def is_day_manifest(raw: bytes) -> bool:
    """Tell whether a file says of itself that it is a day manifest."""
    try:
        return msgspec.json.decode(raw, type=_Kind).type == TYPE
    except UNREADABLE:
        return False


def verify_day_manifest(target: str, raw: bytes, keys: Keys, find: Hashed) -> Report:
    """Verify who signed a day manifest, and each file it lists that lies beside it."""
    try:
        manifest = read_day_manifest(raw, keys)
    except (RefusedError, VerificationError) as error:
        return _report(target, "failed", str(error), (Check("signature", "failed", str(error)),))
    signed = f"day manifest of {manifest.identifier}, {manifest.created_at}, key {manifest.key_id}"
    checks = [Check("signature", "proved", f"{signed}: {TRUST_WORDS[manifest.trust]}")]
    checks += _name(target, manifest)
    checks += [_file(listed, find(listed.name)) for listed in manifest.files]
    return _report(target, *_judged(manifest, checks), tuple(checks))


def _name(target: str, manifest: DayManifest) -> list[Check]:
    """Hold the name of the file against the item: a manifest of another day proves nothing of it.

    A file that is not named as anchord names manifests says nothing by its name.
    """
    named = _NAMED.fullmatch(target.rpartition("/")[2])
    if named is None or manifest.identifier.endswith("-" + named[1]):
        return []
    said = f"it is the manifest of item {manifest.identifier}, not that of {named[1]}"
    return [Check("name", "failed", said)]


def _file(listed: DayFile, found: tuple[int, bytes] | None) -> Check:
    if found is None:
        return Check("file", "not checked", f"{listed.name} is not beside the manifest")
    size, sha256 = found
    if (size, sha256.hex()) == (listed.size, listed.sha256):
        return Check("file", "proved", f"{listed.name}: {size:,} bytes, sha256 {listed.sha256}")
    return Check(
        "file",
        "failed",
        f"{listed.name} has {size:,} bytes and sha256 {sha256.hex()}, signed were "
        f"{listed.size:,} and {listed.sha256}",
    )


def _judged(manifest: DayManifest, checks: list[Check]) -> tuple[Result, str | None]:
    bad = [check for check in checks if check.outcome == "failed"]
    if bad:
        return "failed", bad[0].detail
    missing = sum(check.outcome == "not checked" for check in checks)
    if missing or not manifest.files:
        return "not proved", (
            f"signed, and {missing} of {len(manifest.files)} files are not beside it: download "
            f"them from item {manifest.identifier} into its folder"
        )
    return "proved", None


def _report(target: str, result: Result, reason: str | None, checks: tuple[Check, ...]) -> Report:
    return Report(
        target=target, kind="day manifest", result=result, reason=reason, temporary=False,
        checks=checks,
    )  # fmt: skip
