"""The row "Bitcoin timestamp": the block, the path to it, and who else witnessed the moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from anchord.app.face.rows import (
    MOST,
    Entry,
    Fact,
    Fates,
    Row,
    doubted_note,
    entry,
    fallen_name,
    hashed,
    of_type,
    split,
)
from anchord.app.face.words import chain, moment, plural, shown
from anchord.core.event import ANCHORED, SUBMITTED
from anchord.core.merge import BITCOIN, Merged, MergedEvent
from anchord.core.moment import utc

if TYPE_CHECKING:
    from anchord.core.verify import Claims, Proof

NAME = "Bitcoin timestamp"
_MOST_NAMES = 12


def timestamp_row(merged: Merged, proof_address: str) -> Row:
    """Return the row.

    Args:
        merged: what the record's events come to.
        proof_address: of the `.ots` file.
    """
    fates = Fates(merged)
    blocks = sorted(of_type(merged, ANCHORED), key=lambda one: one.proved is not merged.anchored)
    made = [_block(one, fates, proof_address if place == 0 else None)
            for place, one in enumerate(blocks[:MOST])]  # fmt: skip
    sent = [_submitted(one, fates) for one in of_type(merged, SUBMITTED)]
    standing, fallen = split(made)
    waiting, taken_back = split(sent[:MOST])
    more = max(len(blocks) - MOST, 0) + max(len(sent) - MOST, 0)
    if merged.anchored is None:
        return Row(
            name=NAME, state="submitted" if waiting else "open", done=False, waits=bool(waiting),
            note=doubted_note(merged, ANCHORED, SUBMITTED), entries=tuple(waiting),
            folded=(*fallen, *taken_back), folded_name=fallen_name([*fallen, *taken_back]),
            more=more,
        )  # fmt: skip
    folded = (*standing[1:], *waiting, *fallen, *taken_back)
    claims = merged.anchored.claims
    return Row(
        name=NAME, state=f"block {claims.height:,}" if claims else "anchored", done=True,
        note=_not_bitcoin(claims) or doubted_note(merged, ANCHORED, SUBMITTED),
        entries=tuple(standing[:1]), folded=folded,
        folded_name=plural(len(folded), "other event", "other events"), more=more,
    )  # fmt: skip


def _not_bitcoin(claims: Claims | None) -> str:
    if claims is None or claims.chain == BITCOIN:
        return ""
    return f"This chain is {chain(claims.chain)}, made for tests: the timestamp proves nothing."


def _block(one: MergedEvent, fates: Fates, proof_address: str | None) -> Entry:
    claims, proof = one.proved.claims, one.proved.proof
    if claims is None or proof is None:  # never: only these make it valid
        return entry(one, fates, "a block", ())
    facts = [*_block_facts(one, claims), *_path_facts(claims, proof)]
    if proof_address is not None:
        facts.append(Fact(name="Proof", text="download proof.ots", href=proof_address))
    facts += hashed(one.event["payload"], "proof_sha256", "SHA-256 of the proof")
    return entry(one, fates, f"{chain(claims.chain)} block {claims.height:,}", facts)


def _block_facts(one: MergedEvent, claims: Claims) -> Iterator[Fact]:
    yield Fact(name="Block time", text=moment(claims.time))
    yield Fact(name="Block hash", text=shown(claims.hash), code=True)
    blocks = plural(claims.confirmations, "block")
    yield Fact(name="Confirmations", text=f"{blocks} when it was signed, this one included")
    checked = one.event["payload"].get("checked_with")
    if isinstance(checked, list) and checked:
        yield Fact(name="Checked with", text=_listed(checked), fine=True)


def _path_facts(claims: Claims, proof: Proof) -> Iterator[Fact]:
    uris = [one.attestation.uri for one in (*proof.answered, *proof.pending)]
    calendars = sorted({uri for uri in uris if uri})
    if calendars:
        yield Fact(name=plural(len(calendars), "calendar").partition(" ")[2].capitalize(),
                   text=_listed(calendars))  # fmt: skip
    earliest = claims.witnessed.not_before
    if earliest is not None:
        yield Fact(name="Made after", text=f"block {earliest.height:,}, whose hash is in the path",
                   fine=True)  # fmt: skip
    for one in claims.witnessed.tokens[:_MOST_NAMES]:
        text = f"{moment(utc(one.token.time))}, {shown(one.token.name, 120)}, {shown(one.url, 120)}"
        yield Fact(name="RFC 3161 token", text=text, fine=True)


def _submitted(one: MergedEvent, fates: Fates) -> Entry:
    payload = one.event["payload"]
    facts = [
        Fact(name="Calendars", text=_listed(payload.get("calendars", []))),
        *hashed(payload, "commitment", "Commitment"),
        *hashed(payload, "proof_sha256", "SHA-256 of the proof"),
    ]
    return entry(one, fates, "Handed to calendars, which owe a path to a block", facts)


def _listed(values: list[object] | list[str]) -> str:
    text = ", ".join(shown(value, 120) for value in values[:_MOST_NAMES])
    left = len(values) - _MOST_NAMES
    return f"{text} and {left:,} more" if left > 0 else text
