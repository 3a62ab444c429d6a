"""Which peers to ask: the configured ones, or addresses behind a network's DNS seeds."""

from __future__ import annotations

import queue
import random
import socket
import threading
import time
from collections.abc import Sequence

from anchord.adapters.headers.p2p import Address
from anchord.core.network import Network
from anchord.errors import ConfigError, NetworkError

MAX_CANDIDATES = 24
"""Addresses tried at most in one sync when peers come from DNS seeds."""
DNS_WAIT_S = 8.0


def parse_peer(text: str, network: Network) -> Address:
    """Return the address `text` means: host, host:port, or [IPv6]:port.

    Raises:
        ConfigError: none of these.
    """
    host, port = text.strip(), ""
    if host.startswith("["):
        host, _, rest = host[1:].partition("]")
        port = rest.removeprefix(":")
        good = rest == "" or rest.startswith(":")
    else:
        if host.count(":") == 1:
            host, _, port = host.partition(":")
        good = True
    port = port or str(network.port)
    good = good and bool(host) and port.isascii() and port.isdigit() and 0 < int(port) < 65536
    if not good:
        raise ConfigError(f"peer {text!r} is not host, host:port or [IPv6]:port: correct it")
    return Address(host, int(port))


def candidates(peers: Sequence[str], network: Network, until: float) -> list[Address]:
    """Return the peers to ask, in order: those named, or some of those the DNS seeds know.

    Args:
        peers: as configured; empty asks the seeds.
        network: whose seeds.
        until: moment of the monotonic clock after which no seed is waited for.

    Raises:
        ConfigError: a peer's address cannot be read, or there is no peer and no seed.
        NetworkError: no seed answered.
    """
    if peers:
        return list(dict.fromkeys(parse_peer(text, network) for text in peers))
    if not network.seeds:
        raise ConfigError(
            f"{network.name} has no DNS seeds: name peers in headers.file.peers or with --peer"
        )
    found = _ask_seeds(network, min(until, time.monotonic() + DNS_WAIT_S))
    if not found:
        raise NetworkError(
            f"no DNS seed of {network.name} answered ({', '.join(network.seeds)}): "
            "check the connection, or name peers in headers.file.peers"
        )
    # Any order would do; a random one spreads the load and is hard to arrange for an attacker.
    return random.SystemRandom().sample(found, min(len(found), MAX_CANDIDATES))


def _ask_seeds(network: Network, until: float) -> list[Address]:
    """Resolve all seeds at once in threads, because the system's resolver has no timeout."""
    answers: queue.SimpleQueue[list[Address]] = queue.SimpleQueue()
    for seed in network.seeds:
        threading.Thread(target=_resolve, args=(seed, network.port, answers), daemon=True).start()
    found: set[Address] = set()
    for _ in network.seeds:
        try:
            found.update(answers.get(timeout=max(0.01, until - time.monotonic())))
        except queue.Empty:
            break
    return sorted(found, key=str)


def _resolve(seed: str, port: int, answers: queue.SimpleQueue[list[Address]]) -> None:
    try:
        infos = socket.getaddrinfo(seed, port, type=socket.SOCK_STREAM)
    except OSError:
        infos = []
    answers.put([Address(str(info[4][0]), port) for info in infos])
