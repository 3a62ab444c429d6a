"""The table [archive] is read strictly, and every mistake is named with its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from anchord.app.archive_config import ArchiveConfig, item_metadata
from anchord.app.config import Loaded, load
from anchord.core.capture_page import page_of
from anchord.core.storage import StoredWhen
from anchord.errors import ConfigError


def written(folder: Path, text: str) -> Loaded:
    file = folder / "anchord.toml"
    file.write_text(text, "utf-8")
    return load(str(file))


def test_a_file_of_step_one_still_works_and_sends_nothing(tmp_path: Path) -> None:
    archive = written(tmp_path, '[signer]\nsigner_id = "x"\n').config.archive
    assert archive == ArchiveConfig()
    assert (archive.credentials_file, archive.contact, archive.items.prefix) == ("", "", "")


@pytest.mark.parametrize("word", list(StoredWhen))
def test_stored_when_takes_the_four_policies(tmp_path: Path, word: StoredWhen) -> None:
    archive = written(tmp_path, f'[archive]\nstored_when = "{word.value}"\n').config.archive
    assert archive.stored_when is word


def test_a_table_of_ones_own_adds_a_kind_and_keeps_the_others(tmp_path: Path) -> None:
    text = '[archive.captures.urls.note]\nurl = "https://registry.example.org/n/{suffix}"\n'
    urls = written(tmp_path, text).config.archive.captures.templates()
    assert set(urls) == {"arxiv", "note"}
    assert urls["arxiv"].url == "https://arxiv.org/abs/{id}v{version}"


@pytest.mark.parametrize("paper", ["2507.10392", "hep-th/9804177"])
def test_a_page_that_only_repeats_its_address_is_not_the_papers(tmp_path: Path, paper: str) -> None:
    (template,) = written(tmp_path, "").config.archive.captures.templates().values()
    page = page_of(template.url, template.contains, {"id": paper, "version": "2"})
    assert page is not None
    assert page.contains is not None
    robot = f"Are you human? Then go on to {page.url} ({paper}, version 2)"
    other = f"arXiv:{paper}, arXiv:{paper}v1"
    assert page.contains not in robot
    assert page.contains not in other
    assert page.contains in f"(or arXiv:{paper}v2 [hep-th] for this version)"


def test_a_table_of_ones_own_replaces_a_kind_or_turns_it_off(tmp_path: Path) -> None:
    text = '[archive.captures.urls.arxiv]\nurl = "https://arxiv.org/pdf/{id}v{version}"\n'
    urls = written(tmp_path, text).config.archive.captures.templates()
    assert (urls["arxiv"].url, urls["arxiv"].contains) == (
        "https://arxiv.org/pdf/{id}v{version}", "",
    )  # fmt: skip
    off = written(tmp_path, '[archive.captures.urls.arxiv]\nurl = ""\n')
    assert off.config.archive.captures.templates() == {}


def test_loopback_may_be_plain_and_is_the_only_host_that_may(tmp_path: Path) -> None:
    text = '[archive.items]\ns3_url = "http://127.0.0.1:8080"\napi_url = "http://[::1]:80"\n'
    assert written(tmp_path, text).config.archive.items.s3_url == "http://127.0.0.1:8080"


def test_metadata_of_items_leaves_out_what_is_empty(tmp_path: Path) -> None:
    text = '[archive.items]\ncreator = "Example"\nsubject = ""\n'
    found = item_metadata(written(tmp_path, text).config.archive.items)
    assert found["creator"] == "Example"
    assert {"subject", "licenseurl"}.isdisjoint(found)
    assert "{day}" in found["title"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[archive]\nstored_when = "always"\n', "stored_when"),
        ('[archive]\nkeys = "x"\n', "keys"),
        ('[archive]\ncontact = "me (at) example.org"\n', "archive.contact"),
        ('[archive]\ncontact = "https://example.org/\\n"\n', "archive.contact"),
        ('[archive]\ncredentials_file = "a\\u0000b"\n', "archive.credentials_file"),
        ('[archive.captures]\nweb_url = "http://web.archive.org"\n', "captures.web_url"),
        ('[archive.captures]\nweb_url = "https://k:s@example.org"\n', "captures.web_url"),
        ("[archive.captures]\nsubmits_per_minute = 0\n", "submits_per_minute"),
        ("[archive.captures]\nparallel = 21\n", "parallel"),
        ("[archive.captures]\ndaily_share = 1.5\n", "daily_share"),
        ('[archive.captures]\ndaily_share = "most"\n', "daily_share"),
        ("[archive.captures]\ncheck_after_s = []\n", "check_after_s"),
        ("[archive.captures]\ncheck_after_s = [60, 60]\n", "check_after_s"),
        ("[archive.captures]\nconfirm_after_s = [60, 5]\n", "confirm_after_s"),
        ("[archive.captures]\njob_deadline_s = 5\n", "job_deadline_s"),
        ('[archive.captures.urls.arxiv]\nurl = "https://x.example.org/{doi}"\n', "{doi}"),
        ('[archive.captures.urls.arxiv]\nurl = "https://x.example.org/{id!r}"\n', "{id}"),
        ('[archive.captures.urls.arxiv]\nurl = "https://x.example.org/{"\n', "urls.arxiv.url"),
        ('[archive.captures.urls.arxiv]\nurl = "https://{id}.example.org/"\n', "same for every"),
        ('[archive.captures.urls.arxiv]\nurl = "ftp://x.example.org/"\n', "urls.arxiv.url"),
        ('[archive.captures.urls.arxiv]\ncontains = "x"\n', "url"),
        ('[[archive.captures.extra_urls]]\nurl = ""\n', "extra_urls, table 1"),
        ('[[archive.captures.extra_urls]]\nurl = "https://x.example.org/{nr}"\n', "{nr}"),
        ('[archive.captures.urls.x]\nurl = "https://x.example.org/{version}"\n', "all records"),
        ('[[archive.captures.extra_urls]]\nurl = "https://x.example.org/"\n', "all records"),
        ('[archive.items]\nprefix = "-records"\n', "items.prefix"),
        ('[archive.items]\nprefix = "my records"\n', "items.prefix"),
        (f'[archive.items]\nprefix = "{"x" * 67}"\n', "items.prefix"),
        ('[archive.items]\ntitle = " "\n', "items.title"),
        ('[archive.items]\ntitle = "of {date}"\n', "{date}"),
        ('[archive.items]\ncollection = "no such"\n', "items.collection"),
        ('[archive.items]\nlicenseurl = "CC0"\n', "items.licenseurl"),
        ('[archive.items]\nspool_dir = ""\n', "items.spool_dir"),
        ('[archive.items]\napi_url = "archive.org"\n', "items.api_url"),
        ('[archive.items]\napi_url = "http://127.0.0.1"\n', "s3_url must both"),
        ('[archive.items]\ntitle = "{{day}}"\n', "braces"),
        ("[archive.items]\nmax_bytes = 30000000000\n", "items.max_bytes"),
        ("[archive.items]\nitem_max_files = 2\n", "item_max_files"),
        ("[archive.items]\ncheck_after_s = [300, 60]\n", "items.check_after_s"),
    ],
)  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as told:
        written(tmp_path, text)
    assert words in str(told.value)
    assert str(tmp_path / "anchord.toml") in str(told.value)
    assert "k:s@" not in str(told.value)
