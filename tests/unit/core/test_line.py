"""The line a proof begins with, and the stem read with its help, are those of the whole proof."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from support.ots_oracle import REVERSE_IS_FINE, Shape, digests, ours, shapes

from anchord.core.line import START, climb
from anchord.core.not_before import stem, stem_of
from anchord.core.proof import parse_detached, serialise_detached
from anchord.core.timestamp import parse_timestamp
from anchord.errors import RefusedError

LIMITED = settings(deadline=None, max_examples=300, derandomize=True)
pytestmark = pytest.mark.filterwarnings(REVERSE_IS_FINE)


@LIMITED
@given(shape=shapes, digest=digests)
def test_the_stem_is_the_one_of_the_proof_read_whole(shape: Shape, digest: bytes) -> None:
    raw = serialise_detached(digest, ours(shape, digest))
    steps = stem(parse_detached(raw).timestamp)
    found = stem_of(raw)
    assert list(found.ops) == [(op.tag, op.argument) for op, _ in steps]
    assert list(found.messages) == [digest, *(node.message for _, node in steps)]


@LIMITED
@given(shape=shapes, digest=digests)
def test_what_follows_a_line_is_the_rest_of_its_proof(shape: Shape, digest: bytes) -> None:
    raw = serialise_detached(digest, ours(shape, digest))
    line = climb(raw)
    assert line is not None
    assert raw.endswith(line.rest)
    whole = parse_detached(raw).timestamp
    for tag, argument in line.ops:
        ((op, whole),) = whole.ops.items()
        assert (op.tag, op.argument) == (tag, argument)
    assert parse_timestamp(line.rest, line.messages[-1]) == whole


def test_a_fork_into_one_step_belongs_to_the_stem() -> None:
    end = bytes.fromhex("000588960d73d719010165")
    head = serialise_detached(bytes(32), parse_timestamp(end, bytes(32)))[:START]
    raw = head + b"\x08\xff\x08" + end + b"\x08\x08" + end
    assert len(climb(raw).ops) == 1
    assert len(stem_of(raw).ops) == len(stem(parse_detached(raw).timestamp)) == 2


@pytest.mark.parametrize("raw", [b"", b"\x00" * 80])
def test_what_is_no_proof_has_no_line_and_no_stem(raw: bytes) -> None:
    assert climb(raw) is None
    with pytest.raises(RefusedError):
        stem_of(raw)
