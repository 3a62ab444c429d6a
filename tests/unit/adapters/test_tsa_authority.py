"""Authorities over HTTP: a token or one clear reason, whatever the other side does."""

from __future__ import annotations

import os
import time

import pytest
from support.authorities import openssl, openssl_accepts

from anchord.adapters.http import Client
from anchord.adapters.tsa import HttpAuthority
from anchord.errors import ConfigError, ProtocolError, RefusedError, TransientError
from anchord.sandbox.run import Sandbox

DIGEST = bytes(range(32))


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory):
    openssl()
    folder = tmp_path_factory.mktemp("sandbox")
    with Sandbox(folder, calendars=1, explorers=0, peers=0, archive=False) as running:
        yield running


@pytest.fixture
def roots(sandbox):
    (one,) = sandbox.authorities.values()
    return sandbox.directory / one.certificates


@pytest.fixture
def authority(sandbox, roots):
    sandbox.clear_faults()
    (one,) = sandbox.authorities.values()
    return HttpAuthority(one.url, roots, Client(1.0), os.urandom)


def test_a_token_comes_that_openssl_accepts(authority, roots, tmp_path):
    first, second = authority.stamp(DIGEST), authority.stamp(DIGEST)
    assert first.nonce != second.nonce
    assert first.serial != second.serial
    assert abs(first.time - time.time()) < 60
    assert openssl_accepts(first.raw, DIGEST, roots, tmp_path)


FAULTS = {
    "rejection": (RefusedError, "rejection"),
    "wrong-nonce": (ProtocolError, "nonce"),
    "wrong-imprint": (ProtocolError, "is about"),
    "expired-certificate": (ProtocolError, "was valid from"),
    "wrong-purpose": (ProtocolError, "not one for time stamps"),
    "foreign-root": (ProtocolError, "none of the roots"),
    "garbage": (ProtocolError, "expected application/timestamp-reply"),
    "trailing": (ProtocolError, "RFC 3161 answer"),
    "redirect": (ProtocolError, "redirects"),
    "oversize": (ProtocolError, "at most"),
    "http-500": (TransientError, "500"),
    "http-429": (TransientError, "fewer requests"),
    "dead": (TransientError, "connection failed"),
    "truncated": (TransientError, "hung up"),
    "lost-reply": (TransientError, "connection failed"),
    "silent": (TransientError, "1 s"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_goes_wrong_is_told_and_passes(sandbox, authority, fault):
    error, words = FAULTS[fault]
    sandbox.fault("authority-1", fault, 1)
    with pytest.raises(error, match=words) as caught:
        authority.stamp(DIGEST)
    assert "127.0.0.1" in str(caught.value)
    assert authority.stamp(DIGEST).imprint == DIGEST


def test_a_second_run_in_the_folder_has_the_same_root(tmp_path):
    def root():
        with Sandbox(tmp_path, calendars=1, explorers=0, peers=0, archive=False) as running:
            (one,) = running.authorities.values()
            return one.url, (tmp_path / one.certificates).read_bytes()

    assert root() == root()


def test_a_sandbox_without_an_authority_says_so_in_its_configuration(tmp_path):
    with Sandbox(
        tmp_path, calendars=1, explorers=0, peers=0, archive=False, authority=False
    ) as one:
        assert one.status().authorities == {}
        assert "authorities" not in one.write_config().read_text("utf-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"", "PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "PEM"),
    ],
)
def test_certificates_that_cannot_be_used_are_named_at_once(tmp_path, content, words):
    file = tmp_path / "roots.pem"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        HttpAuthority("https://tsa.example.org", file, Client(2.0), os.urandom)
    assert "https://tsa.example.org" in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_plain_address_off_this_machine_is_refused(roots):
    with pytest.raises(ConfigError, match="must use https"):
        HttpAuthority("http://tsa.example.org", roots, Client(2.0), os.urandom)
