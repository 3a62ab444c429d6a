"""The sandbox's Wayback Machine behaves as the real one was seen to."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from email.utils import parsedate_to_datetime
from urllib.parse import quote, unquote_plus, urlencode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.wayback_calls import NOON, PAGE, STEADY, Archive, fault, header

from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.site import Page
from anchord.sandbox.wayback.urlkey import digits, moment_of, urlkey

OTHER = "https://example.org/other"


@pytest.fixture
def archive():
    return Archive()


# ------------------------------------------------------------------ jobs


def test_a_job_id_belongs_to_the_url_not_to_the_attempt(archive):
    first = archive.save()["job_id"]
    archive.clock.advance(100_000)
    assert archive.save()["job_id"] == first
    assert archive.save(OTHER)["job_id"] != first
    assert re.fullmatch(r"spn2-[0-9a-f]{40}", first)


def test_a_job_is_pending_then_tells_what_it_captured(archive):
    job = archive.save()["job_id"]
    assert archive.status(job) == {"job_id": job, "resources": [], "status": "pending"}
    archive.clock.advance(20)
    status = archive.status(job)
    assert (status["status"], status["original_url"], status["http_status"]) == (
        "success",
        PAGE,
        200,
    )
    assert NOON <= moment_of(status["timestamp"]) <= NOON + 20
    assert status["duration_sec"] == 20
    assert status["first_archive"] is True


def test_skip_first_archive_leaves_the_word_out(archive):
    assert "first_archive" not in archive.done(skip_first_archive="1")


def test_an_invented_job_is_pending_for_ever(archive):
    job = f"spn2-{'0' * 40}"
    for _ in range(3):
        assert archive.status(job)["status"] == "pending"
        archive.clock.advance(86_400)


def test_a_job_that_ended_an_hour_ago_is_pending_again(archive):
    job = archive.save()["job_id"]
    archive.clock.advance(20 + 3599)
    assert archive.status(job)["status"] == "success"
    archive.clock.advance(1)
    assert archive.status(job) == {"job_id": job, "resources": [], "status": "pending"}


def test_many_statuses_come_in_an_order_of_their_own(archive):
    jobs = [f"spn2-{number:040x}" for number in range(20)]
    answers = archive.statuses(jobs)
    assert sorted(one["job_id"] for one in answers) == jobs
    assert [one["job_id"] for one in answers] != jobs


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (404, "not-found"),
        (403, "no-access"),
        (401, "unauthorized"),
        (429, "too-many-requests"),
        (500, "internal-server-error"),
        (502, "bad-gateway"),
        (503, "service-unavailable"),
        (504, "gateway-timeout"),
        (509, "bandwidth-limit-exceeded"),
        (999, "blocked"),
    ],
)
def test_a_page_that_fails_ends_the_job_in_its_error_and_captures_nothing(archive, status, code):
    archive.site.put(PAGE, Page(status=status))
    answer = archive.done()
    assert (answer["status"], answer["status_ext"]) == ("error", f"error:{code}")
    assert answer["message"]
    archive.clock.advance(300)
    assert archive.cdx() == []


def test_capture_all_keeps_an_error_page_with_its_status(archive):
    archive.site.put(PAGE, Page(status=404))
    status = archive.done(capture_all="1")
    assert (status["status"], status["http_status"]) == ("success", 404)
    archive.clock.advance(300)
    answer = archive.replay(status["timestamp"])
    assert (answer.status, header(answer, "Memento-Datetime") is not None) == (404, True)


@pytest.mark.parametrize("off", ["0", "true", "True", "01"])
def test_flags_are_on_only_for_1_and_on(archive, off):
    archive.site.put(PAGE, Page(status=404))
    assert archive.done(capture_all=off)["status"] == "error"


def test_a_host_without_an_address_and_a_circle_of_redirects_end_in_errors(archive):
    archive.site.unresolve("example.org")
    assert archive.done(OTHER)["status_ext"] == "error:invalid-host-resolution"
    archive.site.put(PAGE, Page(location=PAGE))
    assert archive.done()["status_ext"] == "error:too-many-redirects"


def test_after_a_redirect_the_final_url_is_told_and_both_are_captured(archive):
    archive.site.put(PAGE, Page(location=OTHER))
    status = archive.done()
    assert status["original_url"] == OTHER
    archive.clock.advance(300)
    assert b"other" in archive.replay(status["timestamp"], OTHER).body
    ((_, moved, *_),) = archive.cdx()
    answer = archive.replay(moved)
    assert answer.status == 302
    assert header(answer, "Memento-Datetime")
    assert header(answer, "Location").endswith(f"/web/{moved}id_/{OTHER}")


def test_sometimes_only_the_path_of_the_final_url_is_told(archive):
    archive.site.put(PAGE, Page(path_only=True))
    assert archive.done()["original_url"] == "/abs/2401.00001v1"


def test_the_key_is_asked_for(archive):
    for key in (None, "LOW sandbox-access:wrong", "LOW :", "Basic x", "LOW nobody:sandbox-secret"):
        for method, path in (
            ("POST", "/save"),
            ("GET", "/save/status/spn2-0"),
            ("POST", "/save/status/"),
            ("GET", "/save/status/user"),
        ):
            answer = archive.ask(method, path, {"url": PAGE}, key=key)
            assert answer.status == 401
            assert json.loads(answer.body) == {
                "message": "You need to be logged in to use Save Page Now."
            }


def test_without_asking_for_json_a_page_comes_and_the_browsers_way_is_shut(archive):
    answer = archive.ask("POST", "/save/", {"url": PAGE}, accept=None)
    assert b'spn.watchJob("spn2-' in answer.body
    assert answer.content_type.startswith("text/html")
    assert archive.ask("GET", f"/save/{PAGE}").status == 429


@pytest.mark.parametrize("url", ["", "example.org", "ftp://example.org/", "https://a b.org/", "x"])
def test_what_is_no_url_is_refused_with_status_200(archive, url):
    answer = archive.save(url)
    assert answer["status_ext"] == "error:invalid-url-syntax"
    assert "job_id" not in answer


def test_an_excluded_site_is_neither_captured_nor_listed_nor_shown(archive):
    at = archive.captured()
    archive.site.exclude("arxiv.org")
    assert archive.save()["status_ext"] == "error:blocked-url"
    listed = archive.ask("GET", f"/cdx/search/cdx?url={PAGE}&output=json")
    assert listed.status == 403
    assert b"AdministrativeAccessControlException" in listed.body
    shown = archive.replay(at)
    assert (shown.status, header(shown, "Memento-Datetime")) == (200, None)
    assert "Blocked Site" in header(shown, "X-Archive-Wayback-Runtime-Error")


# ------------------------------------------------------------------ the same URL again


@pytest.mark.parametrize(
    ("within", "seconds"),
    [("3d 5h 20m", 278_400), ("7200", 7200), ("2h", 7200), ("30d,1h", 2_592_000), ("", 3600)],
)
def test_a_younger_capture_is_not_made_again(archive, within, seconds):
    made = moment_of(archive.captured())
    form = {"if_not_archived_within": within} if within else {}
    archive.clock.advance(made + seconds - 1 - archive.clock.now())
    assert "The same snapshot had been made" in archive.save(**form)["message"]
    archive.clock.advance(max(2, made + 4600 - archive.clock.now()))
    assert "message" not in archive.save(**form)
    archive.clock.advance(60)
    assert archive.service.report().captures_made == 2


def test_a_duplicate_comes_with_a_job_with_null_or_without_the_key():
    shapes = set()
    for seed in range(30):
        archive = Archive(seed=seed)
        archive.captured()
        answer = archive.save(if_not_archived_within="30d")
        shapes.add(str(answer.get("job_id", "missing"))[:7])
        assert answer["url"] == PAGE
        assert answer["message"].endswith("You can make new capture of this URL after 720 hours.")
    assert shapes == {"spn2-05", "None", "missing"}


def test_a_duplicate_of_somebody_elses_capture_has_no_job_to_read(archive):
    archive.service.plant(PAGE, NOON - 600)
    answer = archive.save()
    assert answer.get("job_id") is None
    assert "made 10 minutes ago" in answer["message"]
    assert archive.service.report().accepted == 0


def test_an_outcome_is_given_again_for_75_minutes_errors_too(archive):
    archive.site.put(PAGE, Page(status=404))
    job = archive.save()["job_id"]
    archive.clock.advance(20 + 4499)
    archive.site.clear()
    assert archive.save() == {"url": PAGE, "job_id": job}
    assert archive.status(job)["status_ext"] == "error:not-found"
    archive.clock.advance(2)
    archive.save()
    archive.clock.advance(60)
    assert archive.status(job)["status"] == "success"


def test_an_older_outcome_names_its_original_job_and_its_older_timestamp(archive):
    at = archive.captured()
    archive.clock.advance(2400)
    submitted = archive.clock.now()
    status = archive.status(archive.save(if_not_archived_within="10m")["job_id"])
    assert (status["status"], status["timestamp"]) == ("success", at)
    assert moment_of(status["timestamp"]) < submitted - 60
    original = archive.status(status["original_job_id"])
    assert original["timestamp"] == at


def test_a_running_job_is_not_begun_twice(archive):
    first = archive.save()
    archive.clock.advance(5)
    assert archive.save()["job_id"] == first["job_id"]
    archive.clock.advance(60)
    report = archive.service.report()
    assert (report.accepted, report.captures_made) == (1, 1)


# ------------------------------------------------------------------ replay


def test_a_memento_has_the_bytes_of_the_page_and_says_where_they_are_from(archive):
    body = random.Random(5).randbytes(5000)
    archive.site.put(
        PAGE, Page(body=body, content_type="application/pdf", headers=(("ETag", '"7"'),))
    )
    at = archive.captured()
    answer = archive.replay(at)
    assert (answer.status, answer.body, answer.content_type) == (200, body, "application/pdf")
    assert digits(parsedate_to_datetime(header(answer, "Memento-Datetime")).timestamp()) == at
    assert re.fullmatch(rf"spn2-{at}-[\w.-]+\.warc\.gz", header(answer, "X-Archive-Src"))
    assert header(answer, "x-archive-orig-etag") == '"7"'
    assert f'<{PAGE}>; rel="original"' in header(answer, "Link")
    planted = archive.service.plant(OTHER, NOON - 99)
    assert not header(archive.replay(planted, OTHER), "X-Archive-Src").startswith("spn2-")


def test_only_id_gives_the_raw_bytes(archive):
    at = archive.captured()
    assert archive.replay(at, flag="").body != archive.replay(at).body


def test_a_compressed_page_is_replayed_as_it_was_stored(archive):
    archive.site.put(PAGE, Page(body=b"\x1f\x8b..", headers=(("Content-Encoding", "gzip"),)))
    answer = archive.replay(archive.captured())
    assert (answer.body, header(answer, "Content-Encoding")) == (b"\x1f\x8b..", "gzip")


def test_an_archived_429_is_content_not_throttling(archive):
    archive.site.put(PAGE, Page(status=429))
    at = archive.done(capture_all="on")["timestamp"]
    archive.clock.advance(300)
    for _ in range(20):
        answer = archive.replay(at)
        assert (answer.status, header(answer, "Memento-Datetime") is None) == (429, False)
    assert archive.service.report().firewall_events == 0


def test_a_fresh_capture_is_neither_listed_nor_replayed_for_a_while(archive):
    old = archive.captured()
    archive.clock.advance(4600)
    fresh = archive.done()["timestamp"]
    assert [row[1] for row in archive.cdx()] == [old]
    answer = archive.replay(fresh)
    assert (answer.status, header(answer, "Memento-Datetime")) == (302, None)
    assert header(answer, "X-Archive-Redirect-Reason") == f"found capture at {old}"
    assert header(answer, "Location").endswith(f"/web/{old}id_/{PAGE}")
    archive.clock.advance(30)
    assert [row[1] for row in archive.cdx()] == [old, fresh]
    assert archive.replay(fresh).status == 200


def test_a_capture_that_vanished_leads_to_another_or_to_404_and_can_be_made_again(archive):
    at = archive.captured()
    archive.service.vanish(PAGE, at)
    assert not archive.service.live(PAGE, at)
    answer = archive.replay(at)
    assert answer.status == 404
    assert b"has not archived that URL" in answer.body
    again = archive.captured(if_not_archived_within="30d")
    assert header(archive.replay(at), "Location").endswith(f"/web/{again}id_/{PAGE}")
    report = archive.service.report()
    assert (report.captures_made, report.captured_twice, report.live_twice) == (2, 0, 0)
    assert [row[1] for row in archive.cdx()] == [again]


def test_a_vanished_capture_may_stay_listed(archive):
    at = archive.captured()
    archive.service.vanish(PAGE, at, listed=True)
    assert [row[1] for row in archive.cdx()] == [at]
    assert archive.replay(at).status == 404


def test_timemap_and_timegate_know_every_capture(archive):
    first = archive.captured()
    archive.clock.advance(90_000)
    second = archive.captured()
    links = archive.ask("GET", f"/web/timemap/link/{PAGE}").body.decode()
    assert re.findall(r'/web/(\d{14})/\S+>; rel="memento"', links) == [first, second]
    gate = archive.ask("GET", f"/web/{PAGE}")
    assert f"/web/{second}/" in header(gate, "Location")


def test_every_memento_there_ever_was_can_be_looked_at(archive):
    at = archive.captured()
    archive.captured(OTHER)
    archive.service.vanish(PAGE, at)
    assert {(one.url, one.replays) for one in archive.service.mementos()} == {
        (PAGE, False),
        (OTHER, True),
    }


# ------------------------------------------------------------------ the index


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://www.Example.org:443/A/?b=1&a=2", "org,example)/a?a=2&b=1"),
        ("http://example.org", "org,example)/"),
        ("http://example.org:8080/x", "org,example:8080)/x"),
    ],
)
def test_keys_fold_what_is_the_same_page(url, key):
    assert urlkey(url) == key


def test_a_row_names_page_moment_status_and_the_sha1_of_the_bytes(archive):
    archive.site.put(PAGE, Page(body=b"abc"))
    at = archive.captured()
    digest = base64.b32encode(hashlib.sha1(b"abc").digest()).decode()  # noqa: S324
    ((*row, length),) = archive.cdx()
    assert row == [urlkey(PAGE), at, PAGE, "text/html", "200", digest]
    assert length.isdigit()
    text = archive.ask("GET", f"/cdx/search/cdx?url={PAGE}&fl=timestamp,original")
    assert text.body == f"{at} {PAGE}\n".encode()


def test_http_and_https_share_a_key_but_not_the_original(archive):
    archive.captured("http://arxiv.org/abs/2401.00001v1")
    assert [row[2] for row in archive.cdx()] == ["http://arxiv.org/abs/2401.00001v1"]


def test_the_same_bytes_again_are_a_revisit_and_other_bytes_are_not(archive):
    archive.captured()
    archive.clock.advance(90_000)
    archive.captured()
    archive.clock.advance(90_000)
    archive.site.change(PAGE)
    at = archive.captured()
    rows = archive.cdx()
    assert [(row[3], row[4]) for row in rows] == [
        ("text/html", "200"),
        ("warc/revisit", "-"),
        ("text/html", "200"),
    ]
    assert rows[0][5] == rows[1][5] != rows[2][5]
    assert b"edition 2" in archive.replay(at).body
    assert len(archive.cdx(filter="!mimetype:warc/revisit")) == 2
    assert len(archive.cdx(filter=["mimetype:text/.*", "timestamp:" + at])) == 1
    assert len(archive.cdx(collapse="digest")) == 2
    assert [row[1] for row in archive.cdx(limit=-1)] == [at]


def test_nothing_found_is_an_empty_list_or_an_empty_body():
    bodies = {Archive(seed=seed).ask("GET", f"/cdx/search/cdx?url={PAGE}&output=json").body
              for seed in range(20)}  # fmt: skip
    assert bodies == {b"", b"[]"}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_page_by_page_a_beginning_gives_every_row_once_and_in_order(limit):
    archive = Archive(Rules(index_lag_s=(0, 0), cdx_per_minute=1000))
    for number in range(20):
        archive.service.plant(f"https://arxiv.org/abs/{number % 7}", NOON - 5000 + 30 * number)
    archive.service.plant("https://arxiv.org/list", NOON - 100)
    wanted = archive.cdx("https://arxiv.org/abs/", matchType="prefix")
    assert len(wanted) == 20
    rows, resume = [], {}
    for _ in range(30):
        page = archive.cdx(
            "https://arxiv.org/abs/",
            matchType="prefix",
            limit=limit,
            showResumeKey="true",
            **resume,
        )
        more = len(page) > 2 and page[-2] == []
        rows += page[:-2] if more else page
        if not more:
            break
        resume = {"resumeKey": unquote_plus(page[-1][0])}
    assert rows == wanted
    assert [(row[0], row[1]) for row in rows] == sorted((row[0], row[1]) for row in rows)


def test_from_and_to_are_inclusive_and_may_be_beginnings(archive):
    days = [archive.service.plant(PAGE, NOON - day * 86_400) for day in range(5, 0, -1)]
    assert [r[1] for r in archive.cdx(**{"from": days[1], "to": days[3]})] == days[1:4]
    assert [r[1] for r in archive.cdx(**{"from": days[1][:8], "to": days[3][:8]})] == days[1:4]
    assert [r[1] for r in archive.cdx(to=days[0][:8])] == days[:1]
    for beginning in ("https://arxiv.org/abs/*", "*.org", "arxiv.org/abs/*"):
        assert len(archive.cdx(beginning)) == 5


def test_availability_comes_late_and_is_blind_to_revisits(archive):
    def asked(**more):
        query = "&".join(f"{key}={value}" for key, value in ({"url": PAGE} | more).items())
        return json.loads(archive.ask("GET", f"/wayback/available?{query}", key=None).body)

    at = archive.captured()
    assert asked() == {"url": PAGE, "archived_snapshots": {}}
    archive.clock.advance(20_000)
    closest = asked(timestamp="2027")["archived_snapshots"]["closest"]
    assert (closest["timestamp"], closest["status"], closest["available"]) == (at, "200", True)
    archive.clock.advance(90_000)
    archive.captured()
    archive.clock.advance(20_000)
    assert asked()["archived_snapshots"]["closest"]["timestamp"] == at


# ------------------------------------------------------------------ the account


def test_the_account_tells_slots_day_counts_and_keys_nobody_knows(archive):
    archive.save()
    user = archive.user()
    assert (user["processing"], user["available"]) == (1, 2)
    assert (user["daily_captures"], user["daily_captures_limit"]) == (1, 30_000)
    known = {"processing", "available", "daily_captures", "daily_captures_limit", "daily_status",
             "daily_status_limit"}  # fmt: skip
    assert set(user) - known


def test_without_a_changing_parameter_the_account_is_an_old_one(archive):
    assert archive.user("")["available"] == 3
    archive.save()
    assert archive.user("")["available"] == 3
    assert archive.user()["available"] == 2


def test_the_system_needs_no_key(archive):
    answer = archive.ask("GET", "/save/status/system", key=None)
    assert json.loads(answer.body)["status"] == "ok"


_TEXT = st.text(max_size=30) | st.sampled_from([PAGE, "http://[", "*", "20270115", "9" * 14])
_NAMES = st.sampled_from(
    ["url", "matchType", "from", "to", "limit", "offset", "filter", "collapse", "fl", "output",
     "resumeKey", "timestamp", "job_id", "job_ids", "if_not_archived_within", "capture_all"]
)  # fmt: skip
_PATHS = st.sampled_from(
    ["/save", "/save/status", "/save/status/user", "/cdx/search/cdx", "/wayback/available", "/web/",
     "/web/timemap/link/", "/web/20270115id_/", "/web/99999999999999/", "/"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(["GET", "POST"]), _PATHS, _TEXT, st.dictionaries(_NAMES, _TEXT, max_size=5))
def test_no_request_makes_it_fall(method, path, rest, fields):
    archive = Archive(msgspec.structs.replace(STEADY, cdx_per_minute=10**6))
    archive.service.plant(PAGE, NOON - 100)
    query = urlencode({"url": PAGE} | fields)
    answer = archive.ask(method, f"{path}{quote(rest)}?{query}", fields)
    archive.clock.advance(100)
    assert answer.status in {200, 302, 400, 403, 404, 429}
    assert archive.service.report().captures_made <= 1


# ------------------------------------------------------------------ what is kept


def test_limits_change_without_notice(archive):
    archive.save()
    archive.service.change_rules(daily_captures=1, slots=8)
    user = archive.user()
    assert (user["daily_captures"], user["daily_captures_limit"], user["available"]) == (1, 1, 7)
    assert "captures per day" in archive.save(OTHER)["message"]


def test_a_second_archive_in_the_same_place_goes_on(tmp_path):
    file = tmp_path / "wayback.jsonl"
    first = Archive(file=file)
    at = first.captured()
    first.captured(OTHER)
    gone = first.captured("https://example.org/gone")
    first.service.vanish("https://example.org/gone", gone)
    running = first.save("https://example.org/running")["job_id"]
    body, now = first.replay(at).body, first.clock.now()
    first.service._world.journal.close()  # as a killed process leaves it
    with file.open("ab") as out:
        out.write(b'{"capture":{"url"')
    second = Archive(file=file, start=now)
    assert second.replay(at).body == body
    assert not second.service.live("https://example.org/gone", gone)
    assert second.user()["daily_captures"] == 4
    assert second.status(running)["status"] == "pending"
    second.clock.advance(60)
    assert second.status(running)["status"] == "success"
    second.service.close()
    second.service.close()
    third = Archive(file=file, start=second.clock.now() + 300)
    assert len(list(third.service.mementos())) == 4
    assert third.service.live("https://example.org/running", third.cdx(
        "https://example.org/running")[0][1])  # fmt: skip


def test_the_same_seed_makes_the_same_day():
    def day(seed):
        archive = Archive(Rules(), seed=seed)
        for number in range(30):
            archive.done(f"https://example.org/{number}")
        return [(one.url, one.timestamp) for one in archive.service.mementos()]

    assert day(1) == day(1) != day(2)


# ------------------------------------------------------------------ shapes


def _samples(shared_data, *kinds):
    samples = json.loads((shared_data / "ia-samples.json").read_text())
    return {one["kind"]: one for one in samples if one["kind"] in kinds}


@pytest.mark.shared_data
def test_answers_have_the_shape_of_real_ones(shared_data):
    archive = Archive()
    accepted, running = archive.save(), archive.save(OTHER)
    made = {"spn2.submit.accepted": accepted, "spn2.status.pending": archive.status("spn2-0")}
    made["spn2.user_status"] = archive.user()
    made["spn2.system_status.ok"] = json.loads(archive.ask("GET", "/save/status/system").body)
    archive.clock.advance(30)
    made["spn2.status.success.first_archive"] = archive.status(running["job_id"])
    archive.site.put("https://example.org/x", Page(status=404))
    made["spn2.status.error.not_found"] = archive.done("https://example.org/x")
    made["spn2.submit.error.invalid_url"] = archive.save("x")
    for kind, sample in _samples(shared_data, *made).items():
        wanted = json.loads(sample["body"])
        assert wanted.keys() <= made[kind].keys(), kind
        for name in ("status", "status_ext"):
            assert wanted.get(name) == made[kind].get(name), kind


@pytest.mark.shared_data
def test_the_limits_are_told_in_the_words_of_the_service(shared_data):
    archive = Archive(msgspec.structs.replace(STEADY, per_host_per_day=500))
    texts = {
        kind: sample["body"]
        for kind, sample in _samples(
            shared_data,
            "spn2.submit.error.user_session_limit",
            "spn2.submit.error.host_limit.message",
            "spn2.submit.error.ip_block.message",
            "spn2.submit.error.blocked_url.message",
        ).items()
    }
    said = {
        "spn2.submit.error.user_session_limit": json.dumps(
            archive.save(fault=fault("session-limit"))
        ),
        "spn2.submit.error.host_limit.message": archive.save(fault=fault("host-limit"))["message"],
        "spn2.submit.error.ip_block.message": archive.save(fault=fault("blocked-ip"))["message"],
    }
    archive.site.exclude("arxiv.org")
    said["spn2.submit.error.blocked_url.message"] = archive.save()["message"]
    for kind, text in said.items():
        same = (
            json.loads(text) == json.loads(texts[kind]) if text[0] == "{" else text == texts[kind]
        )
        assert same, kind
