"""The two further witnesses that a `timestamp_anchored` event may name beside its block.

`not_before`: a block that the timestamp is younger than (`anchord.core.not_before`). `rfc3161`:
tokens of time-stamping authorities over a message on the path (`anchord.core.tsa`).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec

from anchord.core import tsa
from anchord.core.moment import seconds, utc
from anchord.core.not_before import NotBefore, check_path, stem_of
from anchord.core.receipt import strict_base64
from anchord.errors import DigestMismatchError, VerificationError

MAX_TOKENS = 32
_HASH = re.compile(r"[0-9a-f]{64}")


class StatedBlock(msgspec.Struct, frozen=True):
    """`not_before` as it stands in a payload."""

    block_height: int
    block_hash: str


class StatedToken(msgspec.Struct, frozen=True):
    """One entry of `rfc3161` as it stands in a payload."""

    url: str
    token_b64: str
    commitment: str
    time: str


class TokenProved(msgspec.Struct, frozen=True, kw_only=True):
    """A token over a message on the path, its signature checked; no root was asked about."""

    url: str
    """Where the signer of the event says that it came from."""
    token: tsa.Token


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """What the further witnesses say."""

    not_before: NotBefore | None = None
    """The proof carries its hash; a header has still to confirm that it is a block's."""
    tokens: tuple[TokenProved, ...] = ()


def state_token(url: str, token: tsa.Token) -> StatedToken:
    """Return what a payload says of a token."""
    text = base64.b64encode(token.raw).decode("ascii")
    return StatedToken(url, text, token.imprint.hex(), utc(token.time))


def read_witnessed(
    proof: bytes, attested: int, block: StatedBlock | None, tokens: list[StatedToken]
) -> Witnessed:
    """Check what a payload says of further witnesses against the proof it carries.

    Args:
        proof: the whole `.ots`.
        attested: height of the block it leads to.
        block: `not_before`, where it is stated.
        tokens: `rfc3161`.

    Raises:
        VerificationError: one of them is not on the path, about something else, or broken.
    """
    if block is None and not tokens:
        return Witnessed()
    if len(tokens) > MAX_TOKENS:
        raise VerificationError(f"expected at most {MAX_TOKENS} tokens, got {len(tokens)}")
    shared = stem_of(proof)
    stated = None
    if block is not None:
        stated = NotBefore(height=block.block_height, hash=block.block_hash)
        check_path(stated, shared.ops, attested)
    found = tuple(_token(one, shared.messages) for one in tokens)
    return Witnessed(not_before=stated, tokens=found)


def _token(stated: StatedToken, messages: Sequence[bytes]) -> TokenProved:
    commitment = _hex(stated.commitment)
    if commitment not in messages:
        raise DigestMismatchError(
            f"the token of {stated.url:.100} is over {stated.commitment:.80}, which is not on the "
            "path of the proof"
        )
    return _read_token(stated, commitment)


@lru_cache(maxsize=16)  # the records of a batch share its tokens
def _read_token(stated: StatedToken, commitment: bytes) -> TokenProved:
    where = f"the token of {stated.url:.100}"
    try:
        token = tsa.read_token(strict_base64(stated.token_b64, where), commitment)
    except DigestMismatchError as error:
        raise DigestMismatchError(f"{where}: {error}") from None
    if token.time != seconds(stated.time):
        raise VerificationError(f"{where} states another time than the {stated.time} it is said to")
    return TokenProved(url=stated.url, token=token)


def _hex(text: str) -> bytes:
    """Return the bytes of a hash in lower-case hex; none for anything else."""
    return bytes.fromhex(text) if _HASH.fullmatch(text) else b""
