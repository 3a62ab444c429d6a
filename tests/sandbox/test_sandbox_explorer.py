"""The explorers answer as Esplora servers do."""

from __future__ import annotations

import json

import pytest

from anchord.sandbox.block import TARGET, double_sha256


@pytest.fixture
def esplora(sandbox, call):
    def get(path, server=0):
        response, body = call(sandbox.explorer_urls[server], path)
        return response.status, body.decode()

    return get


def test_tip_height_and_hash(sandbox, esplora):
    assert esplora("/blocks/tip/height") == (200, str(sandbox.height))
    assert esplora("/blocks/tip/hash") == (200, sandbox.chain.tip.display_hash)


def test_a_height_leads_to_a_hash_and_a_header(sandbox, esplora):
    status, block_hash = esplora("/block-height/100")
    assert (status, block_hash) == (200, sandbox.chain.block(100).display_hash)
    assert esplora(f"/block/{block_hash}/header") == (200, sandbox.chain.block(100).header.hex())
    facts = json.loads(esplora(f"/block/{block_hash}")[1])
    assert (facts["id"], facts["height"]) == (block_hash, 100)
    assert facts["merkle_root"] == sandbox.chain.block(100).root[::-1].hex()
    assert facts["timestamp"] == sandbox.chain.block(100).time


def test_a_stale_block_is_not_in_the_best_chain(sandbox, esplora):
    stale = sandbox.chain.tip.display_hash
    status, text = esplora(f"/block/{stale}/status")
    assert json.loads(text) == {"in_best_chain": True, "height": 130, "next_best": None}
    sandbox.reorg(1)
    status, text = esplora(f"/block/{stale}/status")
    assert (status, json.loads(text)) == (200, {"in_best_chain": False, "next_best": None})


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/block-height/131", 404, "Block not found"),
        ("/block-height/x", 400, "Invalid number"),
        (f"/block/{'00' * 32}", 404, "Block not found"),
        (f"/block/{'00' * 32}/header", 404, "Block not found"),
        ("/block/zz/header", 400, "Invalid hex string"),
        ("/nothing", 404, "endpoint does not exist"),
    ],
)
def test_errors_have_electrs_words(esplora, path, status, words):
    got, text = esplora(path)
    assert got == status
    assert words in text


def test_the_servers_agree_until_one_follows_another_branch(sandbox, esplora):
    assert esplora("/block-height/125") == esplora("/block-height/125", server=1)
    sandbox.fault("explorer-2", "disagree", **{"from": 120})
    assert esplora("/block-height/119") == esplora("/block-height/119", server=1)
    ours, theirs = esplora("/block-height/125")[1], esplora("/block-height/125", server=1)[1]
    assert ours != theirs
    header = bytes.fromhex(esplora(f"/block/{theirs}/header", server=1)[1])
    assert double_sha256(header)[::-1].hex() == theirs
    assert int(theirs, 16) <= TARGET  # it has its work: only another witness finds it out
    assert esplora("/blocks/tip/height", server=1) == esplora("/blocks/tip/height")
    sandbox.clear_faults("explorer-2")
    assert esplora("/block-height/125", server=1)[1] == ours


def test_a_server_that_is_behind_does_not_know_the_newest_blocks(sandbox, esplora):
    sandbox.fault("explorer-1", "behind", blocks=2)
    newest = sandbox.chain.tip.display_hash
    assert esplora("/blocks/tip/height") == (200, str(sandbox.height - 2))
    assert esplora(f"/block-height/{sandbox.height}")[0] == 404
    assert esplora(f"/block/{newest}/header")[0] == 404
    assert esplora("/block-height/100") == esplora("/block-height/100", server=1)
