"""Mirror manifests: where copies of a graph are, and by which patterns their files are found.

The shape is the registry's (`pith-mirrors.json`, docs/protocol.md). anchord's own entries add
`record_pattern`, `proof_pattern`, `index` and `log`, and may be relative: then they are resolved
against the place the manifest lies at, so that a tree can move without being written again.
A manifest is a stranger's word. Nothing in it makes anchord follow another scheme than http and
https, and no relative address leaves its folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from anchord.core.strictjson import parse
from anchord.core.tree_index import safe_path
from anchord.errors import RefusedError

MANIFEST = "pith-mirrors.json"
WELL_KNOWN = ".well-known/"
TYPE = "pith_mirror_manifest"
VERSION = "1.0"
RETIRED = "retired"
"""Status of a mirror that is not to be asked any more."""
MAX_MANIFEST_BYTES = 1 << 20
MAX_MIRRORS = 100

_PATTERNS = (
    "bundle_pattern", "state_pattern", "well_known_pattern", "record_pattern", "proof_pattern",
    "index", "log",
)  # fmt: skip
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_URL = re.compile(
    r"https?://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?"
)
_GAP = re.compile(r"\{[^{}]*\}")


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """One mirror, its addresses as they are stated; unknown keys are in `Manifest.raw` only."""

    name: str
    status: str = "mirror"
    mirror_type: str = "https"
    base_url: str | None = None
    bundle_pattern: str
    state_pattern: str | None = None
    well_known_pattern: str | None = None
    public_key: dict[str, Any] | None = None
    record_pattern: str | None = None
    """Ours: a bundle of a record without a number, by `{digest}` in hex."""
    proof_pattern: str | None = None
    """Ours: the `.ots`."""
    index: str | None = None
    """Ours: the signed index."""
    log: str | None = None
    """Ours: the folder of checkpoints and tiles."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest as it came."""

    generated_at: str
    merge_version: str
    mirrors: tuple[Mirror, ...]
    raw: Mapping[str, Any]
    """All of it, unknown keys too."""


class _Stated(msgspec.Struct, frozen=True, kw_only=True):
    manifest_type: str
    manifest_version: str
    generated_at: str = ""
    merge_version: str = ""
    mirrors: tuple[Mirror, ...]


def read_manifest(raw: bytes) -> Manifest:
    """Return what a manifest says.

    Raises:
        RefusedError: not a manifest of version 1.0, two mirrors of one name, or an address that
            leads elsewhere than to http, https or into the manifest's folder.
    """
    document = parse(raw, max_bytes=MAX_MANIFEST_BYTES)
    try:
        stated = msgspec.convert(document, _Stated)
    except msgspec.ValidationError as error:
        raise RefusedError(f"expected a mirror manifest, got something else: {error}") from None
    if (stated.manifest_type, stated.manifest_version) != (TYPE, VERSION):
        raise RefusedError(
            f"expected manifest_type {TYPE!r}, manifest_version {VERSION!r}, got "
            f"{stated.manifest_type!r:.60}, {stated.manifest_version!r:.20}"
        )
    names = [mirror.name for mirror in stated.mirrors]
    if len(set(names)) != len(names) or len(names) > MAX_MIRRORS:
        raise RefusedError(f"expected up to {MAX_MIRRORS} mirrors, each with its own name")
    for mirror in stated.mirrors:
        _check_addresses(mirror)
    return Manifest(
        generated_at=stated.generated_at,
        merge_version=stated.merge_version,
        mirrors=stated.mirrors,
        raw=document,
    )


def _check_addresses(mirror: Mirror) -> None:
    for name in _PATTERNS:
        text = getattr(mirror, name)
        if text is not None:
            _check_address(text, f"{name} of mirror {mirror.name!r:.80}")
    if mirror.base_url is not None:
        _check_address(mirror.base_url or "/", f"base_url of mirror {mirror.name!r:.80}")
    if "{suffix}" not in mirror.bundle_pattern:
        raise RefusedError(f"bundle_pattern of mirror {mirror.name!r:.80} lacks {{suffix}}")


def _check_address(text: str, what: str) -> None:
    gaps = set(_GAP.findall(text)) - {"{suffix}", "{digest}"}
    filled = _GAP.sub("X", text)
    if _SCHEME.match(text) or text.startswith("//"):
        host, _, path = text.partition("://")[2].partition("/")
        good = bool(_URL.fullmatch(filled)) and "{" not in host and _no_dots(path)
    else:
        good = filled.strip("/") == "" or safe_path(filled.strip("/"))
    if gaps or not good:
        raise RefusedError(
            f"{what}: expected http://, https:// or a path in the manifest's folder, with "
            f"{{suffix}} or {{digest}} at most, got {text!r:.120}"
        )


def _no_dots(path: str) -> bool:
    return not any(part in (".", "..") for part in path.split("/"))


def is_absolute(address: str) -> bool:
    """Tell whether an address of a manifest that was read names its own server."""
    return _SCHEME.match(address) is not None


def fill(pattern: str, *, suffix: str = "", digest: str = "") -> str:
    """Return a pattern with its gap filled."""
    return pattern.replace("{suffix}", suffix).replace("{digest}", digest)


def resolve(address: str, place: str | None) -> str:
    """Return where an address of a manifest leads.

    Args:
        address: as it was read, so that it is either a URL or a safe path.
        place: URL of the folder the manifest belongs to, with "/" at its end; None: it lies in a
            folder of this machine, and a path in that folder comes back.
    """
    if is_absolute(address):
        return address
    path = address.strip("/")
    if place is None:
        return path
    if address.startswith("/"):
        scheme, _, rest = place.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}/{path}"
    return place + path


def place_of(url: str) -> str:
    """Return the folder a manifest's relative addresses start at; not the `.well-known` in it."""
    folder = url.rpartition("/")[0] + "/"
    return folder.removesuffix(WELL_KNOWN)


def within(address: str, base_url: str | None) -> str | None:
    """Return the path of a URL below a mirror's base, None when it lies elsewhere."""
    if base_url is None or not is_absolute(base_url):
        return None
    base = base_url.rstrip("/") + "/"
    return address.removeprefix(base) if address.startswith(base) else None


def own_entry(
    *, name: str, base_url: str | None, status: str, public_key: Mapping[str, Any], numbered: str
) -> dict[str, Any]:
    """Return the manifest's entry for a tree that anchord publishes.

    Args:
        name: what people call the mirror.
        base_url: where the tree will be served; None: wherever the manifest lies.
        status: "primary" or "mirror".
        public_key: document of the key that signs the index.
        numbered: folder of records with a number, within the tree.
    """
    start = "" if base_url is None else base_url.rstrip("/") + "/"
    return {
        "name": name,
        "mirror_type": "https" if start.startswith("https:") else "static",
        "base_url": start.rstrip("/") or None,
        "bundle_pattern": f"{start}{numbered}/{{suffix}}/bundle.json",
        "state_pattern": f"{start}{numbered}/{{suffix}}/state.json",
        "well_known_pattern": f"{start}{WELL_KNOWN}{numbered}/{{suffix}}/bundle.json",
        "public_key": dict(public_key),
        "status": status,
        "record_pattern": f"{start}record/{{digest}}/bundle.json",
        "proof_pattern": f"{start}{numbered}/{{suffix}}/proof.ots",
        "index": f"{start}index.json",
        "log": f"{start}log",
    }


def render_manifest(entries: list[dict[str, Any]], merge_version: str, generated_at: str) -> bytes:
    """Return a manifest, one key a line for people."""
    document = {
        "manifest_type": TYPE,
        "manifest_version": VERSION,
        "generated_at": generated_at,
        "merge_version": merge_version,
        "mirrors": entries,
        "notes": "Nothing here needs to be believed: check bundles by their signatures and proofs.",
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
