"""Block headers from public explorers that must agree: no single one is believed.

The REST interface is Esplora's (github.com/Blockstream/esplora, API.md); mempool.space has it too.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

import msgspec

from anchord.adapters.headers.witness import checked_hash, checked_header, tip_of
from anchord.adapters.http import Client, Response, base_url, clean, require_ok
from anchord.core.header import block_hash, display
from anchord.errors import (
    AnchordError,
    ConfigError,
    NetworkError,
    ProtocolError,
    TransientError,
)
from anchord.ports import Tip

MAX_ANSWER_BYTES = 1_000
"""The longest answer asked for is a header of 160 hex digits."""

T = TypeVar("T")


class _Answers(msgspec.Struct, Generic[T], frozen=True):
    """What the servers said, and which ones failed, by base URL."""

    got: dict[str, T]
    failed: dict[str, AnchordError]


class ExplorerSource:
    """Two or more Esplora servers as one witness; implements `anchord.ports.HeaderSource`.

    Nothing is kept between calls. Threads may share it.

    Args:
        urls: base URLs; https, or http on loopback.
        client: sends the requests; its total time bounds each of the (at most two) steps.
        min_agree: how many servers must give the same header, and none another one.
        genesis: header of the network's first block. Asked for once: headers of another network
            would be cheap ones.

    Raises:
        ConfigError: fewer than two must agree, too few servers, one named twice, a bad address.
    """

    name = "explorers"

    def __init__(
        self, urls: Sequence[str], *, client: Client, min_agree: int, genesis: bytes | None = None
    ) -> None:
        bases = [base_url(url, "headers.explorers.urls") for url in urls]
        if len({base.lower() for base in bases}) != len(bases):
            raise ConfigError(
                "headers.explorers.urls names a server twice: it would agree with itself"
            )
        if not 2 <= min_agree <= len(bases):
            raise ConfigError(
                f"headers.explorers.min_agree is {min_agree} with {len(bases)} urls: expected "
                "2 or more, and as many urls at least"
            )
        self._servers = [_Server(base, client) for base in bases]
        self._min_agree = min_agree
        self._genesis = genesis

    def __repr__(self) -> str:
        return f"ExplorerSource({[server.base for server in self._servers]!r})"

    def refresh(self) -> None:
        """Do nothing: the servers follow the network."""

    def close(self) -> None:
        """Do nothing: no connection outlives its call."""

    def tip(self) -> Tip:
        """Return the highest block that enough servers know and agree on.

        That is the lowest of the `min_agree` highest tips: a single server that runs ahead, or
        makes a tip up, changes nothing, and one that lags does not hold the others back.

        Raises:
            TransientError: too few servers answer, or they are not level with each other now.
            ProtocolError: they give different headers for that height.
            ConfigError: they are of another network.
        """
        self._check_network()
        answers = self._ask(_Server.tip_height)
        heights = sorted(answers.got.values(), reverse=True)
        if len(heights) < self._min_agree:
            raise self._too_few("the tip's height", answers.failed)
        height = heights[self._min_agree - 1]
        raw = self.header(height)
        if raw is None:
            raise NetworkError(
                f"explorers: {self._min_agree} said that block {height} exists, and then that it "
                "does not; they are asked again later"
            )
        return tip_of(height, raw)

    def _check_network(self) -> None:
        if self._genesis is None:
            return
        first = self.header(0)
        if first != self._genesis:
            shown = "no block" if first is None else f"block {display(block_hash(first))}"
            raise ConfigError(
                f"the explorers have {shown} at height 0, expected "
                f"{display(block_hash(self._genesis))}: they are of another network; correct "
                "headers.explorers.urls or headers.network"
            )
        self._genesis = None

    def header(self, height: int) -> bytes | None:
        """Return the header at `height` that enough servers give; None when enough have none.

        Raises:
            TransientError: too few servers answer, or too few have the block yet.
            ProtocolError: they give different headers: nothing is anchored on any of them.
        """
        answers = self._ask(lambda server: server.header(height))
        given = {base: raw for base, raw in answers.got.items() if raw is not None}
        if len(set(given.values())) > 1:
            raise _disagreement(height, given)
        if len(given) >= self._min_agree:
            return next(iter(given.values()))
        if len(answers.got) - len(given) >= self._min_agree:
            return None
        missing = {base: "has no such block" for base, raw in answers.got.items() if raw is None}
        raise self._too_few(f"block {height}", answers.failed, missing)

    def _ask(self, question: Callable[[_Server], T]) -> _Answers[T]:
        """Ask all servers at once; one that fails is noted and harms no other."""
        with ThreadPoolExecutor(len(self._servers), "anchord-explorer") as pool:
            futures = [(server.base, pool.submit(question, server)) for server in self._servers]
        got: dict[str, T] = {}
        failed: dict[str, AnchordError] = {}
        for base, future in futures:
            error = future.exception()
            if error is None:
                got[base] = future.result()
            elif isinstance(error, (TransientError, ProtocolError)):
                failed[base] = error
            else:
                raise error
        return _Answers(got, failed)

    def _too_few(
        self, what: str, failed: dict[str, AnchordError], missing: dict[str, str] | None = None
    ) -> NetworkError:
        """Name every server that did not help; the longest wait that one asks for is passed on."""
        words = [str(error) for error in failed.values()]
        words += [f"{base} {said}" for base, said in (missing or {}).items()]
        waits = [getattr(error, "retry_after", None) for error in failed.values()]
        return NetworkError(
            f"explorers: expected {self._min_agree} of {len(self._servers)} to agree on {what}, "
            f"too few did: {'; '.join(words)}",
            retry_after=max((wait for wait in waits if wait is not None), default=None),
        )


class _Server:
    """One Esplora server."""

    def __init__(self, base: str, client: Client) -> None:
        self.base = base
        self._client = client

    def tip_height(self) -> int:
        """Return the height of its best block."""
        text = self._text(self._get("/blocks/tip/height"))
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise ProtocolError(f"{self.base}: expected a block height, got {clean(text)!r}")
        return int(text)

    def header(self, height: int) -> bytes | None:
        """Return its header at `height`, which hashes to the block it names; None without one."""
        response = self._get(f"/block-height/{height}")
        if response.status == http.client.NOT_FOUND:
            return None
        block = checked_hash(self._text(response), self.base)
        text = self._text(self._get(f"/block/{block}/header"))
        return checked_header(text, block, self.base)

    def _get(self, path: str) -> Response:
        return self._client.get(self.base + path, max_bytes=MAX_ANSWER_BYTES)

    def _text(self, response: Response) -> str:
        require_ok(response, self.base)
        return response.body.decode("latin-1").strip()


def _disagreement(height: int, given: dict[str, bytes]) -> ProtocolError:
    said = "; ".join(f"{base} says {display(block_hash(raw))}" for base, raw in given.items())
    return ProtocolError(
        f"explorers disagree on block {height}: {said}. None is used; if it goes on for more "
        "than an hour, one of them is wrong"
    )
