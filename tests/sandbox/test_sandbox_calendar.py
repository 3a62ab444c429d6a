"""The calendar's HTTP face is that of opentimestamps-server, fact by fact."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time

import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpPrepend, OpSHA256
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import Timestamp

from anchord.sandbox.aggregator import second_key
from anchord.sandbox.run import Sandbox

DIGEST = hashlib.sha256(b"a record").digest()


def parse(data, message):
    context = BytesDeserializationContext(data)
    stamp = Timestamp.deserialize(context, message)
    context.assert_eof()
    return stamp


def chain_of(stamp):
    """Return the operations of a path without forks, and its last message."""
    ops = []
    while stamp.ops:
        assert len(stamp.ops) == 1
        op, stamp = next(iter(stamp.ops.items()))
        ops.append(op)
    return ops, stamp


@pytest.fixture
def submit(sandbox, call):
    def post(digest=DIGEST, calendar=0):
        response, body = call(
            sandbox.calendars[calendar].url, "/digest", method="POST", body=digest
        )
        assert response.status == 200
        return response, body

    return post


@pytest.fixture
def commitment_of(submit):
    def post(digest=DIGEST, calendar=0):
        return chain_of(parse(submit(digest, calendar)[1], digest))[1].msg

    return post


@pytest.fixture
def upgrade(sandbox, call):
    def get(commitment, calendar=0):
        return call(sandbox.calendars[calendar].url, f"/timestamp/{commitment.hex()}")

    return get


def test_a_submitted_digest_gets_nonce_hash_time_mac_and_pending(submit, sandbox):
    before = int(time.time())
    response, body = submit()
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Length"] == str(len(body))
    ops, end = chain_of(parse(body, DIGEST))
    assert [type(op) for op in ops] == [OpAppend, OpSHA256, OpPrepend, OpAppend]
    assert [len(ops[i][0]) for i in (0, 2, 3)] == [16, 4, 8]
    assert before <= int.from_bytes(ops[2][0], "big") <= time.time()
    assert end.attestations == {PendingAttestation(sandbox.calendars[0].uri)}
    assert len(end.msg) == 44


def test_the_mac_is_made_with_the_key_of_its_second(commitment_of, sandbox):
    commitment = commitment_of()
    key = (sandbox.directory / "sandbox" / "calendar-1" / "hmac-key").read_bytes()
    second = int.from_bytes(commitment[:4], "big")
    expected = hashlib.sha256(commitment[:36] + second_key(key, second)).digest()[:8]
    assert commitment[36:] == expected


@pytest.mark.parametrize("length", [0, 1, 20, 32, 33, 64])
def test_digests_of_every_length_up_to_64_are_taken(submit, length):
    digest = os.urandom(length)
    assert parse(submit(digest)[1], digest)


def test_the_same_digest_twice_makes_two_commitments(commitment_of):
    assert commitment_of() != commitment_of()


def test_digests_of_one_tick_share_a_commitment_through_a_tree(tmp_path, call):
    with Sandbox(tmp_path, calendars=1, tick_s=0.3) as sandbox:
        digests = [os.urandom(32) for _ in range(5)]
        bodies = {}

        def post(digest):
            bodies[digest] = call(sandbox.calendars[0].url, "/digest", method="POST", body=digest)[
                1
            ]

        threads = [threading.Thread(target=post, args=(digest,)) for digest in digests]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    ends = {chain_of(parse(bodies[digest], digest))[1].msg for digest in digests}
    assert len(ends) < len(digests)
    assert max(len(body) for body in bodies.values()) > 68 + 2 * 35 - len("http://127.0.0.1:1")


def test_an_answer_comes_after_the_tick(tmp_path, call):
    with Sandbox(tmp_path, calendars=1, tick_s=0.2) as sandbox:
        began = time.monotonic()
        for _ in range(2):
            call(sandbox.calendars[0].url, "/digest", method="POST", body=DIGEST)
        assert time.monotonic() - began >= 0.2


def test_a_missing_length_is_refused_in_words(sandbox, raw_call):
    answer = raw_call(sandbox.calendars[0].url, b"POST /digest HTTP/1.1\r\nHost: x\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.0 400 ")
    assert b"Content-Type: text/plain" in head
    assert body == b"invalid Content-Length"


def test_an_empty_length_drops_the_connection(sandbox, raw_call):
    data = b"POST /digest HTTP/1.1\r\nHost: x\r\nContent-Length: \r\n\r\n"
    assert raw_call(sandbox.calendars[0].url, data) == b""


def test_a_refusal_always_arrives_though_the_body_was_not_read(sandbox, call):
    for _ in range(100):
        _, body = call(sandbox.calendars[0].url, "/digest", method="POST", body=b"x" * 4000)
        assert body == b"digest too long"


def test_a_digest_of_65_bytes_is_too_long(sandbox, call):
    response, body = call(sandbox.calendars[0].url, "/digest", method="POST", body=b"x" * 65)
    assert (response.status, body) == (400, b"digest too long")


def test_http_is_1_0_and_never_kept_alive(sandbox, raw_call):
    data = b"GET /tip HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\n\r\n" * 2
    answer = raw_call(sandbox.calendars[0].url, data)
    assert answer.startswith(b"HTTP/1.0 404 ")
    assert answer.count(b"HTTP/1.0") == 1


def test_the_submitted_digest_is_never_found(sandbox, submit, upgrade):
    submit()
    sandbox.mine(6)
    response, body = upgrade(DIGEST)
    assert (response.status, body) == (404, b"Not found")
    assert response.headers["Cache-Control"] == "public, max-age=60"


def test_the_three_texts_of_404_and_then_the_path(sandbox, commitment_of, upgrade):
    commitment = commitment_of()
    response, body = upgrade(commitment)
    assert (response.status, body) == (404, b"Pending confirmation in Bitcoin blockchain")
    sandbox.mine(1)
    txid = sandbox.chain.tip.transactions[1].display_txid
    expected = f"Timestamped by transaction {txid}; waiting for 5 confirmations".encode()
    for _ in range(5):  # the number is the configured one, it does not count down
        response, body = upgrade(commitment)
        assert (response.status, body) == (404, expected)
        assert response.headers["Content-Type"] == "text/plain"
        assert response.headers["Cache-Control"] == "public, max-age=60"
        sandbox.mine(1)
    response, body = upgrade(commitment)
    assert response.status == 200
    assert response.headers["Cache-Control"] == "public, max-age=31536000"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Length"] == str(len(body))


def test_the_path_leads_from_the_commitment_to_its_blocks_root(sandbox, commitment_of, upgrade):
    commitments = [commitment_of(os.urandom(32), calendar) for calendar in (0, 1, 2)]
    sandbox.mine(6)
    height = sandbox.height - 5
    for calendar, commitment in enumerate(commitments):
        _, end = chain_of(parse(upgrade(commitment, calendar)[1], commitment))
        assert end.attestations == {BitcoinBlockHeaderAttestation(height)}
        assert end.msg == sandbox.chain.block(height).root


def test_a_commitment_that_is_no_hex_is_refused_for_a_year(sandbox, call):
    response, body = call(sandbox.calendars[0].url, "/timestamp/xyz")
    assert (response.status, body) == (400, b"commitment must be hex-encoded bytes")
    assert response.headers["Cache-Control"] == "public, max-age=31536000"


def test_another_calendar_does_not_know_a_commitment(commitment_of, upgrade):
    assert upgrade(commitment_of(), calendar=1)[1] == b"Not found"


def test_the_tip_is_the_root_that_goes_into_the_next_block(sandbox, commitment_of, call):
    url = sandbox.calendars[0].url
    response, body = call(url, "/tip")
    assert (response.status, body) == (404, b"")
    commitment_of()
    response, tip = call(url, "/tip")
    assert response.status == 200
    assert response.headers["Cache-Control"] == "public, max-age=10"
    assert len(tip) == 32
    block = sandbox.mine(1)[0]
    assert b"\x6a\x20" + tip in block.transactions[1].raw


@pytest.mark.parametrize(("method", "text"), [("GET", b"Not found"), ("POST", b"not found")])
def test_an_unknown_path_is_not_found_for_an_hour(sandbox, call, method, text):
    response, body = call(sandbox.calendars[0].url, "/nothing", method=method)
    assert (response.status, body) == (404, text)
    assert response.headers["Cache-Control"] == "public, max-age=3600"


def test_the_status_page_is_html_or_json_by_accept(sandbox, commitment_of, call):
    commitment_of()
    url = sandbox.calendars[0].url
    response, body = call(url, "/")
    assert response.headers["Content-Type"] == "text/html"
    assert body.startswith(b"<html>")
    facts = json.loads(call(url, "/", headers={"Accept": "application/json"})[1])
    assert facts["pending_commitments"] == "1"
    assert facts["block_height"] == sandbox.height


def test_the_backup_holds_a_thousand_complete_commitments(sandbox, call):
    url = sandbox.calendars[0].url
    calendar = sandbox._calendars[0]
    for number in range(1000):
        calendar.journal.append(number.to_bytes(44, "big"))
    assert call(url, "/experimental/backup/0")[0].status == 404
    sandbox.mine(6)
    response, body = call(url, "/experimental/backup/0")
    assert response.status == 200
    assert response.headers["Cache-Control"] == "public, max-age=31536000"
    context = BytesDeserializationContext(body)
    keys = []
    while context.fd.tell() < len(body):
        keys.append(context.read_varbytes(4096))
        context.read_varbytes(8192)
    assert keys == sorted(keys)
    assert {number.to_bytes(44, "big") for number in range(1000)} <= set(keys)
    for wrong in ("1", "x", "-1", ""):
        response, body = call(url, f"/experimental/backup/{wrong}")
        assert (response.status, body) == (404, b"")


def test_a_restart_keeps_uri_journal_and_paths(tmp_path, call):
    with Sandbox(tmp_path, calendars=1, tick_s=0.02) as sandbox:
        uri = sandbox.calendars[0].uri
        bodies = []
        for _ in range(2):
            digest = os.urandom(32)
            body = call(uri, "/digest", method="POST", body=digest)[1]
            bodies.append(chain_of(parse(body, digest))[1].msg)
            sandbox.mine(4)
    with Sandbox(tmp_path, calendars=1, tick_s=0.02) as sandbox:
        assert sandbox.calendars[0].uri == uri
        first, second = (f"/timestamp/{commitment.hex()}" for commitment in bodies)
        assert call(uri, first)[0].status == 200
        assert call(uri, second)[1].startswith(b"Timestamped by transaction")
        sandbox.mine(2)
        assert call(uri, second)[0].status == 200
