"""What the engine asks of the store for the facet `stored`; same contract as `ports.store`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from anchord.core.storage import (
        Capture,
        CaptureChange,
        CaptureState,
        FileChange,
        FileState,
        Glance,
        Item,
        ItemFile,
        Lane,
        NewCapture,
        NewFile,
        Range,
        StoredCounts,
    )


class LaneTable(Protocol):
    """Paces and pauses."""

    def get(self, name: str) -> Lane:
        """Return a lane; a fresh one when it was never used."""
        ...

    def all(self) -> list[Lane]:
        """Return every lane that was used, by name."""
        ...

    def put(self, *lanes: Lane) -> None:
        """Keep lanes as they are now."""
        ...


class CaptureTable(Protocol):
    """URLs to capture."""

    def unclaimed(self) -> tuple[int, int, int] | None:
        """Return the first batch with members not looked at yet: (batch, claimed so far, size).

        A record is looked at in each batch it is in; a capture is made once.
        """
        ...

    def claim(
        self,
        batch_id: int,
        stop: int,
        captures: Sequence[NewCapture],
        now: int,
        *,
        start: int | None = None,
    ) -> int:
        """Note that members before `stop` were looked at, and the URLs found.

        A record's URL that is there already is left alone. `start` is what `unclaimed` said: when
        the batch does not stand there any more (canonical bytes came for one of its records
        meanwhile), it is looked at again from where it stands. Return how many are new.
        """
        ...

    def claim_again(self) -> None:
        """Let all members be looked at once more, because the URL templates changed."""
        ...

    def due(
        self,
        states: Collection[CaptureState],
        now: int,
        limit: int,
        skip_hosts: Collection[str] = (),
    ) -> list[Capture]:
        """Return captures in one of the states whose time has come, the longest due first."""
        ...

    def in_state(self, states: Collection[CaptureState], limit: int = 1000) -> list[Capture]:
        """Return captures in some states, due or not, oldest first."""
        ...

    def get(self, capture_id: int) -> Capture:
        """Return one capture."""
        ...

    def of_record(self, record_id: int) -> list[Capture]:
        """Return a record's captures, the one of role "source" first."""
        ...

    def next_moment(self, states: Collection[CaptureState]) -> int | None:
        """Return when the next capture in one of the states is due."""
        ...

    def glance(self) -> Glance:
        """Return when each state is due next, and whether anything is to be claimed."""
        ...

    def count(self, state: CaptureState, limit: int | None = None) -> int:
        """Return how many stand in a state (counting no further than `limit`)."""
        ...

    def bring_forward(self, states: Collection[CaptureState], now: int, latest: int) -> int:
        """Heal captures that a clock far ahead put off beyond `latest`; return how many.

        None of their moments lies ahead any more.
        """
        ...

    def change(self, changes: Sequence[CaptureChange], lanes: Sequence[Lane] = ()) -> int:
        """Change captures, append intents and keep lanes in one transaction.

        Return how many changes were made; one whose row has moved on meanwhile is left out.
        """
        ...


class ItemTable(Protocol):
    """Items and their files."""

    def packable(self, older_than: int, limit: int = 1000) -> list[tuple[int, int, int, int]]:
        """Return batches with members to pack, oldest first: (batch, packed, size, since).

        A batch is packable when it is anchored and all of its events are signed, or was made
        before `older_than`. `since` is when it became anchored, or was made.
        """
        ...

    def open_item(self, day: int) -> Item | None:
        """Return the item of a UTC day that takes files."""
        ...

    def add_item(self, identifier: str, day: int, part: int, now: int) -> Item:
        """Note an item about to be used."""
        ...

    def add_files(
        self, item: Item, files: Sequence[NewFile], now: int, *, repack_of: int | None = None
    ) -> list[ItemFile]:
        """Note files of an item in one transaction, and that their members are packed.

        A manifest stands directly after its ZIP in `files`. A range begins where its batch was
        packed to, or later: members left out stand in another batch, which has them packed.
        `repack_of` is the gone file whose members these are; then no batch moves on.
        """
        ...

    def pass_over(self, batch_id: int, stop: int) -> None:
        """Note that members before `stop` need no packing here: they stand in other batches.

        A batch that is packed further already stays as it is.
        """
        ...

    def packed_to(self, batch_id: int) -> int:
        """Return before which member of a batch all are packed or passed over."""
        ...

    def members_packed(self) -> int:
        """Return how many members all files of bundles hold, gone ones included."""
        ...

    def item(self, item_id: int) -> Item:
        """Return one item."""
        ...

    def items(self, states: Collection[str]) -> list[Item]:
        """Return items in some states, oldest first."""
        ...

    def change_item(self, item: Item, **columns: object) -> None:
        """Change an item's own fields."""
        ...

    def files(self, item_id: int) -> list[ItemFile]:
        """Return an item's files in the order they were packed."""
        ...

    def file(self, file_id: int) -> ItemFile:
        """Return one file."""
        ...

    def due(self, states: Collection[FileState], now: int, limit: int = 1000) -> list[ItemFile]:
        """Return files in one of the states whose time has come, the longest due first."""
        ...

    def in_state(self, states: Collection[FileState], limit: int = 1000) -> list[ItemFile]:
        """Return files in some states, oldest first."""
        ...

    def next_moment(self, states: Collection[FileState]) -> int | None:
        """Return when the next file in one of the states is due."""
        ...

    def ranges(self, file_id: int) -> list[Range]:
        """Return what stretches of batches a file holds, in its order."""
        ...

    def member_sha256s(self, file_id: int) -> bytes:
        """Return the members' hashes, 32 bytes each, in the file's order."""
        ...

    def file_of(self, batch_id: int, place: int) -> ItemFile | None:
        """Return the newest file a member of a batch is in."""
        ...

    def change(self, changes: Sequence[FileChange], lanes: Sequence[Lane] = ()) -> int:
        """Change files, append intents and keep lanes in one transaction.

        Return how many changes were made; one whose row has moved on meanwhile is left out.
        """
        ...


class StorageTables(Protocol):
    """What `Store.storage` gives."""

    @property
    def lanes(self) -> LaneTable:
        """Paces and pauses."""
        ...

    @property
    def captures(self) -> CaptureTable:
        """URLs to capture."""
        ...

    @property
    def items(self) -> ItemTable:
        """Items and their files."""
        ...

    def counts(self) -> StoredCounts:
        """Count how the facet stands; the work grows with captures and files, not with records."""
        ...
