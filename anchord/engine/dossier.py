"""What is found out about one target, gathered step by step and judged at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from anchord.core.event import CAPTURED, TARGET
from anchord.core.header import display
from anchord.core.model import Block
from anchord.core.moment import utc
from anchord.core.trust import Trust
from anchord.core.verify import Claims, Proof, check_claims, check_depth
from anchord.core.verify_event import EventProved
from anchord.engine.further import look_at_token, look_before
from anchord.engine.header_view import HeaderView
from anchord.engine.report import (
    Check,
    EventReport,
    NotBeforeReport,
    PathReport,
    Report,
    Result,
    TokenReport,
)
from anchord.errors import AnchordError, AttestationError, TransientError, VerificationError

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

    from anchord.core.proof import Found


class Expected(msgspec.Struct, frozen=True):
    """What a digest was compared with."""

    digest: bytes
    by: str
    """In words: "sha256 of paper.pdf", "the digest given"."""


FindExpected = Callable[[str, bytes], Expected | None]
"""(algorithm, digest the evidence is about) -> what to compare it with."""


TRUST_WORDS = {
    Trust.KEYRING: "signed, key in the keyring",
    Trust.GIVEN: "signed, key given by --key",
    Trust.CLAIMED: "signed, key not trusted: only the bundle itself states it",
}


class Dossier:
    """What is found out about one target, step by step.

    Args:
        target: as it was named.
        kind: what it is.
        witnesses: the block headers.
        trusted: certificates that tokens of time-stamping authorities are held against.
    """

    def __init__(
        self,
        target: str,
        kind: str,
        witnesses: HeaderView,
        trusted: Sequence[Certificate] = (),
    ) -> None:
        self._target, self._kind, self._witnesses = target, kind, witnesses
        self._trusted = trusted
        self._not_before: list[NotBeforeReport] = []
        self._tokens: list[TokenReport] = []
        self._digest: bytes | None = None
        self._algorithm: str | None = None
        self._number: str | None = None
        self._checks: list[Check] = []
        self._paths: dict[tuple[str, int | None, str | None, str], PathReport] = {}
        self._events: list[EventReport] = []
        self._blocks: list[Block] = []
        self._compared = False
        self._away: str | None = None
        self._withdrawn = False

    def about(self, digest: bytes, algorithm: str, number: str | None = None) -> None:
        """Say what the evidence is about."""
        self._digest, self._algorithm, self._number = digest, algorithm, number

    def prove(self, check: str, detail: str) -> None:
        """Note what holds."""
        self._checks.append(Check(check, "proved", detail))
        self._compared |= check == "digest"

    def skip(self, check: str, detail: str) -> None:
        """Note what could not be checked."""
        self._checks.append(Check(check, "not checked", detail))

    def fail(self, check: str, error: AnchordError) -> None:
        """Note what does not hold."""
        self._checks.append(Check(check, "failed", str(error)))

    def refuse(self, check: str, error: AnchordError) -> Report:
        """Report evidence that cannot even be read."""
        self.fail(check, error)
        return self.report()

    def compare(self, find: FindExpected) -> None:
        """Compare the digest with the file, the digest or the name that was given."""
        if not self.compare_if_asked(find):
            self.skip("digest", "nothing to compare it with: give --file or --digest")

    def compare_if_asked(self, find: FindExpected) -> bool:
        """Compare the digest if there is something to compare it with."""
        digest, algorithm = self._digest or b"", self._algorithm or ""
        expected = find(algorithm, digest)
        if expected is None:
            return False
        if expected.digest == digest:
            self.prove("digest", f"{algorithm} equals {expected.by}")
        else:
            self.fail(
                "digest",
                VerificationError(
                    f"the evidence is about {algorithm} {digest.hex()}, "
                    f"{expected.by} is {expected.digest.hex()}"
                ),
            )
        return True

    def add_event(
        self, event: EventProved, withdrawn_by: str | None, *, spoils: bool = True
    ) -> None:
        """Take in one event; only a signed one that stands counts with its proof.

        Args:
            event: as it was read.
            withdrawn_by: id of the event that takes it back.
            spoils: what does not hold in it fails the whole. False for what a stranger signed
                beside those that are trusted: anybody can put such an event into a bundle.
        """
        signature = "not checked"
        if event.trust is not None:
            signature = "key not trusted" if event.trust is Trust.CLAIMED else "trusted"
        text = f"{event.event_type} {event.created_at} by {event.signer_id}, key {event.key_id}"
        if event.trust is None:
            self.skip("signature", f"{text}: {event.reason}")
        else:
            self.prove("signature", f"{text}: {TRUST_WORDS[event.trust]}")
        self._events.append(
            EventReport(
                event_id=event.event_id,
                event_type=event.event_type,
                created_at=event.created_at,
                signer_id=event.signer_id,
                key_id=event.key_id,
                signature=signature,
                trust=None if event.trust is None else event.trust.value,
                withdrawn_by=withdrawn_by,
                detail=event.reason,
            )
        )
        if withdrawn_by is not None:
            self._withdrawn |= event.target == TARGET
        elif event.stored is not None and event.trust is not None:
            # Without that flag the archive gives a page made for people, which hashes otherwise.
            what = "its bytes, under TIMESTAMPid_," if event.event_type == CAPTURED else "it"
            said = f"{event.stored.where}: signed for, not fetched again here"
            self.skip("stored", f"{said}; {what} had the sha256 {event.stored.sha256}")
        elif event.proof is not None and event.trust is not None:
            self.add_proof(event.proof, event.claims, spoils=spoils)
            if event.claims is not None:
                self._add_further(event.event_id, event.claims, spoils=spoils)

    def _add_further(self, event_id: str, claims: Claims, *, spoils: bool) -> None:
        """Take in what else a timestamp has for witnesses; none of them is needed."""
        if claims.witnessed.not_before is not None:
            before, check = look_before(
                claims.witnessed.not_before, claims.chain, event_id, self._witnesses
            )
            self._not_before.append(before)
            if check.outcome == "failed" and not spoils:
                check = msgspec.structs.replace(check, outcome="not checked")
            self._checks.append(check)
        for token in claims.witnessed.tokens:
            report, check = look_at_token(token, event_id, self._trusted)
            self._tokens.append(report)
            self._checks.append(check)

    def add_proof(self, proof: Proof, claims: Claims | None = None, *, spoils: bool = True) -> None:
        """Take in a proof, and hold each of its Bitcoin paths against the headers."""
        self.prove("proof", _counted(proof))
        for found in proof.bitcoin:
            self._add_path(found, claims, spoils=spoils)
        for found in proof.pending:
            uri = found.attestation.uri or ""
            self._note(found, "pending", f"waiting at {uri}")
        for found in proof.answered:
            self._note(found, "answered", "its path to Bitcoin is in the proof")
        for found in proof.other:
            self._note(found, "not understood", "no anchor that anchord checks")

    def _add_path(self, found: Found, claims: Claims | None, *, spoils: bool) -> None:
        if self._witnesses.none:
            self._note(found, "not checked", "no header source: see --headers, --node, -c")
            return
        if claims is not None and claims.chain != self._witnesses.chain:
            headers = self._witnesses.chain
            detail = f"the event is of {claims.chain}, the headers of {headers}: see --network"
            self._note(found, "not checked", detail)
            return
        try:
            block = self._witnesses.block(found)
            if claims is not None and claims.height == block.height:
                check_claims(claims, block)
        except TransientError as error:
            self._away = str(error)
            self._note(found, "not checked", str(error))
            return
        except AttestationError as error:
            words = str(error) if spoils else f"said by a key nobody trusts: {error}"
            self._note(found, "does not hold" if spoils else "not checked", words)
            return
        try:
            check_depth(block, self._witnesses.confirmations)
        except AttestationError as error:
            self._note(found, "too few confirmations", str(error), block)
            return
        self._blocks.append(block)
        self._note(found, "verified", "", block)

    def _note(self, found: Found, outcome: str, detail: str, block: Block | None = None) -> None:
        item = found.attestation
        message = display(found.message) if item.kind == "bitcoin" else found.message.hex()
        path = PathReport(
            kind=item.kind,
            height=item.height,
            uri=item.uri,
            message=message,
            outcome=outcome,
            detail=detail or (f"tag {item.tag.hex()}" if item.kind == "unknown" else ""),
            block_hash=None if block is None else block.hash.hex(),
            block_time=None if block is None else utc(block.time),
            confirmations=None if block is None else block.confirmations,
            checked_with=() if block is None else block.checked_with,
        )
        key = (path.kind, path.height, path.uri, message)
        known = self._paths.get(key)
        if known is None or _BADNESS.get(outcome, 0) > _BADNESS.get(known.outcome, 0):
            self._paths[key] = path

    def report(self) -> Report:
        """Judge what was found."""
        paths = sorted(self._paths.values(), key=_place)
        self._note_headers(paths)
        result, reason, temporary = self._judge(paths)
        block = min(self._blocks, key=lambda block: block.height, default=None)
        if result != "proved":
            block = None
        return Report(
            target=self._target,
            kind=self._kind,
            result=result,
            reason=reason,
            temporary=temporary,
            digest=None if self._digest is None else self._digest.hex(),
            digest_algorithm=self._algorithm,
            pith_number=self._number,
            existed_before=None if block is None else utc(block.time),
            precision=None if block is None else "hours",
            chain=None if block is None else self._witnesses.chain,
            block_height=None if block is None else block.height,
            block_hash=None if block is None else block.hash.hex(),
            confirmations=None if block is None else block.confirmations,
            checked_with=() if block is None else block.checked_with,
            checks=tuple(_distinct(self._checks)),
            paths=tuple(paths),
            not_before=tuple(self._not_before),
            tokens=tuple(self._tokens),
            events=tuple(self._events),
        )

    def _note_headers(self, paths: Sequence[PathReport]) -> None:
        for path in paths:
            if path.kind != "bitcoin":
                continue
            where = f"block {path.height}"
            if path.outcome == "verified":
                names = " and ".join(path.checked_with)
                self.prove("header", f"{where}: {names}, {path.confirmations} confirmations")
            elif path.outcome == "does not hold":
                self._checks.append(Check("header", "failed", path.detail))
            else:
                self.skip("header", f"{where}: {path.detail}")

    def _judge(self, paths: Sequence[PathReport]) -> tuple[Result, str | None, bool]:
        bad = [check for check in self._checks if check.outcome == "failed"]
        if bad:
            return "failed", bad[0].detail, False
        if not self._compared:
            return "not proved", "the digest was not compared: give --file or --digest", False
        if self._blocks:
            return "proved", None, False
        return self._judge_open(paths)

    def _judge_open(self, paths: Sequence[PathReport]) -> tuple[Result, str | None, bool]:
        """Judge evidence that no header has confirmed, and none has refuted."""
        unchecked = [path for path in paths if path.kind == "bitcoin"]
        shallow = [path for path in unchecked if path.outcome == "too few confirmations"]
        if shallow:
            return "not proved", shallow[0].detail, False
        if unchecked:
            return "not proved", f"header not checked: {unchecked[0].detail}", bool(self._away)
        waiting = sorted({path.uri for path in paths if path.outcome == "pending" and path.uri})
        if waiting:
            return "pending", f"waiting at {', '.join(waiting)}", False
        return "not proved", self._nothing(paths), False

    def _nothing(self, paths: Sequence[PathReport]) -> str:
        unsigned = [event for event in self._events if event.signature == "not checked"]
        if paths:
            return "no Bitcoin attestation, only ones that anchord does not judge"
        if self._withdrawn:
            return "its timestamp was withdrawn"
        if unsigned:
            return f"no signature could be checked: {unsigned[0].detail}"
        return "no proof in it"


_BADNESS = {"verified": 1, "too few confirmations": 1, "does not hold": 2}
_PLACES = {"bitcoin": 0, "pending": 1}


def _place(path: PathReport) -> tuple[int, int, str, str]:
    return _PLACES.get(path.kind, 2), path.height or 0, path.uri or "", path.message


def _counted(proof: Proof) -> str:
    parts = [
        (len(proof.bitcoin), "to Bitcoin"),
        (len(proof.pending), "pending"),
        (len(proof.other), "not understood"),
    ]
    words = ", ".join(f"{count} {text}" for count, text in parts if count)
    return f"recomputed from the digest, {words}"


def _distinct(checks: Sequence[Check]) -> list[Check]:
    seen: dict[Check, None] = dict.fromkeys(checks)
    return list(seen)
