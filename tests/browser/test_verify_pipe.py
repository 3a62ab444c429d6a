"""What a record's page tells people to type is typed, in a real shell, as it is printed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.browser import Chromium
from support.face_places import FacePlace, Serving, place_of
from support.http_server import dead_port

_REGISTRY = """\
curl -sH 'Accept: application/ld+json' {host}/{place} \\
  | jq -c '.canonical_record' \\
  | python3 -c "import sys,json,hashlib; b=json.dumps(json.loads(sys.stdin.read()), \
sort_keys=True, separators=(',',':'), ensure_ascii=False).encode(); \
print(hashlib.sha256(b).hexdigest())"
"""
"""The registry's own pipe on each of its pages, but for the host."""


@pytest.fixture(autouse=True)
def _tools() -> None:
    for tool in ("curl", "jq", "python3"):
        assert shutil.which(tool), f"apt-get install {tool}"


def typed(text: str, **environment: str) -> str:
    """Return what a shell prints."""
    done = subprocess.run(
        ["sh", "-eu"], input=text, text=True, capture_output=True, timeout=60, check=False,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **environment},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def printed(chromium: Chromium, url: str, *, scripts: bool = False) -> str:
    """Return what a page says is to be typed."""
    with chromium.visit(scripts=scripts) as visit:
        visit.open(url)
        (recipe,) = [
            text
            for text in visit.page.locator("pre").all_text_contents()
            if text.lstrip().startswith(("curl", "BASE=")) and "hashlib" in text
        ]
        return recipe


@pytest.mark.parametrize("name", ["whole", "cited", "hostile", "submitted", "waiting"])
def test_the_recipe_of_a_page_prints_the_hash_from_server_and_tree(
    name: str, place: FacePlace, served: str, static: str, chromium: Chromium
) -> None:
    record = place.records[name]
    text = printed(chromium, f"{served}/{place_of(record)}")
    assert f"# expect: {record.digest.hex()}" in text
    for root in (served, static):
        assert typed(text, BASE=root) == record.digest.hex()


def test_a_browser_fills_in_where_the_page_was_read(
    place: FacePlace, served: str, static: str, chromium: Chromium
) -> None:
    for url in (f"{served}/{place_of(place.whole)}", f"{static}/{place_of(place.whole)}/"):
        assert typed(printed(chromium, url, scripts=True)) == place.whole.digest.hex()


@pytest.mark.parametrize("name", ["whole", "hostile"])
def test_the_registrys_own_pipe_works_here_but_for_the_host(
    name: str, place: FacePlace, served: str
) -> None:
    record = place.records[name]
    pipe = _REGISTRY.format(host=served, place=place_of(record))
    assert typed(pipe) == record.digest.hex()


def test_a_page_that_knows_its_address_prints_a_recipe_for_it(
    place: FacePlace, chromium: Chromium, tmp_path: Path
) -> None:
    at = f"127.0.0.1:{dead_port()}"
    config = place.place.folder / "addressed.toml"
    config.write_text(
        place.place.config.read_text("utf-8").replace("[web]", f'[web]\nbase_url = "http://{at}"'),
        "utf-8",
    )
    with Serving(config, "--bind", at) as running:
        for record in (place.whole, place.cited):
            text = printed(chromium, f"{running.url}/{place_of(record)}")
            assert typed(text) == record.digest.hex()
