"""How an audit gets at a store: read only, and by a function that other processes can be sent."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anchord.adapters.store.reading import SqlReadingStore
from anchord.app.wiring import store_url

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anchord.app.config import Loaded
    from anchord.core.audit import AuditOptions
    from anchord.core.keyring import Keyring, PublicKey
    from anchord.engine.audit.outcome import Outcome, ReportFacts
    from anchord.engine.header_view import HeaderView


def reading_store(url: str) -> SqlReadingStore:
    """Open a store to be read only.

    Raises:
        ConfigError: absent, foreign, older or newer store.
    """
    return SqlReadingStore(url)


def open_store(loaded: Loaded) -> Callable[[], SqlReadingStore]:
    """Return what opens the configured store to be read, in this process or in another."""
    return partial(reading_store, store_url(loaded))


def audit_configured(
    loaded: Loaded,
    keyring: Keyring,
    given: Sequence[PublicKey],
    headers: HeaderView,
    options: AuditOptions,
    on_progress: Callable[[str, int, int], None],
    *,
    fleet: bool,
) -> tuple[Outcome, ReportFacts]:
    """Audit the configured store; with `fleet` its workers verify the records, and are believed.

    Raises:
        ConfigError: the store cannot be used, or has no workers.
        FatalError: a process of this audit died, or workers did not do their part.
        StoreBusyError: the server, or every worker, went away.
        SignatureError: one key id stands for two different keys.
    """
    from anchord.engine.audit.store import audit_store

    asked = keyring, given, headers, options, on_progress
    if not fleet:
        return audit_store(open_store(loaded), *asked)
    from anchord.app.fleet.asking import FleetAudit

    with FleetAudit(store_url(loaded), loaded.config.fleet.lease_s) as workers:
        outcome, facts = audit_store(workers.open_store, *asked, workers)
        workers.confess(outcome)
    return outcome, facts
