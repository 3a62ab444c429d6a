"""A time-stamping authority (RFC 3161): real tokens, made by `openssl ts`, and wrong ones.

Root, intermediate and signing certificate are its own and kept in its folder, so a second run in
the same folder goes on. Sandbox: nobody vouches for its clock.
"""

from __future__ import annotations

import datetime as dt
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from anchord.core import cms, der
from anchord.sandbox.web import Answer, HangUpError, Request

PATH = "/tsr"
REPLY = "application/timestamp-reply"
_POLICY = "1.3.6.1.4.1.55555.1"
_MAX_QUERY = 4096
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_DAY = dt.timedelta(days=1)
_CONFIG = """\
[tsa]
default_tsa = sandbox
[sandbox]
serial = {home}/serial
signer_cert = {home}/signer.pem
signer_key = {home}/signer.key
certs = {home}/intermediate.pem
signer_digest = sha256
default_policy = {policy}
digests = {digests}
accuracy = secs:1
tsa_name = yes
ess_cert_id_alg = sha256
"""


def find_openssl() -> str | None:
    """Return the `openssl` program, None where there is none."""
    return shutil.which("openssl")


class Issued(msgspec.Struct, frozen=True):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def save(self, home: Path, name: str) -> None:
        """Write both as PEM."""
        encoding = serialization.Encoding.PEM
        (home / f"{name}.pem").write_bytes(self.certificate.public_bytes(encoding))
        private = self.key.private_bytes(
            encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = home / f"{name}.key"
        file.touch(mode=0o600)
        file.write_bytes(private)


def issue(
    name: str,
    by: Issued | None,
    *,
    authority: bool = False,
    purpose: x509.ObjectIdentifier = ExtendedKeyUsageOID.TIME_STAMPING,
    days: tuple[int, int] = (-1, 3650),
) -> Issued:
    """Return a new certificate: of an authority over others, or for signing tokens.

    Args:
        name: its common name.
        by: who issues it; None: itself.
        authority: whether it may issue others.
        purpose: what a signing certificate is for.
        days: from when to when it is valid, in days from now.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer_key = key if by is None else by.key
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if by is None else by.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=authority), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(identifier, critical=False)
    )
    if not authority:
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=True)
    return Issued(builder.sign(issuer_key, hashes.SHA256()), key)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


class Authority:
    """One authority; a service of the sandbox.

    Args:
        name: of the service.
        home: its folder.
        openssl: the program.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, name: str, home: Path, openssl: str) -> None:
        self.name = name
        self._home, self._openssl = home, openssl
        self._lock = threading.Lock()
        home.mkdir(exist_ok=True)
        if not self.root_file.exists():
            self._found()
        for file, digests in (("ts.cnf", "sha256"), ("refusing.cnf", "sha512")):
            text = _CONFIG.format(home=home, policy=_POLICY, digests=digests)
            (home / file).write_text(text, "utf-8")

    @property
    def root_file(self) -> Path:
        """The root certificate; written last, so where it is, everything is."""
        return self._home / "root.pem"

    def _found(self) -> None:
        root = issue("anchord sandbox root", None, authority=True)
        between = issue("anchord sandbox intermediate", root, authority=True)
        between.save(self._home, "intermediate")
        issue("anchord sandbox time stamps", between).save(self._home, "signer")
        wrong = {
            "expired-certificate": issue("anchord sandbox, expired", between, days=(-20, -10)),
            "wrong-purpose": issue(
                "anchord sandbox, servers", between, purpose=ExtendedKeyUsageOID.SERVER_AUTH
            ),
            "foreign-root": issue("anchord sandbox, unknown", None),
        }
        for name, issued in wrong.items():
            issued.save(self._home, name)
        (self._home / "serial").write_text("01\n", "ascii")
        root.save(self._home, "root")

    def route(self, method: str, path: str) -> str:
        """Return `stamp` for a question, else `other`."""
        return "stamp" if (method, path) == ("POST", PATH) else "other"

    def answer(self, request: Request) -> Answer:
        """Return what `openssl ts` answers, or what the fault makes of it."""
        if self.route(request.method, request.path) != "stamp":
            return Answer(404, b"Not Found")
        length = request.headers.get("Content-Length", "0")
        if not length.isdigit() or int(length) > _MAX_QUERY:
            raise HangUpError
        query = request.read(int(length))
        kind = "" if request.fault is None else request.fault.kind
        with self._lock:
            return Answer(200, self._reply(query, kind), REPLY)

    def _reply(self, query: bytes, fault: str) -> bytes:
        if fault in {"wrong-nonce", "wrong-imprint"}:
            query = _bent(query, fault)
        config = "refusing.cnf" if fault == "rejection" else "ts.cnf"
        options = ["-config", str(self._home / config)]
        reply = self._run(["ts", "-reply", *options, "-queryfile"], query, "-out")
        if fault not in {"expired-certificate", "wrong-purpose", "foreign-root"}:
            return reply
        token = der.pieces(der.only(reply, der.SEQUENCE, "an answer").body)[1].raw
        return _granted(self._signed(cms.read_signed(token).content, fault))

    def _signed(self, content: bytes, name: str) -> bytes:
        """Return content signed with a certificate that `openssl ts` would not sign with."""
        options = ["-sign", "-binary", "-nodetach", "-cades", "-md", "sha256", "-outform", "DER"]
        options += ["-econtent_type", _TST_INFO, "-signer", str(self._home / f"{name}.pem")]
        options += ["-inkey", str(self._home / f"{name}.key")]
        options += ["-certfile", str(self._home / "intermediate.pem"), "-in"]
        return self._run(["cms", *options], content, "-out")

    def _run(self, words: list[str], given: bytes, out: str) -> bytes:
        with tempfile.TemporaryDirectory(dir=self._home) as folder:
            source, target = Path(folder, "in"), Path(folder, "out")
            source.write_bytes(given)
            command = [self._openssl, *words, str(source), out, str(target)]
            environment = {**os.environ, "OPENSSL_CONF": os.devnull}
            subprocess.run(command, capture_output=True, check=True, env=environment)  # noqa: S603
            return target.read_bytes()


def _bent(query: bytes, fault: str) -> bytes:
    """Return another question: with another nonce, or about other bytes."""
    parts = der.pieces(der.only(query, der.SEQUENCE, "a question").body)
    place = 2 if fault == "wrong-nonce" else 1
    raw = parts[place].raw
    other = raw[:-1] + bytes((raw[-1] ^ 1,))
    pieces = [other if at == place else part.raw for at, part in enumerate(parts)]
    return der.wrap(der.SEQUENCE, b"".join(pieces))


def _granted(token: bytes) -> bytes:
    status = der.wrap(der.SEQUENCE, der.integer(0))
    return der.wrap(der.SEQUENCE, status + token)
