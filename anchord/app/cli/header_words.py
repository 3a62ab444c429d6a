"""What the `headers` commands say: documents for scripts, lines for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from anchord.app.cli.output import console, notes, utc
from anchord.core.chain import ChainState
from anchord.core.header import display
from anchord.core.network import Network

if TYPE_CHECKING:
    from anchord.adapters.headers.sync import SyncReport


class Target(msgspec.Struct, frozen=True):
    """Which header file is meant, and whom to ask for it."""

    path: Path
    network: Network
    peers: tuple[str, ...] = ()
    min_peers: int = 2
    timeout_s: float = 20.0


def tell(words: tuple[str, ...] | list[str]) -> None:
    """Say on stderr what was found wrong with a file."""
    for line in words:
        notes().print(f"note: {line}", markup=False, soft_wrap=True)


def cautions(network: Network) -> list[str]:
    """Return what no check of headers can tell about a network."""
    if network.name != "signet":
        return []
    return ["signet's block signatures are not in headers and are not checked"]


def tip_json(state: ChainState) -> dict[str, Any]:
    """Return a chain's end with the keys that `headers` documents use."""
    return {
        "height": state.height,
        "hash": display(state.hash),
        "time": utc(state.time),
        "work": f"{state.work:064x}",
    }


def tip_line(state: ChainState, network: Network) -> str:
    """Return a chain's end in one line."""
    short = "" if state.work >= network.min_work else "; less work than the network has: sync on"
    return f"{network.name} {state.height} {display(state.hash)} {utc(state.time)}{short}"


def failure_json(target: Target, offset: int, reason: str) -> dict[str, Any]:
    """Return the document of a file that is not a good chain."""
    where = {"ok": False, "file": str(target.path), "network": target.network.name}
    return {**where, "offset": offset, "reason": reason}


def status_json(target: Target, state: ChainState | None, now: int) -> dict[str, Any]:
    """Return the status document; height and what follows are null without headers."""
    tip = dict.fromkeys(("height", "hash", "time", "work")) if state is None else tip_json(state)
    return {
        "network": target.network.name,
        "file": str(target.path),
        "size": target.path.stat().st_size if target.path.exists() else 0,
        **tip,
        "age_s": None if state is None else max(0, now - state.time),
        "has_minimum_work": state is not None and state.work >= target.network.min_work,
        "peers": list(target.peers) or [f"DNS seed {seed}" for seed in target.network.seeds],
    }


def sync_json(report: SyncReport, target: Target) -> dict[str, Any]:
    """Return the document of a sync."""
    return {
        "network": target.network.name,
        "file": str(target.path),
        "added": report.added,
        "reorged": report.reorged,
        "height": report.height,
        "work": f"{report.work:064x}",
        "enough_peers": report.is_enough,
        "peers": [msgspec.to_builtins(peer) for peer in report.peers],
        "notes": list(report.notes),
    }


def print_sync(report: SyncReport, target: Target) -> None:
    """Print what a sync did, and how each peer did."""
    out = console()
    out.print(
        f"{target.network.name}: height {report.height}, {report.added} headers taken in, "
        f"{report.reorged} given up",
        markup=False,
    )
    for peer in report.peers:
        word = "ok     " if peer.ok else "dropped"
        out.print(f"{word} {peer.address} at {peer.height}: {peer.reason}", markup=False)
    if not report.is_enough:
        notes().print(f"fewer than {report.needed} peers could be compared: name more with --peer")


def plain(value: object) -> str:
    """Return a value as people read it."""
    if isinstance(value, list):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
