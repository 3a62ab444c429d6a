"""Snippets lead to the record's page and badge, and are well-formed where they are pasted."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import msgspec
import pytest
from support.parties import FakeSigner
from support.registry import registry_bundle, seeds

from anchord.app.face.badge import badge
from anchord.app.face.site import Site
from anchord.app.face.snippets import snippets, without_address
from anchord.core.trust import Keys
from anchord.engine.viewing import view_of

HERE = Site(base_url="https://pith.example.org")
SEED = seeds()[0]
NUMBER = SEED["pith_number"]
SUFFIX = NUMBER.rsplit(":", 1)[1]


def view(record=SEED["canonical_record"]):
    raw = registry_bundle(record, SEED["canonical_sha256"], NUMBER)
    return view_of(raw, Keys(FakeSigner().keyring()))


def by_language(site, shown=None):
    return {one.language: one.text for one in snippets(shown or view(), site)}


def test_every_snippet_leads_to_the_page_and_shows_the_badge():
    found = by_language(HERE)
    page = f"https://pith.example.org/pith/{SUFFIX}/"
    assert list(found) == ["LaTeX", "Markdown", "HTML", "reStructuredText"]
    assert found["LaTeX"].splitlines() == [r"\usepackage{pith}", rf"\pithnumber{{{SUFFIX}}}"]
    (alt, image, target) = re.fullmatch(
        r"\[!\[(.*)\]\((.*)\)\]\((.*)\)", found["Markdown"]
    ).groups()
    assert (image, target) == (page + "badge.svg", page)
    link = ET.fromstring(found["HTML"].replace("></a>", "/></a>"))  # noqa: S314  made here
    assert link.get("href") == page
    assert link[0].attrib == {"src": page + "badge.svg", "alt": alt, "height": "20"}
    assert found["reStructuredText"].splitlines() == [
        f".. image:: {page}badge.svg", f"   :target: {page}", f"   :alt: {alt}"
    ]  # fmt: skip


def test_what_is_pasted_names_the_record_and_none_of_the_states_that_change():
    shown = view()
    svg = ET.fromstring(badge(shown))  # noqa: S314  made here
    words = [one.text for one in svg.findall(".//{*}text")][::2]
    alt = re.match(r"\[!\[(.*?)\]", by_language(HERE, shown)["Markdown"])[1]
    assert alt == NUMBER
    for text in by_language(HERE, shown).values():
        assert not any(word in text for word in words[1:])


def test_without_an_address_paths_count_from_the_root_and_it_is_said():
    found = by_language(Site())
    assert f"(pith/{SUFFIX}/badge.svg)" in found["Markdown"]
    assert "http" not in "".join(found.values())
    assert without_address(Site())
    assert without_address(HERE) is None


@pytest.mark.parametrize("site", [HERE, Site()])
def test_a_record_without_a_number_goes_by_its_digest(site):
    digest = SEED["canonical_sha256"]
    shown = view()
    shown = msgspec.structs.replace(
        shown, bundle=msgspec.structs.replace(shown.bundle, number=None)
    )
    found = by_language(site, shown)
    assert rf"\pithnumber{{sha256:{digest}}}" in found["LaTeX"]
    assert f"record/{digest}/badge.svg" in found["HTML"]
    assert b"sha256:" + digest.encode() in badge(shown)
