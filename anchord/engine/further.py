"""What a timestamp's further witnesses are worth: a block it is younger than, tokens over it.

What was signed about them was held against the proof already; here they are held against headers
and against roots, where there are any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from anchord.core.header import parse_header
from anchord.core.moment import utc
from anchord.core.not_before import check_header
from anchord.core.tsa import check_roots
from anchord.engine.report import Check, NotBeforeReport, Outcome, TokenReport
from anchord.errors import AttestationError, TransientError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.x509 import Certificate

    from anchord.core.not_before import NotBefore
    from anchord.core.witnessed import TokenProved
    from anchord.engine.header_view import HeaderView

_OUTCOMES: dict[str, Outcome] = {"verified": "proved", "does not hold": "failed"}


def look_before(
    stated: NotBefore, chain: str, event_id: str, headers: HeaderView
) -> tuple[NotBeforeReport, Check]:
    """Hold the block that a timestamp says it is younger than against the headers."""
    outcome, detail, time = "not checked", "", None
    block = f"block {stated.height}"
    if headers.none:
        detail = f"{block}: no header source: see --headers, --node, -c"
    elif headers.chain != chain:
        detail = f"{block}: the event is of {chain}, the headers of {headers.chain}: see --network"
    else:
        try:
            raw = headers.header(stated.height)
            check_header(stated, raw)
        except TransientError as error:
            detail = f"{block}: {error}"
        except AttestationError as error:
            outcome, detail = "does not hold", str(error)
        else:
            outcome, time = "verified", utc(parse_header(raw).time)
            detail = (
                f"the timestamp was made after {block} of {time}; when the record was made, "
                "that does not say"
            )
    report = NotBeforeReport(
        event_id=event_id,
        block_height=stated.height,
        block_hash=stated.hash,
        block_time=time,
        outcome=outcome,
        detail=detail,
    )
    return report, Check("not before", _OUTCOMES.get(outcome, "not checked"), detail)


def look_at_token(
    proved: TokenProved, event_id: str, trusted: Sequence[Certificate]
) -> tuple[TokenReport, Check]:
    """Ask whether a token leads to a root that somebody trusts."""
    token = proved.token
    said = f"{token.name} signed that it existed before {utc(token.time)}"
    detail = "root not trusted: give it with --tsa-ca"
    outcome = "root not trusted"
    if trusted:
        try:
            check_roots(token, trusted)
            outcome, detail = "trusted", ""
        except VerificationError as error:
            detail = f"root not trusted: {error}"
    report = TokenReport(
        event_id=event_id,
        url=proved.url,
        signed_by=token.name,
        time=utc(token.time),
        policy=token.policy,
        serial=str(token.serial),
        commitment=token.imprint.hex(),
        outcome=outcome,
        detail=detail,
    )
    if outcome == "trusted":
        return report, Check("token", "proved", f"{said}; its root is trusted")
    return report, Check("token", "not checked", f"{said}; {detail}")
