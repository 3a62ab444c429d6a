"""Tokens: what `openssl ts` accepts is kept, and nothing that was bent."""

from __future__ import annotations

import datetime as dt
import itertools
import re
from hashlib import sha256

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given, settings
from hypothesis import strategies as st
from support.authorities import NONCE, LocalAuthority, openssl_accepts, run_openssl

from anchord.core import cms, der, tsa
from anchord.errors import (
    AnchordError,
    DigestMismatchError,
    ProtocolError,
    RefusedError,
    SignatureError,
    VerificationError,
)
from anchord.sandbox.authority import Issued, issue

DIGEST = sha256(b"a batch").digest()


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return LocalAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def token(local):
    return local.token(DIGEST)


def signed_again(content, signer, *more, folder, algorithm="sha256"):
    """Return a token over other content, or by another certificate."""
    signer.save(folder, "again")
    (folder / "content").write_bytes(content)
    beside = []
    if more:
        chain = b"".join(one.certificate.public_bytes(Encoding.PEM) for one in more)
        (folder / "chain.pem").write_bytes(chain)
        beside = ["-certfile", str(folder / "chain.pem")]
    ran = run_openssl(
        "cms", "-sign", "-binary", "-nodetach", "-cades", "-md", algorithm, "-outform", "DER",
        "-econtent_type", "1.2.840.113549.1.9.16.1.4", "-in", str(folder / "content"), *beside,
        "-signer", str(folder / "again.pem"), "-inkey", str(folder / "again.key"),
        "-out", str(folder / "again.tst"),
    )  # fmt: skip
    assert ran.returncode == 0, ran
    return (folder / "again.tst").read_bytes()


@pytest.mark.parametrize("seed", range(3))
def test_a_token_that_is_kept_is_accepted_by_openssl(local, tmp_path, seed):
    digest = sha256(b"batch %d" % seed).digest()
    found = local.token(digest)
    assert found.imprint == digest
    assert found.name == "CN=anchord sandbox time stamps"
    assert openssl_accepts(found.raw, digest, local.root_file, tmp_path)
    assert not openssl_accepts(found.raw, DIGEST, local.root_file, tmp_path)


def test_a_question_is_the_one_openssl_asks(tmp_path):
    file = tmp_path / "q.tsq"
    words = ["-digest", DIGEST.hex(), "-sha256", "-cert", "-out", str(file)]
    assert run_openssl("ts", "-query", *words).returncode == 0
    raw = file.read_bytes()
    nonce = der.pieces(der.only(raw, der.SEQUENCE, "a question").body)[2].body
    assert tsa.request(DIGEST, int.from_bytes(nonce, "big")) == raw


@given(nonce=st.integers(0, 2**64 - 1))
@settings(max_examples=20)
def test_any_nonce_can_be_asked_with(nonce):
    raw = tsa.request(DIGEST, nonce)
    body = der.pieces(der.only(raw, der.SEQUENCE, "a question").body)[2].body
    assert int.from_bytes(body, "big", signed=True) == nonce


FAULTS = {
    "rejection": (RefusedError, "rejection, .*badAlg"),
    "wrong-nonce": (ProtocolError, "nonce"),
    "wrong-imprint": (ProtocolError, "is about [0-9a-f]{64}, not about"),
    "expired-certificate": (ProtocolError, "was valid from .* not when the token was made"),
    "wrong-purpose": (ProtocolError, "not one for time stamps alone"),
    "foreign-root": (ProtocolError, "leads to none of the roots given: self-signed"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_answer_is_refused_with_its_reason(local, fault):
    error, words = FAULTS[fault]
    with pytest.raises(error, match=words):
        tsa.check_response(local.answer(DIGEST, fault), DIGEST, NONCE, local.trusted())


def test_a_changed_byte_is_found_or_was_never_signed(local, token):
    """CMS leaves version numbers and the signature's algorithm unsigned: they say nothing."""
    same = 0
    for place, bit in itertools.product(range(len(token.raw)), (0x01, 0x80)):
        bent = bytearray(token.raw)
        bent[place] ^= bit
        try:
            found = tsa.read_token(bytes(bent), DIGEST)
            tsa.check_roots(found, local.trusted())
        except VerificationError:
            continue
        same += 1
        assert msgspec.structs.replace(found, raw=token.raw) == token
    assert same < 40


@given(st.binary(max_size=200))
def test_any_bytes_as_an_answer_are_refused_in_our_words(raw):
    with pytest.raises((ProtocolError, RefusedError)):
        tsa.check_response(raw, DIGEST, NONCE, ())


@given(place=st.integers(0, 2000), length=st.integers(0, 40), junk=st.binary(max_size=40))
@settings(max_examples=200)
def test_a_spliced_token_is_refused_in_our_words(token, place, length, junk):
    bent = token.raw[:place] + junk + token.raw[place + length :]
    try:
        found = tsa.read_token(bent, DIGEST)
    except AnchordError:
        return
    assert (found.imprint, found.time) == (DIGEST, token.time)


def test_the_order_of_the_certificates_is_no_matter(local, token):
    parts = der.pieces(der.only(cms.in_order(token.raw), der.SEQUENCE, "a token").body)
    signed_data = der.pieces(der.only(parts[1].body, der.SEQUENCE, "a token").body)
    certificates = next(part for part in signed_data if part.tag == der.FIRST)
    assert len(der.pieces(certificates.body)) == 2
    for order in itertools.permutations(piece.raw for piece in der.pieces(certificates.body)):
        body = b"".join(
            der.wrap(der.FIRST, b"".join(order)) if part is certificates else part.raw
            for part in signed_data
        )
        whole = der.wrap(der.FIRST, der.wrap(der.SEQUENCE, body))
        raw = der.wrap(der.SEQUENCE, parts[0].raw + whole)
        found = tsa.read_token(raw, DIGEST)
        tsa.check_roots(found, local.trusted())
        assert found.serial == token.serial


def test_a_certificate_that_expired_since_is_fine(token, tmp_path):
    """The token of ten days ago, by a certificate that was over five days ago."""
    root = issue("old root", None, authority=True, days=(-900, 900))
    signer = issue("old signer", root, days=(-100, -5))
    content = dated(cms.read_signed(token.raw).content, days_ago=10)
    raw = signed_again(content, signer, folder=tmp_path)
    found = tsa.read_token(raw, DIGEST)
    tsa.check_roots(found, (root.certificate,))
    late = dated(content, days_ago=4)
    with pytest.raises(VerificationError, match="not when the token was made"):
        tsa.read_token(signed_again(late, signer, folder=tmp_path), DIGEST)


def dated(content, days_ago):
    """Return a TSTInfo with another genTime."""
    at = dt.datetime.now(dt.UTC) - dt.timedelta(days=days_ago)
    return re.sub(rb"[0-9]{14}Z", at.strftime("%Y%m%d%H%M%SZ").encode(), content, count=1)


def with_key(signer, root, key):
    """Return the same certificate for another key."""
    old = signer.certificate
    builder = x509.CertificateBuilder(
        old.issuer, old.subject, key.public_key(), old.serial_number,
        old.not_valid_before_utc, old.not_valid_after_utc,
    )  # fmt: skip
    for one in old.extensions:
        if isinstance(one.value, x509.ExtendedKeyUsage | x509.KeyUsage):
            builder = builder.add_extension(one.value, one.critical)
    return Issued(builder.sign(root.key, hashes.SHA256()), key)


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_signatures_of_rsa_keys_are_checked_too(token, tmp_path, algorithm):
    root = issue("root", None, authority=True)
    key = rsa.generate_private_key(65537, 2048)
    signer = with_key(issue("signer", root), root, key)
    content = cms.read_signed(token.raw).content
    raw = signed_again(content, signer, folder=tmp_path, algorithm=algorithm)
    tsa.check_roots(tsa.read_token(raw, DIGEST), (root.certificate,))
    with pytest.raises(SignatureError):
        tsa.read_token(raw[:-1] + bytes([raw[-1] ^ 1]), DIGEST)


def test_a_weak_hash_is_refused(token, tmp_path):
    root = issue("root", None, authority=True)
    content = cms.read_signed(token.raw).content
    weak = signed_again(content, issue("signer", root), folder=tmp_path, algorithm="sha1")
    with pytest.raises(VerificationError, match="known are SHA-256"):
        tsa.read_token(weak, DIGEST)


def test_a_second_certificate_of_the_signers_name_is_not_let_in(token, tmp_path):
    """A chain checker that looks for the signer by issuer and serial would be led astray."""
    root = issue("root", None, authority=True)
    signer = issue("signer", root)
    raw = signed_again(cms.read_signed(token.raw).content, signer, folder=tmp_path)
    tsa.check_roots(tsa.read_token(raw, DIGEST), (root.certificate,))
    first = signer.certificate
    second = (
        x509.CertificateBuilder(first.issuer, root.certificate.subject, signer.key.public_key(),
                                first.serial_number, first.not_valid_before_utc,
                                first.not_valid_after_utc)
        .sign(root.key, hashes.SHA256())
        .public_bytes(Encoding.DER)
    )  # fmt: skip
    parts = der.pieces(der.only(raw, der.SEQUENCE, "a token").body)
    signed_data = der.pieces(der.only(parts[1].body, der.SEQUENCE, "a token").body)
    body = b"".join(
        der.wrap(der.FIRST, part.body + second) if part.tag == der.FIRST else part.raw
        for part in signed_data
    )
    both = der.wrap(der.FIRST, der.wrap(der.SEQUENCE, body))
    with pytest.raises(VerificationError, match="ESSCertID"):
        tsa.read_token(der.wrap(der.SEQUENCE, parts[0].raw + both), DIGEST)


def test_an_intermediate_that_was_over_breaks_the_chain(token, tmp_path):
    root = issue("root", None, authority=True)
    between = issue("between", root, authority=True, days=(-20, -10))
    signer = issue("signer", between)
    content = cms.read_signed(token.raw).content
    raw = signed_again(content, signer, between, folder=tmp_path)
    found = tsa.read_token(raw, DIGEST)
    with pytest.raises(VerificationError, match=r"leads to none of the roots.*expired"):
        tsa.check_roots(found, (root.certificate,))


def test_content_that_is_no_time_stamp_is_refused(tmp_path, capfd):
    signer = issue("signer", None)
    raw = signed_again(b"\x30\x03\x02\x01\x01", signer, folder=tmp_path)
    with pytest.raises(VerificationError, match="cannot be read"):
        tsa.read_token(raw, DIGEST)


def test_a_token_about_other_bytes_says_about_which(token):
    with pytest.raises(DigestMismatchError, match=DIGEST.hex()):
        tsa.read_token(token.raw, bytes(32))


def test_an_oversized_token_is_not_looked_at(token):
    with pytest.raises(VerificationError, match="32,768 bytes"):
        tsa.read_token(token.raw + bytes(tsa.MAX_TOKEN_BYTES), DIGEST)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("020102", "rejection"),
        ("020103", "waiting"),
        ("020109", "status 9"),
        ("0201020305060000 0040", "rejection, systemFailure"),
        ("020102 300d 0c0b 6b6579206973206f66660a", r"rejection, key is off\?"),
    ],
)
def test_a_refusal_is_told_in_the_words_of_the_authority(status, words):
    raw = der.wrap(der.SEQUENCE, der.wrap(der.SEQUENCE, bytes.fromhex(status)))
    with pytest.raises(RefusedError, match=words):
        tsa.check_response(raw, DIGEST, NONCE, ())


def test_a_file_without_a_root_is_refused(local):
    between = (local.home / "intermediate.pem").read_bytes()
    with pytest.raises(RefusedError, match="only intermediate"):
        tsa.read_certificates(between)
    with pytest.raises(RefusedError, match="PEM"):
        tsa.read_certificates(b"certificate")
    both = tsa.read_certificates(between + local.root_file.read_bytes())
    assert len(both) == 2
    tsa.check_roots(local.token(DIGEST), both)
