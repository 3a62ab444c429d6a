"""Servers that are asked: those a person named, and of those strangers name public ones only."""

from __future__ import annotations

import ast
import contextlib
import ipaddress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.http_server import Asked, ScriptedServer, always, reply

import anchord
from anchord.adapters.archives.public_items import PublicItems
from anchord.adapters.archives.wayback import Wayback
from anchord.adapters.calendars import HttpCalendar
from anchord.adapters.http import Client, base_url
from anchord.adapters.http.deadline import _is_public
from anchord.errors import AnchordError, ConfigError

ROOT = Path(anchord.__file__).parent

ADDRESSES = {
    "app/wiring.py": "the configuration: calendars, explorers, node, authorities",
    "app/cli/witnesses.py": "options of the command line",
    "app/mirror_wiring.py": "the command line, and manifests of strangers: `private` is set",
    "app/outlet_wiring.py": "the configuration: webhooks",
    "app/source_wiring.py": "the configuration: a resolver; names are only put into its path",
    "adapters/archives/wayback.py": "the configuration: archive.org or loopback, `stand_in`",
    "adapters/archives/public_items.py": "the configuration: archive.org or loopback, `stand_in`",
}
"""Who makes clients, and where the addresses come from that they ask."""


def _calls(path: Path, name: str) -> list[ast.Call]:
    calls = (
        node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    )
    return [call for call in calls if ast.unparse(call.func).split(".")[-1] == name]


def test_every_way_out_is_known_with_where_its_addresses_come_from() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): _calls(path, "Client")
        for path in ROOT.rglob("*.py")
        if "sandbox" not in path.parts and _calls(path, "Client")
    }
    assert set(found) == set(ADDRESSES), "say where the new client's addresses come from"
    for call in found["app/mirror_wiring.py"]:
        assert "private" in {word.arg for word in call.keywords}, ast.unparse(call)


def test_nothing_opens_a_connection_but_the_http_factory_and_the_peer_to_peer_client() -> None:
    """Libraries that go out by themselves are named here, each with its own guard."""
    ways = ("urlopen", "create_connection", "PoolManager", "ProxyManager", "get_session")
    allowed = {
        "adapters/http/client.py", "adapters/headers/p2p.py", "adapters/archives/item_process.py",
    }  # fmt: skip
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "sandbox" not in path.parts and any(_calls(path, way) for way in ways)
    }
    assert found <= allowed


PRIVATE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "100.64.0.1",
    "0.0.0.0", "255.255.255.255", "224.0.0.1", "239.1.2.3", "::", "::1", "fe80::1%eth0", "fc00::1",  # noqa: S104
    "ff02::1", "ff0e::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::10.0.0.1",
    "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:a00:1::f5ff:fffe",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_no_address_that_leads_into_a_private_network_counts_as_public(address: str) -> None:
    assert not _is_public(address)


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::1.1.1.1"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert _is_public(address)


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "64:ff9b::{}", "::{}"]))
def test_an_address_within_another_is_judged_like_itself(
    inner: ipaddress.IPv4Address, around: str
) -> None:
    if int(inner) > 1:  # ::0 and ::1 are addresses of their own
        assert _is_public(around.format(inner)) == _is_public(str(inner))


ELSEWHERE = "http://169.254.169.254/latest/meta-data/"


def _asks() -> list[tuple[str, object]]:
    def calendar(url: str) -> object:
        return HttpCalendar(url, (url,), Client(2)).submit(bytes(32))

    def wayback(url: str) -> object:
        archive = Wayback(url, None, contact="a@example.org", timeout_s=2)
        return archive.replay("20240801110000", "https://example.org/", None)

    def items(url: str) -> object:
        found = PublicItems(url, where="archive.org", timeout_s=2, user_agent="test")
        return found.describe("anchord-test"), found.member("anchord-test", "a.zip", "b.json")

    return [("calendar", calendar), ("Wayback Machine", wayback), ("items", items)]


@pytest.mark.parametrize("ask", [ask for _, ask in _asks()], ids=[name for name, _ in _asks()])
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See", "307 Temp", "308 Perm"])
def test_no_service_can_send_us_to_another_server(ask, status: str) -> None:
    """Whoever follows asks the one it was sent to; here nobody else is asked."""

    def other(_asked: Asked) -> list[bytes]:
        return [reply(b"secret")]

    with ScriptedServer(other) as secret:
        for target in (secret.url + "/x", ELSEWHERE, "file:///etc/passwd", "//" + secret.url[7:]):
            head = f"Location: {target}\r\n"
            answer = reply(b"", status, head)
            with ScriptedServer(always(answer)) as service, contextlib.suppress(AnchordError):
                ask(service.url)
        assert secret.asked == []


def test_a_calendar_that_only_a_proof_names_is_never_asked() -> None:
    """Proofs of strangers state addresses to ask; only those in the configuration are."""
    with ScriptedServer(lambda _asked: [reply(b"")]) as stranger:
        calendar = HttpCalendar(
            "https://calendar.example.org", ("https://c.example.org",), Client(2)
        )
        with pytest.raises(ConfigError, match="is not asked"):
            calendar.upgrade(stranger.url, bytes(32))
        assert stranger.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org", "ftp://example.org", "file:///etc/passwd",
        "https://user:pw@example.org", "https://example.org/?a=b", "https://example.org/#x",
        "https://example.org\\@evil.example.org", "https://exa\nmple.org",
        "https://example.org:99999", "gopher://127.0.0.1:70/",
        "//example.org", "https://", "https://example.org/\u202e", "javascript:alert(1)",
        "http://127.0.0.1.example.org",
    ],
)  # fmt: skip
def test_no_address_but_plain_https_is_taken_and_no_password_is_repeated(url: str) -> None:
    with pytest.raises(ConfigError) as found:
        base_url(url, "the address")
    assert "pw" not in str(found.value)
