"""Whatever the Wayback Machine says becomes one value, and never a better one than was said."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anchord.core import capture_proof
from anchord.core.capture import (
    capture_url,
    expected_redirect,
    holds,
    moment_of,
    read_account,
    read_index,
    read_replay,
    read_statuses,
    read_submit,
    read_system,
    same_page,
    stamp_of,
    whole_url,
)
from anchord.core.storage import Refused
from anchord.core.wayback import (
    Accepted,
    AccountStatus,
    Existing,
    IndexPage,
    IndexRow,
    Memento,
    NotThere,
    Reported,
    Running,
    SystemStatus,
)
from anchord.errors import VerificationError

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
URL = "https://arxiv.org/abs/2601.00001v2"
JOB, OTHER = "spn2-" + "a" * 40, "spn2-" + "b" * 40
STAMP = "20260827142259"
DATE = "Thu, 27 Aug 2026 14:22:59 GMT"
SRC = "spn2-20260827074929-wwwb-spn22.us.archive.org-8002.warc.gz"
MEMENTO = {
    "Memento-Datetime": DATE, "X-Archive-Src": SRC, "Content-Type": "text/html",
    "Link": f'<{URL}>; rel="original", <https://web.archive.org/web/{URL}>; rel="timegate"',
}  # fmt: skip
SUCCESS = {"status": "success", "job_id": JOB, "timestamp": STAMP, "original_url": URL}
NAMES = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
ROW = ["org,arxiv)/abs/2601.00001v2", STAMP, URL, "text/html", "200", "A" * 32, "4321"]


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _submit(value: Any, status: int = 200) -> Accepted | Existing | Refused:
    return read_submit(status, JSON, _json(value), URL)


def _code(value: object) -> str:
    assert isinstance(value, Refused), value
    return value.code


# ---------------------------------------------------------------------- submit


@pytest.mark.parametrize(
    ("message", "delay_s"),
    [
        ("", 0),
        ("Your capture will begin in 37s.", 37),
        ("Your capture will begin in XXs.", 0),
        ("The capture will start in 2 hours", 7_200),
        ("The capture will start in ~1 hour, 5 minutes because the host is busy", 3_900),
        ("The capture will start in 999999 hours", 86_400),
        ("The same snapshot had been made 2 minutes ago.", 0),
    ],
)
def test_a_job_is_taken_with_the_delay_that_was_told(message: str, delay_s: int) -> None:
    answer = _submit({"url": URL, "job_id": JOB, "message": message})
    assert answer == Accepted(job_id=JOB, message=message, delay_s=delay_s)


@pytest.mark.parametrize("job", [{"job_id": None}, {}, {"job_id": "null"}, {"job_id": ""}])
def test_a_recent_capture_without_a_job_is_looked_for_not_polled(job: dict[str, Any]) -> None:
    message = "The same snapshot had been made 177 hours, 9 minutes ago."
    assert _submit({"url": URL, "message": message} | job) == Existing(message=message)


@pytest.mark.parametrize(
    "value",
    [
        {"url": URL, "job_id": None},
        {"url": URL, "job_id": 7},
        {"url": URL, "job_id": "a job,with two"},
        {"url": "https://elsewhere.example.org/", "job_id": JOB},
        {},
        [],
        "job_id",
        None,
    ],
)
def test_no_job_and_no_reason_is_an_unknown_answer(value: Any) -> None:
    assert _code(_submit(value)) == "unknown-answer"


def test_an_error_at_the_submit_counts_whatever_stands_beside_it() -> None:
    error = {"status_ext": "error:too-many-daily-captures", "message": "again", "job_id": JOB}
    refused = _submit({"status": "error", **error})
    assert refused == Refused(code="too-many-daily-captures", message="again")
    assert _submit(error) == refused
    assert _code(_submit({"status": "error", "job_id": JOB})) == "unknown-error"
    assert _code(_submit({"status_ext": "error:<script>", "message": "?"})) == "unknown-error"
    assert _code(_submit({"status_ext": "error:brand-new", "message": "?"})) == "brand-new"


@pytest.mark.parametrize(
    ("status", "headers", "body", "code"),
    [
        (401, JSON, b'{"message": "You need to be logged in."}', "unauthorized-key"),
        (401, HTML, b"<p>who?</p>", "unauthorized-key"),
        (403, JSON, b'{"message": "no"}', "forbidden-key"),
        (403, HTML, b"<h1>Forbidden</h1>", "http-403"),
        (403, JSON, b'{"message": "Your IP address is in our block list."}', "blocked-client-ip"),
        (429, HTML, b"<h1>429 Too Many Requests</h1>", "http-429"),
        (429, JSON, b'{"status_ext": "error:user-session-limit"}', "user-session-limit"),
        (200, JSON, b'{"message": "You cannot make more than 7 captures per minute"}', "http-429"),
        (500, HTML, b"", "http-500"),
        (502, HTML, b"(HTML)", "http-502"),
        (503, HTML, b"<p>services are temporarily offline.</p>", "offline"),
        (503, HTML, b"busy", "http-503"),
        (520, {}, b"", "http-520"),
        (523, {}, b"", "http-523"),
        (302, HTML, b"", "http-302"),
        (200, HTML, b"<html>Welcome to the network of this hotel</html>", "unknown-answer"),
        (200, JSON, b"<html>", "unknown-answer"),
        (200, JSON, b"", "unknown-answer"),
        (200, HTML, _json({"url": URL, "job_id": JOB}), "unknown-answer"),
        (200, JSON, b'{"job_id":"a","job_id":"b"}', "unknown-answer"),
        (502, JSON, _json({"url": URL, "job_id": JOB}), "http-502"),
    ],
)
def test_the_body_says_more_than_the_status(
    status: int, headers: dict[str, str], body: bytes, code: str
) -> None:
    assert _code(read_submit(status, headers, body, URL)) == code


def test_a_wait_that_the_service_asks_for_is_kept() -> None:
    refused = read_submit(429, {"retry-after": "77"}, b"", URL)
    assert isinstance(refused, Refused)
    assert refused.retry_after_s == 77
    dated = {"Retry-After": "Thu, 27 Aug 2026 14:23:59 GMT", "Date": DATE}
    refused = read_submit(503, dated, b"", URL)
    assert isinstance(refused, Refused)
    assert refused.retry_after_s == 60


def test_words_are_fit_for_a_screen() -> None:
    body = b"<style>p{}</style><p>\x1b[31mred\r\n\xe2\x80\xaeback &\xff " + b"x" * 5_000
    refused = read_submit(500, HTML, body, URL)
    assert isinstance(refused, Refused)
    assert len(refused.message) <= 300
    assert refused.message.isprintable()
    assert refused.message.startswith("HTTP 500: [31mred back &")


# ---------------------------------------------------------------------- status


def test_a_list_in_any_order_is_matched_by_job_and_strangers_are_ignored() -> None:
    told = [
        {"status": "success", "job_id": "stranger", "timestamp": STAMP, "original_url": URL},
        {"status": "error", "job_id": OTHER, "status_ext": "error:not-found"},
        {"job_id": "third", "status": "pending", "resources": []},
        {**SUCCESS, "http_status": 200, "new_key": [1]},
        7,
        {"status": "pending"},
    ]
    found = read_statuses(200, JSON, _json(told), [JOB, OTHER, "third", "left out"])
    assert isinstance(found, dict)
    assert set(found) == {JOB, OTHER, "third"}
    assert found["third"] == Running(job_id="third")
    assert _code(found[OTHER]) == "not-found"
    reported = found[JOB]
    assert isinstance(reported, Reported)
    assert (reported.timestamp, reported.original_url, reported.http_status) == (STAMP, URL, 200)
    assert reported.original_job_id is None
    assert json.loads(reported.raw) == told[3]


def test_one_object_without_a_job_id_is_of_the_only_job_asked_for() -> None:
    body = _json({"status": "pending"})
    assert read_statuses(200, JSON, body, [JOB]) == {JOB: Running(job_id=JOB)}
    assert read_statuses(200, JSON, body, [JOB, OTHER]) == {}
    error = _json({"status": "error", "status_ext": "error:celery"})
    alone = read_statuses(200, JSON, error, [JOB])
    assert isinstance(alone, dict)
    assert _code(alone[JOB]) == "celery"
    assert _code(read_statuses(200, JSON, error, [JOB, OTHER])) == "celery"


@pytest.mark.parametrize(
    "change",
    [
        {"timestamp": None},
        {"timestamp": 20260827142259},
        {"timestamp": "2026082714225"},
        {"timestamp": "20260231000000"},
        {"timestamp": "\uff12\uff10260827142259"},
        {"original_url": ""},
        {"original_url": None},
        {"original_url": "javascript:alert(1)"},
        {"original_url": "https://example.org/\n"},
        {"http_status": "200"},
        {"http_status": True},
        {"http_status": 20},
        {"original_job_id": 5},
        {"original_job_id": ""},
    ],
)
def test_a_success_with_one_field_of_another_kind_is_no_success(change: dict[str, Any]) -> None:
    found = read_statuses(200, JSON, _json(SUCCESS | change), [JOB])
    assert isinstance(found, dict)
    assert _code(found[JOB]) == "unknown-answer"


def test_an_error_beside_a_success_is_an_error() -> None:
    found = read_statuses(200, JSON, _json(SUCCESS | {"status_ext": "error:no-captures"}), [JOB])
    assert isinstance(found, dict)
    assert _code(found[JOB]) == "no-captures"


@pytest.mark.parametrize(
    ("status", "headers", "body", "code"),
    [
        (200, JSON, b'{"message": "You need to be logged in."}', "unauthorized-key"),
        (200, JSON, _json({"outlinks": {}}), "unknown-answer"),
        (200, HTML, _json(SUCCESS), "unknown-answer"),
        (500, JSON, _json(SUCCESS), "http-500"),
        (200, JSON, b"5", "unknown-answer"),
        (429, HTML, b"", "http-429"),
    ],
)
def test_an_answer_that_tells_of_no_job_is_refused_as_a_whole(
    status: int, headers: dict[str, str], body: bytes, code: str
) -> None:
    assert _code(read_statuses(status, headers, body, [JOB])) == code


# ---------------------------------------------------------------------- account and system


def test_the_account_is_read_with_and_without_day_counts() -> None:
    body = {"available": 3, "processing": 1, "daily_status": 39, "daily_status_limit": 70_000}
    account = read_account(200, JSON, _json(body | {"new": {}}))
    assert account == AccountStatus(
        available=3, processing=1, daily_status=39, daily_status_limit=70_000
    )
    assert _code(read_account(200, JSON, b'{"processing": 0}')) == "unknown-answer"
    assert _code(read_account(200, JSON, b'{"available": true}')) == "unknown-answer"
    assert _code(read_account(401, JSON, b"{}")) == "unauthorized-key"
    assert _code(read_account(200, HTML, _json(body))) == "unknown-answer"


def test_a_critical_system_is_offline() -> None:
    assert read_system(200, JSON, b'{"status":"ok"}') == SystemStatus(ok=True, message="")
    slow = "Save Page Now servers are temporarily overloaded."
    assert read_system(200, JSON, _json({"status": slow})) == SystemStatus(ok=False, message=slow)
    assert _code(read_system(502, HTML, b"")) == "offline"
    assert _code(read_system(200, JSON, b"{}")) == "unknown-answer"


# ---------------------------------------------------------------------- index


def test_rows_are_read_by_their_names_and_a_revisit_is_a_row() -> None:
    revisit = [*ROW[:3], "warc/revisit", "-", *ROW[5:]]
    swapped = [*reversed(NAMES), "extra"], [*reversed(ROW), "x"]
    assert read_index(200, JSON, _json([NAMES, ROW, revisit])) == IndexPage(
        rows=(IndexRow(*ROW), IndexRow(*revisit))
    )
    assert read_index(200, JSON, _json(swapped)) == IndexPage(rows=(IndexRow(*ROW),))


@pytest.mark.parametrize("body", [b"", b" \n", b"[]", _json([NAMES])])
def test_no_hit_is_an_empty_page(body: bytes) -> None:
    assert read_index(200, JSON, body) == IndexPage(rows=())


def test_the_key_of_what_follows_stands_after_a_blank_row() -> None:
    page = IndexPage(rows=(IndexRow(*ROW),), resume="org%2Carxiv+2026%21")
    assert read_index(200, JSON, _json([NAMES, ROW, [], [page.resume]])) == page
    text = " ".join(ROW) + "\n   \n" + str(page.resume) + "\n"
    assert read_index(200, {"Content-Type": "text/plain"}, text.encode()) == page


@pytest.mark.parametrize(
    ("status", "headers", "body", "code"),
    [
        (403, HTML, b"<p>AdministrativeAccessControlException: Blocked Site Error", "excluded"),
        (200, HTML, b"org.archive...AdministrativeAccessControlException", "excluded"),
        (403, HTML, b"<p>no", "http-403"),
        (429, HTML, b"", "http-429"),
        (503, HTML, b"Internet Archive services are temporarily offline.", "offline"),
        (504, HTML, b"(HTML)", "http-504"),
        (200, HTML, _json([NAMES, ROW]), "unknown-answer"),
        (200, HTML, b"<html>", "unknown-answer"),
        (200, JSON, _json([NAMES, ROW, ROW[:-1]]), "unknown-answer"),
        (200, JSON, _json([NAMES, [*ROW[:1], "2026", *ROW[2:]]]), "unknown-answer"),
        (200, JSON, _json([NAMES, [*ROW[:6], None]]), "unknown-answer"),
        (200, JSON, _json([ROW]), "unknown-answer"),
        (200, JSON, _json([NAMES[:6], ROW[:6]]), "unknown-answer"),
        (200, JSON, _json([NAMES, ROW, [], []]), "unknown-answer"),
        (200, JSON, _json({"rows": []}), "unknown-answer"),
        (200, JSON, _json([NAMES, ROW])[:-9], "unknown-answer"),
        (200, {}, b"\xff\xfe", "unknown-answer"),
    ],
)
def test_a_page_of_the_index_is_whole_or_refused(
    status: int, headers: dict[str, str], body: bytes, code: str
) -> None:
    assert _code(read_index(status, headers, body)) == code


# ---------------------------------------------------------------------- replay


def _replay(
    status: int = 200, headers: dict[str, str] | None = None, body: bytes = b"page"
) -> Memento | NotThere | Refused:
    return read_replay(status, MEMENTO if headers is None else headers, body, STAMP, URL, None)


def test_the_exact_capture_is_kept_with_its_bytes_hash() -> None:
    assert _replay() == Memento(
        timestamp=STAMP,
        http_status=200,
        sha256=hashlib.sha256(b"page").digest(),
        size=4,
        x_archive_src=SRC,
        contains=True,
    )


@pytest.mark.parametrize("status", [200, 301, 404, 429, 503])
def test_with_its_memento_header_any_status_is_content(status: int) -> None:
    memento = _replay(status)
    assert isinstance(memento, Memento)
    assert memento.http_status == status


@pytest.mark.parametrize(
    ("status", "change", "body"),
    [
        (200, {"Memento-Datetime": "Thu, 27 Aug 2026 14:22:58 GMT"}, b"page"),
        (200, {"Memento-Datetime": "last week"}, b"page"),
        (200, {"Memento-Datetime": "Fri, 31 Dec 0001 00:00:00 GMT"}, b"page"),
        (200, {"Memento-Datetime": ""}, b"page"),
        (200, {"Memento-Datetime": f"{DATE}, {DATE}"}, b"page"),
        (200, {"Memento-Datetime": f"{DATE}, Fri, 28 Aug 2026 14:22:59 GMT"}, b"page"),
        (200, {"Memento-Datetime": DATE.replace("GMT", "")}, b"page"),
        (200, {"Memento-Datetime": DATE.replace("GMT", "-0000")}, b"page"),
        (200, {"Memento-Datetime": "Thu, 27 Aug 2026 16:22:59 +0200"}, b"page"),
        (200, {"Link": ""}, b"page"),
        (200, {"Link": f'<{URL}>; rel="timegate"'}, b"page"),
        (200, {"Link": f'<{URL}>; rel="original", <http://x.example/>; rel="original"'}, b"page"),
        (200, {"Link": f'<https://x.example\\@{URL[8:]}>; rel="original"'}, b"page"),
        (200, {"X-Archive-Orig-Content-Length": "5"}, b"page"),
        (200, {"X-Archive-Src": ""}, b"page"),
        (200, {"X-Archive-Src": " \t"}, b"page"),
        (200, {"X-Archive-Redirect-Reason": "found capture at 20170101000000"}, b"page"),
        (302, {"X-Archive-Redirect-Reason": "found capture at 2017", "Memento-Datetime": ""}, b""),
        (404, {"Memento-Datetime": ""}, b"The Wayback Machine has not archived that URL."),
        (200, {"X-Archive-Wayback-Runtime-Error": "LiveDocumentNotAvailable"}, b"page"),
        (200, {"Link": '<https://arxiv.org/abs/9>; rel="original", <x>; rel="memento"'}, b"page"),
        (200, {"Content-Encoding": "gzip"}, b""),
    ],
)
def test_anything_but_the_exact_capture_is_not_there(
    status: int, change: dict[str, str], body: bytes
) -> None:
    assert isinstance(_replay(status, MEMENTO | change, body), NotThere)


@pytest.mark.parametrize(
    "change",
    [
        {"X-Archive-Orig-Content-Length": "4"},
        {"X-Archive-Orig-Content-Length": "9", "X-Archive-Orig-Content-Encoding": "gzip"},
        {"X-Archive-Orig-Content-Length": "9", "X-Archive-Orig-Transfer-Encoding": "chunked"},
        {"X-Archive-Orig-Content-Length": "many"},
    ],
)
def test_only_a_length_that_must_hold_tells_a_body_cut_short(change: dict[str, str]) -> None:
    assert isinstance(_replay(200, MEMENTO | change), Memento)


def test_the_original_named_in_the_link_may_be_written_otherwise() -> None:
    link = '<http://www.arxiv.org:80/abs/2601.00001v2/>; rel="original", <t>; rel="timemap"'
    assert isinstance(_replay(200, MEMENTO | {"Link": link}), Memento)


@pytest.mark.parametrize(
    ("status", "headers", "body", "code"),
    [
        (429, HTML, b"slow down", "http-429"),
        (503, HTML, b"", "http-503"),
        (523, {}, b"", "http-523"),
        (503, HTML, b"services are temporarily offline.", "offline"),
        (403, HTML, b"", "http-403"),
        (200, HTML, b"<p>Sorry. This URL has been excluded from the Wayback", "excluded"),
        (403, {"X-Archive-Wayback-Runtime-Error": "AdministrativeAccessControlException"}, b"",
         "excluded"),
        (404, {"x-archive-wayback-runtime-error": "URL has been excluded"}, b"", "excluded"),
    ],
)  # fmt: skip
def test_trouble_of_the_archive_itself_is_refused(
    status: int, headers: dict[str, str], body: bytes, code: str
) -> None:
    assert _code(_replay(status, headers, body)) == code


def test_a_page_about_exclusion_is_content() -> None:
    assert isinstance(_replay(body=b"This URL has been excluded from my diet"), Memento)


# ---------------------------------------------------------------------- what the bytes hold


def _raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


TEXT = "2601.00001v2, Ärger"
PAGE = b"<html>" + b"filler " * 40_000 + TEXT.encode() + b"</html>"


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", PAGE),
        ("identity", PAGE),
        ("gzip", PAGE),  # already undone on the way
        ("gzip", gzip.compress(PAGE, mtime=0)),
        ("x-gzip", gzip.compress(PAGE[:99], mtime=0) + gzip.compress(PAGE[99:], mtime=0)),
        ("GZIP", gzip.compress(PAGE, mtime=0) + b"garbage"),
        ("deflate", zlib.compress(PAGE)),
        ("deflate", _raw_deflate(PAGE)),
        ("deflate, gzip", gzip.compress(zlib.compress(PAGE), mtime=0)),
    ],
)
@pytest.mark.parametrize("name", ["content-encoding", "X-Archive-Orig-Content-Encoding"])
def test_a_text_is_found_behind_its_coding(name: str, coding: str, body: bytes) -> None:
    assert holds(body, {name: coding}, TEXT)
    assert not holds(body, {name: coding}, "2601.00001v3")


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("br", PAGE[:100]),
        ("gzip", b"\x1f\x8b" + b"\x00" * 99),
        ("gzip", gzip.compress(PAGE, mtime=0)[:-5_000][:40]),
        ("gzip", gzip.compress(b"", mtime=0) * 50_000 + gzip.compress(PAGE, mtime=0)),
        ("deflate", b"\x03\x00" * 500_000),
        ("gzip, gzip, gzip, gzip", b"x"),
    ],
)
def test_what_does_not_unpack_holds_nothing(coding: str, body: bytes) -> None:
    assert not holds(body, {"Content-Encoding": coding}, TEXT)


def test_unpacking_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_proof, "MAX_DECODED_BYTES", 100_000)
    early = gzip.compress(TEXT.encode() + bytes(10_000_000))
    late = gzip.compress(bytes(10_000_000) + TEXT.encode())
    assert holds(early, {"Content-Encoding": "gzip"}, TEXT)
    assert not holds(late, {"Content-Encoding": "gzip"}, TEXT)


def test_a_memento_says_whether_it_holds_the_text() -> None:
    headers = MEMENTO | {"Content-Encoding": "gzip"}
    packed = gzip.compress(PAGE, mtime=0)
    there = read_replay(200, headers, packed, STAMP, URL, TEXT)
    missing = read_replay(200, headers, packed, STAMP, URL, "another paper")
    assert isinstance(there, Memento)
    assert isinstance(missing, Memento)
    assert (there.contains, missing.contains) == (True, False)
    assert there.sha256 == hashlib.sha256(packed).digest()


# ---------------------------------------------------------------------- times and addresses


@given(st.integers(0, 253_402_300_799))
def test_a_moment_and_its_stamp_are_one(moment: int) -> None:
    stamp = stamp_of(moment)
    assert len(stamp) == 14
    assert moment_of(stamp) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026",
        STAMP + "0",
        "20260230000000",
        "2026082714225x",
        " 0260827142259",
        "20260827142259\n",
        "٢0260827142259",
    ],
)
def test_what_is_no_stamp_has_no_moment(text: str) -> None:
    with pytest.raises(VerificationError):
        moment_of(text)


def test_a_capture_is_shown_under_its_final_address() -> None:
    assert capture_url(STAMP, URL) == f"https://web.archive.org/web/{STAMP}/{URL}"


@pytest.mark.parametrize(
    ("given_url", "whole"),
    [
        ("/abs/2601.00001", "https://arxiv.org/abs/2601.00001"),
        ("//cdn.example.org/x", "https://cdn.example.org/x"),
        ("http://arxiv.org/", "http://arxiv.org/"),
        ("abs/1", "abs/1"),
    ],
)
def test_a_path_is_made_whole(given_url: str, whole: str) -> None:
    assert whole_url(given_url, URL) == whole


@pytest.mark.parametrize(
    "other",
    [
        URL,
        "http://arxiv.org/abs/2601.00001v2",
        "HTTPS://WWW.ARXIV.ORG:443/abs/2601.00001v2/",
        "http://arxiv.org:80/abs/2601.00001v2",
        "https://arxiv.org/abs/2601%2e00001v2#top",
    ],
)
def test_spellings_of_one_page_are_the_same(other: str) -> None:
    assert same_page(URL, other)
    assert same_page(other, URL)


@pytest.mark.parametrize(
    "other",
    [
        "https://arxiv.org/abs/2601.00001v1",
        "https://arxiv.org/abs/2601.00001V2",
        "https://arxiv.org/abs/2601.00001v2?x=1",
        "https://export.arxiv.org/abs/2601.00001v2",
        "https://arxiv.org:8443/abs/2601.00001v2",
        "https://arxiv.org:80/abs/2601.00001v2",
        "https://x.example@arxiv.org/abs/2601.00001v2",
        "https://x.example\\@arxiv.org/abs/2601.00001v2",
        "https://arxiv.org\\@x.example/abs/2601.00001v2",
        "https://arxiv.org/favicon.ico",
        "https://arxiv.org/",
        "ftp://arxiv.org/abs/2601.00001v2",
        "/abs/2601.00001v2",
        "",
    ],
)
def test_other_pages_are_not(other: str) -> None:
    assert not same_page(URL, other)


ID = "2601.00001v2"


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        ("https://www.arxiv.org/abs/2601.00001v2", True),
        ("http://arxiv.org/html/2601.00001v2/index.html", True),
        ("https://arxiv.org/abs/2601.00001v23", False),
        ("https://arxiv.org/abs/12601.00001v2", False),
        ("https://arxiv.org/login?next=/abs/2601.00001v2", False),
        ("https://arxiv.org/?id=2601.00001v2", False),
        ("https://arxiv.org/", False),
        ("https://arxiv.org/2601.00001v2/favicon.ico", False),
        ("https://export.arxiv.org/abs/2601.00001v2", False),
        ("https://2601.00001v2/abs", False),
        ("not a url", False),
    ],
)
def test_a_redirect_is_expected_only_where_the_record_still_is(final: str, expected: bool) -> None:
    assert expected_redirect(URL, final, ID) is expected
    assert not expected_redirect(URL, final, None)
    assert not expected_redirect(URL, final, "")


@pytest.mark.parametrize(
    ("final", "expected"),
    [
        ("https://arxiv.org/html/2601.00001v2", True),
        ("https://arxiv.org/abs/2601.00001", False),
        ("https://arxiv.org/abs/2601.00001v1", False),
        ("https://arxiv.org/abs/2601.00001v22", False),
        ("https://arxiv.org/login?next=/abs/2601.00001", False),
        ("https://arxiv.org/login?id=2601.00001&v=2", False),
        ("https://arxiv.org/login?next=/abs/2601.00001v2", False),
    ],
)
def test_an_id_that_goes_on_in_the_address_must_go_on_as_there(final: str, expected: bool) -> None:
    assert expected_redirect(URL, final, "2601.00001") is expected


def test_a_version_behind_a_dash_stays_and_a_title_may_follow() -> None:
    submitted = "https://example.org/p/77-v2"
    assert expected_redirect(submitted, "https://example.org/papers/77-v2-on-something", "77")
    assert not expected_redirect(submitted, "https://example.org/papers/77-v1", "77")


def test_an_address_without_the_id_leads_to_no_expected_redirect() -> None:
    assert not expected_redirect("https://example.org/a", "https://example.org/b/77", "77")


def test_an_id_that_stands_in_the_query_may_stay_there() -> None:
    submitted = "https://example.org/show?id=77"
    assert expected_redirect(submitted, "https://example.org/page?id=77&lang=en", "77")
    assert expected_redirect(submitted, "https://example.org/page/77", "77")
    assert not expected_redirect(submitted, "https://example.org/page?id=770", "77")


# ---------------------------------------------------------------------- any bytes


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=30)
    | st.sampled_from([JOB, STAMP, URL, "success", "pending", "error", "error:celery"])
)
OBJECTS = st.dictionaries(
    st.sampled_from([*SUCCESS, "status_ext", "message", "url", "available", "http_status"])
    | st.text(max_size=5),
    SCALARS | st.lists(SCALARS, max_size=3),
    max_size=7,
)
LISTS = st.lists(OBJECTS | st.lists(SCALARS, max_size=8), max_size=3)
JSON_BODIES = (OBJECTS | SCALARS | LISTS).map(_json)
BODIES = st.binary(max_size=300) | JSON_BODIES
NAMED = st.sampled_from([*MEMENTO, "X-Archive-Wayback-Runtime-Error", "Link", "Retry-After", "Date",
                         "Content-Encoding", "X-Archive-Redirect-Reason"])  # fmt: skip
HEADERS = st.dictionaries(
    NAMED | st.text(max_size=10),
    st.sampled_from(
        ["application/json", "text/html", "text/plain", "gzip, deflate", DATE, SRC, "9"]
    )
    | st.text(max_size=30),
    max_size=5,
)
STATUSES = st.sampled_from([200, 201, 302, 401, 403, 404, 429, 502, 503]) | st.integers()


@given(status=STATUSES, headers=HEADERS, body=BODIES)
@example(status=200, headers=JSON, body=b'{"job_id":"\\ud800"}')
@example(status=200, headers=JSON, body=b"[" * 100_000)
@example(status=200, headers={"Memento-Datetime": "Thu, 27 Aug 99999 14:22:59 GMT"}, body=b"x")
@example(status=200, headers={"Memento-Datetime": "\ud800"}, body=b"x")
@example(status=200, headers={"X-Archive-Wayback-Runtime-Error": "\ud800"}, body=b"x")
def test_any_answer_gives_a_value_and_no_better_one_than_was_said(
    status: int, headers: dict[str, str], body: bytes
) -> None:
    lower = {name.lower(): value for name, value in headers.items()}
    submitted = read_submit(status, headers, body, URL)
    if isinstance(submitted, Accepted):
        assert 200 <= status < 300
        assert json.loads(body)["job_id"] == submitted.job_id
    found = read_statuses(status, headers, body, [JOB])
    for job in found.values() if isinstance(found, dict) else ():
        if isinstance(job, Reported):
            assert 200 <= status < 300
            assert b"success" in body
            assert job.timestamp.encode() in body
            assert moment_of(job.timestamp)
    replayed = read_replay(status, headers, body, STAMP, URL, "needle")
    if isinstance(replayed, Memento):
        assert lower["memento-datetime"].strip() == DATE
        assert lower["x-archive-src"].strip()
        assert replayed.sha256 == hashlib.sha256(body).digest()
    read_account(status, headers, body)
    read_system(status, headers, body)
    page = read_index(status, headers, body)
    assert isinstance(page, Refused) or (status == 200 and len(page.rows) <= len(body))
    for value in (submitted, found, replayed, page):
        if isinstance(value, Refused):
            assert value.code
            assert len(value.message) <= 300
            assert value.message.isprintable()


@given(body=BODIES, change=OBJECTS)
def test_a_success_that_was_spoiled_is_a_success_only_with_its_fields(
    body: bytes, change: dict[str, Any]
) -> None:
    found = read_statuses(200, JSON, _json(SUCCESS | change), [JOB])
    job = found.get(JOB) if isinstance(found, dict) else None
    if isinstance(job, Reported):
        told = SUCCESS | change
        assert (told["status"], told["timestamp"]) == ("success", job.timestamp)
        assert told["original_url"] == job.original_url
        assert told.get("status_ext") is None
    assert isinstance(_replay(200, {**MEMENTO, "Memento-Datetime": ""}, body), NotThere | Refused)


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=10))
def test_any_text_can_be_asked_for_as_an_address(one: str, other: str, text: str) -> None:
    assert same_page(one, other) == same_page(other, one)
    assert whole_url(other, URL).endswith(other)
    if expected_redirect(f"https://example.org/{one}", other, text):
        assert other.lower().startswith(("http://", "https://"))
