"""Block headers from a Bitcoin Core node of the operator's own; pruned is enough.

Only headers are asked for, and a pruned node keeps all of those. The calls are getblockchaininfo,
getblockhash and getblockheader (Bitcoin Core, src/rpc/blockchain.cpp).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from anchord.adapters.headers.credentials import credentials
from anchord.adapters.headers.rpc import OUT_OF_RANGE, Refusal, Rpc
from anchord.adapters.headers.witness import checked_hash, checked_header, tip_of
from anchord.adapters.http import Client, base_url, clean
from anchord.errors import ConfigError, ProtocolError, TransientError
from anchord.ports import Tip

_CHAIN_OF = {"mainnet": "main"}
"""Bitcoin Core's names of networks where they differ from ours (src/util/chaintype.cpp)."""


class _Info(msgspec.Struct, frozen=True):
    """What is used of getblockchaininfo."""

    chain: str
    blocks: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    bestblockhash: str
    initialblockdownload: bool


class NodeSource:
    """One node as witness; implements `anchord.ports.HeaderSource`. Threads may share it.

    The node is believed about which chain is best. Its headers are re-hashed all the same, so
    that a damaged answer is never taken for one.

    Args:
        url: RPC address. Bitcoin Core speaks plain http only: off loopback use a private net.
        client: sends the requests.
        network: mainnet, testnet4, signet or regtest; a node on another one is refused.
        cookie_file: the node's .cookie; or else:
        user: RPC user, with
        password_file: the file whose first line is the password.

    Raises:
        ConfigError: an address or login that cannot work.
    """

    name = "bitcoin node"

    def __init__(
        self,
        url: str,
        *,
        client: Client,
        network: str,
        cookie_file: Path | None = None,
        user: str = "",
        password_file: Path | None = None,
    ) -> None:
        address = base_url(url, "headers.node.url", plain_anywhere=True)
        self._rpc = Rpc(address, client, credentials(cookie_file, user, password_file))
        self._address = address
        self._chain = _CHAIN_OF.get(network, network)

    def __repr__(self) -> str:
        return f"NodeSource({self._address!r})"

    def refresh(self) -> None:
        """Do nothing: the node itself follows the network."""

    def close(self) -> None:
        """Do nothing: no connection outlives its call."""

    def tip(self) -> Tip:
        """Return the end of the node's best chain.

        Raises:
            ConfigError: login refused, or the node is on another network.
            TransientError: unreachable, starting, or still downloading the chain.
            ProtocolError: not an answer of Bitcoin Core.
        """
        info = self._info()
        block = checked_hash(info.bestblockhash, self.name)
        return tip_of(info.blocks, self._header_of(block))

    def header(self, height: int) -> bytes | None:
        """Return the header at `height`; None when the node's best chain is shorter.

        A reorg between the two calls gives a header that is no longer on the best chain: the
        later checks at more confirmations see that.

        Raises:
            ConfigError: login refused, or the node is on another network.
            TransientError: unreachable, starting, or still downloading the chain.
            ProtocolError: not an answer of Bitcoin Core.
        """
        if height > self._info().blocks:
            return None
        block = self._rpc.call(str, "getblockhash", height)
        if isinstance(block, Refusal):
            if block.code == OUT_OF_RANGE:
                return None  # the chain became shorter since the call before
            raise _refused("getblockhash", block)
        return self._header_of(checked_hash(block, self.name))

    def _header_of(self, block: str) -> bytes:
        text = self._rpc.call(str, "getblockheader", block, False)  # noqa: FBT003 - JSON
        if isinstance(text, Refusal):
            raise _refused("getblockheader", text)
        return checked_header(text, block, self.name)

    def _info(self) -> _Info:
        info = self._rpc.call(_Info, "getblockchaininfo")
        if isinstance(info, Refusal):
            raise _refused("getblockchaininfo", info)
        if info.chain != self._chain:
            raise ConfigError(
                f"the bitcoin node at {self._address} is on chain {clean(info.chain)!r}, expected "
                f"{self._chain!r}: correct headers.node.url or headers.network"
            )
        if info.initialblockdownload:
            raise TransientError(
                f"the bitcoin node is still downloading the chain (block {info.blocks:,}); "
                "it is asked again later"
            )
        return info


def _refused(method: str, refusal: Refusal) -> ProtocolError:
    return ProtocolError(
        f"bitcoin node: expected a result of {method}, got error {refusal.code} "
        f"({refusal.message}); see the node's log"
    )
