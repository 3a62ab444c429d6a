"""`anchord outlets`, `retry --outlet`, and what `[[outlets]]` may say."""

from __future__ import annotations

import base64
from pathlib import Path

import msgspec
import pytest
from support.http_server import Asked, ScriptedServer, reply
from support.parties import make_parts
from support.workplace import Workplace, bare, sample

from anchord.app.outlet_config import OutletConfig, check_outlets
from anchord.engine.delivering import Delivered, deliver
from anchord.errors import ConfigError

HOOK = '[[outlets]]\nname = "hook"\nkind = "webhook"\nsecret_file = "secret"\nurl = "{url}"\n'


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    found = Workplace(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("whsec_" + base64.b64encode(bytes(32)).decode(), "utf-8")
    secret.chmod(0o600)
    return found


def configure(place: Workplace, *tables: str) -> None:
    text = place.config.read_text("utf-8").partition("\n[[outlets]]")[0]
    place.config.write_text("\n".join([text, *tables]), "utf-8")


def hand_over(place: Workplace, seconds: int = 61) -> Delivered:
    """Give the configured outlets their turn, some time later."""
    with place.app() as app:
        parts = make_parts(place.folder, store=app.store)
        parts = msgspec.structs.replace(parts, outlets=app.outlets, keyring=lambda: app.keyring)
        return deliver(parts, place.clock.advance(seconds))


def test_where_receipts_go_and_how_far_that_is(place: Workplace) -> None:
    assert "no outlets" in place.run("outlets").stdout
    place.add(sample(1), *(bare(bytes([n]) * 32) for n in range(3)))
    place.step()

    def script(asked: Asked) -> list[bytes]:
        bad = b"00" * 32 in asked.body
        return [reply(b"odd <\x1b[31m>", "422 No") if bad else reply(b"", "204 Fine")]

    with ScriptedServer(script) as server:
        folder = '[[outlets]]\nname = "files"\nkind = "folder"\npath = "out"\n'
        configure(place, HOOK.format(url=server.url), folder)
        hook, files = place.json("outlets")["outlets"]
        assert (hook["behind"], files["behind"], hook["stopped"]) == (4, 4, False)
        assert hand_over(place) == Delivered(events=3 + 4, set_aside=1)
        hook, files = place.json("outlets")["outlets"]
        assert (files["delivered"], files["behind"], files["set_aside"]) == (4, 0, [])
        assert (hook["delivered"], hook["waiting"], hook["parked"]) == (3, 1, 0)
        (row,) = hook["set_aside"]
        assert row["record"].endswith("00" * 32)
        shown = place.run("outlets").stdout
        assert "up to date" in shown
        assert "refused it (422" in shown
        assert "\x1b" not in shown
        configure(place)
        assert [one["configured"] for one in place.json("outlets")["outlets"]] == [False, False]


def test_a_closed_outlet_goes_on_when_a_person_says_so(place: Workplace) -> None:
    answers = [reply(b"", "410 Gone")]
    place.add(sample(1))
    place.step()
    with ScriptedServer(lambda _asked: answers) as server:
        configure(place, HOOK.format(url=server.url))
        assert "wants no more" in hand_over(place).problems["hook"]
        assert "stopped" in place.run("outlets").stdout
        assert place.json("outlets")["outlets"][0]["stopped"]
        hand_over(place, 86_400)
        assert len(server.asked) == 1
        answers[:] = [reply(b"", "200 OK")]
        assert place.json("retry", "--outlet", "hook")["outlets"] == {"hook": 0}
        # The command has the machine's clock, which is years ahead of the test's.
        assert hand_over(place, 20 * 365 * 86_400).events == 1
    assert "goes on" in place.run("retry", "--outlet", "hook").stdout


def test_an_outlet_that_never_was_cannot_be_brought_back(place: Workplace) -> None:
    result = place.run("retry", "--outlet", "nobody")
    assert result.exit_code == 1
    assert "outlet nobody is not parked" in result.output


def outlet(**values: object) -> OutletConfig:
    return msgspec.convert({"name": "one", "kind": "folder", "path": "x", **values}, OutletConfig)


SQL = {"kind": "sql", "path": "", "url": "sqlite:///x.db", "statements": {"item_stored": "SELECT"}}
WEBHOOK = {"kind": "webhook", "path": "", "url": "https://example.org/"}
WRONG = [
    ([outlet(), outlet()], "two are called"),
    ([outlet(name="../x")], "a name is made of"),
    ([outlet(name="")], "a name is made of"),
    ([outlet(name="x" * 41)], "a name is made of"),
    ([outlet(path="")], "needs path"),
    ([outlet(**{**WEBHOOK, "url": ""})], "needs url"),
    ([outlet(**{**SQL, "statements": {}})], "needs statements"),
    ([outlet(url="https://example.org/")], "url means nothing for the kind folder"),
    ([outlet(**WEBHOOK, statements={"item_stored": "x"})], "statements means nothing"),
    ([outlet(**SQL, events_per_request=2)], "events_per_request means nothing"),
    ([outlet(path="a\nb")], "cannot be printed"),
]


@pytest.mark.parametrize(("outlets", "words"), WRONG)
def test_what_makes_no_sense_is_refused(outlets: list[OutletConfig], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        check_outlets(outlets)


def test_what_makes_sense_is_taken() -> None:
    check_outlets([outlet(), outlet(name="two", **WEBHOOK), outlet(name="3-x_y", **SQL)])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('name = "x"\nkind = "pigeon"', "outlets"),
        ('name = "x"\nkind = "folder"\npath = "y"\ntypo = 1', "typo"),
        ('name = "x"\nkind = "sql"\nurl = "y"\nstatements = { nothing = "UPDATE" }', "nothing"),
        ('name = "x"\nkind = "folder"\npath = "y"\nevents = ["nothing"]', "nothing"),
    ],
)
def test_a_typing_mistake_is_never_silent(place: Workplace, table: str, words: str) -> None:
    configure(place, f"[[outlets]]\n{table}\n")
    result = place.run("status")
    assert result.exit_code == 2
    assert words in result.stderr


def test_a_webhook_without_a_secret_is_refused_and_a_credential_will_do(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.folder / "secret").rename(place.folder / "anchord-outlet-hook")
    table = HOOK.format(url="https://example.org/hook").replace('secret_file = "secret"\n', "")
    configure(place, table)
    with place.app() as app, pytest.raises(ConfigError, match="anchord-outlet-hook"):
        _ = app.outlets
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(place.folder))
    with place.app() as app:
        assert [one.name for one in app.outlets] == ["hook"]


def test_outlets_may_be_given_by_the_environment(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANCHORD__OUTLETS", '[{ name = "e", kind = "folder", path = "e" }]')
    assert [one["name"] for one in place.json("outlets")["outlets"]] == ["e"]
