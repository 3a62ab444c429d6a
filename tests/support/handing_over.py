"""Outlets that keep what they are given, refuse what they are told to, and judge the order."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from anchord.core.event import canonical_body, event_digest, event_id
from anchord.core.keyring import check_signature
from anchord.engine.parts import Parts
from anchord.errors import AnchordError
from anchord.ports.outlet import Closed, Delivery, Wants
from support.parties import FakeChain, make_parts
from support.passes import Passes


class FakeOutlet:
    """An outlet of a test.

    Attributes:
        got: everything that arrived, in order, twice what came twice.
        refuses: tells whether a delivery is refused by itself.
        fails: called with each call's deliveries before they arrive; may raise.
        lost: as `fails`, after they arrived: the answer is lost.
        closed: says that it wants no more.
    """

    kind = "fake"

    def __init__(
        self,
        name: str = "fake",
        *,
        wants: Wants = "event",
        at_once: int = 1,
        events: Sequence[str] = (),
        from_now: bool = False,
    ) -> None:
        self.name, self.wants, self.at_once = name, wants, at_once
        self.events, self.from_now = tuple(events), from_now
        self.got: list[Delivery] = []
        self.calls = 0
        self.refuses: Callable[[Delivery], bool] = lambda _one: False
        self.fails: Callable[[Sequence[Delivery]], AnchordError | None] = lambda _some: None
        self.lost: Callable[[Sequence[Delivery]], AnchordError | None] = lambda _some: None
        self.closed = False

    def hand_over(self, deliveries: Sequence[Delivery]) -> Mapping[int, str] | Closed:
        self.calls += 1
        assert 0 < len(deliveries) <= self.at_once
        assert len({one.record.id for one in deliveries}) == len(deliveries)
        assert [one.seq for one in deliveries] == sorted(one.seq for one in deliveries)
        self._raise(self.fails(deliveries))
        if self.closed:
            return Closed("no more")
        refused = {one.seq: "not this one" for one in deliveries if self.refuses(one)}
        self.got += [one for one in deliveries if one.seq not in refused]
        self._raise(self.lost(deliveries))
        return refused

    def close(self) -> None:
        pass

    def _raise(self, error: AnchordError | None) -> None:
        if error is not None:
            raise error

    @property
    def rows(self) -> list[int]:
        """Rows of the ledger as they arrived."""
        return [one.seq for one in self.got]


class Exchange(Passes):
    """Passes over a store with outlets; see `Passes`."""

    def __init__(self, folder: Path, *outlets: Any, **numbers: Any) -> None:
        parts = make_parts(folder, headers=[FakeChain()], **numbers)
        super().__init__(self.with_outlets(parts, *outlets), parts.headers[0])  # type: ignore[arg-type]

    @staticmethod
    def with_outlets(parts: Parts, *outlets: Any) -> Parts:
        signer: Any = parts.signer
        return msgspec.structs.replace(parts, outlets=outlets, keyring=signer.keyring)

    def use(self, *outlets: Any) -> None:
        """Let passes hand over to these from now on."""
        self.parts = self.with_outlets(self.parts, *outlets)

    def anchor(self, wait_s: int = 600) -> Any:
        """Bring what waits into a block and pass."""
        self.parts.calendars[0].mine(self.chain)  # type: ignore[attr-defined]
        self.parts.headers[0].grow(5)  # type: ignore[attr-defined]
        return self(wait_s)

    @property
    def head(self) -> int:
        return self.parts.store.ledger.head()[0]

    def all_arrived(self, outlet: FakeOutlet) -> None:
        """Judge: every event arrived, whole, and those of a record in order."""
        assert set(outlet.rows) == set(range(1, self.head + 1))
        self.in_order(outlet)

    def in_order(self, outlet: FakeOutlet) -> None:
        """Judge what arrived so far: of each record, first comings follow the ledger gapless."""
        rows: dict[int, list[int]] = defaultdict(list)
        for one in outlet.got:
            if one.seq not in rows[one.record.id]:
                rows[one.record.id].append(one.seq)
        for record_id, seqs in rows.items():
            ledger = [row.seq for row in self.parts.store.ledger.of_record(record_id)]
            assert seqs == ledger[: len(seqs)], f"record {record_id}"


def whole(delivery: Delivery, signer: Any) -> dict[str, Any]:
    """Return a delivered event, proved: its id and its signature are those of its bytes."""
    event: dict[str, Any] = json.loads(delivery.document)
    body = {k: v for k, v in event.items() if k not in ("event_id", "signature_b64")}
    digest = event_digest(canonical_body(body))
    assert event["event_id"] == event_id(digest) == delivery.event_id
    check_signature(signer.public(), digest, base64.b64decode(event["signature_b64"]))
    return event
