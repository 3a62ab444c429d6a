"""What a pass works with: the parts handed in by the wiring, and the numbers of the policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from anchord.core.keyring import Keyring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from anchord.ports import Calendar, HeaderSource, Signer
    from anchord.ports.authority import TimestampAuthority
    from anchord.ports.outlet import Outlet
    from anchord.ports.source import Source
    from anchord.ports.store import Store


RARELY = 24
"""Times the longest wait: how often something is looked at that need not change soon."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of the configuration's [anchoring] and [headers] tables, and names for events."""

    min_answers: int
    timeout_s: float
    min_batch_interval_s: int
    poll_min_s: int
    poll_max_s: int
    resubmit_after_s: int
    confirmations: int
    final_confirmations: int
    sign_submitted: bool
    chain: str
    """What events call the chain: "bitcoin", or "bitcoin-<network>" for test networks."""
    wayback_url: str = "https://web.archive.org"
    """Where capture URLs in events begin; another one is no Wayback Machine, and shows so."""
    origin: str = "anchord"
    """Name of the log of events, and of the key that signs its checkpoints."""
    checkpoint_every_s: int = 0
    """Least age of the last checkpoint before a pass makes the next, batches aside."""
    not_before: bool = False
    """Let batches carry the hash of a recent block."""
    authorities: tuple[str, ...] = ()
    """Addresses of the time-stamping authorities batches get tokens from."""
    item_host: str = "archive.org"
    """What events call the place of items; another one shows that it is a stand-in."""


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a pass touches."""

    store: Store
    policy: Policy
    signer: Signer
    signer_for: Callable[[str, int], Signer]
    """Opens an older key of ours by key id, to finish what was begun with it at a moment;
    UnknownKeyError when it is not among ours, another ConfigError when it is revoked or gone, or
    had ended by then."""
    calendars: Sequence[Calendar]
    headers: Sequence[HeaderSource]
    draw: Callable[[int], bytes]
    """Random bytes; nonces come from here."""
    on_progress: Callable[[str, int, int], None]
    """Told (stage, done, total) while a stage works."""
    authorities: Sequence[TimestampAuthority] = ()
    """Time-stamping authorities that give batches tokens."""
    sources: Sequence[Source] = ()
    """Where records come from by themselves."""
    keyring: Callable[[], Keyring] = lambda: Keyring({})
    """Public keys that bundles from sources are held against, and that go into bundles."""
    outlets: Sequence[Outlet] = ()
    """Where receipts go by themselves."""

    @property
    def by_url(self) -> Mapping[str, Calendar]:
        """Calendars by the address digests are submitted to."""
        return {calendar.url: calendar for calendar in self.calendars}

    @property
    def by_uri(self) -> Mapping[str, Calendar]:
        """Calendars by the URIs they are asked under."""
        return {uri: calendar for calendar in self.calendars for uri in calendar.uris}
