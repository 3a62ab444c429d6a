"""Time-stamping authorities over HTTP (RFC 3161, 3.4): one POST a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.adapters.http import Client, authority, base_url, clean, require_ok
from anchord.core import tsa
from anchord.errors import ConfigError, ProtocolError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cryptography.x509 import Certificate

    from anchord.core.tsa import Token

_REPLY = "application/timestamp-reply"
_HEADERS = {"Content-Type": "application/timestamp-query", "Accept": _REPLY}
_MAX_ANSWER_BYTES = tsa.MAX_TOKEN_BYTES + 1024
_MAX_PEM_BYTES = 1 << 20


class HttpAuthority:
    """One authority; implements `anchord.ports.authority.TimestampAuthority`.

    Args:
        url: where requests are posted: https, or http on loopback.
        certificates: PEM file with the root, and intermediate ones, that tokens must lead to.
        client: sends the requests.
        draw: random bytes; nonces come from here.

    Raises:
        ConfigError: the address, or the file of certificates, cannot be used.
    """

    def __init__(
        self, url: str, certificates: Path, client: Client, draw: Callable[[int], bytes]
    ) -> None:
        self._address = base_url(url, f"authority {clean(authority(url))}: url")
        self._trusted = read_trusted(certificates, f"authority {url}: certificates")
        self._url = url
        self._client = client
        self._draw = draw

    def __repr__(self) -> str:
        return f"HttpAuthority({self._url!r})"

    @property
    def url(self) -> str:
        """Where requests are posted, as configured."""
        return self._url

    def stamp(self, digest: bytes) -> Token:
        """Ask for a token over 32 bytes, and check it before it is given to anybody.

        Raises:
            TransientError: unreachable, slow, overloaded.
            ProtocolError: not a token over these bytes that leads to one of the roots.
            RefusedError: the authority gives none.
        """
        nonce = int.from_bytes(self._draw(tsa.NONCE_BYTES), "big")
        response = self._client.post(
            self._address,
            body=tsa.request(digest, nonce),
            headers=_HEADERS,
            max_bytes=_MAX_ANSWER_BYTES,
        )
        require_ok(response, self._url)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != _REPLY:
            raise ProtocolError(
                f"{self._url}: expected {_REPLY}, got {clean(kind)!r}; check its address"
            )
        try:
            return tsa.check_response(response.body, digest, nonce, self._trusted)
        except RefusedError as error:
            raise RefusedError(f"{self._url} gave {error}; it is asked again later") from None
        except ProtocolError as error:
            raise ProtocolError(f"{self._url}: {error}") from None


def read_trusted(path: Path, what: str) -> tuple[Certificate, ...]:
    """Return the certificates of a PEM file that tokens must lead to.

    Args:
        path: the file.
        what: what it is called, for the message.

    Raises:
        ConfigError: the file cannot be read, or holds no root certificate.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_PEM_BYTES)
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"{what} {path}: cannot be read: {words}") from None
    try:
        return tsa.read_certificates(raw)
    except RefusedError as error:
        raise ConfigError(f"{what} {path}: {error}") from None
