"""The tampering table: each field of each document, changed in every way, and what an audit says.

`PYTHONPATH=tests python -m support.tampering` prints the whole of it; with `--bytes` one bit of
every byte of a small tree is turned over instead. Rows are made from documents
of a real tree: every field of their JSON, however deep, every line of a checkpoint, every hash of a
tile. Each row is tried in three places:

- `tree`: the published tree, by somebody who can write files and has no key;
- `signed anew`: the same, under an index that the publisher's own key signs over the changed file,
  so that what finds the change is not the index;
- `bundle`: a plain folder of bundles, where there is neither index nor log.
"""

from __future__ import annotations

import base64
import copy
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from anchord.core.audit import AuditReport
from anchord.core.event import canonical_body, event_digest, signer_block
from anchord.core.finding import Severity
from support.audited_tree import DAY, STRANGER, ZIP, AuditedTree

CHANGE, DROP, REPEAT, REORDER = "change", "drop", "repeat", "reorder"
MEMBERS = "reorder members"
"""Of an object, where their order says nothing."""
SWAP, REPLAY = "swap between records", "replay from another key"
TREE, ANEW, BARE = "tree", "signed anew", "bundle"


class Row(NamedTuple):
    """One way to tamper with one field."""

    part: str
    field: str
    operation: str
    path: str
    data: bytes
    where: str = TREE


class Judged(NamedTuple):
    """What the audit said of a row."""

    row: Row
    code: str
    """Empty: nothing was found."""
    severity: str
    said: str
    result: str
    named: bool
    """The finding names the file, the record or the event."""


# ---------------------------------------------------------------------- JSON, member by member


class Members(list[tuple[str, Any]]):
    """A JSON object as its members, so that one may stand there twice."""


def read(raw: bytes) -> Any:
    """Return a JSON document whose objects are lists of members."""
    return json.loads(raw, object_pairs_hook=Members)


def write(value: Any) -> str:
    """Return the text of such a document."""
    if isinstance(value, Members):
        inner = ",".join(f"{json.dumps(name)}:{write(item)}" for name, item in value)
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ",".join(write(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def changed(value: Any) -> Any:
    """Return another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        middle = len(value) // 2
        other = "b" if value[middle : middle + 1] in ("a", "1") else "a"
        other = "1" if value[middle : middle + 1] == "0" else other
        return value[:middle] + other + value[middle + 1 :]
    if isinstance(value, Members):
        return Members([*value, ("added", "a")])
    return [*value, "a"] if isinstance(value, list) else "a"


def variants(document: Any, other: Any) -> Iterator[tuple[str, str, str]]:
    """Yield (field, operation, text) of a document with one field tampered with.

    Args:
        document: as `read` returns it.
        other: the same document of another record.
    """
    for names, holder, place in fields_of(document, ()):
        field = "/".join(names)
        key, value = holder[place] if isinstance(holder, Members) else (None, holder[place])
        keep = holder[place]

        def whole(item: Any, key: str | None = key) -> Any:
            return item if key is None else (key, item)

        holder[place] = whole(changed(value))
        yield field, CHANGE, write(document)
        holder[place] = keep
        del holder[place]
        yield field, DROP, write(document)
        holder[place:place] = [keep, keep]
        yield field, REPEAT, write(document)
        del holder[place]
        if place + 1 < len(holder):
            holder[place : place + 2] = holder[place : place + 2][::-1]
            yield field, REORDER if key is None else MEMBERS, write(document)
            holder[place : place + 2] = holder[place : place + 2][::-1]
        found, theirs = _at(other, names)
        if found and write(theirs) != write(value):
            holder[place] = whole(theirs)
            yield field, SWAP, write(document)
            holder[place] = keep


def fields_of(value: Any, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, int]]:
    """Yield every place in a document: its name, what holds it, and where."""
    if isinstance(value, Members):
        for place, (name, item) in enumerate(list(value)):
            yield (*names, name), value, place
            yield from fields_of(item, (*names, name))
    elif isinstance(value, list):
        for place, item in enumerate(list(value)):
            yield (*names, str(place)), value, place
            yield from fields_of(item, (*names, str(place)))


def _at(value: Any, names: tuple[str, ...]) -> tuple[bool, Any]:
    for name in names:
        if isinstance(value, Members):
            value = dict(value).get(name, _at)
        elif isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else _at
        if value is _at or not isinstance(value, list | str | int | type(None)):
            return False, None
    return True, value


# ---------------------------------------------------------------------- rows


def rows(tree: AuditedTree) -> Iterator[Row]:
    """Yield every row, `where` still open."""
    one, other = tree.records
    mine, theirs = tree.bundle_path(one), tree.bundle_path(other)
    files = tree.files
    yield from json_rows(mine, files[mine], files[theirs], _part_of_bundle)
    state = mine.replace("bundle.json", "state.json")
    yield from json_rows(state, files[state], files[theirs.replace("bundle.json", "state.json")],
                         lambda _field: "state")  # fmt: skip
    for path, part in (("index.json", "index"), ("pith-mirrors.json", "manifest"),
                       (f"keys/{tree.key.key_id}.json", "key"),
                       ("pith-signing-key.json", "key")):  # fmt: skip
        yield from json_rows(path, files[path], files[path], lambda _field, part=part: part)
    yield from checkpoint_rows(tree)
    yield from tile_rows(tree)
    yield from proof_rows(mine.replace("bundle.json", "proof.ots"),
                          theirs.replace("bundle.json", "proof.ots"), files)  # fmt: skip
    yield from replay_rows(tree, mine)


def item_rows(tree: AuditedTree) -> Iterator[Row]:
    """Yield the rows of an item that lies in a plain folder."""
    files = tree.folder
    name, lines = f"manifest-{DAY}.json", ZIP.replace(".zip", ".manifest.jsonl")
    for row in json_rows(name, files[name], files[name], lambda _field: "item manifest"):
        yield row._replace(where=BARE)
    one, two = files[lines].splitlines()
    for row in json_rows(lines, one, two, lambda _field: "item manifest"):
        yield row._replace(data=row.data + two + b"\n", where=BARE)
    contents = {ZIP: files[ZIP], lines: files[lines]}
    forged = tree.day_manifest(contents, STRANGER)
    yield Row("item manifest", "signer", REPLAY, name, forged, BARE)
    stolen = json.loads(forged)
    stolen["signer"] = json.loads(files[name])["signer"]
    yield Row("item manifest", "signature_b64", REPLAY, name, canonical_body(stolen), BARE)
    names = sorted(name for name in files if len(name) == len("0" * 64 + ".json"))
    yield Row("bundle", "the whole", SWAP, names[0], files[names[1]], BARE)


def json_rows(path: str, raw: bytes, other: bytes, part: Callable[[str], str]) -> Iterator[Row]:
    """Yield rows of a JSON document."""
    for field, operation, text in variants(read(raw), read(other)):
        yield Row(part(field), field, operation, path, text.encode() + b"\n")
    yield Row(part(""), "the whole", DROP, path, b"")
    if raw != other:
        yield Row(part(""), "the whole", SWAP, path, other)


def _part_of_bundle(field: str) -> str:
    head = field.partition("/")[0]
    return {"canonical_record": "record", "events": "event", "inclusion": "checkpoint"}.get(
        head, "bundle"
    )


def checkpoint_rows(tree: AuditedTree) -> Iterator[Row]:
    """Yield rows of the lines of a checkpoint."""
    path = "log/checkpoint"
    raw = tree.files[path]
    old = min((p for p in tree.files if p.startswith("log/checkpoints/") and ".ots" not in p),
              key=lambda p: int(p.rpartition("/")[2]))  # fmt: skip
    lines = raw.split(b"\n")
    names = ("origin", "size", "root", "empty line", "signature")
    for n, name in enumerate(names):
        line = lines[n]
        middle = len(line) // 2
        bent = line[:middle] + (b"B" if line[middle : middle + 1] == b"A" else b"A")
        for operation, some in (
            (CHANGE, [bent + line[middle + 1 :]]), (DROP, []), (REPEAT, [line, line]),
        ):  # fmt: skip
            text = b"\n".join([*lines[:n], *some, *lines[n + 1 :]])
            yield Row("checkpoint", name, operation, path, text)
        if n + 1 < len(names):
            text = b"\n".join([*lines[:n], lines[n + 1], line, *lines[n + 2 :]])
            yield Row("checkpoint", name, REORDER, path, text)
    yield Row("checkpoint", "the whole", SWAP, path, tree.files[old])
    yield Row("checkpoint", "the whole", SWAP, old, raw)
    yield Row("checkpoint", "signature", REPLAY, path, _forged_note(tree, raw, named=False))
    yield Row("checkpoint", "signature", REPLAY, path, _forged_note(tree, raw, named=True))


def _forged_note(tree: AuditedTree, raw: bytes, *, named: bool) -> bytes:
    """Return a checkpoint over another root that a stranger signed, in our name or as himself."""
    from anchord.core.note import key_hash

    text, _, _ = raw.decode().partition("\n\n")
    origin, size, _ = text.split("\n")
    root = base64.b64encode(b"\x07" * 32).decode()
    text = f"{origin}\n{size}\n{root}\n"
    key = tree.key.public_key if named else STRANGER.public_key
    signature = STRANGER._private.sign(text.encode())
    line = base64.b64encode(key_hash(origin, key) + signature).decode()
    return f"{text}\n\u2014 {origin} {line}\n".encode()


def tile_rows(tree: AuditedTree) -> Iterator[Row]:
    """Yield rows of the hashes and entries of tiles."""
    tiles = sorted(p for p in tree.files if p.startswith("log/tile/"))
    widest: dict[str, str] = {}
    for path in tiles:
        widest[path.partition(".p/")[0]] = max(
            (widest.get(path.partition(".p/")[0], ""), path),
            key=lambda p: int(p.rpartition("/")[2] or 0) if p else -1,
        )
    for path in widest.values():
        raw, width = tree.files[path], 98 if "/entries/" in path else 32
        units = [raw[at : at + width] for at in range(0, len(raw), width)]
        what = "entry" if width == 98 else "hash"
        for n, unit in enumerate(units):
            field = f"{what} {n} of {path.partition('tile/')[2]}"
            bent = unit[:-1] + bytes([unit[-1] ^ 1])
            for operation, some in ((CHANGE, [bent]), (DROP, []), (REPEAT, [unit, unit])):
                data = b"".join([*units[:n], *some, *units[n + 1 :]])
                yield Row("tile", field, operation, path, data)
            if n + 1 < len(units):
                data = b"".join([*units[:n], units[n + 1], unit, *units[n + 2 :]])
                yield Row("tile", field, REORDER, path, data)


def proof_rows(path: str, theirs: str, files: dict[str, bytes]) -> Iterator[Row]:
    """Yield rows of a proof beside a bundle."""
    raw = files[path]
    for field, at in (("magic", 3), ("version", 31), ("hash", 32), ("digest", 40),
                      ("nonce", 70), ("step", 100), ("attestation", len(raw) - 2)):  # fmt: skip
        yield Row("proof", field, CHANGE, path, raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        yield Row("proof", field, DROP, path, raw[:at] + raw[at + 1 :])
        yield Row("proof", field, REPEAT, path, raw[: at + 1] + raw[at:])
    yield Row("proof", "the whole", SWAP, path, files[theirs])


def replay_rows(tree: AuditedTree, path: str) -> Iterator[Row]:
    """Yield rows in which a stranger says what another key has said."""
    document = json.loads(tree.files[path])
    for n, event in enumerate(document["events"]):
        for as_other in (False, True):
            bent = copy.deepcopy(document)
            bent["events"][n] = _replayed(event, as_other=as_other)
            name = "signature_b64" if as_other else "signer"
            data = json.dumps(bent, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
            yield Row("event", f"events/{n}/{name}", REPLAY, path, data)
    forged = tree.reindexed_by(tree.files, STRANGER)["index.json"]
    yield Row("index", "signer", REPLAY, "index.json", forged)
    stolen = json.loads(forged)
    stolen["signer"] = json.loads(tree.files["index.json"])["signer"]
    yield Row("index", "signature_b64", REPLAY, "index.json", canonical_body(stolen))
    key = f"keys/{tree.key.key_id}.json"
    other = json.loads(tree.files[key])
    other["public_key_b64"] = base64.b64encode(STRANGER.public_key).decode()
    for name in ("public_key_hex", "fingerprint_sha256_hex",
                 "fingerprint_sha256_b32_first128bits"):  # fmt: skip
        del other[name]
    for where in (key, "pith-signing-key.json"):
        yield Row("key", "public_key_b64", REPLAY, where, json.dumps(other).encode())


def _replayed(event: dict[str, Any], *, as_other: bool) -> dict[str, Any]:
    body = {k: v for k, v in event.items() if k not in ("event_id", "signature_b64")}
    if not as_other:
        body["signer"] = signer_block(STRANGER.key_id, STRANGER.public_key, STRANGER.signer_id)
    digest = event_digest(canonical_body(body))
    signature = base64.b64encode(STRANGER.sign(digest)).decode()
    return {**body, "event_id": "sha256:" + digest.hex(), "signature_b64": signature}


# ---------------------------------------------------------------------- judging


def judge(tree: AuditedTree, row: Row) -> Judged:
    """Audit the tree, or the folder, with one row's change in it."""
    base = tree.folder if row.where == BARE else tree.files
    path = row.path
    if row.where == BARE and path not in base:
        path = json.loads(tree.files[row.path])["canonical_sha256"] + ".json"
        base = {path: b""}
    files = {**base, path: row.data}
    if not row.data:
        del files[path]
    if row.where == ANEW:
        if f".well-known/{path}" in files:
            files[f".well-known/{path}"] = row.data
            files = {name: data for name, data in files.items() if data}
        files = tree.reindexed(files)
    return told(row, path, tree.audit(files))


def told(row: Row, path: str, report: AuditReport) -> Judged:
    """Return the finding that speaks of the change: one that names the file before others."""
    severe = [one for one in report.findings if one.severity is not Severity.NOTE]
    names = _names(path, row)
    severe.sort(key=lambda one: (one.severity is not Severity.BROKEN,
                                 not _mentions(one, names)))  # fmt: skip
    if not severe:
        return Judged(row, "", "", "; ".join(report.reasons), report.result, named=False)
    best = severe[0]
    said = f"{best.subject}: {best.what}"
    return Judged(row, best.code, best.severity.value, said, report.result,
                  named=any(_mentions(one, names) for one in severe))  # fmt: skip


def _mentions(one: Any, names: Iterable[str]) -> bool:
    return any(name in one.subject or name in one.what for name in names)


def _names(path: str, row: Row) -> list[str]:
    """Return what a finding may call the thing: its file, its record, its event."""
    found = [path, row.path]
    folder = row.path.split("/")[-2:-1]
    return found + [name for name in folder if len(name) >= 26]


def places(row: Row) -> Iterator[Row]:
    """Yield a row in every place where it means something."""
    if row.where == BARE:
        yield row
        return
    yield row
    # What a publisher says of himself is his own word; there is nothing to hold it against.
    if row.part not in ("index", "manifest", "key"):
        yield row._replace(where=ANEW)
    if row.path.endswith("bundle.json") and row.data:
        yield row._replace(where=BARE)


def table(tree: AuditedTree, every: int = 1, start: int = 0) -> Iterator[Judged]:
    """Yield what the audit says of every row, or of every how many-th."""
    number = start
    for row in (*rows(tree), *item_rows(tree)):
        for placed in places(row):
            number += 1
            if number % every == 0:
                yield judge(tree, placed)


_ONLY_INDEXED = {
    ("source_aliases/N/created_at", CHANGE), ("source_aliases/N/created_at", DROP),
    ("source_aliases/N", CHANGE), ("public_keys/N", CHANGE), ("public_keys/N", REORDER),
    ("events/N", DROP), ("inclusion", DROP), ("inclusion/N", DROP),
}  # fmt: skip
"""What nothing in a bundle alone can tell: moments and additions nobody signs for, and what was
taken out without a trace. The signed index and the log find them in a tree."""


_SPELLING = {
    ("public_keys/N", CHANGE), ("public_keys/N", REPEAT), ("public_keys/N", REORDER),
    ("events/N", REPEAT), ("events/N", REORDER), ("source_aliases/N", REORDER),
}  # fmt: skip
"""What changes how a bundle is written and not what it says; the publisher signs for its bytes."""


def not_covered(row: Row) -> bool:
    """Tell whether a row cannot be found where it is tried; all such rows are named here."""
    field = re.sub("[0-9]+", "N", row.field)
    if row.operation == MEMBERS:
        return True  # JSON gives the order of members no meaning
    if row.where == ANEW:
        return (field, row.operation) in _SPELLING
    return row.where == BARE and (field, row.operation) in _ONLY_INDEXED


def flips(
    tree: AuditedTree, step: int = 1, start: int = 0
) -> Iterator[tuple[str, int, AuditReport]]:
    """Yield (file, place, report) of the tree with one bit of one byte turned over."""
    number = start
    for path, raw in tree.files.items():
        for place in range(len(raw)):
            number += 1
            if number % step:
                continue
            bent = bytearray(raw)
            bent[place] ^= 1 << number % 8
            yield path, place, tree.audit({**tree.files, path: bytes(bent)})


def flip_all() -> int:
    """Turn over one bit of every byte of a small tree; print how many were found by what."""
    tally: Counter[str] = Counter()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = AuditedTree(Path(folder), small=True)
        for path, place, report in flips(tree):
            tally.update(report.counts)
            if report.result != "broken" or not speaks_of(report, path):
                missed += 1
                print(f"{path} byte {place}: {report.result}")  # noqa: T201
    size = sum(map(len, tree.files.values()))
    print(f"{size:,} bytes of {len(tree.files)} files, {missed} changes missed; findings:")  # noqa: T201
    for code, count in tally.most_common():
        print(f"{count:8,} {code}")  # noqa: T201
    return 1 if missed else 0


def speaks_of(report: AuditReport, path: str) -> bool:
    """Tell whether something broken names a file."""
    return any(
        path in one.subject or path in one.what
        for one in report.findings
        if one.severity is Severity.BROKEN
    )


LEGEND = """\
Every field of every document, changed in every way, and what the audit said. Where:
  tree         in a published tree, by somebody who does not have the publisher's key
  signed anew  the same, and the publisher signs the index anew: it lies itself
  bundle       in a bare folder of bundles, which no index vouches for
part | field | operation | where | severity | finding | what it said"""


def _why_not(row: Row) -> str:
    """Say why nothing was found; NOT FOUND is a fault."""
    if not not_covered(row):
        return "NOT FOUND"
    if row.operation == MEMBERS or row.where == ANEW:
        return "nothing: it says what it said, in the publisher's own words"
    return "nothing: no signature covers it in a bare bundle; in a tree the index does"


def main() -> int:
    """Print the table; exit code 1 when something was changed and not found."""
    if sys.argv[1:] == ["--bytes"]:
        return flip_all()
    with tempfile.TemporaryDirectory() as folder:
        tree = AuditedTree(Path(folder))
        print(LEGEND)  # noqa: T201
        tally: Counter[tuple[str, str]] = Counter()
        missed = 0
        for one in table(tree):
            row = one.row
            found = one.code or (f"({one.result})" if one.result != "sound" else _why_not(row))
            tally[row.where, one.severity or found] += 1
            missed += not one.severity and one.result == "sound" and not not_covered(row)
            print(f"{row.part} | {row.field} | {row.operation} | {row.where} | "  # noqa: T201
                  f"{one.severity} | {found} | {one.said:.160}")  # fmt: skip
        for (where, found), count in sorted(tally.items()):
            print(f"{count:6} {where}: {found}")  # noqa: T201
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
