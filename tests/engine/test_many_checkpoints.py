"""What a check of the log costs grows with its checkpoints, not with their square."""

from __future__ import annotations

import hashlib
from collections import Counter

import pytest
from support.parties import FakeChain, FakeSigner, make_parts
from support.passes import Passes, bare

from anchord.core import merkle
from anchord.core.timestamp import parse_timestamp
from anchord.engine import proving
from anchord.engine.checkpointing import sign
from anchord.engine.proving import CheckpointProofs, checkpoint_ots
from anchord.ports.log import StoredCheckpoint

COUNT = 300


@pytest.fixture
def go(tmp_path):
    parts = make_parts(tmp_path, headers=[FakeChain()], origin="log.example.org")
    yield Passes(parts)
    parts.store.close()


def test_what_checkpoints_of_one_batch_share_is_computed_once(go, monkeypatch):
    go.add(bare(COUNT))
    go()
    store, last = go.parts.store, go.parts.store.log.last()
    signer = FakeSigner()
    with store._engine.begin() as connection:
        for size in range(1, COUNT):
            root = proving.root(store, size)
            one = StoredCheckpoint(
                size=size, root=root, note=sign("log.example.org", size, root, signer),
                key_id=signer.key_id, created_at=last.created_at, batch_id=None,
            )  # fmt: skip
            columns = ", ".join(one.__struct_fields__)
            marks = ", ".join("?" * len(one.__struct_fields__))
            values = tuple(getattr(one, name) for name in one.__struct_fields__)
            connection.exec_driver_sql(
                f"INSERT INTO checkpoints ({columns}) VALUES ({marks})",  # noqa: S608
                values,
            )
    go.add(bare(1, "more"))
    go(60)
    carried = store.log.carried(2)
    assert len(carried) == COUNT
    calls: Counter[str] = Counter()
    roots = merkle.root

    def counted(nodes):
        calls["root"] += 1
        return roots(nodes)

    monkeypatch.setattr(proving.merkle, "root", counted)
    proofs = CheckpointProofs(store)
    made = [proofs.ots(one) for one in carried]
    assert calls["root"] < 10
    monkeypatch.undo()
    assert made[7] == checkpoint_ots(store, carried[7])
    for one, ots in zip(carried, made, strict=True):
        digest = hashlib.sha256(one.note).digest()
        assert digest in ots
        assert parse_timestamp(ots[ots.index(digest) + 32 :], digest) is not None
