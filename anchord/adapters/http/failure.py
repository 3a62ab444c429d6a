"""The one place where the errors of other libraries become anchord's."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator

import urllib3

from anchord.adapters.http.deadline import NotPublicError
from anchord.adapters.http.words import clean
from anchord.errors import AnchordError, NetworkError, ProtocolError


def failure(
    error: Exception, who: str, timeout_s: float, *, late: bool, proxied: bool
) -> AnchordError:
    """Return the error of ours: what time may heal is a NetworkError, nonsense a ProtocolError.

    Args:
        error: what left urllib3, http.client or the sockets.
        who: host and port, for the message.
        timeout_s: the call's total time.
        late: that time is over, whatever the error says.
        proxied: the call went through a proxy, which may be what failed.
    """
    causes = tuple(_causes(error))
    if _first(causes, NotPublicError):
        return ProtocolError(
            f"{who} is an address of this machine or of a private network, and a stranger's "
            "manifest named it: not asked; if you mean it, pull from it by its own address"
        )
    if late or _first(causes, TimeoutError, urllib3.exceptions.TimeoutError):
        return NetworkError(
            f"{who}: expected a complete answer within {timeout_s:g} s, "
            "it did not come; it is tried again later"
        )
    certificate = _first(causes, ssl.SSLCertVerificationError)
    if certificate:
        reason = clean(getattr(certificate, "verify_message", ""))
        return NetworkError(
            f"{who}: its certificate was not accepted ({reason}); nothing was sent. "
            "Check this machine's clock and certificate store if it goes on"
        )
    broken = _first(causes, OSError, http.client.IncompleteRead)
    if broken:
        way = " through the environment's proxy" if proxied else ""
        return NetworkError(
            f"{who}: the connection{way} failed ({_reason(broken)}); it is tried again later",
            refused=not proxied and isinstance(broken, ConnectionRefusedError),
        )
    return ProtocolError(
        f"{who}: expected an HTTP answer, got something else ({_reason(causes[-1])}); "
        "check that the address is right"
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the ones wrapped in it; urllib3 wraps the first cause as an argument."""
    for _ in range(8):
        yield error
        nested = [part for part in error.args if isinstance(part, BaseException)]
        deeper = nested[-1] if nested else error.__cause__
        if deeper is None:
            return
        error = deeper


def _first(causes: tuple[BaseException, ...], *kinds: type[BaseException]) -> BaseException | None:
    return next((cause for cause in causes if isinstance(cause, kinds)), None)


def _reason(error: BaseException) -> str:
    """Say what went wrong in the system's words where there are any, else by the error's name."""
    words = (error.strerror or str(error)) if isinstance(error, OSError) else ""
    if isinstance(error, http.client.IncompleteRead):
        words = "hung up before its answer was over"
    return clean(words or type(error).__name__)
