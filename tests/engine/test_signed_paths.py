"""What is signed stays true: a false or young path beside a good one is not signed with it."""

from __future__ import annotations

import base64
import hashlib

import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation, PendingAttestation
from opentimestamps.core.op import OpAppend, OpSHA256
from opentimestamps.core.timestamp import Timestamp
from support.check_ledger import check_all_anchored
from support.ots_oracle import written
from support.parties import URI_B, URL_B, FakeCalendar, FakeChain, make_parts
from support.passes import Passes, bare

from anchord.core.proof import MAX_PROOF_BYTES
from anchord.core.timestamp import MAX_DEPTH
from anchord.core.verify import confirm, read_proof
from anchord.engine.proofs import record_ots
from anchord.ports import Submitted


@pytest.fixture
def world(tmp_path):
    chain = FakeChain()
    parts = make_parts(tmp_path, headers=[chain])
    yield Passes(parts, chain), chain, *parts.calendars
    parts.store.close()


def signed_proofs(go):
    return [
        read_proof(base64.b64decode(event["payload"]["proof_b64"]))
        for event in go.judge()
        if event["event_type"] == "timestamp_anchored"
    ]


def holds(proof, chain):
    for found in proof.bitcoin:
        height = found.attestation.height
        confirm(found, {"own headers": chain.headers[height]}, len(chain.headers) - 1)
    return len(proof.bitcoin)


@pytest.mark.parametrize("above", [1, 3, 50, 10**6])
def test_a_false_height_beside_a_true_path_is_not_signed(world, above):
    go, chain, a, b = world
    go.add(bare(3))
    go()
    height = a.mine(chain)
    b.lie(height + above)
    chain.grow(5)
    go(61)
    chain.grow(100)
    proofs = signed_proofs(go)
    assert [holds(proof, chain) for proof in proofs] == [1, 1, 1]


def test_one_answer_with_a_true_and_a_false_path_is_signed_with_the_true_one(world):
    go, chain, a, _b = world
    go.add(bare(1))
    go()
    height = a.mine(chain)
    chain.grow(5)
    (known,) = a._commitments.values()
    known.path.ops.add(OpAppend(b"x")).attestations.add(BitcoinBlockHeaderAttestation(height + 3))
    side = known.path.ops.add(OpSHA256()).ops.add(OpAppend(b"y")).ops.add(OpSHA256())
    side.attestations.add(BitcoinBlockHeaderAttestation(height + 4))
    go(61)
    chain.grow(3)
    (proof,) = signed_proofs(go)
    assert holds(proof, chain) == 1


def test_a_path_too_young_is_not_signed_and_a_reorg_of_it_spoils_nothing(world):
    go, chain, a, b = world
    go.add(bare(1))
    go()
    a.mine(chain)
    chain.grow(4)
    b.mine(chain)
    assert go(61).anchored == 1
    chain.reorg(1)
    (proof,) = signed_proofs(go)
    assert holds(proof, chain) == 1


class Growing(FakeCalendar):
    """Answers within all limits that leave no room above the root."""

    fill = b""

    def submit(self, digest):
        answer = super().submit(digest)
        node = start = Timestamp(digest)
        for n in range(MAX_DEPTH - 10):
            node = node.ops.add(OpAppend(bytes([n]) * 8)).ops.add(OpSHA256()) if n < 120 else node
        node.attestations.add(PendingAttestation(self.uris[0]))
        return Submitted(written(start), answer.pendings)


def test_a_batch_proof_leaves_room_for_the_way_up_from_each_record(tmp_path):
    chain = FakeChain()
    good = FakeCalendar()
    parts = make_parts(
        tmp_path, headers=[chain], calendars=[good, Growing(URL_B, (URI_B,))], min_answers=1
    )
    go = Passes(parts, chain)
    go.add(bare(1500))
    go()
    good.mine(chain)
    chain.grow(5)
    go(61)
    check_all_anchored(parts.store)
    for record in (1, 1500):
        batch = parts.store.batches.get(1)
        raw = record_ots(parts.store, batch, record)
        assert len(raw) <= MAX_PROOF_BYTES
        assert read_proof(raw, hashlib.sha256(f"record {record - 1}".encode()).digest()).bitcoin
    parts.store.close()


def test_a_calendar_names_one_commitment_for_each_of_its_uris(world):
    from anchord.core.answer import check_submit_answer
    from anchord.errors import ProtocolError

    root = Timestamp(bytes(32))
    for n in range(2):
        root.ops.add(OpAppend(bytes([n]))).attestations.add(PendingAttestation(URI_B))
    with pytest.raises(ProtocolError, match="each URI"):
        check_submit_answer(written(root), bytes(32), [URI_B])
    (point,) = check_submit_answer(FakeCalendar(URL_B, (URI_B,)).submit(bytes(32)).raw, bytes(32),
                                   [URI_B])  # fmt: skip
    assert point[0] == URI_B
