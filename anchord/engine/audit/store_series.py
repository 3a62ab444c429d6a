"""Auditing events in bulk: what a series shares is verified once, what differs by record each time.

Bodies are rendered again from the store (`engine.rendering`), and the id proves that nothing of
them was changed; the signature is over the id. One event of each series is read in full, by the
very rules that a bundle is read by (`core.verify_event`), which settles what all of them share.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.core.bundle_text import whole_event
from anchord.core.event import ANCHORED, WITHDRAWN, event_digest, event_id
from anchord.core.finding import Part, Severity
from anchord.core.keyring import fingerprint
from anchord.core.model import Block
from anchord.core.signatures import Verifier
from anchord.core.trust import Trust
from anchord.core.verify import check_claims
from anchord.core.verify_event import EventProved, read_event
from anchord.engine.audit.store_frame import RESTORE, Verdict
from anchord.engine.rendering import Renderer
from anchord.errors import AnchordError, RefusedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchord.core.keyring import PublicKey
    from anchord.core.model import Batch, Member, Series
    from anchord.core.trust import Keys
    from anchord.engine.audit.store_frame import Frame
    from anchord.engine.audit.store_view import View
    from anchord.ports.reading import RawEvent, ReadingStore

_KEPT = 256
"""Series kept at hand: neighbours in the ledger are of the same few."""
_TRUST = {Trust.KEYRING: "in the keyring", Trust.GIVEN: "given with --key"}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of all events of a series."""

    holds: bool
    """What they share was verified, or is believed where a sample leaves it out."""
    signer: str = ""
    block: str = ""
    """What the headers say of an anchored one: `confirmed`, `shallow`, `missing`, `false`."""
    height: int = 0
    payload: dict[str, Any] = {}
    proved: EventProved | None = None
    headers: tuple[tuple[str, str], ...] = ()
    """(code, what) of what the headers contradict; it counts unless the event is withdrawn."""


class SeriesAudit:
    """Verifies the events of series, whatever chunk they are met in.

    Args:
        store: opened to be read.
        frame: what this audit is about.
        keys: whose signatures are believed.
    """

    def __init__(self, store: ReadingStore, frame: Frame, keys: Keys) -> None:
        self._store, self._frame, self._keys = store, frame, keys
        self._verifiers: dict[bytes, Verifier] = {}
        self._renderers: OrderedDict[int, Renderer] = OrderedDict()
        self._facts: OrderedDict[int, Facts] = OrderedDict()
        self._has_keys = any(
            "*" in key.targets or "timestamp" in key.targets or "storage" in key.targets
            for key in (*frame.keyring, *frame.given)
        )

    def facts(self, series: Series) -> Facts:
        """Return what is known of a series so far; of one not verified, what its row says."""
        known = self._facts.get(series.id)
        return known or self._believed(series)

    def _believed(self, series: Series) -> Facts:
        payload = object_of(series.payload)
        height, verdict = self._verdict(series, payload)
        signer = object_of(series.signer).get("signer_id", "")
        return Facts(holds=True, signer=signer, block=verdict.state, height=height, payload=payload)

    # ------------------------------------------------------------------ events

    def verify(self, view: View, series: Series, rows: Sequence[RawEvent]) -> list[RawEvent]:
        """Verify the rows that one series has in a chunk; return those that hold."""
        batch = view.chunk.batches.get(series.batch_id)
        if batch is None:
            return []
        placed = self._placed(view, series, rows)
        known = self._key(view, series, len(placed))
        bodies = self._bodies(view, batch, series, placed)
        good = [
            (row, member, body)
            for (row, member), body in zip(placed, bodies, strict=True)
            if body is not None and self._is_id(view, row, body)
        ]
        if known is None or not good:
            return []
        good = self._signed(view, known[0], good)
        if not good:
            return []
        view.outcome.count("events", len(good))
        facts = self._read(view, series, *good[0])
        if not facts.holds:
            view.broken.update(row.record_id for row, _, _ in good)
            return []
        if series.event_type == ANCHORED:
            view.outcome.count("proofs", len(good))
        return [row for row, _, _ in good]

    def _placed(
        self, view: View, series: Series, rows: Sequence[RawEvent]
    ) -> list[tuple[RawEvent, Member]]:
        """Return the rows with the places of their records, in the order of the batch."""
        found: dict[int, tuple[RawEvent, Member]] = {}
        for row in rows:
            member = view.places.get(row.record_id, {}).get(series.batch_id)
            if member is None or not series.start <= member.index < series.next:
                where = "no member" if member is None else f"member {member.index}"
                what = f"row {row.seq} is by series {series.id} over members {series.start} to "
                what += f"{series.next} of batch {series.batch_id}; the record is {where} of it"
                view.find("event-outside", Part.EVENT, row.record_id, what, event_id(row.event_id))
            elif member.index in found:
                what = f"row {row.seq} is a second event of series {series.id} about one record"
                view.find("event-repeated", Part.EVENT, row.record_id, what, event_id(row.event_id))
            else:
                found[member.index] = (row, member)
        return [found[index] for index in sorted(found)]

    def _key(self, view: View, series: Series, count: int) -> tuple[PublicKey, Trust] | None:
        known = self._keys.find(series.key_id)
        if known is None:
            severity = Severity.BROKEN if self._has_keys else Severity.WARNING
            what = f"its events are signed by key {series.key_id!r:.100}, which is neither in the "
            todo = f"give the key with --key if you know whose it is; else {RESTORE}"
            view.outcome.find("key-unknown", severity, Part.KEY, f"series {series.id}",
                              what + "keyring nor given", todo)  # fmt: skip
            view.outcome.count("foreign_events", count)
            return None
        key, trust = known
        words = f"{fingerprint(key.public_key)}, {key.signer_id}, {_TRUST.get(trust, trust.value)}"
        view.outcome.know(key.key_id, words)
        return known

    def _is_id(self, view: View, row: RawEvent, body: bytes) -> bool:
        found = event_digest(body)
        if found == row.event_id:
            return True
        what = f"row {row.seq}: what it says hashes to {event_id(found)}: record, proof, series "
        what += "or ledger were changed, or it is another record's"
        view.find("event-changed", Part.EVENT, row.record_id, what, event_id(row.event_id))
        return False

    def _signed(
        self, view: View, key: PublicKey, good: list[tuple[RawEvent, Member, bytes]]
    ) -> list[tuple[RawEvent, Member, bytes]]:
        verifier = self._verifiers.get(key.public_key)
        if verifier is None:
            verifier = self._verifiers[key.public_key] = Verifier(key)
        ids = [row.event_id for row, _, _ in good]
        wrong = verifier.wrong(ids, [row.signature for row, _, _ in good])
        view.outcome.count("signatures", len(good))
        for place in wrong:
            row = good[place][0]
            what = f"row {row.seq}: its signature was not made by key {key.key_id!r:.100}"
            view.find("signature-wrong", Part.EVENT, row.record_id, what, event_id(row.event_id))
        gone = set(wrong)
        return [one for place, one in enumerate(good) if place not in gone] if gone else good

    # ------------------------------------------------------------------ bodies

    def _bodies(
        self, view: View, batch: Batch, series: Series, placed: list[tuple[RawEvent, Member]]
    ) -> list[bytes | None]:
        """Render bodies, all of a tile at once where nothing is wrong."""
        found: list[bytes | None] = []
        for part in _by_tile(placed):
            try:
                found += self._render(view, batch, series, part)
                continue
            except (AnchordError, ValueError, KeyError, TypeError):
                # Something about one of them; each alone says which.
                pass
            found += [self._alone(view, batch, series, one) for one in part]
        return found

    def _alone(
        self, view: View, batch: Batch, series: Series, one: tuple[RawEvent, Member]
    ) -> bytes | None:
        try:
            return self._render(view, batch, series, [one])[0]
        except (AnchordError, ValueError, KeyError, TypeError) as error:
            row = one[0]
            what = f"row {row.seq}: what was signed cannot be made again: {error!s:.300}"
            view.find("event-changed", Part.EVENT, row.record_id, what, event_id(row.event_id))
            return None

    def _render(
        self, view: View, batch: Batch, series: Series, part: list[tuple[RawEvent, Member]]
    ) -> list[bytes]:
        renderer = self._renderer(batch, series)
        members = [member for _, member in part]
        if series.proof is None:
            return renderer.bare(members, [bool(row.numbered) for row, _ in part])
        tile = view.run(batch.id, members)
        if tile is None:
            if len(part) == 1:
                raise VerificationError("its place in the batch is not there")
            return [self._render(view, batch, series, [one])[0] for one in part]
        numbered = {member.index: bool(row.numbered) for row, member in part}
        flags = [numbered.get(member.index, False) for member in tile.members]
        bodies = renderer.bodies(tile, flags, view.trees.get((batch.id, tile.tile)))
        if len(bodies) == len(part):
            return bodies
        first = members[0].index
        return [bodies[member.index - first] for member in members]

    def _renderer(self, batch: Batch, series: Series) -> Renderer:
        found = self._renderers.get(series.id)
        if found is None:
            found = self._renderers[series.id] = Renderer(self._store, batch, series)
            if len(self._renderers) > _KEPT:
                self._renderers.popitem(last=False)
        return found

    # ------------------------------------------------------------------ what a series shares

    def _read(
        self, view: View, series: Series, row: RawEvent, member: Member, body: bytes
    ) -> Facts:
        known = self._facts.get(series.id)
        if known is not None:
            return known
        subject = event_id(row.event_id)
        event = json.loads(whole_event(body, row.event_id, row.signature))
        try:
            proved = read_event(event, member.digest, member.number, self._keys)
            self._check_row(series, event)
        except (VerificationError, RefusedError) as error:
            what = f"series {series.id}, and so all of its events: {error}"
            view.find("event-refused", Part.EVENT, row.record_id, what, subject)
            facts = Facts(holds=False)
        else:
            facts = self._judge(series, event["payload"], proved)
        self._facts[series.id] = facts
        if len(self._facts) > _KEPT:
            self._facts.popitem(last=False)
        return facts

    def _check_row(self, series: Series, event: dict[str, Any]) -> None:
        """The row says by columns of its own what its events say."""
        if event["signer"].get("key_id") != series.key_id:
            raise VerificationError(
                f"the series names key {series.key_id!r:.80}, its events are by "
                f"{event['signer'].get('key_id')!r:.80}"
            )
        if (series.event_type == WITHDRAWN) != (series.withdraws is not None):
            raise VerificationError("a withdrawal, and nothing else, names what it withdraws")
        if series.withdraws is not None:
            old = self._store.ledger.get_series(series.withdraws)
            if object_of(old.signer).get("signer_id") != event["signer"].get("signer_id"):
                raise VerificationError("a withdrawal by another signer than the event's")

    def _judge(self, series: Series, payload: dict[str, Any], proved: EventProved) -> Facts:
        height, verdict = self._verdict(series, payload)
        problems = []
        if proved.proof is not None and proved.claims is not None:
            for one in proved.proof.bitcoin:
                seen = self._frame.verdicts.get((one.attestation.height or 0, one.message))
                if seen is not None and seen.state == "false":
                    problems.append(("header-differs", seen.detail))
            if verdict.hash:
                block = _block(height, verdict)
                try:
                    check_claims(proved.claims, block)
                except VerificationError as error:
                    problems.append(("block-claim-differs", str(error)))
        replaced = self._frame.replaced_by(proved.claims)
        if replaced is not None:
            problems.append(("header-differs", replaced))
        state = "false" if problems else verdict.state
        return Facts(
            holds=True,
            signer=proved.signer_id,
            block=state,
            height=height,
            payload=payload,
            proved=proved,
            headers=tuple(problems),
        )

    def _verdict(self, series: Series, payload: dict[str, Any]) -> tuple[int, Verdict]:
        if series.event_type != ANCHORED:
            return 0, Verdict("")
        height, text = payload.get("block_height"), payload.get("block_merkle_root")
        if not isinstance(height, int) or not isinstance(text, str):
            return 0, Verdict("missing")
        if self._frame.chain is not None and payload.get("chain") != self._frame.chain:
            return height, Verdict("missing", detail="of another chain")
        try:
            message = bytes.fromhex(text)[::-1]
        except ValueError:
            message = b""
        return height, self._frame.verdicts.get((height, message), Verdict("missing"))


def _block(height: int, verdict: Verdict) -> Block:
    return Block(height=height, hash=verdict.hash, merkle_root=b"", time=verdict.time,
                 confirmations=1, checked_with=())  # fmt: skip


def _by_tile(placed: list[tuple[RawEvent, Member]]) -> list[list[tuple[RawEvent, Member]]]:
    found: list[list[tuple[RawEvent, Member]]] = []
    last = None
    for one in placed:
        tile = one[1].index >> 10
        if tile != last:
            found.append([])
            last = tile
        found[-1].append(one)
    return found


def object_of(raw: bytes) -> dict[str, Any]:
    """Return a JSON object; an empty one for anything else."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
