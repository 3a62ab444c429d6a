"""Signed notes, held against notes that Go and others have signed."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.note import (
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    Note,
    SignatureLine,
    check_name,
    key_hash,
    make_verifier,
    open_note,
    parse,
    parse_vkey,
    write,
)
from anchord.errors import RefusedError, SignatureError

# golang.org/x/mod/sumdb/note, the package's example.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_TEXT = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
)
PETER_NOTE = PETER_TEXT + (
    "\n"
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6"
    "KE6RyyBwJnAM=\n"
)

# The key of Go's checksum database, and heads of its log as it published them.
SUMDB = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"
SUMDB_HEADS = [
    (6476701, "mb8QLQIs0Z0yP5Cstq6guj87oXWeC9gEM8oVikmm9Wk=",
     "Az3grsLX85Gz+s1SiTbgkuqxgItqFq7gsMUEyVnrsa9LM7Us9S+1xbFIGu95949rj4nPRYfvimWEPWL+o3GeoWwOoAw="),
    (15067302, "gJyioq6dwR9n+NjEWORfYmH+ubeYm3kH42BBQ0bTpYI=",
     "Az3grp1rvWOs5NKlr/xR4GLN/CDyzzakmt1o61uSxYKpK1SerqOP2ClbX/peKUZjYnyomH5Xz7GZG3TpB7OeKn4E2ww="),
    (65209736, "5+uGFjx6xBZG8ip1+wi77v+grwbhhukIrxEUS8PXvRo=",
     "Az3grnbssgK7ubgFX36gVETtNv0U23qxyAhAMai2QUfeGa3nB/akvkMdlUErfcZz7l/R3cVtYspg3dxXABkGZZKdsQ8="),
]  # fmt: skip

# C2SP signed-note: the example of the key id's rule.
C2SP_NAME, C2SP_KEY = (
    "example.com/foo",
    ("e932791ae6e7a840a46164c904786426d5e7821dd8b29a00d61cae72afdd4da4"),
)

SEED = hashlib.sha256(b"a key of tests").digest()
PRIVATE = Ed25519PrivateKey.from_private_bytes(SEED)
PUBLIC = PRIVATE.public_key().public_bytes_raw()
MINE = make_verifier("log.example.org/a", PUBLIC)


def sumdb_note(size: int, root: str, signature: str) -> bytes:
    return f"go.sum database tree\n{size}\n{root}\n\n— sum.golang.org {signature}\n".encode()


def line_of(text: str, name: str = MINE.name, key: Ed25519PrivateKey = PRIVATE) -> SignatureLine:
    public = key.public_key().public_bytes_raw()
    return SignatureLine(name, key_hash(name, public), key.sign(text.encode()))


def test_the_example_of_gos_package_opens_and_is_written_again_byte_for_byte():
    verifier = parse_vkey(PETER)
    assert verifier.name == "PeterNeumann"
    assert verifier.vkey == PETER
    opened = open_note(PETER_NOTE.encode(), [verifier])
    assert opened.text == PETER_TEXT
    assert opened.unknown == ()
    assert write(opened.text, opened.verified).decode() == PETER_NOTE


@pytest.mark.parametrize(("size", "root", "signature"), SUMDB_HEADS)
def test_heads_of_gos_checksum_database_open(size, root, signature):
    verifier = parse_vkey(SUMDB)
    assert verifier.vkey == SUMDB
    raw = sumdb_note(size, root, signature)
    opened = open_note(raw, [verifier])
    assert opened.text == f"go.sum database tree\n{size}\n{root}\n"
    assert write(opened.text, opened.verified) == raw


def test_a_head_that_others_signed_too_opens_for_the_one_known_key():
    """As a witness published it: two signatures, one of them by a key nobody here knows."""
    size, root, signature = SUMDB_HEADS[1]
    second = "qTGhC/xIPQ0AXKHK6Y+9ypRfuvMZWPjRXM8NiOg5M1WREn07VQXyuIXM3NRNav3ieVFLUqDRK77PWDmL6w8w84UqeAw="  # noqa: E501
    raw = sumdb_note(size, root, signature) + f"— test.example.com {second}\n".encode()
    opened = open_note(raw, [parse_vkey(SUMDB)])
    assert [line.name for line in opened.verified] == ["sum.golang.org"]
    assert [line.name for line in opened.unknown] == ["test.example.com"]
    assert write(opened.text, [*opened.verified, *opened.unknown]) == raw


def test_the_key_hash_is_that_of_the_specification():
    assert key_hash(C2SP_NAME, bytes.fromhex(C2SP_KEY)).hex() == "530d903a"
    law = hashlib.sha256(b"n" + b"\n" + b"\x01" + PUBLIC).digest()[:4]
    assert key_hash("n", PUBLIC) == law


def test_every_changed_byte_of_a_note_is_found():
    raw = PETER_NOTE.encode()
    verifier = parse_vkey(PETER)
    for place in range(len(raw)):
        for bit in (0x01, 0x20):
            changed = bytearray(raw)
            changed[place] ^= bit
            with pytest.raises((RefusedError, SignatureError)):
                open_note(bytes(changed), [verifier])


TEXT = st.text(st.characters(min_codepoint=0x20, exclude_categories=["Cs"]), max_size=40)


@given(st.lists(TEXT, min_size=1, max_size=6))
def test_any_text_survives_being_signed_and_opened(lines):
    text = "".join(f"{line}\n" for line in lines)
    raw = write(text, [line_of(text)])
    assert open_note(raw, [MINE]).text == text
    assert raw.startswith(text.encode() + b"\n\xe2\x80\x94 ")


@pytest.mark.parametrize(
    "text",
    ["", "no newline", "a tab\there\n", "a return\r\n", "a\x00b\n", "a\x1fb\n", "\ud800\n"],
)
def test_a_text_no_note_can_have_is_not_written(text):
    with pytest.raises(RefusedError):
        write(text, [SignatureLine("n", bytes(4), bytes(64))])


@pytest.mark.parametrize(
    "name", ["", "a b", "a+b", "a\u00a0b", "a\u2003b", "a\u0085b", "a\nb", "a\tb", "a\x01b"]
)
def test_bad_names_are_refused(name):
    with pytest.raises(RefusedError):
        check_name(name)
    with pytest.raises(RefusedError):
        make_verifier(name, PUBLIC)
    with pytest.raises(RefusedError):
        write("t\n", [SignatureLine(name, bytes(4), bytes(64))])


GOOD = base64.b64encode(bytes(4) + bytes(64)).decode()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"text\n",
        b"text\n\n",
        b"text without an empty line\n\xe2\x80\x94 n " + GOOD.encode() + b"\n",
        f"t\n\n— n {GOOD}".encode(),  # the last newline is missing
        f"t\n\n- n {GOOD}\n".encode(),  # a hyphen is no em dash
        f"t\n\n—n {GOOD}\n".encode(),
        f"t\n\n— {GOOD}\n".encode(),
        "t\n\n— n \n".encode(),
        "t\n\n— n\n".encode(),
        f"t\n\n— a+b {GOOD}\n".encode(),
        f"t\n\n— n  {GOOD}\n".encode(),
        f"t\n\n— n {GOOD} \n".encode(),
        f"t\n\n— n {GOOD}\n\n".encode(),
        f"t\n\n— n {GOOD}\nnot a signature\n".encode(),
        f"t\r\n\n— n {GOOD}\n".encode(),
        f"t\n\n— n {GOOD}\r\n".encode(),
        f"t\x00\n\n— n {GOOD}\n".encode(),
        b"t\xff\n\n" + f"— n {GOOD}\n".encode(),
        f"t\n\n— n {GOOD.rstrip('=')}\n".encode(),
        f"t\n\n— n {base64.b64encode(bytes(4)).decode()}\n".encode(),  # no signature at all
        "t\n\n— n AAAAAAB=\n".encode(),  # bits that mean nothing
        "t\n\n— n AA-_AAAA\n".encode(),
    ],
)
def test_what_is_no_signed_note_is_refused(raw):
    with pytest.raises(RefusedError):
        parse(raw)


def test_the_limits_are_those_of_gos_package():
    line = SignatureLine("n", bytes(4), bytes(64))
    assert len(parse(write("t\n", [line] * MAX_SIGNATURES)).lines) == MAX_SIGNATURES
    with pytest.raises(RefusedError):
        write("t\n", [line] * (MAX_SIGNATURES + 1))
    with pytest.raises(RefusedError):
        write("t" * MAX_NOTE_BYTES + "\n", [line])


def test_the_text_ends_at_the_last_empty_line():
    text = "first\n\n\nsecond\n\n"
    assert parse(write(text, [line_of(text)])) == Note(text, (line_of(text),))


def test_a_name_or_a_hash_alone_does_not_make_a_key_known():
    text = "t\n"
    line = line_of(text)
    for other in (
        SignatureLine("log.example.org/b", line.key_hash, line.signature),
        SignatureLine(line.name, b"none", line.signature),
    ):
        with pytest.raises(SignatureError, match="expected a signature by"):
            open_note(write(text, [other]), [MINE])
        opened = open_note(write(text, [other, line]), [MINE])
        assert (opened.unknown, opened.verified) == ((other,), (line,))


def test_a_known_keys_signature_must_hold_whatever_stands_beside_it():
    text = "t\n"
    second = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"another").digest())
    other = make_verifier("witness.example.org", second.public_key().public_bytes_raw())
    good = line_of(text)
    bad = SignatureLine(other.name, other.key_hash, bytes(64))
    with pytest.raises(SignatureError, match=r"witness\.example\.org"):
        open_note(write(text, [good, bad]), [MINE, other])
    assert open_note(write(text, [good, bad]), [MINE]).verified == (good,)


def test_a_second_signature_by_one_key_is_refused():
    text = "t\n"
    with pytest.raises(SignatureError, match="two signatures"):
        open_note(write(text, [line_of(text), line_of(text)]), [MINE])


def test_a_signature_of_another_length_does_not_hold():
    text = "t\n"
    line = line_of(text)
    for signature in (line.signature[:-1], line.signature + b"\0", b"\0"):
        with pytest.raises(SignatureError):
            open_note(write(text, [SignatureLine(line.name, line.key_hash, signature)]), [MINE])


@pytest.mark.parametrize(
    "vkey",
    [
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        PETER.replace("c74f20a3", "c74f20a4"),
        PETER.replace("c74f20a3", "c74f20a"),
        PETER.replace("c74f20a3", "+74f20a3"),
        PETER.replace("PeterNeumann", "Peter Neumann"),
        PETER.replace("PeterNeumann", ""),
        PETER.replace("+ARpc", "+AhpC"),
        PETER[:-4],
        PETER + "\n",
        PETER.replace("10TW", "10TX"),
    ],
)
def test_a_bad_verifier_key_is_refused(vkey):
    with pytest.raises(RefusedError):
        parse_vkey(vkey)
