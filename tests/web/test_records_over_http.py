"""Records over HTTP: one address each, the form that is asked for, ways there from all names."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.asking import Answer, Asked
from support.face_places import FacePlace, Serving, place_of, sample_number
from support.schemas import assert_valid
from support.workplace import Workplace, sample

from anchord.adapters.http import Client
from anchord.adapters.mirrors.http import HttpMirror
from anchord.adapters.sources.pith import read_object
from anchord.adapters.sources.resolver import ACCEPT, Resolver
from anchord.app.face.files import RECORD_FILES
from anchord.core.model import Record, Scheme
from anchord.core.number import pith_suffix

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"
DOCUMENTS = {
    ".json": "record-document", "/bundle.json": "bundle", "/state.json": "state",
    "/graph.json": "graph", "/events.json": "events",
}  # fmt: skip


def joined(at: str, link: str) -> str:
    """Return the path that a link leads to, read as browsers do."""
    return urljoin(f"http://test{at}", link).removeprefix("http://test")


def followed(asked: Asked, target: str, **headers: str) -> tuple[str, Answer]:
    """Follow redirects as a browser does; return where that ended."""
    for _ in range(4):
        answer = asked.ask(target, **headers)
        if answer.status != 303:
            return target, answer
        target = joined(target, answer.headers["location"])
    raise AssertionError("it leads in circles")


# One address, in the form that is asked for


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "text/html; charset=utf-8"),
        ("*/*", "text/html; charset=utf-8"),
        (BROWSER, "text/html; charset=utf-8"),
        ("image/png", "text/html; charset=utf-8"),
        ("application/ld+json", "application/ld+json"),
        ("application/ld+json, */*;q=0.1", "application/ld+json"),
        ("APPLICATION/LD+JSON ; q=1.0", "application/ld+json"),
        ("application/json", "application/json"),
        ("application/*", "application/ld+json"),
        ("application/json;q=0.5, text/html;q=0.4", "application/json"),
        ("application/ld+json;q=0.1, text/html", "text/html; charset=utf-8"),
        ("text/html;q=0, application/json", "application/json"),
        ("text/html;q=0, */*", "application/ld+json"),
        ("application/ld+json;q=nonsense", "text/html; charset=utf-8"),
        (",;,;q=,", "text/html; charset=utf-8"),
    ],
)
def test_a_record_answers_in_the_form_that_is_wanted_most(
    face: FacePlace, asked: Asked, accept: str | None, kind: str
) -> None:
    answer = asked.ask("/" + place_of(face.whole), **({} if accept is None else {"Accept": accept}))
    assert (answer.status, answer.kind) == (200, kind)
    assert "Accept" in answer.headers["vary"].split(", ")
    if "json" in kind:
        assert answer.body == asked.ask(f"/{place_of(face.whole)}.json").body


def test_every_document_of_every_record_is_what_its_schema_says(
    face: FacePlace, asked: Asked
) -> None:
    for record in face.records.values():
        for end, schema in DOCUMENTS.items():
            answer = asked.ask(f"/{place_of(record)}{end}")
            assert answer.status == 200, (record, end)
            # A bundle carries along what strangers say, be it nonsense.
            if (record, schema) != (face.hostile, "bundle"):
                assert_valid(schema, answer.body)


def test_addresses_in_a_document_lead_to_what_they_name(face: FacePlace, asked: Asked) -> None:
    for record in (face.whole, face.file):
        for at in (f"/{place_of(record)}", f"/{place_of(record)}.json"):
            document = asked.ask(at, Accept="application/json").json
            for name, link in {**document["links"], "context": document["@context"]}.items():
                assert asked.ask(joined(at, link)).status == 200, (at, name, link)
    for file in ("graph", "events"):
        at = f"/{place_of(face.whole)}/{file}.json"
        assert asked.ask(joined(at, asked.ask(at).json["@context"])).status == 200


def test_json_at_an_address_with_a_slash_leads_to_the_one_without(
    face: FacePlace, asked: Asked
) -> None:
    at = f"/{place_of(face.whole)}/"
    assert asked.ask(at).status == 200, "a page is there"
    assert followed(asked, at, Accept="application/ld+json")[0] == at.rstrip("/")


def test_a_site_with_an_address_names_it_and_no_other(face: FacePlace) -> None:
    with Asked(face.place.config, base_url="https://pith.example.org/folder/") as asked:
        document = asked.ask(f"/{place_of(face.whole)}.json").json
        base = "https://pith.example.org/folder/"
        assert all(link.startswith(base + "pith") for link in document["links"].values())
        rows = asked.ask("/records.json").json["records"]
        assert all(row["url"].startswith(base) for row in rows)


def test_no_answer_repeats_the_host_that_was_named(face: FacePlace, asked: Asked) -> None:
    at = f"/{place_of(face.whole)}"
    for target in ("/", "/pith", "/records/", "/records", "/lookup?ref=2507.00002", at,
                   f"{at}.json", "/nothing"):  # fmt: skip
        answer = asked.ask(target, Host="evil.example.net")
        assert "evil" not in str(answer.headers) + answer.body.decode("utf-8", "replace"), target


# Ways there


def test_every_name_of_a_record_leads_to_it(face: FacePlace, asked: Asked) -> None:
    record = face.cited
    suffix, at = pith_suffix(record.digest), f"/{place_of(record)}"
    names = [
        sample_number(record), suffix, suffix.lower(), suffix[:8], suffix[:12], suffix[:16],
        record.digest.hex(), record.digest.hex().upper(), f"sha256:{record.digest.hex()}",
        "2507.00002", "2507.00002v1", "arxiv:2507.00002", "10.48550/arXiv.2507.00002",
        "https://arxiv.org/abs/2507.00002", f"pith:{suffix[:8]}", f" {suffix} ",
    ]  # fmt: skip
    for name in names:
        assert followed(asked, f"/lookup?ref={quote(name, safe='')}")[0] == at, name
        if "//" not in name:
            assert followed(asked, f"/pith/{quote(name)}")[0] == at, name
            assert followed(asked, f"/record/{quote(name)}.json")[0] == at + ".json", name
            assert followed(asked, f"/pith/{quote(name)}/badge.svg")[0] == at + "/badge.svg", name


def test_an_old_arxiv_id_has_a_slash(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    record = sample(7, source={"id": "hep-th/9804177", "kind": "arxiv", "version": 3})
    place.add(record)
    with Asked(place.config) as asked:
        for name in ("hep-th/9804177", "hep-th/9804177v3", "hep-th%2F9804177"):
            assert followed(asked, f"/pith/{name}")[0] == f"/{place_of(record)}"
            assert followed(asked, f"/pith/{name}/state.json")[1].status == 200


def test_a_name_of_several_records_lists_them_and_guesses_none(
    face: FacePlace, asked: Asked
) -> None:
    for target in ("/lookup?ref=2507.00001", "/pith/2507.00001", "/pith/2507.00001.json"):
        answer = asked.ask(target)
        assert (answer.status, answer.kind) == (300, "application/json")
        assert_valid("matches", answer.body)
        found = [joined(target, row["url"]) for row in answer.json["matches"]]
        assert sorted(found) == sorted(f"/{place_of(one)}" for one in (face.whole, face.again))
        page = asked.ask(target, Accept=BROWSER)
        assert (page.status, page.kind) == (300, "text/html; charset=utf-8")
        assert all(place_of(one) in page.body.decode() for one in (face.whole, face.again))


# What is not there


@pytest.mark.parametrize(
    "rest",
    [
        "", "%00", "..", "../..", "..%2f..%2fetc%2fpasswd", "%2e%2e/anchord.toml", "%ff%fe",
        "A" * 26, "A" * 5000, "a%0ab", "%0d%0aSet-Cookie:%20a=b", "keys/keyring.toml",
        "' OR 1=1 --", "%25s", "%F0%9F%92%A9", "C:%5C", "2507.99999", "index.html", ".json", "/",
        "//", "x/bundle.json", "<script>", "{{7*7}}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("folder", ["pith", "record", "keys", "schemas", "assets", ".well-known"])
def test_odd_addresses_are_nobodys(asked: Asked, folder: str, rest: str) -> None:
    target = f"/{folder}/{rest}"
    answer = asked.ask(target)
    assert (answer.status, answer.kind) == (404, "application/problem+json")
    assert answer.json["status"] == 404
    page = asked.ask(target, Accept=BROWSER)
    assert (page.status, page.kind) == (404, "text/html; charset=utf-8")
    assert b"<script>" not in page.body
    assert not {"set-cookie", "location"} & page.headers.keys()


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_whatever_is_asked_for_is_answered(asked: Asked, text: str) -> None:
    for target in (f"/pith/{quote(text)}", f"/lookup?ref={quote(text, safe='')}",
                   f"/records.json?q={quote(text, safe='')}", f"/{quote(text)}"):  # fmt: skip
        answer = asked.ask(target)
        assert answer.status < 500
        assert "\n" not in answer.headers.get("location", "")


@pytest.mark.parametrize("folder", ["/", "/pith/", "/record/", "/keys/", "/.well-known/"])
def test_no_address_makes_an_answer_that_is_much_larger_than_it(asked: Asked, folder: str) -> None:
    for filling in ("/", "a/", "%2F", "../", "a"):
        target = folder + filling * (15_000 // len(filling))
        answer = asked.ask(target, Accept=BROWSER)
        assert answer.status in (400, 404)
        assert len(answer.body) < 2 * len(target)


def test_what_has_no_proof_yet_says_so(face: FacePlace, asked: Asked) -> None:
    for file in ("proof.ots", "certificate.pdf"):
        answer = asked.ask(f"/{place_of(face.waiting)}/{file}")
        assert answer.status == 404
        assert "calendar" in answer.json["detail"] or "no proof" in answer.json["detail"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"])
def test_nothing_can_be_written_and_what_can_be_done_is_told(
    face: FacePlace, asked: Asked, method: str
) -> None:
    for target in (f"/{place_of(face.whole)}", "/records", "/lookup", "/pith-mirrors.json"):
        answer = asked.ask(target, method)
        assert answer.status == 405
        assert {word.strip() for word in answer.headers["allow"].split(",")} == {"GET", "HEAD"}


# What may be kept, and by whom it may be read


def test_what_a_client_has_is_not_sent_again(face: FacePlace, asked: Asked) -> None:
    for end in ("", "/", "/proof.ots", *(f"/{one.name}" for one in RECORD_FILES)):
        at = f"/{place_of(face.whole)}{end}".replace("/record.json", ".json")
        for coding in ("identity", "gzip"):
            first = asked.ask(at, Accept_Encoding=coding)
            tag = first.headers["etag"]
            assert re.fullmatch(r'"[0-9a-f]{32}(-gzip)?"', tag), "strong"
            assert tag.endswith('-gzip"') == (first.headers.get("content-encoding") == "gzip")
            for condition in (tag, f'"other", W/{tag}', "*"):
                again = asked.ask(at, Accept_Encoding=coding, If_None_Match=condition)
                assert (again.status, again.body) == (304, b""), (at, condition)
                assert again.headers["cache-control"] == first.headers["cache-control"]
            assert asked.ask(at, If_None_Match='"0123"').status == 200


def test_styles_are_kept_for_ever_and_pages_are_asked_for_again(
    face: FacePlace, asked: Asked
) -> None:
    page = asked.ask(f"/{place_of(face.whole)}")
    assert page.headers["cache-control"] == "no-cache"
    loaded = set(re.findall(r'(?:src|href)="([^"]*assets/[^"]+)"', page.body.decode()))
    assert loaded
    for link in loaded:
        answer = asked.ask(joined(f"/{place_of(face.whole)}", link))
        assert answer.status == 200
        assert "immutable" in answer.headers["cache-control"]


def test_scripts_of_other_pages_may_read_everything(face: FacePlace, asked: Asked) -> None:
    at, there = f"/{place_of(face.whole)}", {"Origin": "https://elsewhere.example.org"}
    for target in (at, f"{at}.json", f"{at}/badge.svg", "/records.json", "/nothing"):
        assert asked.ask(target, **there).headers["access-control-allow-origin"] == "*"
    asks = {"Access_Control_Request_Headers": "if-none-match"}
    before = asked.ask(at, "OPTIONS", **there, Access_Control_Request_Method="GET", **asks)
    assert before.status == 200
    assert "GET" in before.headers["access-control-allow-methods"]
    wrong = asked.ask(at, "OPTIONS", **there, Access_Control_Request_Method="DELETE")
    assert wrong.status == 400
    badge = asked.ask(f"{at}/badge.svg")
    assert badge.headers["cross-origin-resource-policy"] == "cross-origin"


@pytest.mark.parametrize(
    "target", ["/", "/healthz", "/readyz", "/metrics", "/parked", "/events", "/audit",
               "/audit.json"]
)  # fmt: skip
def test_how_the_machine_does_is_for_no_other_page(asked: Asked, target: str) -> None:
    there = {"Origin": "https://elsewhere.example.org"}
    for answer in (
        asked.ask(target, **there),
        asked.ask(target, "OPTIONS", **there, Access_Control_Request_Method="GET"),
    ):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_pages_load_nothing_from_elsewhere_and_documents_nothing_at_all(
    face: FacePlace, asked: Asked
) -> None:
    at = f"/{place_of(face.hostile)}"
    pages = (at, "/records", "/lookup?ref=2507.00001", "/nothing")
    for target in pages:
        policy = asked.ask(target, Accept=BROWSER).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
    for end in (".json", "/badge.svg", "/bundle.json"):
        policy = asked.ask(at + end).headers["content-security-policy"]
        assert "script-src" not in policy


# Certificates


def test_a_certificate_is_made_of_the_headers_here(face: FacePlace, asked: Asked) -> None:
    for record in (face.whole, face.file):
        at = f"/{place_of(record)}/certificate.pdf"
        answer = asked.ask(at)
        assert (answer.status, answer.kind, answer.body[:5]) == (200, "application/pdf", b"%PDF-")
        assert asked.ask(at).body == answer.body


def test_without_headers_here_nobody_is_asked(face: FacePlace, tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    (tmp_path / "headers.bin").unlink()
    text = place.config.read_text("utf-8")
    urls = '"http://127.0.0.1:1", "http://127.0.0.1:2"'
    told = f'sources = ["explorers"]\n[headers.explorers]\nurls = [{urls}]'
    place.config.write_text(text.replace('sources = ["file"]', told), "utf-8")
    with Asked(place.config) as asked:
        answer = asked.ask(f"/{place_of(sample(1))}/certificate.pdf")
    assert (answer.status, answer.kind) == (503, "application/problem+json")
    assert "headers" in answer.json["detail"]
    assert str(tmp_path) not in answer.json["detail"]


@pytest.mark.parametrize(
    "damage",
    ["UPDATE batches SET proof = CAST(X'ff' AS TEXT)",
     "UPDATE batches SET proof = substr(proof, 1, 60)",
     "UPDATE tiles SET record_ids = zeroblob(length(record_ids))",
     "UPDATE events SET signature = zeroblob(64)", "UPDATE series SET key_id = 'another'",
     "UPDATE records SET digest = zeroblob(32) WHERE id = 2", "DELETE FROM series"],
)  # fmt: skip
def test_a_damaged_store_says_of_no_record_that_it_is_anchored_and_not_where_it_lies(
    tmp_path: Path, damage: str
) -> None:
    place = Workplace(tmp_path)
    place.anchor(sample(1), sample(2))
    if not (tmp_path / "anchord.db").exists():
        return  # the statements are SQLite's
    at = f"/{place_of(sample(1))}"
    targets = [at, *(at + end for end in (".json", "/badge.svg", "/bundle.json", "/state.json",
               "/events.json", "/graph.json", "/proof.ots", "/certificate.pdf"))]  # fmt: skip
    targets += ["/records.json", "/records.json?q=2507.00001", "/records?anchored=anchored"]
    with Asked(place.config) as asked:
        before = {target: asked.ask(target) for target in targets}
        assert {answer.status for answer in before.values()} == {200}
        with sqlite3.connect(tmp_path / "anchord.db") as connection:
            connection.execute(damage)
        connection.close()
        for target, answer in before.items():
            after = asked.ask(target, If_None_Match=answer.headers["etag"])
            whole = after.status in (200, 304) and b"not anchored" not in after.body
            assert str(tmp_path).encode() not in after.body, target
            if whole and target.startswith(at) and not target.endswith("/bundle.json"):
                assert (after.body or answer.body) == answer.body, "what is shown is as it was"


# Others of ours


@pytest.fixture(scope="module")
def server(face: FacePlace):  # type: ignore[no-untyped-def]
    with Serving(face.place.config) as serving:
        yield serving.url


def test_the_resolver_source_reads_what_is_served(face: FacePlace, server: str) -> None:
    web = HttpMirror(server, Client(30.0, private=frozenset()), 1000.0, local=True, accept=ACCEPT)

    class Pulls:
        def get(self, *_: object) -> dict[str, object]:
            return {}

        def put(self, *_: object) -> None:
            pass

    names = [pith_suffix(face.whole.digest), "2507.00002", face.cited.digest.hex()]
    source = Resolver("ours", 60, f"{server}/pith/{{id}}", lambda: names, web, Pulls)  # type: ignore[arg-type]
    items = [item for step in source.look(None, 0) for item in step.items]
    assert all(isinstance(item, Record) for item in items), items
    assert {item.digest for item in items} == {face.whole.digest, face.cited.digest}


def test_a_resolver_answer_is_a_record_that_can_be_added(face: FacePlace, asked: Asked) -> None:
    for record in (face.whole, face.cited, face.hostile, face.waiting):
        found = read_object(asked.ask(f"/{place_of(record)}.json").body, Scheme.PITH_JSON_V1)
        assert found.digest == record.digest  # type: ignore[union-attr]


def test_a_mirror_pulls_from_a_server(face: FacePlace, server: str, tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    wanted = [sample_number(face.whole), face.cited.digest.hex()]
    words = [word for name in wanted for word in ("--record", name)]
    pulled = place.run("mirror", "pull", server, "--rate", "1000", "--json", *words)
    assert pulled.exit_code in (0, 3), pulled.output
    document = json.loads(pulled.stdout)
    assert document["false"] == 0, document
    with place.app() as app:
        digests = {one.digest for chunk in app.store.records.walk() for one in chunk}
    assert digests >= {face.whole.digest}
