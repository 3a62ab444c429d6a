"""Parsers of the core: proofs, signed documents, logs, tokens, JSON, moments and names."""

# ruff: noqa: E501 -- tables of what formats are made of

from __future__ import annotations

import json
from typing import Any

from anchord.core import (
    attestation,
    bundle,
    canonical,
    checkpoint,
    claims,
    cms,
    der,
    header,
    inclusion,
    item_name,
    key_document,
    line,
    log,
    merkle,
    mirror_manifest,
    moment,
    not_before,
    note,
    number,
    proof,
    receipt,
    reference,
    state,
    strictjson,
    tlog_proof,
    tlog_tile,
    tree_index,
    tsa,
    verify,
    verify_event,
    verify_stored,
    wire,
)
from anchord.core.http_date import http_moment, retry_after_s
from anchord.core.model import Scheme
from anchord.errors import AnchordError
from support.fuzzing import samples
from support.fuzzing.engine import Target
from support.parties import URI_A, FakeCalendar

KEYS, DIGEST = samples.KEYS, samples.DIGEST
_OTS = (
    b"\x08", b"\x02", b"\x03", b"\x67", b"\xf0\x01a", b"\xf1\x01a", b"\xf2", b"\xf3", b"\xff", b"\0",
    bytes.fromhex("0083dfe30d2ef90c8e"), bytes.fromhex("0588960d73d71901"), b"\xf0\x7f" + bytes(127),
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", proof.MAGIC,
)  # fmt: skip
_JSON = (b'{"a":', b"[[", b'"payload":{}', b'"events":[]', b'"event_id":"x"', b'"target":"*"',
         b'"canonical_sha256":', b'"proof_b64":"AA=="', b'"created_at":"0000-00-00"')  # fmt: skip
_DER = (b"\x30\x80", b"\x30\x84\xff\xff\xff\xff", b"\x30\x82\x01\x00", b"\x02\x01\x00", b"\x06\x00",
        b"\x18\x0f20240101000000Z", b"\xa0\x00", b"\x31\x00", b"\x04\x00", b"\x05\x00")  # fmt: skip
_NOTE = (b"\n\n", "\u2014 ".encode(), b"\n0\n", b"c2sp.org/tlog-proof@v1\n", b"index 0\n", b"==")


def value_of(data: bytes) -> Any:
    """Return JSON as all JSON from strangers is read."""
    return strictjson.parse(data)


def _proof(data: bytes) -> None:
    found = proof.parse_detached(data)
    written = proof.serialise_detached(found.digest, found.timestamp, found.algorithm)
    again = proof.parse_detached(written)
    assert (again.digest, again.timestamp) == (found.digest, found.timestamp)
    verify.read_proof(data)
    not_before.stem_of(data)


def _line(data: bytes) -> None:
    """What is climbed quickly is what the whole parser reads."""
    found = line.climb(data)
    if found is not None:
        assert len(found.messages) == len(found.ops) + 1
    wire.Reader(data).varuint()


def _timestamp(data: bytes) -> None:
    proof.parse_timestamp(data, DIGEST)


def _submitted(data: bytes) -> None:
    proof.check_submit_answer(data, DIGEST, (URI_A,))


def _attestation(data: bytes) -> None:
    attestation.checked(data[:8], data[8:])


def _bundle(data: bytes) -> None:
    found = bundle.read_bundle(data)
    written = state.state_bytes(found, KEYS)
    assert state.state_bytes(found, KEYS) == written
    json.loads(written)


def _beside(data: bytes) -> None:
    bundle.bundle_beside(data, samples.RECORD)


def _record(data: bytes) -> None:
    for scheme in (Scheme.PITH_JSON_V1, Scheme.RFC8785):
        try:
            found = canonical.read_record(data, scheme=scheme)
        except AnchordError:
            continue
        again = canonical.read_record(found.canonical or b"", scheme=scheme)
        assert (again.digest, again.canonical) == (found.digest, found.canonical)


def _event(data: bytes) -> None:
    event = value_of(data)
    if isinstance(event, dict):
        verify_event.read_event(event, DIGEST, None, KEYS, verify.read_proof)


def _claim(data: bytes) -> None:
    event = value_of(data)
    payload = event.get("payload") if isinstance(event, dict) else None
    if not isinstance(payload, dict):
        return
    kind = str(event.get("event_type"))
    if kind in ("author_claim", "citation", "replication"):
        claims.read_claim(kind, "id", payload, DIGEST)
    elif kind in ("capture_stored", "item_stored"):
        verify_stored.read_stored(kind, "id", payload, DIGEST, "2024-08-01T11:00:00Z")
    elif isinstance(payload.get("receipt"), dict):
        receipt.check_receipt(payload["receipt"], DIGEST, KEYS)


def _inclusion(data: bytes) -> None:
    found = value_of(data)
    if isinstance(found, dict):
        ids = [e.get("event_id") for e in found.get("events") or () if isinstance(e, dict)]
        inclusion.read_inclusion(found.get("inclusion"), ids)


def _note(data: bytes) -> None:
    found = note.parse(data)
    assert note.write(found.text, found.lines) == data
    note.open_note(data, [samples.VERIFIER])


def _checkpoint(data: bytes) -> None:
    found = checkpoint.parse(data)
    assert checkpoint.parse_text(checkpoint.text(found)) == found
    checkpoint.open_checkpoint(data, [samples.VERIFIER])


def _log_proof(data: bytes) -> None:
    found = tlog_proof.parse(data)
    assert tlog_proof.write(found) == data
    tlog_proof.verify(found, log.leaf_hash(b"\1"), [samples.VERIFIER])


def _entries(data: bytes) -> None:
    width = data[0] if data else 0
    found = tlog_tile.read_entry_bundle(data[1:], width)
    assert tlog_tile.entry_bundle(found) == data[1:]


def _words(data: bytes) -> None:
    """Whatever takes a text."""
    text = data.decode("utf-8", "surrogateescape")
    http_moment(text)
    retry_after_s({"Retry-After": text, "Date": text})
    for read in (note.parse_vkey, tlog_tile.parse_path, reference.parse_reference, moment.seconds,
                 number.prefix_range, header.internal):  # fmt: skip
        try:
            read(text)
        except AnchordError:
            continue


def _index(data: bytes) -> None:
    tree_index.stated_shards(data)
    tree_index.stated_key(data)
    tree_index.read_index(data, KEYS)


def _shard(data: bytes) -> None:
    """As an index says that was signed with whatever is in it."""
    _, _, shard = samples.tree()
    size, sha256 = len(data), __import__("hashlib").sha256(data).hexdigest()
    said = tree_index.Shard(name=shard.name, size=size, sha256=sha256, files=data.count(b"\n"))  # type: ignore[attr-defined]
    lines = tree_index.read_shard(data, said)
    assert all(tree_index.safe_path(line.path) for line in lines)


def _token(data: bytes) -> None:
    tsa.read_token(data, DIGEST)


def _answer(data: bytes) -> None:
    tsa.check_response(data, DIGEST, samples.NONCE, samples.authority().trusted())


def _der(data: bytes) -> None:
    found = der.pieces(data)
    assert b"".join(piece.raw for piece in found) == data
    cms.in_order(data)


def _header(data: bytes) -> None:
    found = header.parse_header(data)
    assert found.pack() == data
    header.target_of(found.bits)


def _log(data: bytes) -> None:
    """Sizes, then hashes: a proof of consistency, and a path to a root."""
    old, new, hashes = data[:1], data[1:2], [data[at : at + 32] for at in range(2, len(data), 32)]
    sizes, ends = (int.from_bytes(old), int.from_bytes(new)), (*hashes[:2], b"", b"")
    for check in (
        lambda: log.verify_consistency(*sizes, ends[0], ends[1], hashes[2:]),
        lambda: log.Frontier.from_nodes(sizes[0], hashes).root(),
        lambda: merkle.verify_path(
            ends[0], *sizes, [merkle.Step(left=bool(one[:1]), sibling=one) for one in hashes], ends[1]
        ),
    ):  # fmt: skip
        try:
            check()
        except AnchordError:
            continue


def _log_seeds() -> tuple[bytes, ...]:
    leaves = [log.leaf_hash(bytes([number])) for number in range(3)]
    roots = log.root(b"".join(leaves[:2])), log.root(b"".join(leaves))
    return (b"\2\3" + b"".join(roots) + leaves[2],)


def _older(data: bytes) -> None:
    """A block that a proof is said to be younger than."""
    height, _, text = data.partition(b" ")
    number = int(height[:9]) if height[:9].isdigit() else -1
    stated = not_before.NotBefore(height=number, hash=text.decode("latin-1"))
    not_before.check_path(stated, not_before.stem_of(samples.proofs()[0]).ops, 900_000)
    not_before.check_header(stated, bytes(80))


def _calendar() -> tuple[bytes, ...]:
    return (FakeCalendar().submit(DIGEST).raw,)


def _upgrades() -> tuple[bytes, ...]:
    whole = proof.parse_detached(samples.proofs()[0])
    start = len(proof.serialise_detached(DIGEST, whole.timestamp, whole.algorithm))
    return (samples.proofs()[0][len(proof.DETACHED_HEADER) + 32 : start],)


_WORDS = (
    b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT", b"120", b"1e5", b"-3",
    b"Sun Nov  6 08:49:37 1994", samples.VERIFIER.vkey.encode(), b"tile/8/0/x001/067.p/12",
    b"tile/entries/x001/067", b"2024-08-01T11:00:00Z", b"pith:2001:UFMYT6GU4RRBK3Y42U62UU2RE5",
    DIGEST.hex().encode(), b"sha256:" + DIGEST.hex().encode(), b"UFMYT6GU4RRBK3Y4",
)  # fmt: skip


def _of_kind(*kinds: str) -> tuple[bytes, ...]:
    return tuple(raw for raw in samples.events() if json.loads(raw)["event_type"] in kinds)


TARGETS = (
    Target(name="proof", feed=_proof, seeds=samples.proofs, strays=samples.vectors, words=_OTS),
    Target(name="line", feed=_line, seeds=samples.proofs, strays=samples.vectors, words=_OTS),
    Target(name="timestamp", feed=_timestamp, seeds=_upgrades, words=_OTS),
    Target(name="submit answer", feed=_submitted, seeds=_calendar, words=_OTS),
    Target(name="upgrade answer", feed=lambda data: proof.check_upgrade_answer(data, DIGEST),
           seeds=_upgrades, words=_OTS),
    Target(name="attestation", feed=_attestation, words=_OTS,
           seeds=lambda: [bytes.fromhex("0083dfe30d2ef90c8e") + bytes([len(URI_A)]) + URI_A.encode(),
                          bytes.fromhex("0588960d73d71901") + b"\xe5\x07"]),
    Target(name="bundle", feed=_bundle, seeds=samples.bundles, words=_JSON),
    Target(name="bundle beside", feed=_beside, seeds=samples.bundles, words=_JSON),
    Target(name="record", feed=_record, seeds=samples.records, words=_JSON),
    Target(name="event", feed=_event, words=_JSON,
           seeds=lambda: [raw for raw in samples.events() if b"signature_b64" in raw][:8]),
    Target(name="claim", feed=_claim, words=_JSON,
           seeds=lambda: _of_kind("author_claim", "citation", "capture_stored", "item_stored",
                                  "record_created")[:6]),
    Target(name="inclusion", feed=_inclusion, seeds=lambda: [samples.included()], words=_JSON),
    Target(name="JSON", feed=value_of, seeds=lambda: [*samples.records()[:3], *samples.events()[:3]],
           words=_JSON),
    Target(name="note", feed=_note, seeds=lambda: [samples.checkpoint()], words=_NOTE),
    Target(name="checkpoint", feed=_checkpoint, words=_NOTE,
           seeds=lambda: [samples.checkpoint(), samples.checkpoint(1)]),
    Target(name="log proof", feed=_log_proof, seeds=lambda: [samples.log_proof()], words=_NOTE),
    Target(name="entry bundle", feed=_entries, words=(b"\0\x03abc",),
           seeds=lambda: [b"\2" + tlog_tile.entry_bundle([b"one", b"two"])]),
    Target(name="log", feed=_log, seeds=_log_seeds),
    Target(name="older block", feed=_older, strict=False,
           seeds=lambda: [b"800000 " + b"0" * 64]),
    Target(name="words", feed=_words, seeds=lambda: _WORDS, longest=1 << 12),
    Target(name="tree index", feed=_index, seeds=lambda: [samples.tree()[0]], words=_JSON),
    Target(name="index shard", feed=_shard, seeds=lambda: [samples.tree()[1]], words=_JSON),
    Target(name="day manifest", feed=lambda data: item_name.read_day_manifest(data, KEYS),
           seeds=lambda: [samples.day_manifest()], words=_JSON),
    Target(name="mirror manifest", feed=mirror_manifest.read_manifest, words=_JSON,
           seeds=lambda: [samples.mirror_manifest(), *samples.shared("pith-mirrors.json")]),
    Target(name="key document", words=_JSON, seeds=lambda: [samples.key_document()],
           feed=lambda data: key_document.from_document(value_of(data), ("timestamp",))),
    Target(name="token", feed=_token, seeds=lambda: [samples.stamped()[1]], words=_DER),
    Target(name="authority's answer", feed=_answer, seeds=lambda: [samples.stamped()[0]],
           words=_DER),
    Target(name="DER", feed=_der, seeds=lambda: [samples.stamped()[1]], words=_DER),
    Target(name="certificates", feed=tsa.read_certificates,
           seeds=lambda: [samples.certificates()], words=(b"-----BEGIN CERTIFICATE-----\n", b"=")),
    Target(name="header", feed=_header, seeds=lambda: [samples.headers()[:80]], grows=False),
)  # fmt: skip
