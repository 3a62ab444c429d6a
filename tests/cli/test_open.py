"""`anchord open` prints where a record's page is, and opens a browser only when told to."""

from __future__ import annotations

import sys

import pytest
from support.workplace import Workplace, bare, sample

from anchord.core.canonical import pith_suffix

BARE = bare(bytes(range(32)))


@pytest.fixture
def place(tmp_path):
    found = Workplace(tmp_path)
    found.add(sample(1), sample(2), BARE)
    return found


def configured(place, line):
    """Put a line into the table [web]."""
    with place.config.open("a", encoding="utf-8") as file:
        file.write(f"\n[web]\n{line}\n")


def browser(tmp_path, monkeypatch, code=0):
    """Have a browser that notes what it was asked to show."""
    script = tmp_path / "browser.py"
    script.write_text(
        f"import pathlib, sys\npathlib.Path({str(tmp_path / 'asked')!r}).write_text(sys.argv[1])\n"
        f"sys.exit({code})\n"
    )
    monkeypatch.setenv("BROWSER", f"{sys.executable} {script} %s")
    monkeypatch.setattr("webbrowser._tryorder", None)
    return tmp_path / "asked"


def test_without_an_address_of_its_own_a_page_is_where_serve_answers(place):
    done = place.run("open", sample(1).digest.hex())
    assert done.stdout == f"http://127.0.0.1:8080/pith/{pith_suffix(sample(1).digest)}\n"
    assert "anchord serve" in done.stderr


@pytest.mark.parametrize(
    ("bind", "root"),
    [("0.0.0.0:9000", "http://127.0.0.1:9000"), ("[::]:80", "http://[::1]:80"),
     ("[2001:db8::1]:81", "http://[2001:db8::1]:81"), ("192.0.2.7:82", "http://192.0.2.7:82")],
)  # fmt: skip
def test_where_serve_answers_everywhere_this_machine_is_meant(place, bind, root):
    configured(place, f'bind = "{bind}"')
    done = place.run("open", sample(1).digest.hex())
    assert done.stdout.startswith(f"{root}/pith/")


def test_the_address_is_that_of_the_site_and_a_digest_names_what_has_no_number(place):
    configured(place, 'base_url = "https://pith.example.org/folder/"')
    digest = BARE.digest.hex()
    done = place.run("open", digest)
    assert (done.stdout, done.stderr) == (
        f"https://pith.example.org/folder/record/{digest}\n",
        "",
    )
    assert place.json("open", digest) == {
        "name": f"sha256:{digest}",
        "address": done.stdout.strip(),
        "local": False,
    }


def test_a_browser_is_started_only_on_request(place, tmp_path, monkeypatch):
    asked = browser(tmp_path, monkeypatch)
    place.run("open", sample(1).digest.hex())
    assert not asked.exists()
    done = place.run("open", sample(1).digest.hex(), "--launch")
    assert done.exit_code == 0
    assert asked.read_text() == done.stdout.strip()


def test_a_browser_that_fails_is_told(place, tmp_path, monkeypatch):
    browser(tmp_path, monkeypatch, code=1)
    done = place.run("open", sample(1).digest.hex(), "--launch")
    assert done.exit_code != 0
    assert "by hand" in done.stderr
    assert done.stdout.startswith("http://")


def test_nothing_is_guessed(place):
    done = place.run("open", "ab" * 32)
    assert done.exit_code != 0
    assert "no record" in done.stderr
    assert done.stdout == ""
