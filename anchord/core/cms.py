"""The signature of an RFC 3161 token: CMS SignedData (RFC 5652) with one signer.

Whether the certificate that signed leads to a root somebody trusts is another question, asked in
`anchord.core.tsa`. This one has an answer without any root, and so a damaged or forged token is
found by everybody who reads it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from anchord.core import der
from anchord.errors import SignatureError, VerificationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

SIGNED_DATA = bytes.fromhex("2a864886f70d010702")
TST_INFO = bytes.fromhex("2a864886f70d0109100104")
_CONTENT_TYPE = bytes.fromhex("2a864886f70d010903")
_MESSAGE_DIGEST = bytes.fromhex("2a864886f70d010904")
_SIGNING_CERTIFICATE = bytes.fromhex("2a864886f70d010910020c")
"""ESSCertID (RFC 2634): SHA-1 of the signer's certificate."""
_SIGNING_CERTIFICATE_V2 = bytes.fromhex("2a864886f70d010910022f")
"""ESSCertIDv2 (RFC 5035)."""
_HASHES = {
    bytes.fromhex("608648016503040201"): "sha256",
    bytes.fromhex("608648016503040202"): "sha384",
    bytes.fromhex("608648016503040203"): "sha512",
}
_A_TOKEN = "an RFC 3161 token"  # noqa: S105  what is expected, for messages


class SignedContent(msgspec.Struct, frozen=True, kw_only=True):
    """What was signed, and by whom."""

    content: bytes
    """TSTInfo, DER."""
    certificate: bytes
    """The signer's, DER."""


class _Signer(msgspec.Struct, frozen=True):
    issuer_and_serial: bytes
    """Body of the signer's name."""
    algorithm: str
    attributes: dict[bytes, bytes]
    """Value by type; each stands once."""
    signed: bytes
    """The attributes as they are signed: a SET."""
    signature: bytes


def read_signed(token: bytes) -> SignedContent:
    """Check a token's signature under the certificate it carries and names by hash (ESSCertID).

    Raises:
        VerificationError: no token, or one without that certificate.
        SignatureError: the signature is not by that certificate's key over this content.
    """
    _, certificates, content, signer = _split(token)
    if signer.attributes.get(_CONTENT_TYPE) != der.wrap(der.OID, TST_INFO):
        raise VerificationError("the token's signature is not one over the time it states")
    digest = hashlib.new(signer.algorithm, content).digest()
    if signer.attributes.get(_MESSAGE_DIGEST) != der.wrap(der.OCTETS, digest):
        raise SignatureError("the token's signature is over other content: it was changed")
    certificate = _named(signer, certificates)
    _check(certificate, signer)
    return SignedContent(content=content, certificate=certificate)


def in_order(token: bytes) -> bytes:
    """Return a token whose certificates are in the order DER asks for.

    They are not signed, OpenSSL writes them in any order, and `rfc3161-client` takes no other one.

    Raises:
        VerificationError: no token.
    """
    parts, certificates, _, _ = _split(token)
    ordered = der.wrap(der.FIRST, b"".join(sorted(certificates)))
    body = b"".join(ordered if part.tag == der.FIRST else part.raw for part in parts)
    signed_data = der.wrap(der.FIRST, der.wrap(der.SEQUENCE, body))
    return der.wrap(der.SEQUENCE, der.wrap(der.OID, SIGNED_DATA) + signed_data)


def _split(token: bytes) -> tuple[list[der.Piece], list[bytes], bytes, _Signer]:
    """Return the parts of SignedData, its certificates, its content and its one signer."""
    info = der.pieces(der.only(token, der.SEQUENCE, _A_TOKEN).body)
    kind = der.take(info, der.OID, _A_TOKEN)
    wrapped = der.take(info, der.FIRST, _A_TOKEN)
    if kind.body != SIGNED_DATA or info:
        raise VerificationError(f"expected {_A_TOKEN}, got other CMS content")
    parts = der.pieces(der.only(wrapped.body, der.SEQUENCE, _A_TOKEN).body)
    rest = list(parts)
    der.take(rest, der.INTEGER, _A_TOKEN)
    der.take(rest, der.SET, _A_TOKEN)
    content = _content(der.take(rest, der.SEQUENCE, _A_TOKEN))
    carried = der.optional(rest, der.FIRST)
    if carried is None:
        raise VerificationError("the token carries no certificate: ask for one with it")
    der.optional(rest, der.FIRST | 1)
    signers = der.pieces(der.take(rest, der.SET, _A_TOKEN).body)
    if len(signers) != 1 or rest:
        raise VerificationError(f"expected {_A_TOKEN} with one signer, got {len(signers)}")
    certificates = [one.raw for one in der.pieces(carried.body) if one.tag == der.SEQUENCE]
    return parts, certificates, content, _signer(signers[0])


def _content(encapsulated: der.Piece) -> bytes:
    parts = der.pieces(encapsulated.body)
    if der.take(parts, der.OID, _A_TOKEN).body != TST_INFO:
        raise VerificationError(f"expected {_A_TOKEN}, got CMS over other content")
    wrapped = der.take(parts, der.FIRST, _A_TOKEN)
    return der.only(wrapped.body, der.OCTETS, _A_TOKEN).body


def _signer(info: der.Piece) -> _Signer:
    parts = der.pieces(info.body)
    der.take(parts, der.INTEGER, _A_TOKEN)
    name = der.take(parts, der.SEQUENCE, f"{_A_TOKEN} whose signer is named by issuer and serial")
    algorithm = _hash_of(der.take(parts, der.SEQUENCE, _A_TOKEN))
    signed = der.take(parts, der.FIRST, f"{_A_TOKEN} with signed attributes")
    der.take(parts, der.SEQUENCE, _A_TOKEN)
    signature = der.take(parts, der.OCTETS, _A_TOKEN).body
    whole = der.wrap(der.SET, signed.body)
    return _Signer(name.body, algorithm, _attributes(signed), whole, signature)


def _attributes(signed: der.Piece) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for attribute in der.pieces(signed.body):
        parts = der.pieces(attribute.body)
        kind = der.take(parts, der.OID, _A_TOKEN).body
        value = der.take(parts, der.SET, _A_TOKEN).body
        if kind in found:
            raise VerificationError("the token signs two values of one attribute")
        found[kind] = value
    return found


def _hash_of(identifier: der.Piece) -> str:
    name = der.take(der.pieces(identifier.body), der.OID, "a hash algorithm").body
    if name not in _HASHES:
        raise VerificationError(
            f"the token is signed over a hash of type {name.hex()}: known are SHA-256, 384 and 512"
        )
    return _HASHES[name]


def _named(signer: _Signer, certificates: list[bytes]) -> bytes:
    """Return the carried certificate that the signed attributes name by its hash.

    It must be the only one of the name that the signer goes by: whoever checks the chain looks for
    it by that name, and must find no other.
    """
    names = [
        _ess_hash(signer.attributes[kind], default)
        for kind, default in ((_SIGNING_CERTIFICATE, "sha1"), (_SIGNING_CERTIFICATE_V2, "sha256"))
        if kind in signer.attributes
    ]
    called = [one for one in certificates if _issuer_and_serial(one) == signer.issuer_and_serial]
    for certificate in called if len(called) == 1 else []:
        if names and all(hashlib.new(name, certificate).digest() == hashed
                         for name, hashed in names):  # fmt: skip
            return certificate
    raise VerificationError(
        "the token does not carry the certificate that its signature names (ESSCertID): it was "
        "changed, or the authority does not follow RFC 3161"
    )


def _issuer_and_serial(certificate: bytes) -> bytes:
    what = "a certificate"
    whole = der.pieces(der.only(certificate, der.SEQUENCE, what).body)
    parts = der.pieces(der.take(whole, der.SEQUENCE, what).body)
    der.optional(parts, der.FIRST)
    serial = der.take(parts, der.INTEGER, what)
    der.take(parts, der.SEQUENCE, what)
    return der.take(parts, der.SEQUENCE, what).raw + serial.raw


def _ess_hash(value: bytes, default: str) -> tuple[str, bytes]:
    """Return the hash of the signer's certificate: the first of the list."""
    what = "the hash of a certificate"
    listed = der.pieces(der.only(value, der.SEQUENCE, what).body)
    first = der.pieces(der.take(listed, der.SEQUENCE, what).body)
    parts = der.pieces(der.take(first, der.SEQUENCE, what).body)
    algorithm = der.optional(parts, der.SEQUENCE)
    name = default if algorithm is None else _hash_of(algorithm)
    return name, der.take(parts, der.OCTETS, what).body


def _check(certificate: bytes, signer: _Signer) -> None:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

    known: dict[str, hashes.HashAlgorithm] = {
        "sha256": hashes.SHA256(), "sha384": hashes.SHA384(), "sha512": hashes.SHA512(),
    }  # fmt: skip
    hashed = known[signer.algorithm]
    try:
        key = load_certificate(certificate).public_key()
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signer.signature, signer.signed, padding.PKCS1v15(), hashed)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(signer.signature, signer.signed, ec.ECDSA(hashed))
        else:
            raise SignatureError("the token is signed with a key that is neither RSA nor EC")
    except (InvalidSignature, UnsupportedAlgorithm, ValueError):
        raise SignatureError(
            "the token's signature does not verify under the certificate it carries: it was changed"
        ) from None


def load_certificate(raw: bytes) -> Certificate:
    """Return a certificate.

    Raises:
        VerificationError: it is none.
    """
    from cryptography.x509 import load_der_x509_certificate

    try:
        return whole(load_der_x509_certificate(raw))
    except ValueError as error:
        raise VerificationError(f"a certificate cannot be read: {error}") from None


def whole(certificate: Certificate) -> Certificate:
    """Return a certificate after what is used of it was read: the library puts that off.

    Raises:
        ValueError: a name or a moment in it cannot be read.
    """
    _ = certificate.issuer, certificate.subject
    _ = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return certificate
