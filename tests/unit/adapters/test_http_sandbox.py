"""The HTTP adapters against the sandbox: one digest's way to Bitcoin, and two witnesses of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from anchord.adapters.calendars import HttpCalendar
from anchord.adapters.headers.bitcoind import NodeSource
from anchord.adapters.headers.esplora import ExplorerSource
from anchord.adapters.http import Client
from anchord.core.proof import check_upgrade_answer
from anchord.errors import ProtocolError, TransientError
from anchord.ports import HeaderSource, NotYet, Submitted, Upgraded
from anchord.sandbox.run import Sandbox

DIGEST = hashlib.sha256(b"a root").digest()
CLIENT = Client(5.0)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    folder = tmp_path_factory.mktemp("sandbox")
    with Sandbox(folder, calendars=1, tick_s=0.05, confirmations=2, peers=0) as running:
        yield running


@pytest.fixture
def sources(sandbox: Sandbox) -> list[HeaderSource]:
    node = NodeSource(
        sandbox.node_url, client=CLIENT, network="regtest", cookie_file=sandbox.cookie_file
    )
    return [node, ExplorerSource(sandbox.explorer_urls, client=CLIENT, min_agree=2)]


def test_a_digest_goes_to_bitcoin_by_all_three_states(sandbox: Sandbox) -> None:
    url = sandbox.calendars[0].url
    calendar = HttpCalendar(url, [url], CLIENT)
    submitted = calendar.submit(DIGEST)
    assert isinstance(submitted, Submitted)
    (point,) = submitted.pendings
    statuses = []
    for _ in range(2):
        got = calendar.upgrade(point.uri, point.commitment)
        assert isinstance(got, NotYet)
        statuses.append(got.status)
        sandbox.mine()
    assert statuses == ["journal", "transaction"]
    upgraded = calendar.upgrade(point.uri, point.commitment)
    assert isinstance(upgraded, Upgraded)
    assert check_upgrade_answer(upgraded.raw, point.commitment)
    unknown = calendar.upgrade(point.uri, DIGEST)
    assert isinstance(unknown, NotYet)
    assert unknown.status == "unknown"


def test_node_and_explorers_say_the_same_before_and_after_a_reorg(sandbox, sources) -> None:
    for change in (lambda: sandbox.mine(3), lambda: sandbox.reorg(2)):
        change()
        node, explorers = sources
        tip = node.tip()
        assert explorers.tip() == tip
        assert tip.height == sandbox.height
        for height in range(max(0, tip.height - 5), tip.height + 2):
            assert node.header(height) == explorers.header(height)
        assert node.header(tip.height + 1) is None
        assert node.header(0) is not None


def test_a_node_that_wakes_up_and_an_explorer_on_a_fork_are_told_apart(sandbox, sources) -> None:
    sandbox.mine(3)
    sandbox.fault("node", "warm-up", 1)
    sandbox.fault("explorer-2", "disagree")
    node, explorers = sources
    with pytest.raises(TransientError, match="starting"):
        node.tip()
    with pytest.raises(ProtocolError, match="disagree"):
        explorers.header(sandbox.height)
    sandbox.clear_faults()
    assert node.tip() == explorers.tip()
