"""The node speaks Bitcoin Core's JSON-RPC: the same answers, codes and words."""

from __future__ import annotations

import base64
import json
import stat

import bitcoin.rpc
import pytest
from bitcoin.core import b2lx


@pytest.fixture
def rpc(sandbox, call):
    """Return a function that makes one call and gives HTTP status and document."""

    def make(method, *params, auth=None, **extra):
        pair = auth if auth is not None else sandbox.cookie_file.read_text()
        headers = {"Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        body = json.dumps({"method": method, "params": list(params), "id": 7} | extra)
        response, text = call(sandbox.node_url, "/", method="POST", body=body, headers=headers)
        return response.status, json.loads(text) if text else None

    return make


@pytest.fixture
def result(rpc):
    def make(method, *params):
        status, document = rpc(method, *params)
        assert (status, document["error"], document["id"]) == (200, None, 7)
        return document["result"]

    return make


def test_cookie_and_password_both_open_and_nothing_else_does(sandbox, rpc):
    password = sandbox.node_password_file.read_text().strip()
    assert rpc("getblockcount", auth=f"{sandbox.node_user}:{password}")[0] == 200
    assert rpc("getblockcount")[0] == 200
    assert rpc("getblockcount", auth="anchord:wrong") == (401, None)


def test_the_secrets_are_readable_by_the_owner_only(sandbox):
    for file in (sandbox.cookie_file, sandbox.node_password_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_chain_is_described_as_core_describes_it(sandbox, result):
    info = result("getblockchaininfo")
    assert (info["chain"], info["blocks"], info["headers"]) == ("regtest", 130, 130)
    assert info["bestblockhash"] == result("getbestblockhash") == result("getblockhash", 130)
    assert info["initialblockdownload"] is False
    assert info["chainwork"] == f"{262:064x}"
    assert result("getblockcount") == sandbox.height
    assert "sandbox, not Bitcoin" in result("getnetworkinfo")["subversion"]


def test_headers_are_told_raw_and_in_words(sandbox, result):
    block_hash = result("getblockhash", 129)
    raw = bytes.fromhex(result("getblockheader", block_hash, False))
    facts = result("getblockheader", block_hash)
    assert raw == sandbox.chain.block(129).header
    assert facts["hash"] == block_hash
    assert (facts["height"], facts["confirmations"]) == (129, 2)
    assert bytes.fromhex(facts["merkleroot"])[::-1] == raw[36:68]
    assert bytes.fromhex(facts["previousblockhash"])[::-1] == raw[4:36]
    assert facts["nextblockhash"] == result("getbestblockhash")
    assert facts["mediantime"] < facts["time"]
    genesis = result("getblockheader", result("getblockhash", 0))
    assert "previousblockhash" not in genesis
    assert "nextblockhash" not in result("getblockheader", result("getbestblockhash"))


def test_blocks_are_told_raw_and_in_words(sandbox, result):
    best = result("getbestblockhash")
    assert result("getblock", best, 0) == sandbox.chain.tip.raw.hex()
    assert result("getblock", best, 1)["tx"] == [sandbox.chain.tip.transactions[0].display_txid]


def test_a_stale_block_has_minus_one_confirmations(sandbox, result):
    stale = result("getbestblockhash")
    sandbox.reorg(1)
    facts = result("getblockheader", stale)
    assert facts["confirmations"] == -1
    assert "nextblockhash" not in facts


@pytest.mark.parametrize(
    ("method", "params", "http_status", "code", "words"),
    [
        ("getblockhash", [131], 500, -8, "Block height out of range"),
        ("getblockhash", [-1], 500, -8, "Block height out of range"),
        (
            "getblockhash",
            ["1"],
            500,
            -3,
            "JSON value of type string is not of expected type number",
        ),
        ("getblockhash", [], 500, -1, "getblockhash"),
        ("getblockheader", ["00" * 32], 500, -5, "Block not found"),
        ("getblock", ["00" * 32], 500, -5, "Block not found"),
        ("getblockheader", ["00"], 500, -8, "must be of length 64 (not 2, for '00')"),
        ("getblockheader", ["zz" * 32], 500, -8, "must be hexadecimal string (not 'zz"),
        ("nonsense", [], 404, -32601, "Method not found"),
    ],
)
def test_errors_carry_cores_codes_and_words(rpc, method, params, http_status, code, words):
    status, document = rpc(method, *params)
    assert status == http_status
    assert document["result"] is None
    assert document["error"]["code"] == code
    assert words in document["error"]["message"]


def test_json_rpc_2_errors_come_with_status_200(rpc):
    status, document = rpc("getblockhash", 999, jsonrpc="2.0")
    assert (status, document["jsonrpc"], document["error"]["code"]) == (200, "2.0", -8)
    assert "result" not in document


def test_a_batch_gets_a_list(sandbox, call):
    pair = base64.b64encode(sandbox.cookie_file.read_bytes()).decode()
    body = json.dumps([{"method": "getblockhash", "params": [n], "id": n} for n in (1, 999)])
    response, text = call(
        sandbox.node_url, "/", method="POST", body=body, headers={"Authorization": f"Basic {pair}"}
    )
    first, second = json.loads(text)
    assert response.status == 200
    assert first["result"] == sandbox.chain.block(1).display_hash
    assert second["error"]["code"] == -8


def test_what_is_no_json_is_a_parse_error(sandbox, call):
    pair = base64.b64encode(sandbox.cookie_file.read_bytes()).decode()
    headers = {"Authorization": f"Basic {pair}"}
    response, text = call(sandbox.node_url, "/", method="POST", body="{", headers=headers)
    assert response.status == 500
    assert json.loads(text)["error"] == {"code": -32700, "message": "Parse error"}


def test_only_post_is_handled(sandbox, call):
    response, text = call(sandbox.node_url, "/")
    assert (response.status, text) == (405, b"JSONRPC server handles only POST requests")


def test_warm_up_has_cores_code_and_ends(sandbox, rpc):
    sandbox.fault("node", "warm-up", count=1)
    status, document = rpc("getblockcount")
    assert (status, document["error"]["code"]) == (500, -28)
    assert rpc("getblockcount")[0] == 200


def test_a_syncing_node_says_so_until_its_count_is_used_up(sandbox, result):
    sandbox.fault("node", "syncing", count=1)
    info = result("getblockchaininfo")
    assert info["initialblockdownload"] is True
    assert info["headers"] > info["blocks"]
    assert result("getblockchaininfo")["initialblockdownload"] is False


def test_every_password_is_refused_on_command(sandbox, rpc):
    sandbox.fault("node", "unauthorized", count=1)
    assert rpc("getblockcount")[0] == 401
    assert rpc("getblockcount")[0] == 200


def test_python_bitcoinlib_reads_chain_headers_and_blocks(sandbox):
    sandbox.mine(1)
    proxy = bitcoin.rpc.Proxy(service_url=sandbox.node_auth_url)
    try:
        assert proxy.getblockcount() == sandbox.height
        block_hash = proxy.getblockhash(sandbox.height)
        assert b2lx(block_hash) == sandbox.chain.tip.display_hash
        assert proxy.getblockheader(block_hash).serialize() == sandbox.chain.tip.header
        assert proxy.getblockheader(block_hash, verbose=True)["height"] == sandbox.height
        assert proxy.getblock(block_hash).serialize() == sandbox.chain.tip.raw
        with pytest.raises(IndexError):
            proxy.getblockhash(sandbox.height + 1)
        with pytest.raises(IndexError):
            proxy.getblockheader(b"\0" * 32)
    finally:
        proxy.close()
