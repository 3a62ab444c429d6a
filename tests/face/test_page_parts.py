"""What a page is made of: addresses that may be links, the recipe, files under hashed names."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.crowd import KEYS
from support.face_views import bare, paper, titled

from anchord.app.face.addresses import (
    alias_address,
    arxiv_address,
    doi_address,
    paper_address,
    record_address,
    web_address,
    work_address,
)
from anchord.app.face.assets import ASSETS, asset
from anchord.app.face.documents import resolver
from anchord.app.face.recipe import recipe
from anchord.app.face.site import Site, place_of
from anchord.app.face.titles import title_hash
from anchord.app.face.words import LONGEST, moment, shown
from anchord.core.bundle_text import render_bundle
from anchord.core.canonical import read_record
from anchord.core.model import Scheme
from anchord.engine.viewing import view_of

HERE = Site()
NO_LINKS = [
    "javascript:alert(1)", "data:text/html,x", "//example.org", "http://", "https:///x", "ftp://a.b",
    "https://user@example.org", "https://good.example\\@evil.example", "http://a b", "HTTP://a.b",
    "http://example.org\n", "http://\u0435xample.org", "http://[::1", "x" * 3000, "", None, 7, {},
]  # fmt: skip


@pytest.mark.parametrize("text", NO_LINKS, ids=range(len(NO_LINKS)))
def test_what_is_no_plain_web_address_is_no_link(text):
    assert web_address(text) is None


def test_an_address_is_kept_and_what_is_odd_in_it_is_escaped():
    plain = "https://web.archive.org/web/20240801110000/https://example.org/a?b=c&d=%20#e"
    assert web_address(plain) == plain
    assert web_address("http://[::1]:8080/x") == "http://[::1]:8080/x"
    assert web_address('http://example.org/"<>\u202e') == "http://example.org/%22%3C%3E%E2%80%AE"


@given(st.text())
def test_a_link_is_one_word_that_starts_as_it_should(text):
    for found in (
        web_address(text), arxiv_address(text), doi_address(text), record_address(text, "../../"),
        alias_address("doi", text), paper_address({"kind": "arxiv", "id": text}, {"url": text}),
        work_address({"doi": text, "url": "http://" + text}, "../../"),
    ):  # fmt: skip
        assert found is None or re.fullmatch(r"(?:https?://|\.\./\.\./)[!-~]+", found)
        assert found is None or not set(found) & set("\"<>\\`'{}|^") - {"'"}


@pytest.mark.parametrize("name", ["hep-th/9804177", "math.GT/0309136v2", "2505.17548", "0704.0001"])
def test_both_forms_of_arxiv_ids_are_known(name):
    assert arxiv_address(name) == f"https://arxiv.org/abs/{name}"


@given(st.text())
def test_shown_text_is_short_plain_and_stays_as_it_is(text):
    found = shown(text)
    assert len(found) <= LONGEST
    assert found.isprintable()
    assert shown(found) == found
    assert moment(text)[:40].isprintable()


def test_a_file_is_called_by_its_content():
    for path, content in ASSETS.items():
        digest = re.fullmatch(r"assets/[a-z]+-([0-9a-f]{8})\.(?:css|js|svg)", path)[1]
        assert hashlib.sha256(content).hexdigest().startswith(digest)
    assert asset("pith.css") in ASSETS
    assert asset("pith.js") in ASSETS


def test_styles_and_scripts_name_no_other_host():
    for path, content in ASSETS.items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"(?m)^\s*//.*$", "", text), path
        assert "@import" not in text


def test_hashes_of_titles_know_neither_case_nor_breaks():
    assert title_hash(" A\n Title  of\tTwo ") == title_hash("a title of two")
    assert title_hash("a title of two") == hashlib.sha256(b"a title of two").hexdigest()


def view_with(value, scheme=Scheme.PITH_JSON_V1):
    record = read_record(json.dumps(value).encode(), scheme=scheme)
    return view_of(render_bundle(record, "2024-01-01T00:00:00Z", [], []), KEYS)


RECORDS = {
    "a paper": titled(),
    "other letters": view_with({"name": "\u4e2d\u6587 \U0001f4a3 \x7f \u2028 ' \" \\ $HOME `id`"}),
    "fractions": view_with({"a": 1.0, "b": 1e300, "c": -0.5}),
    "long integers": view_with({"a": 2**63 + 1}),
    "scheme rfc8785": view_with({"b": "\u00e9", "a": 7}, Scheme.RFC8785),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_recipe_prints_the_hash_as_it_is_printed(name, tmp_path: Path):
    bundle = RECORDS[name].bundle
    file = tmp_path / (place_of(bundle) + ".json")
    file.parent.mkdir()
    file.write_bytes(resolver(RECORDS[name], HERE))
    told = recipe(bundle, HERE)
    ran = subprocess.run(
        ["sh", "-c", told.text], capture_output=True, text=True, check=True, timeout=30,
        env={**os.environ, "BASE": f"file://{tmp_path}"},
    )  # fmt: skip
    assert ran.stdout == bundle.digest.hex() + "\n"
    assert told.text.endswith(f"# expect: {bundle.digest.hex()}")
    assert ("jq" in told.needs) == (name in ("a paper", "other letters", "scheme rfc8785"))


def test_without_an_address_of_its_own_a_site_is_asked_where_serve_answers(tmp_path: Path):
    bundle, name = titled().bundle, place_of(titled().bundle) + ".json"
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(resolver(titled(), HERE))
    told = recipe(bundle, Site(local_url=f"file://{tmp_path}"))
    environment = {key: value for key, value in os.environ.items() if key != "BASE"}
    ran = subprocess.run(
        ["sh", "-c", told.text], capture_output=True, text=True, check=True, timeout=30,
        env=environment,
    )  # fmt: skip
    assert ran.stdout == bundle.digest.hex() + "\n"
    named = recipe(titled().bundle, Site(base_url="https://pith.example.org"))
    assert "BASE" not in named.text
    assert f"https://pith.example.org/{place_of(titled().bundle)}.json" in named.text


def test_the_registry_prints_the_same_pipe():
    text = recipe(titled().bundle, Site(base_url="https://HOST")).text
    law = (
        "b=json.dumps(json.loads(sys.stdin.read()), sort_keys=True, separators=(',',':'), "
        "ensure_ascii=False).encode(); print(hashlib.sha256(b).hexdigest())"
    )
    assert text.splitlines()[1:3] == [
        "  | jq -c '.canonical_record' \\",
        f'  | python3 -c "import sys,json,hashlib; {law}"',
    ]


def test_of_a_hash_alone_there_is_nothing_to_recompute():
    assert recipe(bare().bundle, HERE) is None
    assert paper("x").canonical is not None
