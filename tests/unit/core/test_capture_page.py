from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchord.core.capture_page import Page, directory_of, fields_of, page_of, shared_start
from anchord.core.model import Scheme, StoredRecord

DIGEST = bytes(range(32))
ARXIV = "https://arxiv.org/abs/{id}v{version}"


def record(**changes: object) -> StoredRecord:
    values = {
        "id": 1, "digest": DIGEST, "scheme": Scheme.PITH_JSON_V1, "year": "2026",
        "source_kind": "arxiv", "source_id": "2507.00001", "source_version": 2, "label": None,
        "batch_id": 1, "added_at": 0, **changes,
    }  # fmt: skip
    return StoredRecord(**values)  # type: ignore[arg-type]


def page(url: str, contains: str = "", **changes: object) -> Page | None:
    return page_of(url, contains, fields_of(record(**changes)))


def test_an_arxiv_record_is_captured_at_the_page_of_its_version() -> None:
    assert page(ARXIV, "{id}") == Page(
        "https://arxiv.org/abs/2507.00001v2", "arxiv.org", "2507.00001"
    )


def test_older_arxiv_ids_keep_their_slash() -> None:
    found = page(ARXIV, source_id="hep-th/9901001", source_version=1)
    assert found is not None
    assert found.url == "https://arxiv.org/abs/hep-th/9901001v1"


def test_names_of_the_digest_are_there_for_every_record() -> None:
    bare = {"year": None, "source_id": None, "source_version": None}
    found = page("https://Example.org/{digest}/{suffix}.json", **bare)
    assert found is not None
    assert found.url.endswith(f"/{DIGEST.hex()}/AAAQEAYEAUDAOCAJBIFQYDIOB4.json")
    assert (found.host, found.contains) == ("example.org", None)


@pytest.mark.parametrize(
    ("template", "changes"),
    [
        (ARXIV, {"source_version": None}),
        (ARXIV, {"source_id": None}),
        ("https://example.org/{number}", {"year": None}),
        ("https://example.org/{unknown}", {}),
        ("https://example.org/p/{id}", {"source_id": ".."}),
        ("https://example.org/p/{id}/x", {"source_id": "../../y"}),
        ("https://example.org/p/{id}", {"source_id": "x" * 2001}),
        ("https://{id}/p", {"source_id": "a b"}),
        ("ftp://example.org/{id}", {}),
    ],
)
def test_a_record_that_lacks_something_or_leads_elsewhere_has_no_such_url(
    template: str, changes: dict[str, object]
) -> None:
    assert page(template, **changes) is None


def test_a_text_the_record_cannot_give_leaves_no_page_to_capture_unchecked() -> None:
    assert page("https://example.org/{id}", "{version}", source_version=None) is None


@given(st.text(min_size=1, max_size=80))
def test_whatever_an_id_holds_the_url_stays_on_its_host_and_in_its_query_free_path(
    text: str,
) -> None:
    found = page("https://example.org/p/{id}", source_id=text)
    if found is not None:
        assert found.url.startswith("https://example.org/p/")
        assert found.host == "example.org"
        assert found.url.isascii()
        assert not set("?# \\%") & set(found.url.replace("%", "", found.url.count("%")))


def test_a_directory_is_everything_up_to_the_last_slash_of_the_path() -> None:
    assert directory_of("https://example.org/a/b?c=d/e") == "https://example.org/a/"
    assert directory_of("https://example.org/a/") == "https://example.org/a/"


@given(st.lists(st.text("abc/", max_size=8), min_size=1, max_size=6))
def test_all_urls_begin_with_their_shared_start_and_with_nothing_longer(urls: list[str]) -> None:
    start = shared_start(urls)
    assert all(url.startswith(start) for url in urls)
    longer = {url[: len(start) + 1] for url in urls}
    assert len(longer) > 1 or longer == {start}
