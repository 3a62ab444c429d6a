"""The whole error tree, sorted by consequence: what must happen next, not what went wrong inside.

Every message says what was expected, what came, and what to do. No message holds a
secret. Adapters let out nothing but these; the engine and the command line decide by
class. `Pending` and `Refused` answers of a service are values, not errors.
"""

from __future__ import annotations

MAX_MESSAGE = 4_000
"""Longest message, in characters: it may quote what strangers sent, which has any length."""
_END = 500


class AnchordError(Exception):
    """Anything anchord itself raises on purpose.

    Attributes:
        exit_code: what the command line exits with when nothing else is said.

    Args:
        message: what was expected, what came, what to do; of a longer one than `MAX_MESSAGE` the
            middle is left out.
    """

    exit_code = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(_bounded(message))


def _bounded(message: str) -> str:
    if len(message) <= MAX_MESSAGE:
        return message
    left_out = f" [{len(message):,} characters, most of them left out] "
    return message[: MAX_MESSAGE - _END - len(left_out)] + left_out + message[-_END:]


class ConfigError(AnchordError):
    """A person must act: configuration, keys, permissions, schema, arguments."""

    exit_code = 2


class UnknownKeyError(ConfigError):
    """A key of ours that this machine has never heard of: another one's keys are newer."""


class TransientError(AnchordError):
    """Try again later; nothing is lost.

    Args:
        message: what was expected, what came, what to do.
        retry_after: seconds the other side asked for, or None when it said nothing.
    """

    exit_code = 3

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NetworkError(TransientError):
    """The other side could not be reached, went silent, or hung up.

    Args:
        message: what was expected, what came, what to do.
        retry_after: as in `TransientError`.
        refused: it took no connection, so nothing was sent.
    """

    def __init__(
        self, message: str, *, retry_after: float | None = None, refused: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.refused = refused


class RateLimitedError(TransientError):
    """The other side asked for less."""


class StoreBusyError(TransientError):
    """Another process holds the store."""


class RefusedError(AnchordError):
    """This item will not succeed as it is: bad input, a stated hash that does not recompute."""


class ProtocolError(AnchordError):
    """The other side broke its protocol; what it sent is not used.

    Args:
        message: what was expected, what came, what to do.
        too_long: the answer was longer than allowed.
    """

    def __init__(self, message: str, *, too_long: bool = False) -> None:
        super().__init__(message)
        self.too_long = too_long


class VerificationError(AnchordError):
    """Evidence does not prove its claim. Never swallowed."""


class SignatureError(VerificationError):
    """A signature or the key behind it does not hold."""


class DigestMismatchError(VerificationError):
    """Bytes do not have the digest that was claimed for them."""


class AttestationError(VerificationError):
    """An attestation is not confirmed by the block header it names."""


class MementoMismatchError(VerificationError):
    """An archived copy is not what its receipt says."""


class LedgerError(VerificationError):
    """The ledger's rows do not chain, or a row was changed, dropped or repeated."""


class FatalError(AnchordError):
    """Our own state is unsafe: stop, and let a person look."""

    exit_code = 4


class DiskError(FatalError):
    """The disk is full or failed; nothing of what was to be written is kept."""
