"""The configuration: one TOML file, read strictly. Each field's docstring is its documentation.

Paths are relative to the folder of the file. Secrets are paths to files, never values.
`config/anchord.toml` shows every field with its default; a test holds the two equal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from anchord.adapters.disk import read_small
from anchord.app.archive_config import ArchiveConfig, check_archive
from anchord.app.config_environment import given, laid_over, variable
from anchord.app.database_address import PASSFILE, holds_password
from anchord.app.fleet_config import FleetConfig
from anchord.app.metrics.address import host_and_port
from anchord.app.outlet_config import OutletConfig, check_outlets
from anchord.app.section import Count, PositiveInt, Seconds, Section
from anchord.app.source_config import SourceConfig, check_sources
from anchord.app.web_config import WebConfig, check_web
from anchord.core import stricttoml
from anchord.errors import ConfigError, RefusedError

Network = Literal["mainnet", "testnet4", "signet", "regtest"]
SourceName = Literal["file", "node", "explorers"]


class StoreConfig(Section, frozen=True, kw_only=True):
    """Where state lives."""

    url: str = "sqlite:///anchord.db"
    """SQLAlchemy URL without a password; a relative SQLite path is relative to this file, and so
    is the password file of postgresql://USER@HOST/DATABASE?passfile=FILE."""


class SignerConfig(Section, frozen=True, kw_only=True):
    """Who signs the events."""

    key_dir: str = "keys"
    """Folder of the signing keys and keyring.toml, made by `anchord init`; mode 0700."""
    passphrase_file: str = ""
    """File with the key's passphrase (first line). Empty: the systemd credential
    `anchord-passphrase` when there is one, else the key is not encrypted."""
    signer_id: str = "anchord"
    """Who signs, as events state it: usually a host name."""


class CalendarConfig(Section, frozen=True, kw_only=True):
    """One OpenTimestamps calendar."""

    url: str
    """Where digests are submitted; https, or http on loopback."""
    uris: list[str]
    """The pending URIs it answers with; only these are ever asked for upgrades (exact match)."""


def default_calendars() -> list[CalendarConfig]:
    """Return the four public aggregators of the standard client and the calendars behind them."""
    pairs = [
        ("https://a.pool.opentimestamps.org", "https://alice.btc.calendar.opentimestamps.org"),
        ("https://b.pool.opentimestamps.org", "https://bob.btc.calendar.opentimestamps.org"),
        ("https://a.pool.eternitywall.com", "https://finney.calendar.eternitywall.com"),
        ("https://ots.btc.catallaxy.com", "https://btc.calendar.catallaxy.com"),
    ]
    return [CalendarConfig(url=url, uris=[uri]) for url, uri in pairs]


class AuthorityConfig(Section, frozen=True, kw_only=True):
    """One time-stamping authority (RFC 3161)."""

    url: str
    """Where requests are posted; https, or http on loopback."""
    certificates: str
    """PEM file with the root certificate, and intermediate ones, that its tokens must lead to."""


class AnchoringConfig(Section, frozen=True, kw_only=True):
    """How records get into Bitcoin."""

    min_answers: PositiveInt = 2
    """Go on when this many calendars hold a batch's root (m of n); late answers are kept."""
    timeout_s: Seconds = 10.0
    """Total time for one call to a calendar, seconds."""
    min_batch_interval_s: Count = 0
    """Seal at most one batch in this many seconds; 0: one per pass with waiting records."""
    poll_min_s: Count = 60
    """First wait before a commitment is asked again; calendars cache their "not yet" for 60 s."""
    poll_max_s: PositiveInt = 900
    """Longest wait between two questions for one commitment."""
    resubmit_after_s: PositiveInt = 86400
    """A calendar whose path a reorg made void, or that says "unknown", for this long gets the
    root again."""
    confirmations: PositiveInt = 6
    """Blocks, the attested one included, before a record counts as anchored and is signed."""
    final_confirmations: PositiveInt = 100
    """Blocks after which the last check is made."""
    sign_submitted: bool = True
    """Also sign `timestamp_submitted` events."""
    not_before: bool = False
    """Let each batch carry the hash of a recent block, which proves that it is not older."""
    authorities: list[AuthorityConfig] = msgspec.field(default_factory=list)
    """Time-stamping authorities that give each batch a token; `[[anchoring.authorities]]`."""
    calendars: list[CalendarConfig] = msgspec.field(default_factory=default_calendars)
    """The calendars; `[[anchoring.calendars]]` tables replace the default four."""


class NodeConfig(Section, frozen=True, kw_only=True):
    """A Bitcoin Core node of your own (pruned is enough)."""

    url: str = "http://127.0.0.1:8332"
    """RPC address."""
    cookie_file: str = ""
    """Path of the node's .cookie; this or user and password_file."""
    user: str = ""
    """RPC user, with password_file."""
    password_file: str = ""
    """File whose first line is the RPC password."""


class ExplorersConfig(Section, frozen=True, kw_only=True):
    """Esplora servers; they must agree with each other, so at least two."""

    urls: list[str] = msgspec.field(
        default_factory=lambda: ["https://blockstream.info/api", "https://mempool.space/api"]
    )
    """Base URLs of the Esplora REST interface."""
    min_agree: Annotated[int, msgspec.Meta(ge=2)] = 2
    """How many must give the same header."""


class HeaderFileConfig(Section, frozen=True, kw_only=True):
    """Anchord's own header file, synced over the Bitcoin P2P protocol."""

    path: str = "headers.bin"
    """The file: 80 bytes a header from the genesis block on."""
    peers: list[str] = msgspec.field(default_factory=list)
    """host:port of peers to sync from; empty: the network's DNS seeds."""
    min_peers: PositiveInt = 2
    """How many peers' chains are compared before the best is believed, when there are as many."""
    timeout_s: Seconds = 20.0
    """A peer that sends nothing for this long is dropped."""


class HeadersConfig(Section, frozen=True, kw_only=True):
    """Which witnesses of the Bitcoin chain are asked; all that answer must agree."""

    network: Network = "mainnet"
    """`mainnet`, `testnet4`, `signet` (block signatures are not checked) or `regtest`."""
    sources: list[SourceName] = msgspec.field(default_factory=lambda: ["file"])
    """Any of "file" (own checked headers), "node", "explorers"."""
    file: HeaderFileConfig = msgspec.field(default_factory=HeaderFileConfig)
    node: NodeConfig = msgspec.field(default_factory=NodeConfig)
    explorers: ExplorersConfig = msgspec.field(default_factory=ExplorersConfig)


class LedgerConfig(Section, frozen=True, kw_only=True):
    """The log over all events."""

    origin: str = ""
    """Name of the log and of the key that signs its checkpoints, best a host name and a path:
    `registry.example.org/anchord`. Empty: signer.signer_id. Never change it: it makes a new log."""
    checkpoint_every_s: Count = 600
    """A pass signs the log again when it has grown and the last checkpoint is this old; a batch
    that is sealed and a tree that is published always get a fresh one."""


class ServiceConfig(Section, frozen=True, kw_only=True):
    """How often `anchord run` looks whether there is something to do."""

    pass_every_s: Seconds = 60.0
    """Of `anchord run`: seconds between two looks for records to seal and answers to ask for;
    when nothing is due, a look asks nobody and reads next to nothing."""
    storing_every_s: Seconds = 5.0
    """Of `anchord run`: seconds between two looks for answers of the Internet Archive, and calls
    that are due."""
    metrics: str = ""
    """Address at which `anchord run` and `anchord worker` show Prometheus metrics, e.g.
    `127.0.0.1:9464`; a port alone is on loopback. Empty: none are shown."""


class Config(Section, frozen=True, kw_only=True):
    """The whole file."""

    store: StoreConfig = msgspec.field(default_factory=StoreConfig)
    signer: SignerConfig = msgspec.field(default_factory=SignerConfig)
    anchoring: AnchoringConfig = msgspec.field(default_factory=AnchoringConfig)
    headers: HeadersConfig = msgspec.field(default_factory=HeadersConfig)
    ledger: LedgerConfig = msgspec.field(default_factory=LedgerConfig)
    archive: ArchiveConfig = msgspec.field(default_factory=ArchiveConfig)
    service: ServiceConfig = msgspec.field(default_factory=ServiceConfig)
    sources: list[SourceConfig] = msgspec.field(default_factory=list)
    """Where records come from by themselves; `[[sources]]`."""
    outlets: list[OutletConfig] = msgspec.field(default_factory=list)
    """Where receipts go by themselves; `[[outlets]]`."""
    fleet: FleetConfig = msgspec.field(default_factory=FleetConfig)
    web: WebConfig = msgspec.field(default_factory=WebConfig)


class Loaded(msgspec.Struct, frozen=True):
    """A configuration and the folder its paths are relative to."""

    config: Config
    path: Path
    stated: Mapping[str, Any] = {}
    """The file's tables, as they were read."""
    environment: Mapping[str, Any] = {}
    """Values the environment gave, by the key's name with dots; they win over the file's."""

    def resolve(self, name: str) -> Path:
        """Return the path `name` of the configuration means."""
        return (self.path.parent / Path(name).expanduser()).absolute()


def load(path: str | None) -> Loaded:
    """Read the configuration from `path`, or ./anchord.toml, and keys the environment gives.

    Raises:
        ConfigError: no such file, not TOML, unknown key, or a value out of range.
    """
    file = Path(path or os.environ.get("ANCHORD_CONFIG") or "anchord.toml").absolute()
    try:
        raw = stricttoml.parse(read_small(file))
    except FileNotFoundError:
        msg = (
            f"no configuration at {file}: make one with `anchord init`, "
            "or name one with -c FILE or ANCHORD_CONFIG"
        )
        raise ConfigError(msg) from None
    except RefusedError as error:
        raise ConfigError(f"{file} {error}") from None
    except (OSError, ValueError) as error:  # the second: no name of a file at all
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"{file} cannot be read: {why}; check its permissions") from None
    values = given(os.environ)
    config = _convert(laid_over(raw, values), file, values)
    _check(config, file)
    _check_paths(config, file)
    _check_databases(config, file)
    return Loaded(config, file, raw, values)


def _convert(raw: dict[str, Any], file: Path, values: Mapping[str, Any]) -> Config:
    try:
        return msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        where = f"{file}"
        if values:
            where += f" with {', '.join(map(variable, values))} of the environment"
        from anchord.app.config_words import refusal

        raise ConfigError(f"{where}: {refusal(error, raw)}") from None


def _check(config: Config, file: Path) -> None:
    """Refuse what no type can express."""
    anchoring, headers = config.anchoring, config.headers
    urls = [calendar.url for calendar in anchoring.calendars]
    problems = [
        (
            len(urls) < anchoring.min_answers,
            f"anchoring.min_answers is {anchoring.min_answers} but {len(urls)} calendars are set",
        ),
        (len(set(urls)) != len(urls), "anchoring.calendars names a calendar twice"),
        (
            len({one.url for one in anchoring.authorities}) != len(anchoring.authorities),
            "anchoring.authorities names an authority twice",
        ),
        (
            not all(calendar.uris for calendar in anchoring.calendars),
            "anchoring.calendars: each calendar needs at least one entry in uris",
        ),
        (anchoring.poll_max_s < anchoring.poll_min_s, "anchoring.poll_max_s is below poll_min_s"),
        (
            anchoring.final_confirmations < anchoring.confirmations,
            "anchoring.final_confirmations is below confirmations",
        ),
        (not headers.sources, "headers.sources is empty: name file, node or explorers"),
        (
            "explorers" in headers.sources
            and len(headers.explorers.urls) < headers.explorers.min_agree,
            "headers.explorers.urls has fewer servers than min_agree",
        ),
    ]
    for wrong, message in problems:
        if wrong:
            raise ConfigError(f"{file}: {message}")
    try:
        if config.service.metrics:
            host_and_port(config.service.metrics)
        host_and_port(config.web.bind, "web.bind")
        check_web(config.web)
        check_archive(config.archive)
        check_sources(config.sources)
        check_outlets(config.outlets)
    except ConfigError as error:
        raise ConfigError(f"{file}: {error}") from None


def _check_paths(config: Config, file: Path) -> None:
    """Refuse addresses of files that no system can open."""
    headers = config.headers
    named = {
        "store.url": config.store.url,
        "signer.key_dir": config.signer.key_dir,
        "signer.passphrase_file": config.signer.passphrase_file or "-",
        "headers.file.path": headers.file.path,
        "headers.node.cookie_file": headers.node.cookie_file or "-",
        "headers.node.password_file": headers.node.password_file or "-",
        "archive.credentials_file": config.archive.credentials_file or "-",
        "archive.account_dir": config.archive.account_dir or "-",
        "archive.items.spool_dir": config.archive.items.spool_dir,
        "web.tree": config.web.tree or "-",
        "web.audit_report": config.web.audit_report or "-",
        **{
            f"anchoring.authorities ({one.url}): certificates": one.certificates
            for one in config.anchoring.authorities
        },
    }
    for key, value in named.items():
        if not value or not value.isprintable():
            got = "characters that cannot be printed" if value else "nothing"
            raise ConfigError(f"{file}: {key}: expected a path or address, got {got}")


def _check_databases(config: Config, file: Path) -> None:
    """Refuse a password in an address: a configuration is shown, copied and backed up."""
    elsewhere = "put it into a file of its own, mode 0600, and name that in password_file"
    named = [
        ("store.url", config.store.url, PASSFILE),
        *((f"sources ({one.name}): url", one.url, elsewhere) for one in config.sources),
        *((f"outlets ({one.name}): url", one.url, elsewhere) for one in config.outlets),
    ]
    for key, url, todo in named:
        if holds_password(url):
            raise ConfigError(f"{file}: {key}: expected no password in it, got one: {todo}")
