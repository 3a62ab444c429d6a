"""Further witnesses in a store: the block a batch is younger than, and tokens of authorities."""

from __future__ import annotations

import functools
import sqlite3

import msgspec
import pytest
from support.audited import CHAIN, broken, damaged, settled
from support.authorities import FakeAuthority, LocalAuthority
from support.parties import FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare

from anchord.app.audit_wiring import reading_store
from anchord.core.audit import AuditOptions
from anchord.engine.audit.store import audit_store
from anchord.engine.header_view import HeaderView


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    return LocalAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def place(tmp_path_factory, local):
    """Return the folder of a store with one batch that has both witnesses, and its chain."""
    folder = tmp_path_factory.mktemp("witnessed")
    authority, chain = FakeAuthority(local), FakeChain()
    parts = make_parts(folder, headers=[chain], not_before=True, authorities=(authority.url,))
    go = Passes(msgspec.structs.replace(parts, authorities=(authority,)), chain)
    go.add(bare(3))
    go()
    go.parts.calendars[0].mine(chain)
    chain.grow(5)
    go(60)
    parts.store.close()
    settled(folder / "anchord.db")
    return folder, chain


def audit(path, chain, **changes):
    headers = HeaderView([chain], CHAIN, 6)
    opened = functools.partial(reading_store, f"sqlite:///{path}")
    outcome, facts = audit_store(
        opened, FakeSigner().keyring(), (), headers, AuditOptions(now=2_000_000_000, **changes),
        lambda *_: None,
    )  # fmt: skip
    return outcome.report(**msgspec.structs.asdict(facts))


def replaced(chain, height):
    """Return a chain with another block at a height, and the same ones above."""
    other = FakeChain(height=0)
    other.headers = list(chain.headers)
    other.headers[height] = bytes([other.headers[height][0] ^ 1]) + other.headers[height][1:]
    return other


def older(folder):
    connection = sqlite3.connect(folder / "anchord.db")
    (height,) = connection.execute("SELECT not_before_height FROM batches").fetchone()
    connection.close()
    return height


def test_what_holds_is_sound(place):
    folder, chain = place
    report = audit(folder / "anchord.db", chain)
    assert broken(report) == {}
    assert (report.result, report.completeness.anchored) == ("sound", {"anchored": 3})


def test_a_block_that_is_none_of_the_chain_is_found(place):
    folder, chain = place
    height = older(folder)
    report = audit(folder / "anchord.db", replaced(chain, height))
    found = broken(report)
    assert set(found) == {"header-differs"}
    assert len(found["header-differs"]) == 3
    assert all(f"not_before names block {height}" in one for one in found["header-differs"])
    assert "anchored" not in report.completeness.anchored


def test_a_block_whose_header_cannot_be_had_is_a_doubt(place):
    folder, chain = place

    class Forgetful(FakeChain):
        def header(self, height):
            return None if height == older(folder) else super().header(height)

    young = Forgetful(height=0)
    young.headers = list(chain.headers)
    report = audit(folder / "anchord.db", young)
    assert broken(report) == {}
    assert report.result == "not proved"
    assert [reason for reason in report.reasons if "younger than" in reason]
    assert report.completeness.anchored == {"anchored": 3}


TOKENS = {
    "changed": ("UPDATE tokens SET raw = CAST(substr(raw, 1, length(raw) - 1) || X'00' AS BLOB)",
                {"token-wrong", "token-differs"}),
    "cut": ("UPDATE tokens SET raw = X'3000'", {"token-wrong", "token-differs"}),
    "taken away": ("DELETE FROM tokens", {"token-missing"}),
    "forgotten": ("UPDATE tokens SET raw = NULL", {"token-missing"}),
    "of another address": ("UPDATE tokens SET url = 'https://x.example.org/tsr'",
                           {"token-missing"}),
    "of no batch": ("UPDATE tokens SET batch_id = 99", {"token-missing", "row-of-nothing"}),
}  # fmt: skip


@pytest.mark.parametrize("case", TOKENS)
def test_a_token_is_held_against_its_batch_and_its_events(case, place, tmp_path):
    folder, chain = place
    statement, codes = TOKENS[case]
    path = damaged(folder / "anchord.db", tmp_path / "damaged.db", statement)
    assert set(broken(audit(path, chain))) == codes


def test_a_token_over_something_else_is_found(place, local, tmp_path):
    folder, chain = place
    other = local.token(bytes(32)).raw
    path = damaged(folder / "anchord.db", tmp_path / "damaged.db", "UPDATE tokens SET raw = ?",
                   values=(other,))  # fmt: skip
    assert set(broken(audit(path, chain))) == {"token-wrong", "token-differs"}
