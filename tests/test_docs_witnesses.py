"""The worked example of a block's hash in a batch recomputes, and anchord makes the same bytes."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from anchord.core.header import internal
from anchord.core.trailer import root_of, steps, trailer

PAGE = (Path(__file__).resolve().parents[1] / "docs/protocol.md").read_text("utf-8")


def facts(name: str) -> dict[str, str]:
    found = re.search(rf"<!-- example: {name} -->\n+```text\n(.*?)\n```", PAGE, re.DOTALL)
    assert found, name
    return dict(line.split(" = ", 1) for line in found[1].splitlines())


def test_the_example_of_a_block_that_a_batch_is_younger_than_recomputes():
    shown, header = facts("not-before"), bytes.fromhex(facts("header")["header"])
    assert shown["tree_root"] == facts("tree")["root"]
    carried = bytes.fromhex(shown["trailer"])
    assert carried == header[4:36], "the block before the one the proof leads to"
    assert shown["block_hash"] == carried[::-1].hex()
    tree_root = bytes.fromhex(shown["tree_root"])
    assert shown["root"] == hashlib.sha256(tree_root + carried).hexdigest()
    beside = trailer([], internal(shown["block_hash"]))
    assert beside == carried
    assert shown["steps"] == steps(beside).hex()
    assert shown["root"] == root_of(tree_root, beside).hex()
