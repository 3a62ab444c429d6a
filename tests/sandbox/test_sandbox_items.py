"""Items behave as archive.org's: accepted at once, seen late, kept for ever, fetched by member."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import socket
import zlib
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.items_site import ITEM, LOW, START, ItemsSite, know_faults, md5, noise, zipped

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items.faults import ARCHIVE_ORG, IAS3
from anchord.sandbox.items.rules import Rules

TASKS = "/services/tasks.php"


@pytest.fixture
def site(tmp_path, monkeypatch):
    know_faults(monkeypatch)
    with ItemsSite(tmp_path / "items") as running:
        yield running


# ---------------------------------------------------------------------- uploads


def test_an_upload_is_accepted_at_once_and_seen_later(site):
    said = site.put(f"/{ITEM}/b/one.json", b"12345678")
    assert (said.status, said.body) == (200, b"")
    assert site.metadata() == {}
    assert site.download(f"/download/{ITEM}/b/one.json").status == 404
    site.settle()
    row = site.files()["b/one.json"]
    assert (row["size"], row["md5"]) == ("8", md5(b"12345678"))
    assert row["sha1"] == hashlib.sha1(b"12345678", usedforsecurity=False).hexdigest()
    assert row["crc32"] == f"{zlib.crc32(b'12345678'):08x}"
    assert site.download(f"/download/{ITEM}/b/one.json").body == b"12345678"


def test_a_later_file_waits_in_the_queue_and_metadata_says_so(site):
    site.ready()
    assert "pending_tasks" not in site.metadata()
    site.put(f"/{ITEM}/second.json", b"[]")
    document = site.metadata()
    assert document["pending_tasks"] is True
    assert [task["wait_admin"] for task in document["tasks"]] == [0]
    assert list(site.files()) == ["first.json"]
    site.settle()
    assert "tasks" not in site.metadata()
    assert list(site.files()) == ["first.json", "second.json"]


def test_metadata_comes_from_the_headers_of_the_first_upload_only(site):
    site.put(
        f"/{ITEM}/a",
        b"a",
        x_archive_meta00_title="uri(T%C3%ABst%20%20title)",
        x_archive_meta00_subject="b",
        x_archive_meta01_subject="a",
        **{"x-archive-meta00-long--name": "  two   words "},
        x_archive_filemeta00_pith="x",
    )
    site.settle()
    site.put(f"/{ITEM}/b", b"b", x_archive_meta00_title="another")
    site.settle()
    fields = site.metadata()["metadata"]
    assert fields["title"] == "Tëst title"
    assert fields["subject"] == ["b", "a"]
    assert fields["long_name"] == "two words"
    assert (fields["mediatype"], fields["collection"]) == ("data", "opensource")
    assert fields["uploader"] == "sandbox@example.org"
    assert site.files()["a"]["pith"] == "x"


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.text("abz09 ü#?.%+&/_-", min_size=1, max_size=20).map(lambda s: f"n{s}n"))
def test_any_name_comes_back_as_it_was_sent(site, name):
    name = "/".join(part for part in name.split("/") if part)
    quoted = quote(name, safe="/")
    site.put(f"/{ITEM}/{quoted}", name.encode())
    site.settle()
    assert name in site.files()
    assert site.download(f"/download/{ITEM}/{quoted}").body == name.encode()


@pytest.mark.parametrize(
    "stated", [md5(b"data"), base64.b64encode(bytes.fromhex(md5(b"data"))).decode()]
)
def test_content_md5_is_taken_as_hex_and_as_base64(site, stated):
    assert site.put(f"/{ITEM}/a", b"data", Content_MD5=stated).status == 200


def test_other_bytes_than_announced_are_refused_and_leave_nothing(site):
    said = site.put(f"/{ITEM}/a", b"data", Content_MD5=md5(b"other"))
    assert said.status == 400
    assert b"<Code>BadDigest</Code>" in said.body
    assert md5(b"data").encode() in said.body
    site.settle()
    assert site.metadata() == {}
    assert site.archive.report()["puts_accepted"] == 0


def test_an_upload_that_breaks_off_leaves_nothing(site, tmp_path):
    head = f"PUT /{ITEM}/a HTTP/1.1\r\nHost: s3.us.archive.org\r\nContent-Length: 100000\r\n"
    head += "".join(f"{n}: {v}\r\n" for n, v in (LOW | {"x-archive-auto-make-bucket": "1"}).items())
    with socket.create_connection(("127.0.0.1", site.ports[IAS3]), timeout=10) as connection:
        connection.sendall(head.encode() + b"\r\n" + b"x" * 5_000)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    site.settle()
    assert site.metadata() == {}
    assert list((tmp_path / "items" / "blobs").iterdir()) == []
    assert site.put(f"/{ITEM}/a", b"whole").status == 200


def test_a_second_version_replaces_the_first_and_is_counted(site):
    site.ready("a", b"one")
    site.put(f"/{ITEM}/a", b"two")
    assert site.files()["a"]["md5"] == md5(b"one")
    site.settle()
    assert site.files()["a"]["md5"] == md5(b"two")
    assert site.archive.report()["overwrites"] == 1


def test_an_old_version_is_kept_when_it_is_asked_for(site):
    site.ready("a", b"one")
    site.put(f"/{ITEM}/a", b"two", x_archive_keep_old_version="1")
    site.settle()
    assert site.download(f"/download/{ITEM}/a").body == b"two"
    assert site.download(f"/download/{ITEM}/history/files/a.~1~").body == b"one"


def test_deleting_takes_the_file_and_never_the_item(site):
    site.ready("a", b"one")
    said = site.call(IAS3, "DELETE", f"/{ITEM}/a", None, LOW)
    assert (said.status, said.body) == (204, b"")
    site.settle()
    assert site.files() == {}
    assert site.metadata()["metadata"]["identifier"] == ITEM
    assert site.call(IAS3, "DELETE", f"/{ITEM}/a", None, LOW).status == 404
    assert site.call(IAS3, "DELETE", f"/{ITEM}/{ITEM}_meta.xml", None, LOW).status == 403


def test_head_tells_size_and_checksum_without_a_body(site):
    site.ready("a", b"12345")
    said = site.call(IAS3, "HEAD", f"/{ITEM}/a")
    assert (said.status, said.headers["Content-Length"], said.body) == (200, "5", b"")
    assert said.headers["ETag"] == f'"{md5(b"12345")}"'


def test_the_same_bytes_again_are_counted_as_twice_only_once_they_can_be_seen(site):
    site.put(f"/{ITEM}/a", b"one")
    site.clock.advance(0.25)  # the first upload's lock is over; no task ran yet
    assert site.put(f"/{ITEM}/a", b"one").status == 200
    report = site.archive.report()
    assert (report["put_twice"], report["put_again_before_visible"]) == (0, 1)
    site.settle()
    site.put(f"/{ITEM}/a", b"one")
    assert site.archive.report()["put_twice"] == 1


# ---------------------------------------------------------------------- metadata and tasks


def test_a_missing_item_is_an_empty_object(site):
    said = site.site("/metadata/no-such-item")
    assert (said.status, said.body) == (200, b"{}")


def test_a_dark_item_exists_without_files_and_gives_nothing(site):
    site.ready("a", b"one")
    site.archive.darken(ITEM)
    assert site.metadata() == {"is_dark": True}
    assert site.download(f"/download/{ITEM}/a").status == 403
    assert site.put(f"/{ITEM}/b", b"two").status == 403


def test_parts_of_metadata_can_be_read_alone(site):
    site.ready("a", b"one")
    assert site.site(f"/metadata/{ITEM}/files/0").json()["result"]["name"] == "a"
    assert site.site(f"/metadata/{ITEM}/metadata/mediatype").json() == {"result": "data"}
    assert "error" in site.site(f"/metadata/{ITEM}/files/99").json()


def test_the_documents_have_the_shape_of_the_samples(site, shared_data):
    samples = {s["kind"]: s for s in json.loads((shared_data / "ia-samples.json").read_text())}
    site.ready("a", b"one")
    wanted = json.loads(samples["metadata.item"]["body"])
    document = site.metadata()
    assert wanted.keys() <= document.keys()
    for field, value in wanted.items():
        assert type(document[field]) is type(value), field
    assert wanted["files"][0].keys() == document["files"][0].keys()
    limits = json.loads(samples["ias3.check_limit.ok"]["body"])
    seen = site.limit()
    assert (seen.keys(), seen["detail"].keys()) == (limits.keys(), limits["detail"].keys())
    rates = json.loads(samples["tasks.rate_limits"]["body"])
    asked = site.site(f"{TASKS}?rate_limits=1&cmd=derive.php", headers=LOW)
    assert asked.json()["value"].keys() == rates["value"].keys()
    assert not asked.body.endswith(b"\n")


def test_tasks_go_from_queued_over_running_into_history(tmp_path):
    rules = msgspec.structs.replace(Rules(), metadata_lag_s=(100.0, 100.0))
    with ItemsSite(tmp_path, rules) as site:
        site.put(f"/{ITEM}/a", b"one")
        states = []
        for seconds in (0, 85, 20):
            site.clock.advance(seconds)
            address = f"{TASKS}?identifier={ITEM}&catalog=1&history=1"
            value = site.site(address, headers=LOW).json()["value"]
            states.append((value["summary"], len(value["catalog"]), len(value["history"])))
    idle = {"queued": 0, "running": 0, "error": 0, "paused": 0}
    assert states == [
        (idle | {"queued": 1}, 1, 0),
        (idle | {"running": 1}, 1, 0),
        (idle, 0, 1),
    ]


@pytest.mark.parametrize(("state", "status"), [(2, "error"), (9, "paused")])
def test_a_halted_task_holds_all_behind_it_until_the_staff_acts(site, state, status):
    site.ready()
    site.archive.fail_tasks(ITEM, state)
    site.put(f"/{ITEM}/b", b"two")
    site.put(f"/{ITEM}/c", b"three")
    site.clock.advance(86_400)
    assert [(t["wait_admin"], t["status"]) for t in site.metadata()["tasks"]] == [
        (state, status),
        (0, "queued"),
    ]
    assert list(site.files()) == ["first.json"]
    site.archive.fail_tasks(ITEM, 0)
    assert list(site.files()) == ["first.json", "b", "c"]


def test_tasks_are_told_to_the_account_only(site):
    said = site.site(f"{TASKS}?identifier={ITEM}")
    assert (said.status, said.json()["success"]) == (401, False)


def test_rows_without_limit_come_as_lines(site):
    site.put(f"/{ITEM}/a", b"one")
    said = site.site(f"{TASKS}?identifier={ITEM}&catalog=1&limit=0&summary=0", headers=LOW)
    row = json.loads(said.body.splitlines()[0])
    assert (row["identifier"], row["status"], row["category"]) == (ITEM, "queued", "catalog")


def test_check_auth_knows_the_account(site):
    known = site.call(IAS3, "GET", "/?check_auth=1", None, LOW).json()
    assert known["username"] == "sandbox@example.org"
    unknown = site.call(IAS3, "GET", "/?check_auth=1", None, {"Authorization": "LOW A:B"})
    assert (unknown.status, list(unknown.json())) == (200, ["error"])


# ---------------------------------------------------------------------- downloads


def test_a_member_of_a_zip_is_read_by_its_address(site):
    members = {"bundles/a b.json": b'{"a":1}', "bundles/c.json": noise(70_000)}
    site.ready("bundles-1-2.zip", zipped(members))
    address = f"/download/{ITEM}/bundles-1-2.zip"
    assert site.site(f"{address}/bundles/c.json").status == 302
    for name, body in members.items():
        assert site.download(f"{address}/{name.replace(' ', '%20')}").body == body
    assert site.download(f"{address}/bundles/none.json").status == 404
    assert site.download(address).body == zipped(members)


def test_a_big_file_comes_back_whole(site):
    body = noise(3_000_000)
    site.ready("big.zip", body)
    said = site.download(f"/download/{ITEM}/big.zip")
    assert (said.headers["Content-Length"], said.body == body) == ("3000000", True)


def test_a_lost_file_is_neither_listed_nor_given(site):
    site.ready("a", b"one")
    site.archive.lose(ITEM, "a")
    assert site.files() == {}
    assert site.download(f"/download/{ITEM}/a").status == 404


def test_a_corrupt_file_is_seen_only_by_who_downloads_it(site):
    site.ready("a", b"12345")
    site.archive.corrupt(ITEM, "a")
    assert site.files()["a"]["md5"] == md5(b"12345")
    body = site.download(f"/download/{ITEM}/a").body
    assert (len(body), body != b"12345") == (5, True)
    site.archive.corrupt(ITEM, "a", listed=True)
    assert site.files()["a"]["md5"] == md5(site.download(f"/download/{ITEM}/a").body)


def test_only_what_is_visible_can_be_lost(site):
    with pytest.raises(ValueError, match="is visible"):
        site.archive.lose(ITEM, "a")


# ---------------------------------------------------------------------- addresses, time, restarts


def test_one_port_answers_for_both_hosts(site):
    """As a proxy gets it (the whole address), and as a rewriting adapter sends it (Host)."""
    headers = {"Host": "s3.us.archive.org", "x-archive-auto-make-bucket": "1"} | LOW
    assert site.call(ARCHIVE_ORG, "PUT", f"/{ITEM}/a", b"one", headers).status == 200
    site.settle()
    whole = site.call(IAS3, "GET", f"http://archive.org/metadata/{ITEM}")
    named = site.call(IAS3, "GET", f"/metadata/{ITEM}", None, {"Host": "archive.org:80"})
    assert whole.json()["files"][0]["name"] == "a"
    assert whole.body == named.body
    assert site.counts.of(IAS3)["metadata"] == 1


def test_a_second_run_goes_on_where_the_first_ended(tmp_path):
    clock = SandboxClock(START, frozen=True)
    with ItemsSite(tmp_path, clock=clock) as first:
        first.ready("a", b"one")
        first.put(f"/{ITEM}/b", b"two")
    with (tmp_path / "journal.jsonl").open("ab") as journal:
        journal.write(b'{"type":"queu')  # killed in the middle of a line
    (tmp_path / "blobs" / "99").write_bytes(b"killed before its line")
    with ItemsSite(tmp_path, clock=clock) as second:
        assert list(second.files()) == ["a"]
        second.settle()
        assert second.download(f"/download/{ITEM}/b").body == b"two"
        second.put(f"/{ITEM}/c", b"three")
        second.settle()
        assert list(second.files()) == ["a", "b", "c"]
        assert sorted(f.name for f in (tmp_path / "blobs").iterdir()) == ["1", "2", "3"]


def test_lags_reach_from_seconds_to_hours_and_a_seed_repeats_them(tmp_path):
    def lags(folder):
        with ItemsSite(folder, Rules()) as site:
            return [site.archive._lag(task) for task in range(200)]

    first = lags(tmp_path / "1")
    assert first == lags(tmp_path / "2")
    assert 5 <= min(first) < 60
    assert 3600 < max(first) <= 7200


def test_keys_are_counted_where_they_do_not_belong(site):
    for agent in ("internetarchive/5.12.1 (SANDBOXACCESS)", "anchord (SANDBOXACCESS)"):
        site.site("/metadata/some-item", headers={"User-Agent": agent})
    report = site.archive.report()
    assert report["keys_in_foreign_user_agents"] == 1
    assert report["metadata_reads_by_item"] == {"some-item": 2}


# ---------------------------------------------------------------------- faults


@pytest.mark.parametrize("kind", ["stored-cut", "stored-500"])
def test_an_answer_can_get_lost_after_the_file_was_stored(site, kind):
    site.board.add(IAS3, kind, 1, {})
    if kind == "stored-cut":
        with pytest.raises(http.client.RemoteDisconnected):
            site.put(f"/{ITEM}/a", b"one")
    else:
        said = site.put(f"/{ITEM}/a", b"one")
        assert (said.status, said.body) == (500, b"")
    site.settle()
    assert list(site.files()) == ["a"]


@pytest.mark.parametrize(
    ("kind", "status", "words"),
    [
        ("slow-down", 503, b"exceeds global_limit"),
        ("spam", 503, b"appears to be spam"),
        ("bucket-lock", 409, b"short term bucket lock"),
        ("bucket-exists", 409, b"auto_make_bucket requested"),
        ("bad-digest", 400, b"BadDigest"),
        ("access-denied", 403, b"AccessDenied"),
        ("internal-error", 500, b"InternalError"),
        ("empty-500", 500, b""),
    ],
)
def test_a_refused_upload_is_taken_in_whole_and_stores_nothing(site, kind, status, words):
    site.board.add(IAS3, kind, 1, {})
    body = noise(2_500_000)
    said = site.put(f"/{ITEM}/a", body, Content_MD5=md5(body))
    assert said.status == status
    assert words in said.body
    assert bool(said.body) == bool(words)
    site.settle()
    assert site.metadata() == {}
    assert site.archive.report()["bytes_refused"] == len(body)


@pytest.mark.parametrize(("kind", "state"), [("task-error", 2), ("task-paused", 9)])
def test_a_task_can_fail_after_its_upload_was_accepted(site, kind, state):
    site.ready()
    site.board.add(IAS3, kind, 1, {})
    assert site.put(f"/{ITEM}/b", b"two").status == 200
    site.settle()
    assert [t["wait_admin"] for t in site.metadata()["tasks"]] == [state]
    assert "b" not in site.files()


def test_the_site_can_be_wrong_about_what_it_has(site):
    site.ready("a", b"12345")
    found = {}
    for kind in ("item-missing", "item-dark", "servers-unavailable", "metadata-html"):
        site.board.add(ARCHIVE_ORG, kind, 1, {})
        found[kind] = site.site(f"/metadata/{ITEM}")
    assert found["item-missing"].body == b"{}"
    assert found["item-dark"].json() == {"is_dark": True}
    assert found["servers-unavailable"].json()["servers_unavailable"] is True
    assert found["servers-unavailable"].json()["files"] == []
    assert found["metadata-html"].body.startswith(b"<html>")
    for kind, status in (("download-missing", 404), ("download-503", 503)):
        site.board.add(ARCHIVE_ORG, kind, 1, {})
        assert site.download(f"/download/{ITEM}/a").status == status
    site.board.add(ARCHIVE_ORG, "download-corrupt", 1, {})
    body = site.download(f"/download/{ITEM}/a").body
    assert (len(body), body != b"12345") == (5, True)
    assert site.download(f"/download/{ITEM}/a").body == b"12345"
