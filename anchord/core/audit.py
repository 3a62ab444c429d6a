"""What an audit was asked, and what it says: values shared by its halves and its reports."""

from __future__ import annotations

import msgspec

from anchord.core.finding import Finding
from anchord.core.standing import Completeness


class AuditOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to look at."""

    now: int
    jobs: int = 1
    """Processes that verify at once."""
    sample: int | None = None
    """So many records, drawn with `seed`, are verified; None: all of them."""
    seed: int = 0
    since: bytes | None = None
    """A checkpoint (signed note) of an earlier audit: what it covers is taken as checked then."""
    online: int | None = None
    """So many mementos and items, drawn with `seed`, are fetched again; None: none."""
    confirmations: int = 6


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What was really checked in this audit."""

    records: int = 0
    """Records whose every claim was re-derived."""
    records_counted: int = 0
    """Records that were there, checked or not."""
    events: int = 0
    """Events whose id, signature and payload were checked."""
    foreign_events: int = 0
    """Events that could not be checked: their makers publish no rule, or the key is not known."""
    signatures: int = 0
    proofs: int = 0
    """Paths from a record to a block's Merkle root that were recomputed."""
    headers: int = 0
    """Block headers that confirmed such a path."""
    headers_missing: int = 0
    """Blocks no header could be had for; what rests on them is not proved."""
    checkpoints: int = 0
    tiles: int = 0
    inclusions: int = 0
    """Events proved to be in a log that a checkpoint covers."""
    mementos: int = 0
    """Mementos fetched again."""
    items: int = 0
    """Files of items looked up again."""
    files: int = 0
    """Files whose hash was held against a signed index or manifest."""


class AuditReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an audit says."""

    source: str
    """What was audited, in words."""
    kind: str
    """`store`, `tree` (published) or `bundles` (a folder without an index)."""
    created_at: int
    result: str
    """`sound` (nothing broken, all of it checked), `broken`, or `not proved` (nothing broken, and
    something that ought to be checked could not be)."""
    reasons: tuple[str, ...]
    """Why it is not `sound`."""
    sampled: str | None
    """What was left out, in words: a sample, or what an earlier checkpoint covers."""
    keys: tuple[str, ...]
    """Who signed what was checked: key id, fingerprint, signer, how far it is trusted."""
    checkpoint: str | None
    """Newest checkpoint that was checked: a signed note, to be given to the next audit."""
    chain: str | None
    completeness: Completeness
    coverage: Coverage
    findings: tuple[Finding, ...]
    counts: dict[str, int]
    """Findings by code, those that were not kept included."""
    seconds: float | None = None
    """How long it took; None in reports that must compare equal."""
