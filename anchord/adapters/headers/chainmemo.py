"""What is known of a header file: how far it was checked, and the digest of what was checked.

The memo is only ever believed together with its digest: a file whose bytes differ in one bit
from what was checked is checked again from genesis. Somebody who can write both files can
forge the memo; so `anchord headers check` and `anchord verify --headers` do not read it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from anchord.adapters.disk import read_small
from anchord.core.chain import ChainState
from anchord.core.strictjson import UNREADABLE

FORMAT = 1


class ChainMemo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of the file beside the header file."""

    format: int = FORMAT
    network: str
    state: ChainState
    """The checked chain's end, with its work left out; its height says how many bytes count."""
    work: str
    """The chain's work, hex: it outgrows the integers of JSON readers."""
    sha256: bytes
    """Of the bytes that were checked."""

    def end(self) -> ChainState:
        """Return the checked chain's end.

        Raises:
            ValueError: the work is not hex.
        """
        return msgspec.structs.replace(self.state, work=int(self.work, 16))


def memo_path(path: Path) -> Path:
    """Return where the memo of the header file `path` lies."""
    return path.with_name(path.name + ".checked")


def load_memo(path: Path, network: str) -> tuple[ChainState, bytes] | None:
    """Return the checked end and the digest; None when there is no memo that can be used."""
    try:
        memo = msgspec.json.decode(read_small(memo_path(path)), type=ChainMemo)
        known = memo.network == network and memo.format == FORMAT
        return (memo.end(), memo.sha256) if known else None
    except (OSError, ValueError, *UNREADABLE):
        return None


def save_memo(path: Path, network: str, state: ChainState, sha256: bytes) -> None:
    """Replace the memo in one step. Lost in a crash, it costs one check from genesis.

    Raises:
        OSError: the folder cannot be written.
    """
    memo = ChainMemo(
        network=network,
        state=msgspec.structs.replace(state, work=0),
        work=f"{state.work:x}",
        sha256=sha256,
    )
    target = memo_path(path)
    fresh = target.with_name(target.name + ".new")
    fresh.write_bytes(msgspec.json.encode(memo))
    fresh.replace(target)
