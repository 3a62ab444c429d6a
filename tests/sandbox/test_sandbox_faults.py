"""Each fault does what it is called, and heals when its count is used up."""

from __future__ import annotations

import hashlib
import http.client
import time

import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.serialize import BytesDeserializationContext, DeserializationError
from opentimestamps.core.timestamp import Timestamp

from anchord.errors import ConfigError
from anchord.sandbox.faults import KINDS, FaultBoard

DIGEST = hashlib.sha256(b"a record").digest()


def parse(data, message=DIGEST):
    context = BytesDeserializationContext(data)
    stamp = Timestamp.deserialize(context, message)
    context.assert_eof()
    return stamp


@pytest.fixture
def url(sandbox):
    return sandbox.calendars[0].url


@pytest.fixture
def submit(url, call):
    """Return a function that posts the digest to the first calendar."""

    def post(timeout=10):
        return call(url, "/digest", method="POST", body=DIGEST, timeout=timeout)

    return post


@pytest.fixture
def commitment(sandbox, submit):
    """Return a commitment whose path is served."""
    _, body = submit()
    sandbox.mine(6)
    ((message, _),) = parse(body).all_attestations()
    return message


@pytest.fixture
def upgrade(url, call):
    def get(commitment, timeout=10):
        return call(url, f"/timestamp/{commitment.hex()}", timeout=timeout)

    return get


def test_a_fault_with_a_count_heals_by_itself(sandbox, submit):
    sandbox.fault("calendar-1", "http-500", count=2)
    assert [submit()[0].status for _ in range(3)] == [500, 500, 200]
    assert sandbox.board.waiting() == []


def test_a_fault_without_a_count_stays_until_cleared(sandbox, submit):
    sandbox.fault("calendar-1", "http-500")
    assert [submit()[0].status for _ in range(3)] == [500, 500, 500]
    sandbox.clear_faults()
    assert submit()[0].status == 200


def test_a_fault_strikes_its_service_only_or_a_whole_group(sandbox, call):
    sandbox.fault("calendar-2", "http-500")
    assert [call(c.url, "/tip")[0].status for c in sandbox.calendars] == [404, 500, 404]
    sandbox.fault("calendars", "http-500")
    assert [call(c.url, "/tip")[0].status for c in sandbox.calendars] == [500, 500, 500]


def test_a_fault_can_be_kept_to_one_route(sandbox, submit, call, url):
    sandbox.fault("calendar-1", "http-500", on="digest")
    assert call(url, "/tip")[0].status == 404
    assert submit()[0].status == 500


def test_dead_resets_every_connection(sandbox, submit):
    sandbox.fault("calendar-1", "dead", count=1)
    with pytest.raises(ConnectionError):
        submit()
    assert submit()[0].status == 200
    assert sandbox.calendars[0].requests["connections"] == 2


@pytest.mark.parametrize("service", ["node", "explorer-1"])
def test_node_and_explorers_die_too(sandbox, call, service):
    sandbox.fault(service, "dead")
    place = sandbox.node_url if service == "node" else sandbox.explorer_urls[0]
    with pytest.raises(ConnectionError):
        call(place, "/blocks/tip/height")


def test_slow_answers_rightly_after_its_delay(sandbox, submit):
    sandbox.fault("calendar-1", "slow", delay_s=0.3)
    began = time.monotonic()
    response, body = submit()
    assert time.monotonic() - began >= 0.3
    assert response.status == 200
    assert parse(body)


def test_silent_reads_and_never_answers(sandbox, submit):
    sandbox.fault("calendar-1", "silent")
    with pytest.raises(TimeoutError):
        submit(timeout=0.3)
    assert sandbox.calendars[0].requests["digest"] == 1
    assert sandbox.pending() == (0, 0)


def test_drip_sends_a_byte_at_a_time(sandbox, upgrade, commitment):
    whole = upgrade(commitment)[1]
    sandbox.fault("calendar-1", "drip", count=1, delay_s=0.001)
    began = time.monotonic()
    assert upgrade(commitment)[1] == whole
    assert time.monotonic() - began >= len(whole) * 0.001


@pytest.mark.parametrize("size", [10_001, 3 << 20])
def test_oversize_sends_so_many_bytes(sandbox, submit, size):
    sandbox.fault("calendar-1", "oversize", size=size)
    response, body = submit()
    assert (response.status, len(body)) == (200, size)


def test_a_redirect_leads_to_a_right_answer_and_who_follows_is_counted(
    sandbox, upgrade, commitment, call
):
    right = upgrade(commitment)[1]
    sandbox.fault("calendar-1", "redirect", count=1)
    response, body = upgrade(commitment)
    assert (response.status, body) == (302, b"")
    assert sandbox.calendars[0].requests["moved"] == 0
    assert call(response.headers["Location"], "")[1] == right
    assert sandbox.calendars[0].requests["moved"] == 1


def test_a_redirect_can_lead_elsewhere(sandbox, submit):
    sandbox.fault("calendar-1", "redirect", location="https://calendar.example.org/")
    assert submit()[0].headers["Location"] == "https://calendar.example.org/"


def test_garbage_is_no_timestamp(sandbox, submit):
    sandbox.fault("calendar-1", "garbage")
    response, body = submit()
    assert response.status == 200
    with pytest.raises(DeserializationError):
        parse(body)


def test_trailing_puts_bytes_behind_a_right_answer(sandbox, upgrade, commitment):
    right = upgrade(commitment)[1]
    sandbox.fault("calendar-1", "trailing")
    response, body = upgrade(commitment)
    assert body == right + b"\0" * 8
    assert response.headers["Content-Length"] == str(len(body))


def test_truncated_announces_more_than_it_sends(sandbox, upgrade, commitment):
    right = upgrade(commitment)[1]
    sandbox.fault("calendar-1", "truncated", count=1)
    with pytest.raises(http.client.IncompleteRead):
        upgrade(commitment)
    sandbox.fault("calendar-1", "truncated", count=1, clean=1)
    assert upgrade(commitment)[1] == right[: len(right) // 2]


def test_429_says_when_to_come_back(sandbox, submit):
    sandbox.fault("calendar-1", "http-429", retry_after_s=7)
    response, _ = submit()
    assert (response.status, response.headers["Retry-After"]) == (429, "7")


def test_a_lost_reply_has_done_its_work(sandbox, submit):
    sandbox.fault("calendar-1", "lost-reply", count=1)
    with pytest.raises(http.client.RemoteDisconnected):
        submit()
    assert sandbox.pending() == (1, 0)


def test_foreign_uri_names_another_calendar(sandbox, submit):
    sandbox.fault("calendar-1", "foreign-uri", count=1)
    ((_, attestation),) = parse(submit()[1]).all_attestations()
    assert attestation == PendingAttestation("https://calendar.example.org")


def test_other_digest_leads_to_a_commitment_nobody_knows(sandbox, submit, upgrade):
    sandbox.fault("calendar-1", "other-digest", count=1)
    ((message, _),) = parse(submit()[1]).all_attestations()
    sandbox.mine(6)
    assert upgrade(message)[1] == b"Not found"


def test_other_commitment_is_a_path_to_no_block(sandbox, upgrade, commitment):
    sandbox.fault("calendar-1", "other-commitment")
    ((message, attestation),) = parse(upgrade(commitment)[1], commitment).all_attestations()
    assert isinstance(attestation, BitcoinBlockHeaderAttestation)
    assert sandbox.chain.block(attestation.height).root != message


def test_pending_in_upgrade_mixes_both_kinds_or_is_pending_alone(
    sandbox, submit, upgrade, commitment
):
    sandbox.fault("calendar-1", "pending-in-upgrade")
    kinds = [type(a) for _, a in parse(upgrade(commitment)[1], commitment).all_attestations()]
    assert sorted(kinds, key=repr) == [BitcoinBlockHeaderAttestation, PendingAttestation]
    ((later, _),) = parse(submit()[1]).all_attestations()
    ((message, only),) = parse(upgrade(later)[1], later).all_attestations()
    assert (message, only) == (later, PendingAttestation(sandbox.calendars[0].uri))


def test_not_found_forgets_what_it_knows(sandbox, upgrade, commitment):
    sandbox.fault("calendar-1", "not-found", count=1)
    assert upgrade(commitment)[1] == b"Not found"
    assert upgrade(commitment)[0].status == 200


def test_a_commitment_is_not_found_until_the_journal_is_scanned(sandbox, submit, upgrade):
    sandbox.fault("calendar-1", "not-found-after-submit", count=1, delay_s=0.2)
    ((message, _),) = parse(submit()[1]).all_attestations()
    assert upgrade(message)[1] == b"Not found"
    sandbox.mine(6)
    assert upgrade(message)[1] == b"Not found"
    time.sleep(0.25)
    assert upgrade(message)[1].startswith(b"Pending confirmation")
    sandbox.mine(6)
    assert upgrade(message)[0].status == 200


@pytest.mark.parametrize(
    ("service", "kind", "count", "options", "words"),
    [
        ("calendar-9", "dead", None, {}, "choose one of calendar-1"),
        ("calendar-1", "sleepy", None, {}, "choose one of dead"),
        ("node", "foreign-uri", None, {}, "that fault is for calendar"),
        ("peer-1", "http-500", None, {}, "that fault is for"),
        ("calendar-1", "slow", None, {"delay": 3}, "it takes delay_s, on"),
        ("calendar-1", "dead", 0, {}, "at least once"),
    ],
)
def test_a_fault_that_could_never_strike_is_refused(service, kind, count, options, words):
    board = FaultBoard(["calendar-1", "node", "peer-1"])
    with pytest.raises(ConfigError, match=words):
        board.add(service, kind, count, options)


def test_every_kind_is_explained():
    assert all(kind.words and kind.groups for kind in KINDS.values())


def test_stopping_ends_silent_connections_at_once(sandbox, submit):
    import threading

    sandbox.fault("calendar-1", "silent")
    ended = []

    def wait():
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            submit()
        ended.append(True)

    thread = threading.Thread(target=wait)
    thread.start()
    while not sandbox.calendars[0].requests["digest"]:
        time.sleep(0.01)
    sandbox.stop()
    thread.join(timeout=5)
    assert ended == [True]
