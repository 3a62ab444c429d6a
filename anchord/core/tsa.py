"""Time-stamping authorities (RFC 3161): what is asked, what is answered, what a token proves.

A token says that an authority saw 32 bytes at a time. anchord asks for the commitment of a batch,
which is a SHA-256 already, so it stands in the token as the imprint itself:
`openssl ts -verify -digest COMMITMENT -in token.tst -token_in -CAfile root.pem` accepts it.

Two questions are kept apart. `read_token` needs nothing but the token: is it whole, about these
bytes, and signed by a certificate made for that? `check_roots` asks whether that certificate led
to a root that somebody trusts, at the time the token states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING

import msgspec

from anchord.core import cms, der
from anchord.errors import (
    DigestMismatchError,
    ProtocolError,
    RefusedError,
    VerificationError,
)

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampResponse

MAX_TOKEN_BYTES = 32_768
"""Real ones have 1,500 to 8,000 bytes, certificates included."""
NONCE_BYTES = 8

_SHA256 = der.wrap(der.SEQUENCE, bytes.fromhex("06096086480165030402010500"))
"""AlgorithmIdentifier of SHA-256."""
_SHA256_OID = "2.16.840.1.101.3.4.2.1"
_TRUE = bytes.fromhex("0101ff")
_GRANTED = der.wrap(der.SEQUENCE, der.integer(0))
_STATUS = ("granted", "granted with modifications", "rejection", "waiting",
           "revocation warning", "revocation notification")  # fmt: skip
_FAILURES = {0: "badAlg", 2: "badRequest", 5: "badDataFormat", 14: "timeNotAvailable",
             15: "unacceptedPolicy", 16: "unacceptedExtension", 17: "addInfoNotAvailable",
             25: "systemFailure"}  # fmt: skip
"""PKIFailureInfo (RFC 3161, 2.4.2)."""
_WHY = re.compile(r"Verify error: ?([A-Za-z0-9 ,()'-]+)")
"""What OpenSSL says within the library's message."""


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """A token whose signature holds under the certificate it carries."""

    raw: bytes
    imprint: bytes
    """The 32 bytes it is about."""
    time: int
    """genTime, Unix seconds, a started one is a whole one: they existed before that."""
    policy: str
    """Object identifier, dotted."""
    serial: int
    name: str
    """Subject of the certificate that signed."""
    nonce: int | None


# ---------------------------------------------------------------------- asking


def request(digest: bytes, nonce: int) -> bytes:
    """Return a TimeStampReq for 32 bytes that are a SHA-256, with the certificates asked for."""
    imprint = der.wrap(der.SEQUENCE, _SHA256 + der.wrap(der.OCTETS, digest))
    return der.wrap(der.SEQUENCE, der.integer(1) + imprint + der.integer(nonce) + _TRUE)


def check_response(raw: bytes, digest: bytes, nonce: int, trusted: Sequence[Certificate]) -> Token:
    """Return the token of an answer, once everything about it was checked.

    Args:
        raw: TimeStampResp.
        digest: what was asked for.
        nonce: what it was asked with.
        trusted: the certificates it has to lead to; see `read_certificates`.

    Raises:
        RefusedError: the authority gives no token, in its own words.
        ProtocolError: not an answer to that question.
    """
    token = _granted_token(raw)
    try:
        found = read_token(token, digest)
        check_roots(found, trusted)
    except VerificationError as error:
        raise ProtocolError(f"the token is not used: {error}") from None
    if found.nonce != nonce:
        raise ProtocolError(
            "the token is not used: its nonce is another one than it was asked with"
        )
    return found


def _granted_token(raw: bytes) -> bytes:
    try:
        parts = der.pieces(der.only(raw, der.SEQUENCE, "an RFC 3161 answer").body)
        status = der.pieces(der.take(parts, der.SEQUENCE, "an RFC 3161 answer").body)
        number = int.from_bytes(der.take(status, der.INTEGER, "a status").body, "big")
        if number > 1:
            raise RefusedError(f"no token: {_refusal(number, status)}")
        token = der.take(parts, der.SEQUENCE, "a token")
    except VerificationError as error:
        raise ProtocolError(f"expected an RFC 3161 answer: {error}") from None
    if parts:
        raise ProtocolError("expected an RFC 3161 answer, got more behind it")
    return token.raw


def _refusal(number: int, rest: list[der.Piece]) -> str:
    """Return why there is no token: the status, the authority's words, the failure's names."""
    words = [_STATUS[number] if number < len(_STATUS) else f"status {number}"]
    texts = der.optional(rest, der.SEQUENCE)
    if texts is not None:
        said = [piece.body.decode("utf-8", "replace") for piece in der.pieces(texts.body)]
        words += ["".join(c if c.isprintable() else "?" for c in text)[:200] for text in said[:3]]
    bits = der.optional(rest, der.BIT_STRING)
    if bits is not None:
        digits = "".join(f"{byte:08b}" for byte in bits.body[1:5])
        words += [name for place, name in _FAILURES.items() if digits[place : place + 1] == "1"]
    return ", ".join(words)


# ---------------------------------------------------------------------- reading


@lru_cache(maxsize=64)
def read_token(raw: bytes, digest: bytes) -> Token:
    """Check a token without any root: signature, purpose of its certificate, what it is about.

    All records of a batch share its tokens, so the answer is kept for the next one.

    Raises:
        VerificationError: no token, damaged, or made with a certificate not for time stamps.
        DigestMismatchError: it is about other bytes.
    """
    if len(raw) > MAX_TOKEN_BYTES:
        raise VerificationError(
            f"expected a token of at most {MAX_TOKEN_BYTES:,} bytes, got {len(raw):,}"
        )
    certificate = cms.load_certificate(cms.read_signed(raw).certificate)
    token = _stated(raw, _subject(certificate))
    if token.imprint != digest:
        raise DigestMismatchError(
            f"the token is about {token.imprint.hex():.128}, not about {digest.hex()}"
        )
    _check_purpose(certificate)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not first.timestamp() <= token.time <= last.timestamp():
        raise VerificationError(
            f"the certificate of {token.name} was valid from {first:%Y-%m-%d} to {last:%Y-%m-%d}, "
            "not when the token was made"
        )
    return token


def _stated(raw: bytes, name: str) -> Token:
    """Return what the signed content says."""
    info = _parsed(raw).tst_info
    try:
        imprint = info.message_imprint
        if imprint.hash_algorithm.dotted_string != _SHA256_OID:
            raise VerificationError("the token is about a hash that is no SHA-256")
        return Token(
            raw=raw,
            imprint=imprint.message,
            time=ceil(info.gen_time.timestamp()),
            policy=info.policy.dotted_string,
            serial=info.serial_number,
            name=name,
            nonce=info.nonce,
        )
    except ValueError as error:
        raise VerificationError(f"the token's content cannot be read: {error}") from None


def _parsed(raw: bytes) -> TimeStampResponse:
    """Return a token as the library has it: within an answer that grants it.

    The library is held to looking at the content at once, because it panics over one that it
    cannot read, and a panic is no `Exception`.
    """
    from rfc3161_client import decode_timestamp_response

    answer = der.wrap(der.SEQUENCE, _GRANTED + cms.in_order(raw))
    try:
        response = decode_timestamp_response(answer)
        _ = response.tst_info
    except ValueError as error:
        raise VerificationError(f"the token cannot be read: {error}") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise VerificationError("the token's content cannot be read: it is no TSTInfo") from None
    return response


def _subject(certificate: Certificate) -> str:
    name = certificate.subject.rfc4514_string()
    return "".join(c if c.isprintable() else "?" for c in name)[:200] or "an unnamed certificate"


def _check_purpose(certificate: Certificate) -> None:
    """A certificate for time stamps is for nothing else, and says so critically (RFC 3161, 2.3)."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
        good = usage.critical and list(usage.value) == [ExtendedKeyUsageOID.TIME_STAMPING]
    except (x509.ExtensionNotFound, x509.DuplicateExtension, ValueError):
        good = False
    if not good:
        raise VerificationError(
            f"the certificate of {_subject(certificate)} is not one for time stamps alone: its "
            "extended key usage must be timeStamping, and critical"
        )


# ---------------------------------------------------------------------- trusting


def read_certificates(pem: bytes) -> tuple[Certificate, ...]:
    """Return the certificates of a PEM file; at least one of them is a root.

    Raises:
        RefusedError: none, or none that is its own issuer.
    """
    from cryptography.x509 import load_pem_x509_certificates

    try:
        found = tuple(dict.fromkeys(map(cms.whole, load_pem_x509_certificates(pem))))
    except ValueError:
        raise RefusedError("expected certificates in PEM (BEGIN CERTIFICATE), got none") from None
    if not any(one.issuer == one.subject for one in found):
        raise RefusedError("expected a root certificate among them, got only intermediate ones")
    return found


def check_roots(token: Token, trusted: Sequence[Certificate]) -> None:
    """Check that a token's certificate led to a root at the time the token states.

    A certificate that has expired since is fine: the token is older.

    Raises:
        VerificationError: it leads to none of them.
    """
    from rfc3161_client import VerificationError as Untrusted
    from rfc3161_client import VerifierBuilder

    roots = [one for one in trusted if one.issuer == one.subject]
    between = [one for one in trusted if one.issuer != one.subject]
    try:
        verifier = VerifierBuilder(roots=roots, intermediates=between).build()
        verifier.verify(_parsed(token.raw), token.imprint)
    except (Untrusted, ValueError) as error:
        found = _WHY.search(str(error))
        why = found[1].strip() if found else str(error)[:120]
        raise VerificationError(
            f"the token is signed by {token.name}, which leads to none of the roots given: {why}"
        ) from None
