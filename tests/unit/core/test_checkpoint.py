"""Checkpoints, tiles and proofs as files, by the texts of C2SP."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parties import FakeSigner

from anchord.core import checkpoint, note, tlog_proof
from anchord.core.checkpoint import Checkpoint, open_checkpoint, parse_text
from anchord.core.log import leaf_hash, node_hash
from anchord.core.tlog_proof import LogProof
from anchord.core.tlog_tile import (
    TileName,
    entry_bundle,
    entry_tiles,
    parse_path,
    read_entry_bundle,
    tiles,
)
from anchord.errors import RefusedError, SignatureError, VerificationError

ORIGIN = "log.example.org/events"
SIGNER = FakeSigner()
MINE = note.make_verifier(ORIGIN, SIGNER.public_key)

# C2SP tlog-checkpoint and tlog-witness: the log's line, and a witness's second one.
SOFA = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    "\n"
    "— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q"
    "1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— example.com/behind-the-sofa opLqBQsREYCgu6xQkYQwJr9fo45a62DN9EdmHXnZdXNqlcVGlCum2Wks+49/V626"
    "7UEjw6QUXTS5Rovnzv++qbSzm9Q=\n"
)


def signed(found: Checkpoint, name: str = ORIGIN, signer: FakeSigner = SIGNER) -> bytes:
    text = checkpoint.text(found)
    key = note.make_verifier(name, signer.public_key)
    line = note.SignatureLine(name, key.key_hash, signer.sign_note(text.encode()))
    return note.write(text, [line])


# ---------------------------------------------------------------------- checkpoints


def test_the_example_of_the_specification_is_read_and_written_again():
    found = checkpoint.parse(SOFA.encode())
    root = base64.b64decode("CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=")
    assert found == Checkpoint(origin="example.com/behind-the-sofa", size=20852163, root=root)
    parsed = note.parse(SOFA.encode())
    assert [line.key_hash.hex() for line in parsed.lines] == ["033de0ae", "a292ea05"]
    assert note.write(checkpoint.text(found), parsed.lines) == SOFA.encode()


def test_extension_lines_are_kept():
    text = f"o\n7\n{base64.b64encode(bytes(32)).decode()}\nmore of it\nand more\n"
    found = parse_text(text)
    assert found.extensions == ("more of it", "and more")
    assert checkpoint.text(found) == text


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "o\n1\n",
        f"o\n1\n{ROOT}",
        f"\n1\n{ROOT}\n",
        f"o\n01\n{ROOT}\n",
        f"o\n+1\n{ROOT}\n",
        f"o\n-1\n{ROOT}\n",
        f"o\n1 \n{ROOT}\n",
        f"o\n\u0661\n{ROOT}\n",
        f"o\n9223372036854775808\n{ROOT}\n",
        f"o\n1\n{ROOT[:-4]}\n",
        f"o\n1\n{ROOT.rstrip('=')}\n",
        f"o\n1\n{ROOT[:-2]}B=\n",
        f"o\n1\n{ROOT}\n\n",
        f"o\n1\n{ROOT}\n\nmore\n",
    ],
)
def test_what_is_no_checkpoint_is_refused(text):
    with pytest.raises(RefusedError):
        parse_text(text)


@pytest.mark.parametrize("size", [0, 1, 2**63 - 1])
def test_sizes_up_to_the_largest_are_written_and_read(size):
    found = Checkpoint(origin=ORIGIN, size=size, root=bytes(32))
    assert parse_text(checkpoint.text(found)) == found


@pytest.mark.parametrize(
    "changes",
    [{"origin": "a\nb"}, {"origin": ""}, {"size": -1}, {"root": b""}, {"extensions": ("",)},
     {"extensions": ("a\nb",)}],
)  # fmt: skip
def test_a_checkpoint_that_cannot_be_read_again_is_not_written(changes):
    values = {"origin": ORIGIN, "size": 1, "root": bytes(32), **changes}
    with pytest.raises(RefusedError):
        checkpoint.text(Checkpoint(**values))


def test_a_checkpoint_counts_only_with_the_signature_of_its_own_log():
    found = Checkpoint(origin=ORIGIN, size=3, root=bytes(32))
    assert open_checkpoint(signed(found), [MINE]) == found
    witness = FakeSigner("witness")
    other = note.make_verifier("witness.example.org", witness.public_key)
    alone = signed(found, other.name, witness)
    with pytest.raises(SignatureError, match="key of the log itself"):
        open_checkpoint(alone, [MINE, other])
    with pytest.raises(SignatureError):
        open_checkpoint(alone, [MINE])
    both = signed(found) + alone.rpartition(b"\n\n")[2]
    assert open_checkpoint(both, [MINE, other]) == found
    assert open_checkpoint(both, [MINE]) == found


def test_every_changed_byte_of_a_checkpoint_is_found():
    raw = signed(Checkpoint(origin=ORIGIN, size=1234, root=hashlib.sha256(b"r").digest()))
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        with pytest.raises((RefusedError, SignatureError)):
            open_checkpoint(bytes(changed), [MINE])


# ---------------------------------------------------------------------- tiles


def test_paths_are_those_of_the_specification():
    assert TileName(0, 1234067).path == "tile/0/x001/x234/067"
    assert TileName(None, 0).path == "tile/entries/000"
    assert TileName(2, 0, 1).path == "tile/2/000.p/1"
    assert TileName(1, 1000).path == "tile/1/x001/000"
    assert TileName(None, 999, 255).path == "tile/entries/999.p/255"


@given(st.none() | st.integers(0, 63), st.integers(0, 2**55 - 1), st.integers(1, 256))
def test_every_path_names_its_tile(level, number, width):
    name = TileName(level, number, width)
    assert parse_path(name.path) == name


@pytest.mark.parametrize(
    "path",
    ["", "tile/0", "tile/0/0", "tile/0/0000", "tile/0/x000/001", "tile/64/000", "tile/00/000",
     "tile/0/001.p/256", "tile/0/001.p/0", "tile/0/001.p/01", "tile/0/001/002", "tile/0/x001",
     "/tile/0/001", "tile/0/001 ", "tile/-1/001", "tile/0/\u0660\u0660\u0661",
     "tile/0/" + "x999/" * 7 + "999"],
)  # fmt: skip
def test_other_paths_are_refused(path):
    with pytest.raises(RefusedError):
        parse_path(path)


def test_the_tiles_of_the_specifications_example():
    """A log of 70,000: 273 + 1 partial at level 0, 1 + 1 partial, and one of width 1."""
    found = list(tiles(70_000))
    assert len(found) == 273 + 1 + 1 + 1 + 1
    assert [name for name in found if name.width < 256] == [
        TileName(0, 273, 112), TileName(1, 1, 17), TileName(2, 0, 1)
    ]  # fmt: skip
    assert list(tiles(256)) == [TileName(0, 0), TileName(1, 0, 1)]
    assert list(tiles(0)) == list(entry_tiles(0)) == []
    assert len(list(entry_tiles(70_000))) == 274


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_what_a_log_gained_is_what_it_did_not_have_in_full(one, other):
    old, new = sorted((one, other))
    full = {name for name in tiles(old) if name.width == 256}
    assert [name for name in tiles(new) if name not in full] == list(tiles(new, old))
    covered = sum(name.width for name in entry_tiles(new))
    assert covered == new


@given(st.lists(st.binary(max_size=300), max_size=256))
def test_entries_survive_their_tile(entries):
    assert read_entry_bundle(entry_bundle(entries), len(entries)) == entries


def test_a_tile_with_more_or_fewer_entries_is_refused():
    raw = entry_bundle([b"one", b"two"])
    wrong = [(raw, 1), (raw, 3), (raw[:-1], 2), (raw + b"\0", 2), (raw[:5] + b"\0", 2), (b"", 1)]
    for data, width in wrong:
        with pytest.raises(RefusedError):
            read_entry_bundle(data, width)
    for entries in ([b""] * 257, [bytes(65_536)]):
        with pytest.raises(RefusedError):
            entry_bundle(entries)


# ---------------------------------------------------------------------- proofs

LEFT, RIGHT = leaf_hash(b"left"), leaf_hash(b"right")
PROOF = LogProof(
    index=1,
    hashes=(LEFT,),
    note=signed(Checkpoint(origin=ORIGIN, size=2, root=node_hash(LEFT, RIGHT))),
)


def test_a_proof_is_written_as_the_specification_says():
    lines = tlog_proof.write(PROOF).split(b"\n")
    assert lines[:4] == [b"c2sp.org/tlog-proof@v1", b"index 1", base64.b64encode(LEFT), b""]
    assert b"\n".join(lines[4:]) == PROOF.note
    more = LogProof(index=1, hashes=(), note=PROOF.note, extra=b"more")
    assert tlog_proof.write(more).startswith(b"c2sp.org/tlog-proof@v1\nextra bW9yZQ==\nindex 1\n\n")
    for one in (PROOF, more):
        assert tlog_proof.parse(tlog_proof.write(one)) == one


def test_a_proof_holds_for_its_entry_and_no_other():
    assert tlog_proof.verify(PROOF, RIGHT, [MINE]).size == 2
    with pytest.raises(VerificationError):
        tlog_proof.verify(PROOF, LEFT, [MINE])
    other = note.make_verifier(ORIGIN, FakeSigner("another").public_key)
    with pytest.raises(SignatureError):
        tlog_proof.verify(PROOF, RIGHT, [other])


def test_every_changed_byte_of_a_proof_is_found():
    raw = tlog_proof.write(PROOF)
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        with pytest.raises((RefusedError, VerificationError)):
            tlog_proof.verify(tlog_proof.parse(bytes(changed)), RIGHT, [MINE])


@pytest.mark.parametrize(
    "head",
    [b"", b"c2sp.org/tlog-proof@v2\nindex 0", b"c2sp.org/tlog-proof@v1",
     b"c2sp.org/tlog-proof@v1\nindex 01", b"c2sp.org/tlog-proof@v1\nindex -1",
     b"c2sp.org/tlog-proof@v1\nindex 9223372036854775808",
     b"c2sp.org/tlog-proof@v1\nindex 0\nextra AAAA", b"c2sp.org/tlog-proof@v1\nextra A\nindex 0",
     b"c2sp.org/tlog-proof@v1\nindex 0\nAAAA", b"c2sp.org/tlog-proof@v1\r\nindex 0",
     b"c2sp.org/tlog-proof@v1\nindex 0\n" + b"\n".join([base64.b64encode(bytes(32))] * 64)],
)  # fmt: skip
def test_what_is_no_proof_is_refused(head):
    with pytest.raises(RefusedError):
        tlog_proof.parse(head + b"\n\n" + PROOF.note)
