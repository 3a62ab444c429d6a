"""Lists of records: every record once, in parts that lead to each other, picked out by words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.asking import Asked
from support.face_places import FacePlace, place_of, sample_number
from support.schemas import assert_valid
from support.workplace import Workplace, sample

BROWSER = "text/html,*/*;q=0.8"


def parts(asked: Asked, target: str) -> list[list[dict[str, Any]]]:
    """Return all parts of a list, each reached by the one before."""
    found = []
    while target:
        answer = asked.ask(target)
        assert answer.status == 200
        assert_valid("record-list", answer.body)
        more = answer.json["next"]
        assert answer.headers.get("link") == (f'<{more}>; rel="next"' if more else None)
        found.append(answer.json["records"])
        target = f"/{more}" if more else ""
        assert len(found) < 200
    return found


def names(found: list[list[dict[str, Any]]]) -> list[str]:
    return [row["name"] for part in found for row in part]


@pytest.mark.parametrize("limit", [1, 3, 50, 200])
def test_every_record_is_listed_once_the_newest_first(
    face: FacePlace, asked: Asked, limit: int
) -> None:
    found = parts(asked, f"/records.json?limit={limit}")
    with face.place.app() as app:
        ids = [record for chunk in app.store.records.walk() for record in chunk]
    rows = [row for part in found for row in part]
    assert [row["canonical_sha256"] for row in rows] == [one.digest.hex() for one in ids[::-1]]
    assert all(len(part) <= limit for part in found)


@pytest.mark.parametrize(
    ("name", "word"),
    [("anchored", "anchored"), ("anchored", "submitted"), ("anchored", "not anchored"),
     ("stored", "stored"), ("stored", "not stored")],
)  # fmt: skip
def test_words_of_the_strip_pick_records_out(asked: Asked, name: str, word: str) -> None:
    every = [row for part in parts(asked, "/records.json?limit=7") for row in part]
    wanted = [row["name"] for row in every if row[name] == word]
    assert wanted, "there is one of each"
    asked_for = f"/records.json?limit=3&{name}={word.replace(' ', '+')}"
    assert names(parts(asked, asked_for)) == wanted
    assert names(parts(asked, f"{asked_for}&source=arxiv")) == [
        row["name"]
        for row in every
        if row[name] == word and row["source"] and row["source"]["kind"] == "arxiv"
    ]


def test_a_list_says_of_a_record_what_its_own_document_says(asked: Asked) -> None:
    for part in parts(asked, "/records.json"):
        for row in part:
            document = asked.ask("/" + row["json"]).json
            words = {name: document["completeness"][name] for name in ("anchored", "stored")}
            assert document["@id"] == row["name"]
            assert words == {"anchored": row["anchored"], "stored": row["stored"]}, row


def test_a_name_finds_records_as_a_lookup_does(face: FacePlace, asked: Asked) -> None:
    wanted = [sample_number(face.again), sample_number(face.whole)]
    assert names(parts(asked, "/records.json?q=2507.00001")) == wanted
    assert names(parts(asked, "/records.json?q=2507.00001&limit=1")) == wanted
    assert names(parts(asked, "/records.json?q=2507.00001&stored=stored")) == wanted[1:]
    assert names(parts(asked, "/records.json?q=no+such+thing")) == []


def test_people_are_led_to_the_one_record_that_a_name_means(face: FacePlace, asked: Asked) -> None:
    answer = asked.ask("/records?q=2507.00002", Accept=BROWSER)
    assert (answer.status, answer.headers["location"]) == (303, place_of(face.cited))
    page = asked.ask("/records?q=2507.00001", Accept=BROWSER)
    assert page.status == 200
    assert all(place_of(one) in page.body.decode() for one in (face.whole, face.again))
    assert b"No record has this name" in asked.ask("/records?q=%3Cscript%3E", Accept=BROWSER).body


def test_pages_and_documents_of_a_list_have_the_same_records(asked: Asked) -> None:
    page = asked.ask("/records?limit=5&stored=not+stored", Accept=BROWSER)
    document = asked.ask("/records?limit=5&stored=not+stored", Accept="application/json")
    assert (page.kind, document.kind) == ("text/html; charset=utf-8", "application/json")
    rows = document.json["records"]
    assert len(rows) == 5
    assert all(f'href="{row["url"]}"' in page.body.decode() for row in rows)
    query = document.json["next"].partition("?")[2].replace("&", "&amp;")
    assert f'href="?{query}"' in page.body.decode()


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=", "limit=x", "limit=-1", "limit=1&limit=2", "limit=%D9%A1",
     "cursor=x", "cursor=", "cursor=" + "9" * 19, "cursor=" + "0" * 19,
     "anchored=yes", "anchored=", "stored=no",
     "anchored=stored", "source=%00", "source=" + "a" * 257, "q=" + "a" * 501],
)  # fmt: skip
def test_what_a_parameter_must_be_is_told(asked: Asked, query: str) -> None:
    for path in ("/records", "/records.json"):
        answer = asked.ask(f"{path}?{query}")
        assert (answer.status, answer.kind) == (400, "application/problem+json")
        assert answer.json["detail"].startswith(query.partition("=")[0] + ": expected")


def test_a_lookup_wants_a_name(asked: Asked) -> None:
    assert asked.ask("/lookup").status == 400
    assert asked.ask("/lookup?ref=").status == 400
    answer = asked.ask("/lookup?ref=no+such+thing")
    assert answer.status == 404
    assert "'no such thing'" in answer.json["detail"]
    assert all(word in answer.json["detail"] for word in ("Pith Number", "SHA-256", "arXiv", "DOI"))


def test_when_a_key_falls_lists_fall_with_the_pages(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    keyring = tmp_path / "keys" / "keyring.toml"
    with Asked(place.config) as asked:
        targets = ("/records.json", "/records.json?anchored=anchored", "/records.json?q=2507.00001")
        before = {target: asked.ask(target) for target in targets}
        assert all(answer.json["records"][0]["anchored"] == "anchored"
                   for answer in before.values())  # fmt: skip
        revoked = 'revoked_at = 1970-01-02T00:00:00Z\nrevocation_reason = "stolen"\nown = true'
        keyring.write_text(keyring.read_text("utf-8").replace("own = true", revoked), "utf-8")
        for target, answer in before.items():
            after = asked.ask(target, If_None_Match=answer.headers["etag"])
            assert after.status == 200
            assert not [row for row in after.json["records"] if row["anchored"] != "not anchored"]
        document = asked.ask(f"/{place_of(sample(1))}.json").json
        assert document["completeness"]["anchored"] == "not anchored"
        assert document["anchored"] is None
        badge = asked.ask(f"/{place_of(sample(1))}/badge.svg").body
        assert b"not anchored" in badge
