"""Items as anybody reads them: whole members or nothing, from the archive and nobody else."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator

import pytest
from support.http_server import RESET, Asked, ScriptedServer, dead_port, reply
from support.items_site import ITEM, ItemsSite, know_faults

from anchord.adapters.archives.public_items import API_URL, PublicItems
from anchord.adapters.archives.wayback import Wayback
from anchord.core.item import Fetched, ItemSeen
from anchord.core.storage import Refused
from anchord.errors import ConfigError
from anchord.ports.copies import ItemReader, MementoReader
from anchord.sandbox.items.faults import ARCHIVE_ORG

ZIP, MEMBER, BODY = "bundles-1.zip", "ab.json", b'{"bundle": 1}\n'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ItemsSite]:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as container:
        container.writestr(MEMBER, BODY)
    with ItemsSite(tmp_path_factory.mktemp("items")) as site:
        site.ready(ZIP, packed.getvalue())
        yield site


def reader(url: str, timeout_s: float = 5.0) -> ItemReader:
    return PublicItems(url, where="archive.org", timeout_s=timeout_s, user_agent="anchord/test")


def test_a_member_is_fetched_and_hashed_across_the_redirect(site: ItemsSite) -> None:
    found = reader(site.url(ARCHIVE_ORG)).member(ITEM, ZIP, MEMBER)
    assert found == Fetched(size=len(BODY), sha256=hashlib.sha256(BODY).digest())


def test_metadata_is_read_without_keys(site: ItemsSite) -> None:
    seen = reader(site.url(ARCHIVE_ORG)).describe(ITEM)
    assert isinstance(seen, ItemSeen)
    assert seen.exists
    assert ZIP in seen.files


def test_what_is_not_there_is_no_refusal(site: ItemsSite) -> None:
    items = reader(site.url(ARCHIVE_ORG))
    for names in ((ITEM, ZIP, "other.json"), (ITEM, "other.zip", MEMBER), ("no-item", ZIP, MEMBER)):
        assert items.member(*names) is None
    gone = items.describe("no-such-item")
    assert isinstance(gone, ItemSeen)
    assert not gone.exists


def test_an_archive_in_trouble_says_nothing_about_the_member(
    site: ItemsSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    know_faults(monkeypatch)
    site.board.add(ARCHIVE_ORG, "download-503", 1, {})
    assert isinstance(reader(site.url(ARCHIVE_ORG)).member(ITEM, ZIP, MEMBER), Refused)


@pytest.mark.parametrize(
    "place",
    ["https://evil.example.org/x", "//evil.example.org/x", "http://127.0.0.1:1/x", "ftp://x/y"],
)
def test_a_redirect_out_of_the_archive_is_not_followed(place: str) -> None:
    def moved(_asked: Asked) -> list[bytes]:
        return [reply(b"", "302 Found", f"Location: {place}\r\n")]

    with ScriptedServer(moved) as server:
        said = reader(server.url).member(ITEM, ZIP, MEMBER)
        assert isinstance(said, Refused)
        assert len(server.asked) == 1


def test_redirects_in_a_circle_end() -> None:
    with ScriptedServer(lambda _: [reply(b"", "302 Found", "Location: /download/x\r\n")]) as server:
        assert isinstance(reader(server.url).member(ITEM, ZIP, MEMBER), Refused)
        assert len(server.asked) == 4


def test_a_name_cannot_lead_elsewhere_in_the_archive() -> None:
    with ScriptedServer(lambda _: [reply(b"", "404 Not Found")]) as server:
        items = reader(server.url)
        assert items.member(ITEM, "../../x", "a/b?c#d") is None
        assert isinstance(items.describe("../x"), Refused)
        assert [asked.path for asked in server.asked] == [
            f"/download/{ITEM}/..%2F..%2Fx/a%2Fb%3Fc%23d"
        ]


def test_answers_that_may_be_cut_short_are_none() -> None:
    cut = b"HTTP/1.1 200 OK\r\n\r\nhalf"
    for steps in ([cut], [RESET]):
        with ScriptedServer(lambda _, steps=steps: steps) as server:
            assert isinstance(reader(server.url).member(ITEM, ZIP, MEMBER), Refused)
    assert isinstance(reader(f"http://127.0.0.1:{dead_port()}").describe(ITEM), Refused)


def test_only_the_archive_or_this_machine_is_asked() -> None:
    reader(API_URL)
    with pytest.raises(ConfigError, match=r"archive\.items\.api_url"):
        reader("https://elsewhere.example.org")


def test_mementos_are_read_without_keys_and_nothing_is_captured() -> None:
    wayback = Wayback("http://127.0.0.1:9", None, contact="an audit")
    public: MementoReader = wayback
    assert public.where == "http://127.0.0.1:9"
    with pytest.raises(ConfigError, match="keys"):
        wayback.account()
