"""The Bitcoin networks anchord knows, as values.

Source: `src/kernel/chainparams.cpp` of Bitcoin Core 31, heights and hashes also as built into
libbitcoinkernel. Checkpoints are blocks that releases of Core named as assumed valid, as snapshot
bases or (up to 295000) as checkpoints.
"""

from __future__ import annotations

import msgspec

from anchord.core.header import Header, internal
from anchord.errors import ConfigError

TWO_WEEKS = 14 * 24 * 60 * 60
TEN_MINUTES = 10 * 60

_SATOSHI_ROOT = internal("4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b")
_TESTNET4_ROOT = internal("7aa0a7ae1e223414cb807e40cd57e667b718e42aaf9306db9102fe28912b7b4e")


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes one network's header chain from another's."""

    name: str
    genesis: bytes
    """The 80 bytes at height 0."""
    magic: bytes
    """First four bytes of every P2P message."""
    port: int
    seeds: tuple[str, ...] = ()
    """Names whose addresses are peers."""
    pow_limit: int
    """The easiest target allowed."""
    interval: int = 2016
    """Blocks in a difficulty period."""
    timespan_s: int = TWO_WEEKS
    """How long a period should take."""
    spacing_s: int = TEN_MINUTES
    retargets: bool = True
    """False: every header has the bits of the one before (regtest)."""
    eases: bool = False
    """A block more than two spacings after the last may have the easiest target (test networks)."""
    bip94: bool = False
    """Retarget from the period's first block, and no period may begin 600 s before the last."""
    version_floors: tuple[tuple[int, int], ...] = ()
    """(height, version): from that height on lower versions are refused (BIP 34, 66, 65)."""
    min_work: int = 0
    """A chain with less work is not this network's."""
    checkpoints: dict[int, bytes] = {}
    """Height -> block hash, internal order."""


def network(name: str) -> Network:
    """Return the network called `name`.

    Raises:
        ConfigError: no such network.
    """
    try:
        return NETWORKS[name]
    except KeyError:
        raise ConfigError(
            f"network {name!r} is not known: use one of {', '.join(NETWORKS)}"
        ) from None


def _genesis(time: int, bits: int, nonce: int, root: bytes = _SATOSHI_ROOT) -> bytes:
    """Return the header of a first block."""
    return Header(1, bytes(32), root, time, bits, nonce).pack()


def _checkpoints(table: dict[int, str]) -> dict[int, bytes]:
    """Return hashes as headers hold them."""
    return {height: internal(shown) for height, shown in table.items()}


_ALWAYS = ((1, 4),)
"""BIP 34, 65 and 66 hold from the first block on."""

MAINNET = Network(
    name="mainnet",
    genesis=_genesis(1231006505, 0x1D00FFFF, 2083236893),
    magic=bytes.fromhex("f9beb4d9"),
    port=8333,
    seeds=(
        "seed.bitcoin.sipa.be",
        "dnsseed.bluematt.me",
        "seed.bitcoin.jonasschnelli.ch",
        "seed.btc.petertodd.net",
        "seed.bitcoin.sprovoost.nl",
        "dnsseed.emzy.de",
        "seed.bitcoin.wiz.biz",
        "seed.mainnet.achownodes.xyz",
    ),
    pow_limit=(1 << 224) - 1,
    version_floors=((227931, 2), (363725, 3), (388381, 4)),
    min_work=0x1128750F82F4C366153A3A030,
    checkpoints=_checkpoints(
        {
            11111: "0000000069e244f73d78e8fd29ba2fd2ed618bd6fa2ee92559f542fdb26e7c1d",
            33333: "000000002dd5588a74784eaa7ab0507a18ad16a236e7b1ce69f00d7ddfb5d0a6",
            74000: "0000000000573993a3c9e41ce34471c079dcf5f52a0e824a81e7f953b8661a20",
            105000: "00000000000291ce28027faea320c8d2b054b2e0fe44a773f3eefb151d6bdc97",
            134444: "00000000000005b12ffd4cd315cd34ffd4a594f430ac814c91184a0d42d2b0fe",
            168000: "000000000000099e61ea72015e79632f216fe6cb33d7899acb35b75c8303b763",
            193000: "000000000000059f452a5f7340de6682a977387c17010ff6e6c3bd83ca8b1317",
            210000: "000000000000048b95347e83192f69cf0366076336c639f9b7228e9ba171342e",
            227931: "000000000000024b89b42a942fe0d9fea3bb44ab7bd1b19115dd6a759c0808b8",
            250000: "000000000000003887df1f29024b06fc2200b55f8af8f35453d7be294df2d214",
            279000: "0000000000000001ae8c72a0b0c301f67e3afca10e819efa9041e458e9bd7e40",
            295000: "00000000000000004d9b4ef50f0f9d686fd69db2e03af35a100370c64632a983",
            453354: "00000000000000000013176bf8d7dfeab4e1db31dc93bc311b436e82ab226b90",
            506067: "0000000000000000005214481d2d96f898e3d5416e43359c145944a909d242e0",
            563378: "0000000000000000000f1c54590ee18d15ec70e68c8cd4cfbadb1b4f11697eee",
            597379: "00000000000000000005f8920febd3925f8272a6a71237563d78c2edfdd09ddf",
            654683: "0000000000000000000b9d2ec5a352ecba0592946514a92f14319dc2b367fc72",
            691719: "00000000000000000008a89e854d57e5667df88f1cdef6fde2fbca1de5b639ad",
            724466: "000000000000000000052d314a259755ca65944e68df6b12a067ea8f1f5a7091",
            751565: "00000000000000000009c97098b5295f7e5f183ac811fb5d1534040adb93cabd",
            824000: "000000000000000000026811d149d4d261995ec5b3f64f439a0a10e1a464af9a",
            840000: "0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5",
            880000: "000000000000000000010b17283c3c400507969a9c2afd1dcf2082ec5cca2880",
            910000: "0000000000000000000108970acb9522ffd516eae17acddcb1bd16469194a821",
            935000: "0000000000000000000147034958af1652b2b91bba607beacc5e72a56f0fb5ee",
            938343: "00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac",
        }
    ),
)

TESTNET4 = Network(
    name="testnet4",
    genesis=_genesis(1714777860, 0x1D00FFFF, 393743547, _TESTNET4_ROOT),
    magic=bytes.fromhex("1c163f28"),
    port=48333,
    seeds=("seed.testnet4.bitcoin.sprovoost.nl", "seed.testnet4.wiz.biz"),
    pow_limit=(1 << 224) - 1,
    eases=True,
    bip94=True,
    version_floors=_ALWAYS,
    min_work=0x9A0FE15D0177D086304,
    checkpoints=_checkpoints(
        {123613: "0000000002368b1e4ee27e2e85676ae6f9f9e69579b29093e9a82c170bf7cf8a"}
    ),
)

SIGNET = Network(
    name="signet",
    genesis=_genesis(1598918400, 0x1E0377AE, 52613770),
    magic=bytes.fromhex("0a03cf40"),
    port=38333,
    seeds=("seed.signet.bitcoin.sprovoost.nl", "seed.signet.achownodes.xyz"),
    pow_limit=0x377AE << 216,
    version_floors=_ALWAYS,
    min_work=0xB463EA0A4B8,
    checkpoints=_checkpoints(
        {293175: "00000008414aab61092ef93f1aacc54cf9e9f16af29ddad493b908a01ff5c329"}
    ),
)
"""BIP 325: a block's signature is in its coinbase, which headers do not show; anchord does not
check it, so a signet chain proves its work and no more."""

REGTEST = Network(
    name="regtest",
    genesis=_genesis(1296688602, 0x207FFFFF, 2),
    magic=bytes.fromhex("fabfb5da"),
    port=18444,
    pow_limit=(1 << 255) - 1,
    interval=144,
    timespan_s=24 * 60 * 60,
    retargets=False,
    eases=True,
    version_floors=_ALWAYS,
)

NETWORKS = {each.name: each for each in (MAINNET, TESTNET4, SIGNET, REGTEST)}
"""Every network by name."""
