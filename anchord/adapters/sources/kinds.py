"""What a piece of input is: told by its content first, then by its name, never by trying all.

The rules, in this order (`anchord add --as KIND` overrides them):

1. It begins with the OpenTimestamps magic, or its name ends in `.ots`: a proof.
2. A JSON name (`.json`, `.jsonl`, `.ndjson`, each also with `.gz`): records. What is in it must
   be an object, an array of objects, or lines of objects; anything else in it is refused, never
   hashed as a file instead. `.jsonl` and `.ndjson` are JSON Lines; the rest is JSON Lines when at
   least half of the first lines are objects by themselves, else one document.
3. A checksum-list name (`SHA256SUMS`, `*.sha256`, ...): a checksum list.
4. Named directly or on standard input, not met in a folder: content that is a record, a bundle
   or an object that carries a `canonical_record`, whatever its name; on standard input, anything
   that begins like JSON; and a first line as `sha256sum` writes it: a checksum list.
5. Everything else is a file: its bytes are hashed and never looked into.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from anchord.adapters.sources.checksums import is_checksum_line
from anchord.adapters.sources.streams import GZIP_MAGIC, HEAD, unzipped_head
from anchord.core.proof import MAGIC

BOM = b"\xef\xbb\xbf"

_JSON_NAME = re.compile(r"\.(json|jsonl|ndjson)(\.gz)?$", re.IGNORECASE)
_LINES_NAME = re.compile(r"\.(jsonl|ndjson)(\.gz)?$", re.IGNORECASE)
_LIST_NAME = re.compile(r"(^sha256sums?|\.sha256(sums?)?)(\.txt)?$", re.IGNORECASE)
_RECORD_KEYS = (b'"canonical_record"', b'"pith_open_graph_bundle"')
_RECORD_PAIR = (b'"metadata"', b'"source"')
_any = msgspec.json.Decoder(msgspec.Raw)


class Kind(StrEnum):
    """The kinds of input, by the word `--as` takes."""

    RECORD = "record"
    """One JSON document: a record, an object around one, a bundle, or an array of them."""
    RECORDS = "records"
    """JSON Lines of such objects."""
    BUNDLE = "bundle"
    """One bundle; anything else is refused."""
    LIST = "list"
    """A `sha256sum` list."""
    OTS = "ots"
    """An OpenTimestamps proof."""
    FILE = "file"
    """Any file: hash only."""


def kind_of(name: str, head: bytes, *, named: bool) -> Kind:
    """Return what `head`, the beginning of `name`, is.

    Args:
        name: the file's own name, or "-" for standard input.
        head: its first bytes (streams.HEAD of them, or all).
        named: it was named directly, not met in a folder.
    """
    if head.startswith(MAGIC) or name.lower().endswith(".ots"):
        return Kind.OTS
    inside = content(name, head)
    if _JSON_NAME.search(name):
        return _json_form(name, inside)
    if _LIST_NAME.search(name):
        return Kind.LIST
    if not named:
        return Kind.FILE
    if _looks_json(inside) and (name == "-" or _looks_record(inside)):
        return _json_form(name, inside)
    return Kind.LIST if _looks_list(inside) else Kind.FILE


def content(name: str, head: bytes) -> bytes:
    """Return the beginning of what is meant: inside gzip where the name or a pipe says so."""
    return unzipped_head(head) if is_zipped(name, head) else head


def is_zipped(name: str, head: bytes) -> bool:
    """Return whether the content is looked for inside gzip: JSON names, and JSON in a pipe."""
    if not head.startswith(GZIP_MAGIC):
        return False
    return bool(_JSON_NAME.search(name)) or (name == "-" and _looks_json(unzipped_head(head)))


def _json_form(name: str, head: bytes) -> Kind:
    """Return whether JSON is one document or JSON Lines; a bad first line does not decide."""
    if _LINES_NAME.search(name):
        return Kind.RECORDS
    lines = head.split(b"\n")
    cut = len(head) >= HEAD
    if cut:
        lines.pop()
    objects = [_is_object(line) for line in lines if line.strip()]
    several = len(objects) + cut > 1 and 2 * sum(objects) >= len(objects) > 0
    return Kind.RECORDS if several else Kind.RECORD


def _is_object(line: bytes) -> bool:
    try:
        _any.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return line.lstrip().startswith(b"{")


def _looks_json(head: bytes) -> bool:
    return head.removeprefix(BOM).lstrip()[:1] in (b"{", b"[")


def _looks_record(head: bytes) -> bool:
    """Return whether the first object has the keys of a record, a wrapper or a bundle."""
    return any(key in head for key in _RECORD_KEYS) or all(key in head for key in _RECORD_PAIR)


def _looks_list(head: bytes) -> bool:
    """Return whether the first line that is neither blank nor a comment is a checksum."""
    for line in head.removeprefix(BOM).split(b"\n"):
        if line.strip() and not line.startswith(b"#"):
            return is_checksum_line(line.rstrip(b"\r"))
    return False
