"""The signed index of a tree: what is written is read, and every change is seen."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parties import START, FakeSigner

from anchord.core.event import event_digest, signer_block
from anchord.core.signed_document import signed
from anchord.core.tree_index import (
    IndexLine,
    index_body,
    line_of,
    read_index,
    read_shard,
    render_shard,
    safe_path,
    shard_name,
    stated_key,
)
from anchord.core.trust import Keys, Trust
from anchord.errors import AnchordError, DigestMismatchError, RefusedError, SignatureError

SIGNER = FakeSigner()
KEYS = Keys(SIGNER.keyring())
PATHS = [f"pith/{n}/bundle.json" for n in range(600)]


def shards(paths=PATHS):
    by_name = {}
    for path in paths:
        by_name.setdefault(shard_name(path), []).append(line_of(path, path.encode()))
    return {name: render_shard(name, lines) for name, lines in by_name.items()}


def index(found, now=START, signer=SIGNER):
    block = signer_block(signer.key_id, signer.public_key, signer.signer_id)
    body = index_body([shard for _, shard in found.values()], block, now)
    return signed(body, signer.sign(event_digest(body)))


def test_what_is_written_is_read_again():
    found = shards()
    read = read_index(index(found), KEYS)
    assert (read.files, read.trust, read.key_id) == (600, Trust.KEYRING, SIGNER.key_id)
    assert stated_key(index(found)) == SIGNER.key_id
    lines = [line for shard in read.shards for line in read_shard(found[shard.name][0], shard)]
    assert sorted(line.path for line in lines) == sorted(PATHS)
    assert all(line.sha256 == sha256(line.path.encode()).hexdigest() for line in lines)


def test_a_shard_is_that_of_the_hash_of_the_path():
    for name, (data, shard) in shards().items():
        assert shard.name == name
        for line in data.splitlines():
            path = json.loads(line)["path"]
            assert name == f"index/{sha256(path.encode()).hexdigest()[:2]}.jsonl"


def test_the_order_of_arrival_does_not_show():
    assert shards() == shards(PATHS[::-1])
    assert index(shards()) == index(dict(reversed(shards().items())))


def test_every_byte_of_an_index_counts():
    raw = index(shards(PATHS[:3]))
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        with pytest.raises(AnchordError):
            read_index(changed, KEYS)


def test_every_byte_of_a_shard_counts():
    data, shard = next(iter(shards(PATHS[:3]).values()))
    for place in range(len(data)):
        with pytest.raises(DigestMismatchError):
            read_shard(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :], shard)


@pytest.mark.parametrize(
    "keys",
    [
        [SIGNER.public(revoked_at=START - 1)],
        [SIGNER.public(valid_from=START + 1)],
        [SIGNER.public(targets=("timestamp",))],
        [SIGNER.public(signer_id="somebody.example.org")],
        [FakeSigner("other").public()],
        [],
    ],
)
def test_only_a_key_that_may_sign_it_makes_an_index_good(keys):
    with pytest.raises(SignatureError):
        read_index(index(shards()), Keys(keys))


@pytest.mark.parametrize(
    "paths",
    [["../x"], ["a/../b"], ["/x"], ["a//b"], ["x y"], ["a\\b"], ["a/."], [""], ["x"] * 2],
)
def test_a_signed_shard_with_paths_that_lead_away_is_refused(paths):
    lines = [IndexLine(path=path, size=0, sha256="0" * 64) for path in paths]
    data, shard = render_shard(shard_name(paths[0]), lines)
    with pytest.raises(RefusedError):
        read_shard(data, shard)


def test_a_line_in_the_wrong_shard_is_refused():
    wrong = next(n for n in (f"index/{x:02x}.jsonl" for x in range(2)) if n != shard_name("a"))
    data, shard = render_shard(wrong, [line_of("a", b"")])
    with pytest.raises(RefusedError, match="does not belong"):
        read_shard(data, shard)


@given(st.text(max_size=30))
def test_a_safe_path_has_no_way_out(text):
    if safe_path(text):
        parts = text.split("/")
        assert "" not in parts
        assert not {".", ".."} & set(parts)
        assert "\\" not in text
