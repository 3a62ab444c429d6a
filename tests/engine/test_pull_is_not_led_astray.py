"""A stranger's manifest cannot send anchord into this machine or a private network."""

from __future__ import annotations

import socket

import pytest
from support.http_server import reply
from support.static_site import StaticSite
from support.trees import publish_tree
from support.workplace import Workplace, sample

from anchord.adapters.http import Client, deadline
from anchord.engine.pulling import PATIENCE
from anchord.errors import NetworkError, ProtocolError

NAMED = "mirror.example.org"


@pytest.fixture
def dialled(monkeypatch):
    """Addresses that a connection was tried to; none is made."""
    asked = []

    def dial(address, _timeout_s):
        asked.append(address[4][0])
        raise OSError("nobody there")

    monkeypatch.setattr(deadline, "_dial", dial)
    return asked


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "localhost", "10.0.0.1",  # noqa: S104
        "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.64.0.1", "[::1]", "[::]",
        "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[fd00::1]", "[fe80::1]",
    ],
)  # fmt: skip
def test_however_a_private_address_is_written_it_is_not_asked(dialled, host):
    client = Client(5, private=frozenset({NAMED}))
    with pytest.raises(ProtocolError, match="private network"):
        client.get(f"https://{host}/pith/X/bundle.json")
    assert dialled == []


def test_a_name_is_judged_by_where_it_leads(dialled, monkeypatch):
    leads = {"rebound.example.org": ["93.184.216.34", "127.0.0.1"], "good.example.org": ["1.1.1.1"]}

    def found(host, port, **_):
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (one, port)) for one in leads[host]]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    client = Client(5, private=frozenset({NAMED}))
    with pytest.raises(ProtocolError, match="private network"):
        client.get("https://rebound.example.org/")
    with pytest.raises(NetworkError):
        client.get("https://good.example.org/")
    assert dialled == ["1.1.1.1"]


def test_the_host_a_person_named_may_lie_anywhere(dialled):
    with pytest.raises(NetworkError):
        Client(5, private=frozenset({"10.0.0.1"})).get("https://10.0.0.1/")
    assert dialled == ["10.0.0.1"]


def test_a_mirror_whose_states_never_come_is_left_for_the_next_pull(tmp_path):
    folders = [tmp_path / name for name in ("source", "reader")]
    for folder in folders:
        folder.mkdir()
    source, reader = map(Workplace, folders)
    source.anchor(*[sample(number) for number in range(PATIENCE + 3)])
    publish_tree(source, tmp_path / "tree")
    with StaticSite(tmp_path / "tree") as site:
        for file in (tmp_path / "tree" / "pith").glob("*/state.json"):
            name = str(file.relative_to(tmp_path / "tree"))
            site.faults[name] = (reply(b"", "503 Service Unavailable"),)
        done = reader.json("mirror", "pull", site.url, "--rate", "1000", code=3)
        asked = [path for path in site.paths() if path.endswith("state.json")]
    assert len(asked) == PATIENCE
    assert done["new"] == PATIENCE


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"", "302 Found", "Location: http://[::1\r\n"),
        reply(b"", "302 Found", "Location: http://[x]/\r\n"),
        reply(b"", "302 Found", "Location: file:///etc/passwd\r\n"),
        reply(b"", "304 Not Modified"),
    ],
)
def test_an_answer_that_makes_no_sense_costs_one_bundle(tmp_path, answer):
    folders = [tmp_path / name for name in ("source", "reader")]
    for folder in folders:
        folder.mkdir()
    source, reader = map(Workplace, folders)
    source.anchor(*[sample(number) for number in range(3)])
    publish_tree(source, tmp_path / "tree")
    with StaticSite(tmp_path / "tree") as site:
        bundle = next((tmp_path / "tree" / "pith").glob("*/bundle.json"))
        site.faults[str(bundle.relative_to(tmp_path / "tree"))] = (answer,)
        done = reader.json("mirror", "pull", site.url, "--rate", "1000", code=3)
    assert done["new"] == 2
