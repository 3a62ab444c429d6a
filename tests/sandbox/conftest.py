"""A running sandbox, and a plain HTTP client that shows every byte."""

from __future__ import annotations

import http.client
import socket

import pytest

from anchord.sandbox.run import Sandbox


@pytest.fixture
def sandbox(tmp_path):
    with Sandbox(tmp_path / "sandbox", tick_s=0.02) as running:
        yield running


@pytest.fixture
def call():
    """Return a function that makes one HTTP request and gives response and body."""

    def make(url, path, *, method="GET", body=None, headers=None, timeout=10):
        host, _, base = url.removeprefix("http://").partition("/")
        connection = http.client.HTTPConnection(host, timeout=timeout)
        try:
            target = f"/{base}{path}" if base else path
            connection.request(method, target, body, headers or {})
            response = connection.getresponse()
            return response, response.read()
        finally:
            connection.close()

    return make


@pytest.fixture
def raw_call():
    """Return a function that sends bytes and gives all that comes back until the end."""

    def make(url, data):
        host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(data)
            answer = b""
            try:
                while more := connection.recv(65536):
                    answer += more
            except ConnectionResetError:
                pass
            return answer

    return make
