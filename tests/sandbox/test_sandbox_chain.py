"""The sandbox's blocks are real blocks: libbitcoinkernel judges them."""

from __future__ import annotations

import time

import pbk
import pytest
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import Timestamp

from anchord.errors import ConfigError
from anchord.sandbox.block import genesis, push_height
from anchord.sandbox.chain import FLOOR, START, Chain
from anchord.sandbox.stamper import Stamper


def commitment(number):
    return number.to_bytes(44, "big")


def kernel_chain(blocks, folder):
    """Give every block to the kernel, in order, and return its best chain's hashes."""
    kernel = pbk.load_chainman(folder)
    for block in blocks:
        kernel.process_block(pbk.Block(block.raw))
    return [bytes(entry.block_hash) for entry in kernel.get_active_chain().block_tree_entries]


def best(chain):
    return [chain.block(height) for height in range(chain.height + 1)]


def test_genesis_is_the_kernels_own(tmp_path):
    kernel = pbk.load_chainman(tmp_path)
    assert str(kernel.best_entry.block_hash) == genesis().display_hash
    assert bytes(kernel.best_entry.block_header) == genesis().header


def test_the_kernel_accepts_every_block_with_commitments_and_after_reorgs(tmp_path):
    chain = Chain()
    stampers = [Stamper(chain, number, confirmations=6) for number in range(1, 11)]
    seen = best(chain)[1:]
    number = 0
    for action in [
        lambda: chain.mine(2),
        lambda: chain.reorg(2),
        lambda: chain.mine(3),
        lambda: chain.reorg(3, drop=True),
        lambda: chain.mine(8),
        lambda: chain.reorg(9),
        lambda: chain.mine(1),
    ]:
        for stamper in stampers:
            stamper.add(commitment(number := number + 1))
        seen += action()
    assert kernel_chain(seen, tmp_path) == [block.hash for block in best(chain)]
    assert max(len(block.transactions) for block in seen) >= 11


def test_the_kernel_reads_the_chain_file_as_its_own_block_file(tmp_path):
    chain = Chain(tmp_path / "chain.dat")
    chain.mine(3)
    chain.reorg(2)
    kernel = pbk.load_chainman(tmp_path / "kernel")
    kernel.import_blocks([tmp_path / "chain.dat"])
    assert bytes(kernel.best_entry.block_hash) == chain.tip.hash


def test_times_are_after_the_median_and_not_ahead_of_the_clock():
    chain = Chain()
    chain.mine(6)
    for height in range(1, chain.height + 1):
        assert chain.block(height).time > chain.median_time(height - 1)
    assert chain.tip.time <= time.time() + 1


def test_a_long_run_of_blocks_stays_far_within_the_two_hours_a_node_allows():
    chain = Chain()
    chain.mine(300)
    assert chain.tip.time <= time.time() + 60


def test_heights_are_pushed_minimally():
    assert [push_height(h).hex() for h in (0, 1, 16, 17, 127, 128, 255, 256, 32768)] == [
        "00",
        "51",
        "60",
        "0111",
        "017f",
        "028000",
        "02ff00",
        "020001",
        "03008000",
    ]


def test_a_reorg_replaces_depth_blocks_by_one_more():
    chain = Chain()
    chain.mine(5)
    before = [block.hash for block in best(chain)]
    chain.reorg(3)
    after = [block.hash for block in best(chain)]
    assert len(after) == len(before) + 1
    assert after[:-4] == before[:-3]
    assert not set(after[-4:]) & set(before)


def test_stale_blocks_are_known_and_have_no_confirmations():
    chain = Chain()
    stale = chain.mine(1)[0]
    chain.reorg(1)
    assert chain.find(stale.hash) is stale
    assert chain.confirmations(stale) == -1
    assert chain.confirmations(chain.tip) == 1


@pytest.mark.parametrize("depth", [0, -1, START - FLOOR + 1])
def test_a_reorg_below_the_floor_is_refused(depth):
    with pytest.raises(ConfigError, match="possible is 1 to"):
        Chain().reorg(depth)


def test_a_restart_goes_on_with_the_same_chain(tmp_path):
    file = tmp_path / "chain.dat"
    chain = Chain(file)
    chain.mine(3)
    chain.reorg(2)
    again = Chain(file)
    assert again.headers() == chain.headers()
    again.mine(1)
    assert Chain(file).tip.hash == again.tip.hash


def test_a_block_cut_short_by_a_crash_is_cut_away(tmp_path):
    file = tmp_path / "chain.dat"
    chain = Chain(file)
    whole = file.stat().st_size
    chain.mine(1)
    file.write_bytes(file.read_bytes()[:-5])
    again = Chain(file)
    assert again.height == START
    assert file.stat().st_size == whole
    again.mine(1)
    assert Chain(file).height == START + 1


def stamped_chain(tmp_path=None, **options):
    chain = Chain()
    stamper = Stamper(chain, 1, confirmations=3, folder=tmp_path, **options)
    stamper.add(commitment(1))
    chain.mine(1)
    return chain, stamper


def test_a_path_is_served_with_enough_confirmations_and_not_before():
    chain, stamper = stamped_chain()
    for _ in range(2):
        assert stamper.path(commitment(1)) is None
        assert "waiting for 2 confirmations" in stamper.reason(commitment(1))
        chain.mine(1)
    assert stamper.path(commitment(1))
    assert stamper.reason(commitment(1)) is None


def end_of(path, message):
    """Return the last message of a path and the height it is attested at."""
    stamp = Timestamp.deserialize(BytesDeserializationContext(path), message)
    ((end, attestation),) = stamp.all_attestations()
    return end, attestation.height


def test_a_reorg_brings_unserved_commitments_into_another_block():
    chain, stamper = stamped_chain()
    first = chain.tip
    chain.reorg(1)
    chain.mine(2)
    end, height = end_of(stamper.path(commitment(1)), commitment(1))
    assert end == chain.block(height).root != first.root


def test_a_reorg_that_loses_transactions_leaves_commitments_pending():
    chain, stamper = stamped_chain()
    chain.reorg(1, drop=True)
    assert stamper.reason(commitment(1)) == "Pending confirmation in Bitcoin blockchain"
    chain.mine(3)
    assert stamper.path(commitment(1))


@pytest.mark.parametrize("drop", [False, True])
def test_a_path_that_was_served_stays_void_after_a_deeper_reorg(drop):
    chain, stamper = stamped_chain()
    chain.mine(2)
    void = stamper.path(commitment(1))
    chain.reorg(3, drop=drop)
    chain.mine(6)
    assert stamper.path(commitment(1)) == void
    assert end_of(void, commitment(1))[0] not in {block.root for block in best(chain)}
    stamper.add(commitment(2))
    chain.mine(3)
    assert stamper.path(commitment(2))


def test_repair_stamps_again_what_a_deep_reorg_made_void(tmp_path):
    chain, stamper = stamped_chain(tmp_path, repair=True)
    chain.mine(2)
    void = stamper.path(commitment(1))
    chain.reorg(3, drop=True)
    assert stamper.path(commitment(1)) is None
    assert Stamper(chain, 1, confirmations=3, folder=tmp_path).path(commitment(1)) is None
    chain.mine(3)
    assert stamper.path(commitment(1)) not in {None, void}


def test_a_chain_file_with_a_hole_is_refused_with_what_to_do(tmp_path):
    file = tmp_path / "chain.dat"
    chain = Chain(file)
    first = len(chain.block(1).raw) + 8
    file.write_bytes(file.read_bytes()[first:])
    with pytest.raises(ConfigError, match="starts anew"):
        Chain(file)


def test_a_restarted_stamper_serves_what_was_served_and_finds_its_transactions(tmp_path):
    chain = Chain(tmp_path / "chain.dat")
    stamper = Stamper(chain, 1, confirmations=3, folder=tmp_path)
    stamper.add(commitment(1))
    chain.mine(3)
    stamper.add(commitment(2))
    chain.mine(1)
    again = Chain(tmp_path / "chain.dat")
    revived = Stamper(again, 1, confirmations=3, folder=tmp_path)
    assert revived.path(commitment(1)) == stamper.path(commitment(1))
    assert revived.reason(commitment(2)) == stamper.reason(commitment(2))
    again.mine(2)
    assert revived.path(commitment(2))
