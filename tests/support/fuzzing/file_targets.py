"""Parsers of files from strangers: what is added, audited, restored, configured."""

# ruff: noqa: E501 -- tables of what formats are made of

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import cache
from pathlib import Path

from anchord.adapters.archives import item_messages
from anchord.adapters.archives.credentials import load_keys
from anchord.adapters.backups.tarball import Reader
from anchord.adapters.headers.chainmemo import load_memo, memo_path
from anchord.adapters.headers.credentials import Cookie, Password
from anchord.adapters.headers.intake import check_headers
from anchord.adapters.headers.peers import parse_peer
from anchord.adapters.mirrors.folder import FolderMirror
from anchord.adapters.signers.keyring import load_keyring
from anchord.adapters.signers.private_key import read_private_key
from anchord.adapters.sources import checksums, kinds, streams
from anchord.adapters.sources.inputs import source_for
from anchord.adapters.sources.readers import READERS, Piece
from anchord.adapters.trees.folder import FolderTree
from anchord.adapters.tsa import read_trusted
from anchord.app.audit_targets import open_tree
from anchord.app.cli import ledger_proof
from anchord.app.config import load
from anchord.app.face.files import RECORD_FILES
from anchord.app.face.site import Site
from anchord.app.report import json_document, reading
from anchord.app.report.contents import Audited
from anchord.app.web.audit_page import page_of
from anchord.core.audit import AuditOptions
from anchord.core.bundle_check import check_document
from anchord.core.model import Document, Rejection, Scheme
from anchord.core.network import REGTEST
from anchord.core.trust import Keys
from anchord.engine.audit import tree_items
from anchord.engine.audit.tree import audit_tree
from anchord.engine.certifying import certify_bundle
from anchord.engine.header_view import HeaderView
from anchord.engine.item_verification import is_day_manifest, verify_day_manifest
from anchord.engine.pull_check import check_bundle, compare_state, read_document
from anchord.engine.verification import verify_bundle, verify_ots
from anchord.engine.viewing import view_of
from anchord.errors import AnchordError
from support import audits
from support.crowd import KEYRING, RECORD
from support.fuzzing import samples
from support.fuzzing.engine import Target
from support.parties import START
from support.workplace import CONFIG

KEYS = samples.KEYS
_TOML = (b"[[", b"]]", b"[a.b]\n", b"a.b = 1\n", b'"""', b"'''", b"{a=", b"[", b"2024-01-01T00:00:00Z",
         b"inf", b"nan", b"0x", b"url = 'https://example.org'\n", b"\\u0000")  # fmt: skip
_PEM = (b"-----BEGIN PRIVATE KEY-----\n", b"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", b"=", b"\n")


def _file(data: bytes, name: str = "input", mode: int = 0o600) -> Path:
    """Write the bytes to a file of its own in the scratch folder; it is written over each time."""
    folder = samples.scratch() / "files"
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_bytes(data)
    path.chmod(mode)
    return path


def _report(data: bytes) -> None:
    """A report that is taken can be shown, and is read as the same when it is written again."""
    audited = reading.read_document(data)
    assert page_of(Site(), "", audited)
    assert reading.read_document(json_document.render(audited).encode()) == audited


def _shown(data: bytes) -> None:
    """A bundle that is read can be shown in every form that its record has."""
    view = view_of(data, Keys(KEYRING))
    for file in RECORD_FILES:
        assert file.make(view, Site())


def _from_file(use: Callable[[Path], object], name: str = "input") -> Callable[[bytes], object]:
    return lambda data: use(_file(data, name))


# ---------------------------------------------------------------------- records


def _read_as(kind: kinds.Kind) -> Callable[[bytes], None]:
    def feed(data: bytes) -> None:
        piece = Piece(where="input", label="input", scheme=Scheme.PITH_JSON_V1)
        _taken(READERS[kind](io.BytesIO(data), piece))

    return feed


def _taken(items: Iterator[object]) -> None:
    """What comes out is a value; a refusal says why in a few words."""
    for item in items:
        if isinstance(item, Rejection):
            assert item.reason
            assert len(item.reason) <= 5_000
        if isinstance(item, Document):
            check_document(item, KEYRING)


def _told(data: bytes) -> None:
    for name in ("-", "a.json", "a.jsonl.gz", "SHA256SUMS", "a.ots", "a"):
        for named in (True, False):
            kinds.kind_of(name, data, named=named)
        kinds.content(name, data)
    head, body = streams.look(io.BytesIO(data))
    assert head == body.read()[: len(head)]


def _sums(data: bytes) -> None:
    for line in streams.lines(io.BytesIO(data), 1 << 12):
        if line is not None and checksums.is_checksum_line(line):
            checksums.read_checksum_line(line)


def _packed(data: bytes) -> None:
    _taken(iter(source_for(str(_file(data, "records.jsonl.gz")))))


# ---------------------------------------------------------------------- evidence


def _nobody(_algorithm: str, _digest: bytes) -> None:
    """Nobody has the file that a proof is about."""


def _view() -> HeaderView:
    return HeaderView([], "bitcoin-regtest", 6)


def _bundle(data: bytes) -> None:
    report = verify_bundle("input", data, KEYRING, (), _nobody, _view(), ())
    assert report.result in ("proved", "not proved", "failed")
    assert all(len(check.detail) <= 5_000 for check in report.checks)
    certify_bundle("input", data, KEYRING, (), _nobody, _view())


def _ots(data: bytes) -> None:
    verify_ots("input", data, _nobody, _view())


def _pulled(data: bytes) -> None:
    found = read_document(data)
    check_bundle(data, RECORD.digest.hex(), KEYRING)
    assert found.bundle is not None
    list(compare_state(data, found.bundle, KEYS))


def _day(data: bytes) -> None:
    if is_day_manifest(data):
        verify_day_manifest("input", data, KEYS, lambda _name: None)


def _tree(data: bytes) -> None:
    """A packed tree is laid out within its folder, or refused."""
    path = _file(data, "tree.tar.gz")
    with open_tree([str(path)]) as tree:
        assert isinstance(tree, FolderTree)
        for name in tree.walk():
            try:
                tree.read(name, 1 << 20)
            except AnchordError:
                continue


_PLACES = (
    "x.bundle.json", "pith/x/bundle.json", "pith/x/state.json", "pith/x/proof.ots", "index.json",
    "index/00.jsonl", "pith-mirrors.json", "keys/k.json", "log/checkpoint", "log/checkpoints/4",
    "log/tile/0/000.p/4", "log/tile/entries/000.p/4", "manifest-2024-08-01.json",
    "bundles-000000001-000000002.zip", "bundles-000000001-000000002.manifest.jsonl",
)  # fmt: skip


@cache
def _tree_root() -> Path:
    """Return a folder in which all places are names of one file."""
    root = samples.scratch() / "tree"
    for place in _PLACES:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if place == _PLACES[0]:
            path.write_bytes(b"")
        else:
            path.hardlink_to(root / _PLACES[0])
    return root


def _audited(data: bytes) -> None:
    """A tree in which every file that means something is these bytes; findings are values."""
    root = _tree_root()
    (root / _PLACES[0]).write_bytes(data)
    options = AuditOptions(now=START)
    audit_tree(FolderTree(root), KEYRING, (), _view(), options, lambda _what, _done, _total: None)


def _tree_files() -> list[bytes]:
    return [samples.bundles()[0], *samples.tree()[:2], samples.checkpoint(), samples.day_manifest(),
            samples.mirror_manifest(), samples.key_document(), samples.proofs()[0]]  # fmt: skip


def _zip(data: bytes) -> None:
    """As the members of an item's ZIP are read once its bytes are those that were signed."""
    with suppress(*tree_items._ZIP_ERRORS), zipfile.ZipFile(io.BytesIO(data)) as file:
        infos = file.infolist()
        if tree_items._unlike(infos, len(infos), len(data)) is None:
            for info in infos:
                file.read(info)


def _zips() -> list[bytes]:
    found = []
    for way in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", way) as file:
            file.writestr("a.json", samples.bundles()[0])
        found.append(out.getvalue())
    return found


def _proof_of(data: bytes) -> None:
    """A file with proofs against one with events; both from strangers."""
    proof, _, event = data.partition(b"\0\0")
    ledger_proof.verify_files(_file(proof, "proof"), _file(event, "event"), [samples.VERIFIER])


def _mirrored(data: bytes) -> None:
    """A folder served by strangers: names come from a manifest."""
    mirror = FolderMirror(_file(b"x").parent)
    mirror.get(data.decode("latin-1"), None, None, 1_000)


# ---------------------------------------------------------------------- files of this machine


def _backup(data: bytes) -> None:
    with closing(Reader(_file(data, "backup.tar"))) as reader:
        reader.check(lambda _what, _done, _total: None)


def _keyring(data: bytes) -> None:
    load_keyring(_file(data, "keyring.toml").parent)


def _config(data: bytes) -> None:
    load(str(_file(data, "anchord.toml")))


def _secrets(data: bytes) -> None:
    path = _file(data, "secret")
    for read in (
        lambda: load_keys(path, {}),
        lambda: read_private_key(path, None, encrypted_if_asked=True),
        lambda: read_private_key(path, b"passphrase", encrypted_if_asked=False),
        Cookie(path).read, Password("user", path).read,
    ):  # fmt: skip
        try:
            read()
        except AnchordError as error:
            _keeps_quiet(data, str(error))


def _keeps_quiet(data: bytes, message: str) -> None:
    """No message repeats what stands in a file of secrets."""
    assert not any(
        len(word) > 12 and word.decode("latin-1") in message
        for word in data.split()
        if word.isalnum()
    )


def _memo(data: bytes) -> None:
    chain = samples.scratch() / "headers.bin"
    memo_path(chain).write_bytes(data)
    load_memo(chain, "regtest")


def _headers(data: bytes) -> None:
    check_headers(io.BytesIO(data), REGTEST, START + (1 << 31), lambda _height: None)


def _frame(data: bytes) -> None:
    """Frames of the upload process: whatever decodes is one of the messages."""
    import msgspec

    value = item_messages.read_frame(io.BytesIO(data).read, 1 << 20)
    for decode in (item_messages.decode_reply, item_messages.decode_question):
        try:
            decode(value or b"")
        except msgspec.MsgspecError:
            continue


def _peer(data: bytes) -> None:
    parse_peer(data.decode("utf-8", "replace"), REGTEST)


def _frames() -> list[bytes]:
    answered = item_messages.Answered(200, b"{}", "120", "Sun, 06 Nov 1994 08:49:37 GMT")
    return [item_messages.frame(answered), item_messages.frame(item_messages.AskAccount())]


def _wrong_key() -> list[bytes]:
    samples.keyring_toml()
    keys = sorted((samples.scratch() / "keys").glob("*.pem"))
    return [keys[0].read_bytes(), b"[s3]\naccess = a1b2c3d4e5f6g7h8\nsecret = h8g7f6e5d4c3b2a1\n",
            b"__cookie__:0123456789abcdef\n"]  # fmt: skip


TARGETS = (
    Target(name="report of an audit", feed=_report, strict=False, seeds=lambda: [
        json_document.render(Audited(report=audits.empty())).encode(),
        json_document.render(audits.audited(audits.sound())).encode()], longest=1 << 15),
    Target(name="bundle that is shown", feed=_shown, strict=False, seeds=samples.bundles),
    Target(name="document of records", feed=_read_as(kinds.Kind.RECORD),
           seeds=lambda: [*samples.records()[:4], b"[" + samples.records()[0] + b",{}]",
                          samples.bundles()[0]]),
    Target(name="lines of records", feed=_read_as(kinds.Kind.RECORDS),
           seeds=lambda: [b"\n".join(samples.records()[:3])]),
    Target(name="bundle that is added", feed=_read_as(kinds.Kind.BUNDLE), strict=False,
           seeds=samples.bundles),
    Target(name="list of checksums", feed=_read_as(kinds.Kind.LIST),
           seeds=lambda: [samples.checksums()]),
    Target(name="line of checksums", feed=_sums, seeds=lambda: [samples.checksums()]),
    Target(name="proof that is added", feed=_read_as(kinds.Kind.OTS), seeds=samples.proofs, strays=samples.vectors),
    Target(name="kind of input", feed=_told, seeds=lambda: [
        samples.checksums(), samples.records()[0], gzip.compress(samples.records()[0])]),
    Target(name="records in gzip", feed=_packed,
           seeds=lambda: [gzip.compress(samples.records()[0] + b"\n", mtime=0)]),
    Target(name="bundle that is verified", feed=_bundle, strict=False, seeds=samples.bundles),
    Target(name="proof that is verified", feed=_ots, seeds=samples.proofs, strays=samples.vectors),
    Target(name="bundle that is pulled", feed=_pulled, seeds=samples.bundles),
    Target(name="day manifest that is verified", feed=_day, seeds=lambda: [samples.day_manifest()]),
    Target(name="packed tree", feed=_tree, words=(b"ustar\x0000", b"../../x", b"/etc/x", b"path=x\n"),
           seeds=lambda: [samples.packed_tree(), samples.packed_tree("w"), samples.bundles()[0]]),
    Target(name="tree that is audited", feed=_audited, seeds=_tree_files, strict=False),
    Target(name="ZIP of an item", feed=_zip, seeds=_zips, words=(b"PK\3\4", b"PK\1\2", b"PK\5\6")),
    Target(name="log proof against events", feed=_proof_of, strict=False, seeds=lambda: [
        samples.log_proof() + b"\0\0" + samples.events()[0]]),
    Target(name="name in a mirror's folder", feed=_mirrored, strict=False, grows=False,
           seeds=lambda: [b"input", b"../input", b"a/b.json"]),
    Target(name="backup", feed=_backup, seeds=lambda: [samples.backup()],
           words=(b"ustar\x0000", b"../../x", b"/etc/x", b"19 path=x\n")),
    Target(name="keyring", feed=_keyring, seeds=lambda: [samples.keyring_toml()], words=_TOML),
    Target(name="configuration", feed=_config, seeds=lambda: [CONFIG.encode()], words=_TOML),
    Target(name="secrets", feed=_secrets, seeds=_wrong_key, words=_PEM, longest=1 << 12),
    Target(name="trusted certificates", seeds=lambda: [samples.certificates()], words=_PEM,
           feed=_from_file(lambda path: read_trusted(path, "certificates"))),
    Target(name="memo of headers", feed=_memo, grows=False,
           seeds=lambda: [b'{"network":"regtest","format":1,"state":{},"work":"0","sha256":""}']),
    Target(name="file of headers", feed=_headers, seeds=lambda: [samples.headers()], strict=False),
    Target(name="frames", feed=_frame, seeds=_frames, grows=False),
    Target(name="peer's address", feed=_peer, longest=1 << 10,
           seeds=lambda: [b"127.0.0.1:18444", b"[::1]:8333", b"node.example.org"]),
)  # fmt: skip
