"""What the headers of an upload say: who, which metadata, which checksum.

IAS3: https://archive.org/developers/ias3.html.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from email.message import Message
from urllib.parse import unquote

from anchord.sandbox.items.s3 import S3Error

_META = re.compile(r"x-(?:archive|amz)-(meta|filemeta)(\d*)-(.+)", re.IGNORECASE)
_URI = re.compile(r"uri\((.*)\)", re.DOTALL)
Metadata = dict[str, str | list[str]]


def credentials(headers: Message) -> tuple[str, str] | None:
    """Return access key and secret of `LOW access:secret`; None: there are none."""
    scheme, _, pair = headers.get("Authorization", "").partition(" ")
    access, colon, secret = pair.strip().partition(":")
    return (access, secret) if scheme.upper() == "LOW" and colon else None


def metadata(headers: Message, kind: str) -> Metadata:
    """Return the fields of `x-archive-meta*` or `x-archive-filemeta*` headers.

    Numbered headers of one field are its values in order; `--` means `_`; `uri(...)` is
    percent-encoded; white space is normalised, as the archive does.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for name, value in headers.items():
        match = _META.fullmatch(name)
        if match and match[1].lower() == kind:
            field = match[3].lower().replace("--", "_")
            found.setdefault(field, []).append((match[2], _decoded(value)))
    return {field: _values(text for _, text in sorted(rows)) for field, rows in found.items()}


def _decoded(value: str) -> str:
    text = value.encode("latin-1", "replace").decode("utf-8", "replace").strip()
    match = _URI.fullmatch(text)
    return " ".join((unquote(match[1]) if match else text).split())


def _values(texts: Iterable[str]) -> str | list[str]:
    values = list(texts)
    return values[0] if len(values) == 1 else values


def flag(headers: Message, name: str) -> bool:
    """Tell whether `x-archive-<name>` is on."""
    return headers.get(f"x-archive-{name}", "0").strip() == "1"


def length(headers: Message) -> int:
    """Return how long the body is.

    Raises:
        S3Error: it is not said; chunked bodies are not taken.
    """
    stated = headers.get("Content-Length", "")
    if not stated.isdigit():
        raise S3Error("MissingContentLength")
    return int(stated)


def check_md5(headers: Message, md5: str) -> None:
    """Compare Content-MD5, as hex or as base64, with what came.

    Raises:
        S3Error: BadDigest.
    """
    stated = headers.get("Content-MD5")
    encoded = base64.b64encode(bytes.fromhex(md5)).decode()
    if stated is None or stated.strip().lower() == md5 or stated.strip() == encoded:
        return
    raise S3Error(
        "BadDigest",
        f"content-md5 submitted with PUT: {stated} != received data md5: {md5}"
        f"also not equal to base64 version: {encoded}",
    )
