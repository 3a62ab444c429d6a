"""Statuses, Retry-After, foreign words and addresses are read by fixed rules."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.adapters.http import (
    Response,
    authority,
    base_url,
    clean,
    is_loopback,
    require_ok,
    retry_after,
)
from anchord.errors import ConfigError, ProtocolError, RateLimitedError, TransientError

NOW = "Mon, 30 Nov 2026 07:00:00 GMT"


def answer(status: int, body: bytes = b"", **headers: str) -> Response:
    return Response(status, {name.replace("_", "-"): text for name, text in headers.items()}, body)


WAITS = [
    ("120", None, 120.0),
    (" 0 ", None, 0.0),
    ("99999999999", None, 86_400.0),
    ("Mon, 30 Nov 2026 07:02:00 GMT", NOW, 120.0),
    ("Mon, 30 Nov 2026 06:00:00 GMT", NOW, 0.0),
    ("Mon, 30 Nov 2099 06:00:00 GMT", NOW, 86_400.0),
    ("Mon, 30 Nov 2026 07:02:00 GMT", None, None),
    ("Mon, 30 Nov 2026 07:02:00 GMT", "yesterday", None),
    ("soon", NOW, None),
    ("-5", NOW, None),
    ("1.5", NOW, None),
    ("\u0661\u0662", NOW, None),
    ("", NOW, None),
]


@pytest.mark.parametrize(("value", "date", "expected"), WAITS)
def test_retry_after_is_seconds_or_a_date_and_never_over_a_day(value, date, expected) -> None:
    headers = {"Retry_After": value} | ({"Date": date} if date else {})
    assert retry_after(answer(429, **headers)) == expected


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_retry_after_gives_none_or_a_bounded_wait(value: str, date: str) -> None:
    wait = retry_after(answer(429, Retry_After=value, Date=date))
    assert wait is None or 0 <= wait <= 86_400


def test_429_is_a_rate_limit_with_its_wait() -> None:
    with pytest.raises(RateLimitedError) as caught:
        require_ok(answer(429, Retry_After="7"), "a")
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, 599, 999])
def test_what_time_may_heal_is_transient_with_its_wait(status: int) -> None:
    with pytest.raises(TransientError) as caught:
        require_ok(answer(status, Retry_After="9"), "a")
    assert type(caught.value) is TransientError
    assert caught.value.retry_after == 9.0


@pytest.mark.parametrize("status", [101, 201, 204, 206, 301, 302, 303, 304, 307, 308, 400, 403])
def test_other_statuses_break_the_protocol(status: int) -> None:
    with pytest.raises(ProtocolError, match=str(status)):
        require_ok(answer(status), "a")


def test_a_redirect_names_its_target_without_secrets_and_escapes() -> None:
    to = "https://user:hush@evil.example.org\x1b[31m/x?key=hush"
    with pytest.raises(ProtocolError, match=r"evil\.example\.org_") as caught:
        require_ok(answer(302, Location=to), "a")
    assert "hush" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


@given(st.binary(max_size=400) | st.text(max_size=400))
def test_clean_words_are_short_and_plain(words: bytes | str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9#\-.,; _]{0,160}", clean(words))


@pytest.mark.parametrize("text", ["Not found", "Timestamped by transaction ab12; waiting for 6"])
def test_the_calendars_words_are_kept(text: str) -> None:
    assert clean(text) == clean(text.encode()) == text


GOOD = [
    ("https://a.example.org", "https://a.example.org"),
    ("https://a.example.org/", "https://a.example.org"),
    ("https://a.example.org:8443/ots/cal-1.0/", "https://a.example.org:8443/ots/cal-1.0"),
    ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("http://127.8.9.10", "http://127.8.9.10"),
    ("http://localhost:1/x", "http://localhost:1/x"),
    ("http://[::1]:8080", "http://[::1]:8080"),
]


@pytest.mark.parametrize(("url", "expected"), GOOD)
def test_base_urls_keep_their_path_and_lose_their_last_slash(url: str, expected: str) -> None:
    assert base_url(url, "x") == expected


BAD = [
    "",
    "a.example.org",
    "http://a.example.org",
    "http://10.0.0.1",
    "http://127.0.0.1.example.org",
    "http://localhost.example.org",
    "http://[::2]",
    "ftp://127.0.0.1",
    "file:///etc/passwd",
    "HTTPS://a.example.org",
    "https://",
    "https://u@a.example.org",
    "https://u:hush@a.example.org",
    "https://127.0.0.1@a.example.org",
    "https://a.example.org?x=1",
    "https://a.example.org/?",
    "https://a.example.org#x",
    "https://a.example.org//x",
    "https://a.example.org:0",
    "https://a.example.org:65536",
    "https://a.example.org/x y",
    "https://a.example.org\\@b.example.org",
    "https://a.example.org\n",
    "https://a.example.org/%2e%2e",
    "https://\u00e4.example.org",
]


@pytest.mark.parametrize("url", BAD)
def test_other_addresses_are_refused_without_showing_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="the setting") as caught:
        base_url(url, "the setting")
    assert "hush" not in str(caught.value)


def test_http_to_any_host_only_where_it_is_allowed() -> None:
    assert base_url("http://node.example.org:8332", "x", plain_anywhere=True)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.255.0.1", "[::1]"])
def test_loopback_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "128.0.0.1", "localhost.example.org", "[::]"])  # noqa: S104
def test_what_is_not_loopback_is_known(host: str) -> None:
    assert not is_loopback(host)


def test_an_authority_never_shows_a_user() -> None:
    assert authority("https://u:p@h.example.org:1/x?y#z") == "h.example.org:1"
    assert authority("/relative") == ""
