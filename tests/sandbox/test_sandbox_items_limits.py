"""The archive's rules: who may upload what, how much at once, and every violation is counted."""

from __future__ import annotations

import http.client
import resource
import threading
import time

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.items_site import ITEM, KEYS, LOW, MAKE, ItemsSite, know_faults, md5, noise

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items.faults import ARCHIVE, IAS3, ITEM_KINDS
from anchord.sandbox.items.front import item_services
from anchord.sandbox.items.rules import Rules
from anchord.sandbox.items.s3 import ACCESSKEY, BUCKET, CODES, GLOBAL


@pytest.fixture
def site(tmp_path, monkeypatch):
    know_faults(monkeypatch)
    with ItemsSite(tmp_path) as running:
        yield running


def rules(**changed) -> Rules:
    return msgspec.structs.replace(Rules.quick(), **changed)


# ---------------------------------------------------------------------- who and where


@pytest.mark.parametrize(
    "authorization", ["", "LOW", "LOW SANDBOXACCESS:wrong", "LOW x:SANDBOXSECRET", "Basic abc"]
)
def test_other_keys_are_refused(site, authorization):
    headers = MAKE | {"Authorization": authorization}
    said = site.call(IAS3, "PUT", f"/{ITEM}/a", b"one", headers)
    assert (said.status, b"<Code>AccessDenied</Code>" in said.body) == (403, True)
    assert site.call(IAS3, "DELETE", f"/{ITEM}/a", None, headers).status == 403


@pytest.mark.parametrize(
    "identifier", ["abcd", "-abcde", ".abcde", "a%20bcde", "a" * 102, "%C3%BCabcd"]
)
def test_identifiers_follow_the_rule_of_the_server(site, identifier):
    said = site.put(f"/{identifier}/a", b"one")
    assert (said.status, b"InvalidBucketName" in said.body) == (400, True)


@settings(max_examples=20, deadline=None)
@given(identifier=st.from_regex(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{4,100}", fullmatch=True))
def test_every_lawful_identifier_is_taken(tmp_path_factory, identifier):
    with ItemsSite(tmp_path_factory.mktemp("items")) as site:
        assert site.put(f"/{identifier}/a", b"one").status == 200


def test_an_item_of_somebody_else_is_closed(site):
    site.archive.plant(ITEM)
    for said in (
        site.put(f"/{ITEM}/a", b"one"),
        site.call(IAS3, "DELETE", f"/{ITEM}/a", None, LOW),
    ):
        assert (said.status, b"lack sufficient privileges" in said.body) == (403, True)
    assert site.metadata()["metadata"]["uploader"] == "somebody@example.org"


def test_a_collection_without_rights_refuses_the_upload(site):
    said = site.put(f"/{ITEM}/a", b"one", x_archive_meta00_collection="nasa")
    assert (said.status, b"write to those collections" in said.body) == (403, True)
    assert (
        site.put(f"/{ITEM}/a", b"one", x_archive_meta00_collection="test_collection").status == 200
    )


def test_an_item_is_made_only_when_it_is_asked_for(site):
    said = site.call(IAS3, "PUT", f"/{ITEM}/a", b"one", LOW)
    assert (said.status, b"NoSuchBucket" in said.body) == (404, True)


def test_a_body_of_unknown_length_is_refused(site):
    connection = http.client.HTTPConnection("127.0.0.1", site.ports[IAS3], timeout=10)
    connection.putrequest("PUT", f"/{ITEM}/a")
    for name, value in MAKE.items():
        connection.putheader(name, value)
    connection.endheaders()
    assert connection.getresponse().status == 411
    connection.close()


# ---------------------------------------------------------------------- parallel first uploads


def _half_put(site, name, body):
    """Begin an upload and stop in the middle of its body."""
    connection = http.client.HTTPConnection("127.0.0.1", site.ports[IAS3], timeout=10)
    connection.putrequest("PUT", f"/{ITEM}/{name}")
    for header, value in (MAKE | {"Content-Length": str(len(body))}).items():
        connection.putheader(header, value)
    connection.endheaders()
    connection.send(body[: len(body) // 2])
    return connection


def _until(holds):
    for _ in range(500):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never became so")


def test_parallel_first_uploads_collide(site):
    body = noise(100_000)
    connection = _half_put(site, "a", body)
    _until(lambda: ITEM in site.archive.making)
    said = site.put(f"/{ITEM}/b", b"two")
    assert (said.status, b"OperationAborted" in said.body) == (409, True)
    connection.send(body[len(body) // 2 :])
    assert connection.getresponse().status == 200
    connection.close()
    early = site.put(f"/{ITEM}/b", b"two")
    assert (early.status, b"BucketAlreadyExists" in early.body) == (409, True)
    assert b"namespace is shared" in early.body
    site.settle()
    assert site.put(f"/{ITEM}/b", b"two").status == 200
    report = site.archive.report()
    assert (report["first_puts_in_parallel"], report["parallel_puts_max"]) == (1, 2)
    assert (report["puts_before_item_visible"], report["puts_accepted"]) == (1, 2)


def test_a_first_upload_that_fails_frees_the_name(site):
    connection = _half_put(site, "a", noise(1_000))
    _until(lambda: ITEM in site.archive.making)
    connection.close()
    _until(lambda: ITEM not in site.archive.making)
    assert site.put(f"/{ITEM}/a", b"one").status == 200


# ---------------------------------------------------------------------- how much


def test_the_real_numbers_are_the_default():
    real = Rules()
    assert (real.accesskey_ration, real.bucket_ration) == (74, 24)
    assert (real.rationing_level, real.total_global_limit) == (1399, 1799)
    assert (real.item_max_files, real.metadata_lag_s[1] >= 3600) == (10_000, True)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"bucket_ration": 3}, BUCKET),
        ({"accesskey_ration": 3}, ACCESSKEY),
        ({"total_global_limit": 1019}, GLOBAL),
    ],
)
def test_nobody_gets_past_a_limit_and_check_limit_says_so_before(tmp_path, changed, reason):
    with ItemsSite(tmp_path, rules(**changed)) as site:
        site.ready()
        for number in range(3):
            assert site.limit()["over_limit"] == 0
            assert site.put(f"/{ITEM}/{number}", b"x").status == 200
        limit = site.limit()
        assert (limit["over_limit"], limit["detail"]["limit_reason"]) == (1, reason)
        said = site.put(f"/{ITEM}/more", b"x")
        assert (said.status, reason.encode() in said.body) == (503, True)
        assert site.archive.report()["puts_while_over_limit"] == 1
        site.settle()
        assert site.limit()["over_limit"] == 0
        assert site.put(f"/{ITEM}/more", b"x").status == 200


def test_a_congested_archive_refuses_accounts_with_nothing_in_the_queue(site):
    site.archive.congest(True)
    limit = site.limit()
    assert (limit["over_limit"], limit["detail"]["rationing_engaged"]) == (1, 1)
    assert limit["detail"]["accesskey_tasks_queued"] == 0
    assert b"exceeds global_limit" in site.put(f"/{ITEM}/a", b"one").body
    site.archive.congest(False)
    assert site.limit()["over_limit"] == 0
    assert site.put(f"/{ITEM}/a", b"one").status == 200


def test_check_limit_can_be_over_or_no_json(site):
    site.board.add(IAS3, "over-limit", 1, {})
    assert site.limit()["over_limit"] == 1
    site.board.add(IAS3, "limit-html", 1, {})
    said = site.call(IAS3, "GET", f"/?check_limit=1&accesskey={KEYS[0]}&bucket={ITEM}")
    assert (said.status, said.body.startswith(b"<html>")) == (200, True)
    assert site.limit()["over_limit"] == 0


def test_check_limit_can_be_asked_by_head(site):
    path = f"/?check_limit=1&accesskey={KEYS[0]}&bucket={ITEM}"
    said, whole = (site.call(IAS3, method, path) for method in ("HEAD", "GET"))
    assert (said.status, said.body) == (200, b"")
    assert said.headers["Content-Length"] == str(len(whole.body))
    assert site.archive.report()["check_limits"] == 2


@pytest.mark.parametrize("scope", ["global", "accesskey", "bucket", "simulated"])
def test_each_kind_of_slow_down_can_be_had(site, scope):
    site.board.add(IAS3, "slow-down", 1, {"scope": scope})
    said = site.put(f"/{ITEM}/a", b"one")
    assert (said.status, b"<Code>SlowDown</Code>" in said.body) == (503, True)
    assert scope.encode() in said.body


@pytest.mark.parametrize("code", ["SlowDown", "InternalError", "AccessDenied"])
def test_an_error_can_be_simulated_by_a_header(site, code):
    said = site.put(f"/{ITEM}/a", b"one", x_archive_simulate_error=code)
    assert (said.status, b"simulated error caused by" in said.body) == (CODES[code][0], True)


def test_spam_stays_spam_until_a_human_looks(site):
    site.board.add(IAS3, "spam", 1, {})
    for _ in range(2):
        assert b"appears to be spam" in site.put(f"/{ITEM}/a", b"one").body
    site.archive.forgive()
    assert site.put(f"/{ITEM}/a", b"one").status == 200


def test_many_new_items_a_day_look_like_spam(tmp_path):
    with ItemsSite(tmp_path, rules(items_per_day=2)) as site:
        for number in range(2):
            assert site.put(f"/{ITEM}-{number}/a", b"one").status == 200
        assert b"appears to be spam" in site.put(f"/{ITEM}-2/a", b"one").body


def test_an_item_has_an_end(tmp_path):
    with ItemsSite(tmp_path, rules(item_max_files=2, advised_files=1)) as site:
        site.ready("a")
        assert site.put(f"/{ITEM}/b", b"two").status == 200
        said = site.put(f"/{ITEM}/c", b"three")
        assert (said.status, b"too large" in said.body) == (403, True)
        assert site.put(f"/{ITEM}/b", b"other").status == 200
        assert site.archive.report()["files_over_advice"] == 2


def test_an_item_is_full_by_bytes_too(tmp_path):
    with ItemsSite(tmp_path, rules(item_max_bytes=10)) as site:
        site.ready("a", b"123456")
        assert site.put(f"/{ITEM}/b", b"12345").status == 403
        assert site.put(f"/{ITEM}/b", b"1234").status == 200


def test_files_beyond_the_advice_of_a_day_are_counted_until_midnight(tmp_path):
    with ItemsSite(tmp_path, rules(advised_files_per_day=2)) as site:
        site.ready("a")
        for name in "bc":
            site.put(f"/{ITEM}/{name}", b"x")
        assert site.archive.report()["files_over_day_advice"] == 1
        site.clock.advance(86_400)
        site.put(f"/{ITEM}/d", b"x")
        assert site.archive.report()["files_over_day_advice"] == 1


def test_what_a_careless_client_does_is_counted(site):
    site.ready()
    site.put(f"/{ITEM}/a", b"one", x_archive_queue_derive="1")
    site.put(f"/{ITEM}/b", b"two", Content_MD5=md5(b"two"))
    report = site.archive.report()
    assert report["derives_requested"] == 1
    assert report["puts_without_md5"] == 2
    assert report["bytes"] == len(b"{}" + b"onetwo")


def test_every_fault_has_a_service_and_routes_that_service_has(site):
    for kind, (words, groups, routes, _) in ITEM_KINDS.items():
        assert words, kind
        assert groups <= {IAS3, ARCHIVE}, kind
        found = {
            service.route(method, path)
            for service in item_services(site.archive)
            for method, path in ASKED
        }
        assert routes is None or routes <= found, kind


ASKED = [
    ("PUT", f"/{ITEM}/a"),
    ("GET", "/?check_limit=1"),
    ("GET", "/?check_auth=1"),
    ("GET", f"/metadata/{ITEM}"),
    ("GET", "/services/tasks.php?identifier=x"),
    ("GET", f"/download/{ITEM}/a"),
    ("GET", f"/1/items/{ITEM}/a"),
]

# ---------------------------------------------------------------------- speed


def test_hundreds_of_uploads_take_seconds_and_no_memory(tmp_path):
    """300 files of 1.5 MB, four at a time: the archive keeps none of them in memory."""
    wide = rules(accesskey_ration=10_000, bucket_ration=10_000, total_global_limit=20_000)
    clock, body = SandboxClock(), noise(1_500_000)
    with ItemsSite(tmp_path, wide, clock) as site:
        site.put(f"/{ITEM}/first", b"x")
        _until(lambda: site.metadata() != {})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        statuses: list[int] = []

        def upload(start):
            numbers = range(start, 300, 4)
            statuses.extend(site.put(f"/{ITEM}/{number}.zip", body).status for number in numbers)

        threads = [threading.Thread(target=upload, args=(start,)) for start in range(4)]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses == [200] * 300
        assert time.monotonic() - began < 30  # some 3 s on a quiet machine
        grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown_kb < 50_000
        _until(lambda: "tasks" not in site.metadata())
        assert len(site.files()) == 301
