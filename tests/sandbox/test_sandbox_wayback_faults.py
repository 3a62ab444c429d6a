"""What can go wrong with the sandbox's Wayback Machine: on command, by chance, by the clock."""

from __future__ import annotations

import http.client
import itertools
import json
import socket
import stat
import time

import msgspec
import pytest
from support.wayback_calls import KEY, NOON, PAGE, STEADY, Archive, fault, header
from support.workplace import run

from anchord.adapters.archives.credentials import load_keys
from anchord.adapters.archives.wayback import Wayback
from anchord.app.config import load
from anchord.core.wayback import Running
from anchord.errors import ConfigError
from anchord.sandbox.archive import SiteChange
from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.faults import KINDS
from anchord.sandbox.items.faults import ITEM_KINDS
from anchord.sandbox.run import Sandbox
from anchord.sandbox.wayback.kinds import WAYBACK_KINDS
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.service import ACCESS, SECRET, RefusedError
from anchord.sandbox.wayback.weather import Spell, Weather
from anchord.sandbox.web import HangUpError

WIDE = msgspec.structs.replace(
    STEADY, slots=10_000, submits_per_minute=10_000, host_queue_after=None, daily_captures=10**6
)


@pytest.fixture
def archive():
    return Archive()


def url(number):
    return f"https://example.org/{number}"


# ------------------------------------------------------------------ instead of an answer

SPOILT = [
    ("offline", 503, b"Internet Archive services are temporarily offline."),
    ("rate-limited", 429, b"429 Too Many Requests"),
    ("bad-gateway", 502, b"502 Bad Gateway"),
    ("gateway-timeout", 504, b"504 Gateway Time-out"),
    ("unknown-shape", 200, b'"revision"'),
    ("html", 200, b"<!DOCTYPE html>"),
    ("empty-body", 200, b""),
]


@pytest.mark.parametrize(("kind", "status", "words"), SPOILT)
def test_a_spoilt_answer_means_that_nothing_was_done(archive, kind, status, words):
    answer = archive.ask("POST", "/save", {"url": PAGE}, fault=fault(kind))
    assert (answer.status, header(answer, "Retry-After")) == (status, None)
    assert words in answer.body
    assert bool(answer.body) == bool(words)
    archive.clock.advance(100)
    report = archive.service.report()
    assert (report.submits, report.accepted, report.captures_made) == (1, 0, 0)
    assert (report.refused, report.rate_429) == ({kind: 1}, 0)


@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("session-limit", "error:user-session-limit", "limit of active Save Page Now sessions"),
        ("day-limit", None, "You cannot make more than 30,000 captures per day"),
        ("url-limit", "error:too-many-daily-captures", "already captured 5 times today"),
        ("host-limit", "error:too-many-daily-captures-host", "This host has been already captured"),
        ("bandwidth-limit", "error:max-daily-bandwidth", "bandwidth"),
        ("blocked-ip", "error:blocked-client-ip", "Your IP address is in our block list."),
    ],
)
def test_a_forged_refusal_comes_with_status_200_and_no_job(archive, kind, code, words):
    answer = archive.save(fault=fault(kind))
    assert answer.get("status_ext") == code
    assert words in answer["message"]
    assert "job_id" not in answer
    report = archive.service.report()
    assert (report.accepted, report.session_limit_refusals) == (0, 0)
    assert sum(report.refused.values()) == 1


def test_a_valid_key_may_be_refused_for_once(archive):
    for method, path in (
        ("POST", "/save"),
        ("GET", "/save/status/x"),
        ("GET", "/save/status/user"),
    ):
        answer = archive.ask(method, path, {"url": PAGE}, fault=fault("not-logged-in"))
        assert answer.status == 401
        assert "logged in" in json.loads(answer.body)["message"]


# ------------------------------------------------------------------ after the work


@pytest.mark.parametrize(
    ("kind", "options", "status"),
    [("captured-5xx", {}, 502), ("captured-5xx", {"status": 523}, 523), ("captured-520", {}, 520),
     ("captured-hangup", {}, None)],
)  # fmt: skip
def test_a_lost_answer_hides_a_capture_that_is_made(archive, kind, options, status):
    struck = fault(kind, **options)
    if status is None:
        with pytest.raises(HangUpError):
            archive.save(fault=struck)
    else:
        answer = archive.ask("POST", "/save", {"url": PAGE}, fault=struck)
        assert answer.status == status
        assert b"spn2-" not in answer.body
    archive.clock.advance(300)
    ((_, at, *_),) = archive.cdx()
    assert archive.service.live(PAGE, at)
    report = archive.service.report()
    assert (report.answers_lost, report.captures_made) == (1, 1)


def test_a_failed_job_has_captured_or_not(archive):
    failed = archive.done(url(1), fault("job-failed"))
    assert (failed["status_ext"], failed["message"]) == ("error:job-failed", "Job failed.")
    captured = archive.done(url(2), fault("job-failed", captured=1, code="browsing-timeout"))
    assert captured["status_ext"] == "error:browsing-timeout"
    archive.clock.advance(300)
    assert archive.cdx(url(1)) == []
    assert len(archive.cdx(url(2))) == 1
    assert archive.service.report().jobs_failed == 2


def test_a_success_may_have_no_snapshot_and_is_told_again(archive):
    status = archive.done(fault=fault("no-snapshot"))
    assert status["status"] == "success"
    archive.clock.advance(900)
    assert archive.cdx() == []
    assert archive.replay(status["timestamp"]).status == 404
    assert "job_id" in archive.save(if_not_archived_within="30d")
    assert archive.service.report().accepted == 1


def test_a_job_may_be_forgotten_early(archive):
    job = archive.save(fault=fault("forget-job", delay_s=30))["job_id"]
    archive.clock.advance(45)
    assert archive.status(job)["status"] == "success"
    archive.clock.advance(10)
    assert archive.status(job)["status"] == "pending"
    archive.clock.advance(300)
    assert len(archive.cdx()) == 1


@pytest.mark.parametrize("listed", [0, 1])
def test_a_capture_may_vanish_by_itself(archive, listed):
    job = archive.save(fault=fault("vanish", delay_s=61_200, listed=listed))["job_id"]
    archive.clock.advance(300)
    ((_, at, *_),) = archive.cdx()
    assert archive.replay(at).status == 200
    archive.clock.advance(61_200)
    assert archive.replay(at).status == 404
    assert len(archive.cdx()) == listed
    assert archive.service.report().vanished == 1
    assert archive.save(if_not_archived_within="30d") == {"url": PAGE, "job_id": job}


def test_a_slot_may_be_freed_late(archive):
    archive.save(fault=fault("slow-slot", delay_s=100))
    archive.clock.advance(119)
    assert archive.user()["available"] == 2
    archive.clock.advance(1)
    assert archive.user()["available"] == 3


@pytest.mark.parametrize(
    ("delay", "message"),
    [(40, "Your capture will begin in 40s."), (600, "The capture will start in 10 minutes."),
     (7200, "The capture will start in 2 hours.")],
)  # fmt: skip
def test_a_capture_may_begin_later_and_that_is_said(archive, delay, message):
    answer = archive.save(fault=fault("delayed", delay_s=delay))
    assert answer["message"] == message
    archive.clock.advance(delay + 19)
    assert archive.status(answer["job_id"])["status"] == "pending"
    archive.clock.advance(1)
    assert archive.status(answer["job_id"])["status"] == "success"


def test_the_index_may_be_hours_late(archive):
    archive.save(fault=fault("late-index", delay_s=36_000))
    archive.clock.advance(36_000)
    assert archive.cdx() == []
    archive.clock.advance(100)
    assert len(archive.cdx()) == 1


# ------------------------------------------------------------------ readers


def test_readers_may_be_told_wrong_things(archive):
    at = archive.captured()
    archive.clock.advance(30_000)
    user = archive.ask("GET", "/save/status/user?_t=1", fault=fault("stale-slots"))
    assert json.loads(user.body)["available"] == 0
    system = archive.ask("GET", "/save/status/system", fault=fault("overloaded"))
    assert "temporarily overloaded" in json.loads(system.body)["status"]
    index = f"/cdx/search/cdx?url={PAGE}&output=json"
    assert archive.ask("GET", index, fault=fault("nothing-listed")).body in {b"", b"[]"}
    assert archive.ask("GET", index, fault=fault("blocked-site")).status == 403
    memento = archive.ask("GET", f"/web/{at}id_/{PAGE}", fault=fault("not-archived"))
    assert (memento.status, header(memento, "Memento-Datetime")) == (404, None)
    found = archive.ask("GET", f"/wayback/available?url={PAGE}", fault=fault("false-empty"))
    assert json.loads(found.body)["archived_snapshots"] == {}


def test_refused_closes_the_service_for_a_time(archive):
    with pytest.raises(RefusedError):
        archive.ask("GET", "/save/status/system", fault=fault("refused", delay_s=60))
    archive.clock.advance(59)
    with pytest.raises(RefusedError):
        archive.user()
    archive.clock.advance(1)
    assert archive.user()["available"] == 3
    report = archive.service.report()
    assert (report.closed_on, report.firewall_events) == (2, 0)


def test_a_429_of_a_fault_that_is_ignored_closes_the_firewall_too(archive):
    for _ in range(4):
        archive.ask("POST", "/save", {"url": PAGE}, fault=fault("rate-limited"))
    with pytest.raises(RefusedError):
        archive.ask("POST", "/save", {"url": PAGE}, fault=fault("rate-limited"))
    report = archive.service.report()
    assert (report.rate_429, report.firewall_events) == (0, 1)


# ------------------------------------------------------------------ weather


def test_chances_strike_about_as_often_as_they_say_and_the_same_seed_repeats_them():
    def day(seed):
        spells = (
            Spell(kind="vanish", share=0.1, options={"delay_s": 60}),
            Spell(kind="captured-5xx", share=0.2),
            Spell(kind="job-failed", share=0.05, options={"captured": 1}),
        )
        archive = Archive(WIDE, weather=Weather(spells, seed=seed))
        for number in range(1000):
            archive.ask("POST", "/save", {"url": url(number)})
        archive.clock.advance(1000)
        report = archive.service.report()
        return report.answers_lost, report.vanished, report.jobs_failed

    lost, vanished, failed = day(3)
    assert (150 < lost < 250, 60 < vanished < 140, 25 < failed < 75) == (True, True, True)
    assert day(3) == (lost, vanished, failed) != day(4)


def test_spells_begin_and_end_by_the_clock():
    spells = (
        Spell(kind="offline", start_s=3600, stop_s=7200),
        Spell(kind="not-logged-in", start_s=7200, stop_s=7300, on="save"),
        Spell(kind="refused", start_s=10_000, stop_s=10_100),
    )
    archive = Archive(weather=Weather(spells))

    def at(second, method="POST", path="/save"):
        archive.clock.advance(NOON + second - archive.clock.now())
        return archive.ask(method, path, {"url": PAGE}).status

    assert at(0) == 200
    assert [at(3600), at(7199, "GET", "/save/status/user?_t=1")] == [503, 503]
    assert [at(7200), at(7201, "GET", "/save/status/user?_t=1"), at(7300)] == [401, 200, 200]
    assert not archive.service.refusing()
    with pytest.raises(RefusedError):
        at(10_050)
    assert archive.service.refusing()
    assert at(10_100, "GET", "/save/status/user") == 200


def test_a_session_limit_by_weather_takes_no_slot():
    archive = Archive(weather=Weather((Spell(kind="session-limit"),)))
    for number in range(7):
        assert archive.save(url(number))["status_ext"] == "error:user-session-limit"
    assert archive.user()["available"] == 3


def test_weather_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="no such faults: rain"):
        Weather((Spell(kind="rain"),))


def test_no_two_faults_share_a_name():
    own = {"dead", "slow", "silent", "http-500"}
    assert not WAYBACK_KINDS.keys() & ITEM_KINDS.keys()
    assert not own & (WAYBACK_KINDS.keys() | ITEM_KINDS.keys())
    assert set(KINDS) >= WAYBACK_KINDS.keys() | ITEM_KINDS.keys() | own


# ------------------------------------------------------------------ over the network


@pytest.fixture
def running(tmp_path):
    with Sandbox(tmp_path, calendars=1, explorers=0, peers=0, tick_s=0.02) as sandbox:
        yield sandbox


def ask(sandbox, call, method, path, body=None):
    headers = {"Authorization": KEY, "Accept": "application/json"}
    response, data = call(sandbox.wayback.url, path, method=method, body=body, headers=headers)
    return response, json.loads(data or b"null")


def test_a_record_is_captured_within_seconds(running, call):
    _, answer = ask(running, call, "POST", "/save", f"url={PAGE}")
    job = f"/save/status/{answer['job_id']}"
    deadline = time.monotonic() + 10
    while (status := ask(running, call, "GET", job)[1])["status"] == "pending":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    running.advance(60)
    response, body = call(running.wayback.url, f"/web/{status['timestamp']}id_/{PAGE}")
    assert response.status == 200
    assert b"2401.00001v1" in body
    assert response.headers["X-Archive-Src"].startswith("spn2-")
    links = response.headers["Link"]
    assert f"{running.wayback.url}/web/{status['timestamp']}/{PAGE}" in links
    assert running.wayback.requests["save"] == 1
    assert running.status().archive_counts["wayback"]["captures_made"] == 1


def test_one_connection_carries_many_requests_refused_ones_too(running):
    address = running.wayback.url.removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=10)
    try:
        for path, key, status in [
            ("/save", "LOW wrong:wrong", 401),
            ("/save", KEY, 200),
            ("/nothing", KEY, 404),
            ("/save/status", KEY, 400),
            ("/save/", KEY, 200),
        ]:
            connection.request("POST", path, f"url={PAGE}", {"Authorization": key})
            response = connection.getresponse()
            response.read()
            assert (path, response.status) == (path, status)
    finally:
        connection.close()
    assert running.wayback.requests["connections"] == 1


def test_while_the_firewall_is_closed_nobody_listens(tmp_path, call):
    clock = SandboxClock(NOON, frozen=True)
    with Sandbox(tmp_path, calendars=1, explorers=0, peers=0, clock=clock) as sandbox:
        host, _, port = sandbox.wayback.url.removeprefix("http://").partition(":")

        def refused():
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection((host, int(port)), timeout=5)

        sandbox.fault("wayback", "refused", count=1, delay_s=3600)
        with pytest.raises(http.client.RemoteDisconnected):
            call(sandbox.wayback.url, "/save/status/system")
        refused()
        clock.advance(3599)
        refused()
        clock.advance(1)
        assert call(sandbox.wayback.url, "/save/status/system")[0].status == 200


def test_a_clock_that_runs_opens_the_port_again(running, call):
    running.fault("wayback", "refused", count=1, delay_s=0.2)
    with pytest.raises((http.client.RemoteDisconnected, ConnectionError)):
        call(running.wayback.url, "/save/status/system")

    def listens():
        try:
            return call(running.wayback.url, "/save/status/system")[0].status == 200
        except ConnectionError:
            return False

    deadline = time.monotonic() + 10
    while not listens():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_faults_of_the_wire_strike_the_archive_too(running, call):
    running.fault("wayback", "lost-reply", count=1, on="save")
    with pytest.raises(http.client.RemoteDisconnected):
        ask(running, call, "POST", "/save", f"url={PAGE}")
    running.fault("wayback", "http-429", count=1, retry_after_s=7)
    response, _ = call(running.wayback.url, "/save/status/system")
    assert (response.status, response.headers["Retry-After"]) == (429, "7")
    running.fault("wayback", "captured-5xx", count=1, status=520)
    headers = {"Authorization": KEY}
    made, _ = call(running.wayback.url, "/save", method="POST", body="url=https://example.org/2",
                   headers=headers)  # fmt: skip
    assert made.status == 520
    assert running.wayback.service.report().accepted == 2


SAID = {
    "save": {
        "offline": "offline",
        "rate-limited": "http-429",
        "bad-gateway": "http-502",
        "unknown-shape": "unknown-answer",
        "html": "unknown-answer",
        "empty-body": "unknown-answer",
        "session-limit": "user-session-limit",
        "url-limit": "too-many-daily-captures",
        "host-limit": "too-many-daily-captures-host",
        "bandwidth-limit": "max-daily-bandwidth",
        "blocked-ip": "blocked-client-ip",
        "captured-520": "http-520",
        "captured-hangup": "no-answer",
    },
    "status": {"offline": "offline", "html": "unknown-answer", "unknown-shape": "unknown-answer"},
    "cdx": {"gateway-timeout": "http-504", "html": "unknown-answer", "blocked-site": "excluded"},
    "replay": {"offline": "offline", "rate-limited": "http-429"},
}
"""Route and fault -> what anchord's client makes of it."""


def test_anchords_own_client_understands_it(running):
    running.wayback.service.change_rules(ignored_429=10**6)
    keys = load_keys(running.wayback.credentials_file, {})
    client = Wayback(running.wayback.url, keys=keys, contact="https://example.org/")
    job = client.submit(PAGE, within_s=3600, plain=False)
    running.advance(5)
    seen = client.statuses([job.job_id, "spn2-none"])
    assert isinstance(seen["spn2-none"], Running)
    timestamp = seen[job.job_id].timestamp
    (row,) = client.index(PAGE, first="2020", last="2999").rows
    assert (row.timestamp, row.original) == (timestamp, PAGE)
    memento = client.replay(timestamp, PAGE, "2401.00001")
    assert memento.contains
    assert (client.account().available, client.system().ok) == (3, True)
    urls = map(url, itertools.count())
    calls = {
        "save": lambda: client.submit(next(urls), within_s=60, plain=True),
        "status": lambda: client.statuses(["spn2-none"]),
        "cdx": lambda: client.index(PAGE, first="2020", last="2999"),
        "replay": lambda: client.replay(timestamp, PAGE, None),
    }
    for route, faults in SAID.items():
        for kind, code in faults.items():
            running.fault("wayback", kind, count=1, on=route)
            assert (route, kind, calls[route]().code) == (route, kind, code)
    running.fault("wayback", "refused", count=1)
    assert client.account().code == "no-answer"
    assert client.account().code == "connection-refused"


# ------------------------------------------------------------------ the sandbox around it


def test_the_configuration_names_the_archive_and_its_keys(running):
    loaded = load(str(running.write_config()))
    archive = loaded.config.archive
    assert archive.captures.web_url == running.wayback.url
    assert archive.items.api_url == running.items.api_url
    assert archive.items.s3_url == running.items.s3_url
    keys = load_keys(loaded.resolve(archive.credentials_file), {})
    assert (keys.access, keys.secret) == (ACCESS, SECRET)
    assert stat.S_IMODE(running.wayback.credentials_file.stat().st_mode) == 0o600
    rules = Rules.quick()
    assert archive.captures.submits_per_minute < rules.submits_per_minute
    assert archive.captures.index_per_minute < rules.cdx_per_minute
    assert archive.captures.replays_per_minute < rules.replay_per_minute


def test_a_sandbox_without_an_archive_says_so(tmp_path):
    with Sandbox(tmp_path, calendars=1, explorers=0, peers=0, archive=False) as sandbox:
        config = load(str(sandbox.write_config())).config
        assert config.archive.credentials_file == ""
        assert sandbox.status().archive == {}
        with pytest.raises(ConfigError, match="no archive"):
            sandbox.advance(1)
        with pytest.raises(ConfigError, match="no service"):
            sandbox.fault("wayback", "offline")


def test_a_second_run_goes_on_with_the_same_captures_and_the_same_clock(tmp_path, call):
    parts = {"calendars": 1, "explorers": 0, "peers": 0}
    with Sandbox(tmp_path, **parts) as sandbox:
        ask(sandbox, call, "POST", "/save", f"url={PAGE}")
        sandbox.advance(90_000)
        before, url_ = sandbox.archive.clock.now(), sandbox.wayback.url
    with Sandbox(tmp_path, **parts) as sandbox:
        assert sandbox.wayback.url == url_
        assert before <= sandbox.archive.clock.now() < before + 60
        (memento,) = sandbox.wayback.service.mementos()
        assert (memento.url, memento.replays) == (PAGE, True)


def test_the_archive_is_driven_by_command(running, call):
    config = str(running.write_config())

    def drive(*words, code=0):
        result = run("-c", config, "sandbox", *words)
        assert result.exit_code == code, result.output
        return result.output

    gone = "https://example.org/gone"
    drive("site", gone, "--status", "404")
    drive("site", PAGE, "--redirect", "https://example.org/new")
    assert running.wayback.service.site.visit(gone)[0].page.status == 404
    assert running.wayback.service.site.visit(PAGE)[-1].url == "https://example.org/new"
    drive("site", PAGE, "--body", "Are you a robot?")
    assert running.wayback.service.site.visit(PAGE)[0].body == b"Are you a robot?"
    drive("site", PAGE, "--clear")
    drive("site", "--clear")
    assert running.wayback.service.site.visit(gone)[0].page.status == 200
    before = running.archive.clock.now()
    assert "clock shows" in drive("advance", "86400")
    assert running.archive.clock.now() >= before + 86_400
    assert json.loads(drive("advance", "0", "--json")).keys() == {"archive_now"}
    ask(running, call, "POST", "/save", f"url={PAGE}")
    shown = drive("status")
    assert "wayback" in shown
    assert "submits 1" in shown
    drive("fault", "wayback", "offline", "--count", "1")
    assert call(running.wayback.url, "/save/status/system")[0].status == 503
    drive("site", code=2)
    drive("site", "ftp://x", "--status", "404", code=2)
    drive("advance", "-5", code=2)
    with pytest.raises(ConfigError, match="expected http"):
        running.change_site(SiteChange(url="ftp://x", status=404))
