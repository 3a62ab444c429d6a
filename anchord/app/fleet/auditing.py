"""Shards of an audit: what a worker is told, and what it does with it.

Shards run side by side, on all workers. A worker reads the store as it was at the moment the audit
looks at, whatever is written meanwhile, and writes nothing but what it found. If it crashes,
nothing was found, and the shard is done again; done twice, the same is found twice.
"""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec

from anchord import __version__
from anchord.adapters.store.audit_shards import AuditShards
from anchord.adapters.store.postgres import application_name
from anchord.adapters.store.reading import SqlReadingStore
from anchord.engine.audit.outcome import Outcome
from anchord.engine.audit.store_chunk import ChunkAudit
from anchord.engine.audit.store_shards import (
    frame_bytes,
    outcome_bytes,
    read_frame,
    read_jobs,
)
from anchord.errors import FatalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from anchord.engine.audit.store_frame import Frame

TRIES = 3
"""So often a shard is begun before its audit ends with an error."""
TRY_AGAIN_S = 1
PRIORITY = -10
"""Below that of every duty: an audit takes what they leave."""


class _Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What stands in shard 0."""

    version: str
    """Of anchord: another one may find other words for the same."""
    moment: str
    """Of the store, as PostgreSQL names it."""
    frame: bytes


_asked = msgspec.msgpack.Decoder(_Asked)


def asked_bytes(moment: str, frame: Frame) -> bytes:
    """Return what all shards of an audit are told, as bytes.

    Raises:
        FatalError: it cannot be written down.
    """
    return msgspec.msgpack.encode(_Asked(__version__, moment, frame_bytes(frame)))


def read_asked(raw: bytes) -> tuple[str, Frame]:
    """Return the moment and the frame that `asked_bytes` wrote.

    Raises:
        FatalError: these bytes are something else, or another version of anchord wrote them.
    """
    try:
        asked = _asked.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise FatalError(
            f"expected an audit in the table audit_shards, got something else: {error!s:.500}; "
            "find out who may write to the database"
        ) from None
    if asked.version != __version__:
        raise FatalError(
            f"anchord {asked.version!r:.40} asks for an audit, and this worker is of {__version__}:"
            " install one version everywhere, or audit with --jobs"
        )
    return asked.moment, read_frame(asked.frame)


def audit_shard(url: str, audit: str, shard: int, beat: Callable[[], None]) -> str | None:
    """Audit one shard and write down what was found; return who did; None: the audit is over.

    Args:
        url: of the store.
        audit: id of the audit.
        shard: number of the shard.
        beat: called between stretches of records.

    Raises:
        FatalError: what stands in the table is no shard.
        StoreBusyError: who asked has ended, or the server does not answer.
    """
    with closing(AuditShards(url)) as rows:
        asked, spec = rows.spec(audit, 0), rows.spec(audit, shard)
        if asked is None or spec is None:
            return None
        moment, frame = read_asked(asked)
        found = Outcome(frame.options)
        with closing(SqlReadingStore(url, moment)) as store:
            chunks = ChunkAudit(store, frame)
            for job in read_jobs(spec):
                found.merge(chunks.run(job))
                beat()
        who = application_name()
        return who if rows.answer(audit, shard, outcome_bytes(found), who, _now()) else None


def _now() -> int:
    return int(time.time())
