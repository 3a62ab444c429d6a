"""The webhook against servers on loopback: what is posted, what answers mean, what is kept back."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.handing_over import Exchange
from support.http_server import RESET, SILENCE, Asked, ScriptedServer, always, dead_port, reply
from support.parties import FakeClock
from support.passes import bare

from anchord.adapters.http import Client
from anchord.adapters.outlets import webhook
from anchord.adapters.outlets.webhook import WebhookOutlet, signature
from anchord.core.model import Scheme, StoredRecord
from anchord.errors import (
    AnchordError,
    ConfigError,
    NetworkError,
    ProtocolError,
    RateLimitedError,
    TransientError,
)
from anchord.ports.outlet import Closed, Delivery, Partly

KEY = bytes(range(32))
OLD_KEY = bytes(range(1, 33))
OK = reply(b"", "204 No Content")


def text_of(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret"
    file.write_text(f"{text_of(KEY)}\n", "utf-8")
    file.chmod(0o600)
    return file


def opened(url: str, secret: Path, **options: Any) -> WebhookOutlet:
    return WebhookOutlet("hook", url, secret, Client(2.0), FakeClock(), **options)


def delivery(number: int, document: bytes | None = None) -> Delivery:
    record = StoredRecord(
        id=number, digest=bytes(32), scheme=Scheme.SHA256, year=None, source_kind=None,
        source_id=None, source_version=None, label=None, batch_id=None, added_at=0,
    )  # fmt: skip
    return Delivery(
        seq=number, record=record, number=None, event_id=f"sha256:{number:064x}",
        event_type="timestamp_anchored", facet="anchored", created_at=0,
        document=b'{"n":%d}' % number if document is None else document,
    )  # fmt: skip


def verified(asked: Asked, *keys: bytes) -> bytes:
    """Check a request as a receiver does; return its body."""
    stated = asked.headers["webhook-signature"].split()
    signed = f"{asked.headers['webhook-id']}.{asked.headers['webhook-timestamp']}.".encode()
    for key in keys or (KEY,):
        mac = hmac.digest(key, signed + asked.body, "sha256")
        assert "v1," + base64.b64encode(mac).decode() in stated
    return asked.body


def test_the_signature_is_that_of_the_standards_own_example() -> None:
    """The example of the Standard Webhooks libraries."""
    key = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_signed_events_arrive_as_they_are_and_their_id_is_the_messages(
    tmp_path: Path, secret: Path
) -> None:
    with ScriptedServer(always(OK)) as server:
        go = Exchange(tmp_path, opened(f"{server.url}/events", secret))
        go.add(bare(2))
        go()
        go.parts.store.close()
    assert len(server.asked) == 2
    for asked in server.asked:
        event = json.loads(verified(asked))
        assert (asked.method, asked.path) == ("POST", "/events")
        assert asked.headers["content-type"] == "application/json"
        assert asked.headers["webhook-id"] == event["event_id"]
        assert {"signature_b64", "event_type", "payload", "signer"} < set(event)


def test_a_secret_being_changed_signs_with_both(secret: Path) -> None:
    secret.write_text(f"{text_of(KEY)}\n\n{text_of(OLD_KEY)}\n", "utf-8")
    with ScriptedServer(always(OK)) as server:
        opened(server.url, secret).hand_over([delivery(1)])
    verified(server.asked[0], KEY, OLD_KEY)


def test_a_new_secret_holds_at_once(secret: Path) -> None:
    with ScriptedServer(always(OK)) as server:
        outlet = opened(server.url, secret)
        secret.write_text(text_of(OLD_KEY), "utf-8")
        outlet.hand_over([delivery(1)])
        secret.unlink()
        with pytest.raises(ConfigError, match="cannot be read"):
            outlet.hand_over([delivery(1)])
    verified(server.asked[0], OLD_KEY)
    assert len(server.asked) == 1


def test_several_go_in_one_request_a_line_each(secret: Path) -> None:
    some = [delivery(number) for number in range(1, 6)]
    with ScriptedServer(always(OK)) as server:
        outlet = opened(server.url, secret, at_once=5)
        assert outlet.hand_over(some) == {}
        assert outlet.hand_over(some) == {}
        outlet.hand_over(some[:1])
    first, again, alone = server.asked
    assert verified(first).splitlines() == [one.document for one in some]
    assert first.headers["content-type"] == "application/x-ndjson"
    assert first.headers["webhook-id"] == again.headers["webhook-id"] != some[0].event_id
    assert alone.headers["webhook-id"] == some[0].event_id


@given(st.lists(st.integers(0, 30), min_size=1, max_size=20))
def test_requests_are_cut_to_size_and_leave_nothing_out(sizes: list[int]) -> None:
    some = [delivery(n, b"x" * size) for n, size in enumerate(sizes)]
    groups = webhook._within(some, 33)
    assert [one for group in groups for one in group] == some
    for group in groups:
        assert len(group) == 1 or sum(len(one.document) + 1 for one in group) <= 33


def test_an_event_that_is_too_long_is_refused_and_not_sent(secret: Path) -> None:
    long = delivery(1, b"x" * (webhook.MAX_BODY + 1))
    with ScriptedServer(always(OK)) as server:
        refused = opened(server.url, secret, at_once=9).hand_over([long, delivery(2)])
    assert list(refused) == [1]
    assert "at most" in refused[1]
    assert len(server.asked) == 1


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "204 No Content"])
def test_2xx_takes_an_event(secret: Path, status: str) -> None:
    with ScriptedServer(always(reply(b"thanks", status))) as server:
        assert opened(server.url, secret).hand_over([delivery(1)]) == {}


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\n",  # no length, as small servers answer
        reply(b"x" * 1_000_000),  # more than is read
    ],
    ids=["bare", "endless"],
)
def test_a_200_takes_an_event_whatever_comes_with_it(secret: Path, answer: bytes) -> None:
    with ScriptedServer(always(answer)) as server:
        assert opened(server.url, secret).hand_over([delivery(1)]) == {}


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422, 500, 501])
def test_what_is_about_the_event_refuses_that_event_alone(secret: Path, status: int) -> None:
    def script(asked: Asked) -> Sequence[bytes]:
        bad = b'{"n":2}' in asked.body
        return [reply(b"no \x1b[31m", f"{status} No") if bad else OK]

    with ScriptedServer(script) as server:
        outlet = opened(server.url, secret, at_once=3)
        refused = outlet.hand_over([delivery(n) for n in (1, 2, 3)])
    assert list(refused) == [2]
    assert str(status) in refused[2]
    assert refused[2].isprintable()


def test_a_receiver_that_refuses_slowly_holds_up_nobody(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand refusals of ten seconds each would be hours: the rest waits for the next call."""
    monkeypatch.setattr(webhook, "CALL_S", 0.2)
    some = [delivery(n) for n in range(1, 9)]
    slow: list[bytes | float] = [0.15, reply(b"no", "422 No")]
    with ScriptedServer(always(*slow)) as server:
        answer = opened(server.url, secret, at_once=8).hand_over(some)
        posted = [asked.body for asked in server.asked[1:]]
    assert isinstance(answer, Partly)
    assert 1 < answer.rest < 9
    tried = [one for one in some if one.seq < answer.rest]
    assert list(answer.refused) == [one.seq for one in tried]
    assert posted == [one.document + b"\n" for one in tried]


def test_410_closes_the_outlet(secret: Path) -> None:
    with ScriptedServer(always(reply(b"", "410 Gone"))) as server:
        answer = opened(server.url, secret, at_once=2).hand_over([delivery(1), delivery(2)])
    assert isinstance(answer, Closed)
    assert "retry --outlet hook" in answer.words
    assert len(server.asked) == 1


FAILURES: list[tuple[Any, type[AnchordError], float | None]] = [
    (reply(b"", "429 Slow", "Retry-After: 120\r\n"), RateLimitedError, 120),
    (reply(b"", "503 Away", "Retry-After: 9\r\n"), TransientError, 9),
    (reply(b"", "502 Bad"), TransientError, None),
    (reply(b"", "408 Late"), TransientError, None),
    (reply(b"", "401 Who"), ProtocolError, None),
    (reply(b"", "403 No"), ProtocolError, None),
    (reply(b"", "404 Where"), ProtocolError, None),
    (b"nonsense\r\n\r\n", ProtocolError, None),
    (b"", NetworkError, None),
    (RESET, NetworkError, None),
    (SILENCE, NetworkError, None),
]


@pytest.mark.parametrize(("step", "kind", "after"), FAILURES)
def test_what_is_about_the_outlet_counts_against_the_outlet(
    secret: Path, step: Any, kind: type[AnchordError], after: float | None
) -> None:
    client = Client(0.4 if step is SILENCE else 5.0)
    with ScriptedServer(always(step)) as server, pytest.raises(kind) as caught:
        WebhookOutlet("hook", server.url, secret, client, FakeClock()).hand_over([delivery(1)])
    assert getattr(caught.value, "retry_after", None) == after
    assert text_of(KEY)[6:] not in str(caught.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(secret: Path, status: int) -> None:
    with ScriptedServer(always(OK)) as other:
        moved = reply(b"", f"{status} Moved", f"Location: {other.url}/\r\n")
        with ScriptedServer(always(moved)) as server, pytest.raises(ProtocolError):
            opened(server.url, secret).hand_over([delivery(1)])
    assert other.connections == 0


def test_nobody_there_is_no_answer(secret: Path) -> None:
    with pytest.raises(NetworkError) as caught:
        opened(f"http://127.0.0.1:{dead_port()}", secret).hand_over([delivery(1)])
    assert caught.value.refused


@pytest.mark.parametrize(
    "url",
    ["http://example.org/", "ftp://example.org/", "https://u:secretword@example.org/",
     "https://example.org/?token=secretword", "file:///etc/passwd", "https://example.org/#x", ""],
)  # fmt: skip
def test_an_address_that_may_not_be_posted_to_is_refused(secret: Path, url: str) -> None:
    with pytest.raises(ConfigError, match="url"):
        opened(url, secret)


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        (text_of(KEY), 0o644, "open to everybody"),
        ("", 0o600, "empty"),
        ("correct horse battery staple", 0o600, "something else"),
        (text_of(KEY[:8]), 0o600, "24 to 64"),
        (text_of(KEY * 3), 0o600, "24 to 64"),
        (text_of(KEY) + "\ncorrect-horse-battery", 0o600, "something else"),
        ("x" * 100_000, 0o600, "longer"),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_without_being_shown(
    tmp_path: Path, text: str, mode: int, words: str
) -> None:
    file = tmp_path / "secret"
    file.write_text(text, "utf-8")
    file.chmod(mode)
    with pytest.raises(ConfigError, match=words) as caught:
        opened("https://example.org/hook", file)
    for line in text.splitlines():
        assert line[6:] not in str(caught.value)


def test_a_secret_without_its_prefix_is_the_same_secret(secret: Path) -> None:
    secret.write_text(base64.b64encode(KEY).decode(), "utf-8")
    with ScriptedServer(always(OK)) as server:
        opened(server.url, secret).hand_over([delivery(1)])
    verified(server.asked[0])


def test_what_the_documents_show_receivers_verifies_what_is_posted(secret: Path) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs/operations.md").read_text("utf-8")
    shown = text[text.index("def verify(headers, body, secret)") :].partition("```")[0]
    names: dict[str, Any] = {"base64": base64, "hmac": hmac, "time": time}
    exec(shown, names)  # noqa: S102 - our own document
    clock = FakeClock(int(time.time()))
    with ScriptedServer(always(OK)) as server:
        outlet = WebhookOutlet("hook", server.url, secret, Client(5.0), clock)
        outlet.hand_over([delivery(1)])
        clock.advance(-600)
        outlet.hand_over([delivery(2)])
    fresh, old = server.asked
    assert names["verify"](fresh.headers, fresh.body, text_of(KEY))
    assert not names["verify"](fresh.headers, fresh.body, text_of(OLD_KEY))
    assert not names["verify"](fresh.headers, fresh.body + b" ", text_of(KEY))
    assert not names["verify"](old.headers, old.body, text_of(KEY))
