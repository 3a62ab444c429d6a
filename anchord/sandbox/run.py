"""The whole sandbox: calendars, chain, node, explorers, peers and archive on loopback.

Used in one process by tests, demo and benchmarks, and by `anchord sandbox` in the foreground.
Sandbox, not Bitcoin, not the Internet Archive.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Self

from anchord.core.moment import utc
from anchord.errors import ConfigError
from anchord.sandbox.archive import (
    SERVICES,
    InternetArchive,
    ItemsHandle,
    SiteChange,
    WaybackHandle,
)
from anchord.sandbox.authority import PATH as TSA_PATH
from anchord.sandbox.authority import Authority, find_openssl
from anchord.sandbox.block import Block
from anchord.sandbox.calendar import Calendar, CalendarHandle
from anchord.sandbox.chain import Chain
from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.configuration import (
    Addresses,
    ArchiveAddresses,
    AuthorityAddress,
    write_config,
)
from anchord.sandbox.control import Control
from anchord.sandbox.explorer import BASE, Explorer
from anchord.sandbox.faults import AUTHORITY, CALENDAR, EXPLORER, PEER, FaultBoard, Option
from anchord.sandbox.items.rules import Rules as ItemRules
from anchord.sandbox.loopback import HOST, Acceptor, Listener, RequestCounts
from anchord.sandbox.node import USER, Node
from anchord.sandbox.peer import Peer
from anchord.sandbox.stamper import Stamper
from anchord.sandbox.state import NOTICE, Ports, RunFile, Status
from anchord.sandbox.wayback.rules import Rules
from anchord.sandbox.wayback.weather import Weather
from anchord.sandbox.web import Service, Web

MAX_CALENDARS = 10
BACKLOG = 5
"""Connections that wait for a calendar, as socketserver has it."""


class Sandbox:
    """Stand-ins for everything anchord talks to; a context manager.

    Args:
        directory: where `anchord.toml`, `sandbox.json` and the folder `sandbox/` with the
            chain and the journals go. A second run in the same directory goes on: same chain,
            same ports, same pending commitments.
        calendars: how many calendars, 1 to 10.
        tick_s: aggregation interval of the calendars; the real ones take a second.
        confirmations: blocks before a calendar serves a path, and before anchord signs.
        explorers: how many Esplora servers.
        peers: how many P2P peers.
        mine_every_s: mine a block this often while something is pending; None: never by itself.
        repair_deep_reorgs: calendars stamp again what a reorg deeper than `confirmations` made
            void; the real ones never do.
        archive: also stand in for the Internet Archive.
        archive_rules: limits and delays of its Wayback Machine; None: quick ones.
        item_rules: the same of its items.
        archive_weather: faults of the Wayback Machine by chance and by the clock.
        clock: the time of archive and blocks; None: this machine's, for the archive shifted by
            what it was advanced.
        authority: also run a time-stamping authority, where there is an `openssl` to do it.
    """

    def __init__(
        self,
        directory: Path,
        *,
        calendars: int = 3,
        tick_s: float = 1.0,
        confirmations: int = 6,
        explorers: int = 2,
        peers: int = 2,
        mine_every_s: float | None = None,
        repair_deep_reorgs: bool = False,
        archive: bool = True,
        archive_rules: Rules | None = None,
        item_rules: ItemRules | None = None,
        archive_weather: Weather | None = None,
        clock: SandboxClock | None = None,
        authority: bool = True,
    ) -> None:
        if not 1 <= calendars <= MAX_CALENDARS:
            raise ConfigError(f"calendars is {calendars}: possible is 1 to {MAX_CALENDARS}")
        self.directory = directory.absolute()
        self.tick_s = tick_s
        self.confirmations = confirmations
        self.mine_every_s = mine_every_s
        self._repair = repair_deep_reorgs
        self._calendar_names = [f"{CALENDAR}-{n}" for n in range(1, calendars + 1)]
        self._explorer_names = [f"{EXPLORER}-{n}" for n in range(1, explorers + 1)]
        self._peer_names = [f"{PEER}-{n}" for n in range(1, peers + 1)]
        self._openssl = find_openssl() if authority else None
        self._authority_names = [f"{AUTHORITY}-1"] if self._openssl else []
        names = [*self._calendar_names, *self._explorer_names, *self._peer_names, Node.name,
                 *self._authority_names]  # fmt: skip
        self.board = FaultBoard(names + (SERVICES if archive else []))
        self._wants_archive = archive
        self._archive_parts = (archive_rules, item_rules, archive_weather, clock)
        self.archive: InternetArchive | None = None
        self.counts = RequestCounts()
        self.calendars: list[CalendarHandle] = []
        self.explorer_urls: list[str] = []
        self.peer_addresses: list[str] = []
        self.authorities: dict[str, AuthorityAddress] = {}
        self.node_user = USER
        self._mining_stopped = threading.Event()
        self._threads: list[threading.Thread] = []
        self._started = False

    def start(self) -> Self:
        """Start everything, and leave `sandbox.json` for the commands that drive it.

        Raises:
            ConfigError: a sandbox runs in this directory already, or a port is taken.
        """
        folder = self.directory / "sandbox"
        folder.mkdir(parents=True, exist_ok=True)
        self._run_file = RunFile(self.directory)
        self._run_file.refuse_second()
        clock = self._archive_parts[-1]
        self.chain = Chain(folder / "chain.dat", now=time.time if clock is None else clock.now)
        self.acceptor = Acceptor(self.board, self.counts)
        self._web = Web(self.acceptor, self.board, self.counts)
        self._ports = Ports(folder / "ports.json")
        try:
            self._publish(folder)
        except ConfigError:
            self.acceptor.stop()
            if self.archive is not None:
                self.archive.close()
            raise
        self._ports.save()
        self._run()
        self._started = True
        return self

    def _publish(self, folder: Path) -> None:
        self._calendars = [
            self._calendar(number, name, folder / name)
            for number, name in enumerate(self._calendar_names, 1)
        ]
        self._start_node(folder / Node.name)
        for name in self._explorer_names:
            port = self._serve(Explorer(name, self.chain))
            self.explorer_urls.append(f"http://{HOST}:{port}{BASE}")
        for name in self._peer_names:
            listener = self._listen(name)
            listener.serve = Peer(name, self.chain, self.acceptor, self.board, self.counts).serve
            self.peer_addresses.append(f"{HOST}:{listener.port}")
        for name in self._authority_names:
            self._start_authority(name, folder / name)
        if self._wants_archive:
            self._start_archive(folder)
        self.control_url = f"http://{HOST}:{self._serve(Control(self))}"

    def _start_archive(self, folder: Path) -> None:
        rules, item_rules, weather, clock = self._archive_parts
        self.archive = archive = InternetArchive(
            folder,
            clock=clock,
            rules=rules or Rules.quick(),
            item_rules=item_rules or ItemRules.quick(),
            weather=weather,
        )
        listener = self._listen(archive.wayback.name)
        listener.serve = self._web.serve(archive.wayback)
        archive.watch_door(listener, self.acceptor)
        url = f"http://{HOST}:{listener.port}"
        archive.wayback.at(url)
        self.wayback = WaybackHandle(url, archive.wayback, archive.credentials_file, self.counts)
        s3, api = (f"http://{HOST}:{self._serve(host)}" for host in archive.hosts)
        self.items = ItemsHandle(api, s3, archive.items)

    def _start_authority(self, name: str, home: Path) -> None:
        service = Authority(name, home, self._openssl or "")
        url = f"http://{HOST}:{self._serve(service)}{TSA_PATH}"
        self.authorities[name] = AuthorityAddress(
            url=url, certificates=str(service.root_file.relative_to(self.directory))
        )

    def _listen(self, name: str, backlog: int = 128) -> Listener:
        listener = self.acceptor.listen(name, port=self._ports.of(name), backlog=backlog)
        self._ports.note(name, listener.port)
        return listener

    def _serve(self, service: Service) -> int:
        listener = self._listen(service.name)
        listener.serve = self._web.serve(service)
        return listener.port

    def _calendar(self, number: int, name: str, home: Path) -> Calendar:
        home.mkdir(exist_ok=True)
        stamper = Stamper(
            self.chain, number, confirmations=self.confirmations, folder=home, repair=self._repair
        )
        listener = self._listen(name, BACKLOG)
        url = f"http://{HOST}:{listener.port}"
        calendar = Calendar(name, url, self.chain, stamper, folder=home, tick_s=self.tick_s)
        listener.serve = self._web.serve(calendar)
        self.calendars.append(CalendarHandle(calendar, url, self.counts))
        return calendar

    def _start_node(self, home: Path) -> None:
        home.mkdir(exist_ok=True)
        node = Node(self.chain, home, self.counts)
        self.node_url = f"http://{HOST}:{self._serve(node)}"
        self.cookie_file, self.node_password_file = node.cookie_file, node.password_file
        self.node_password = node.password

    def _run(self) -> None:
        for calendar in self._calendars:
            calendar.aggregator.start()
        self.acceptor.start()
        if self.mine_every_s is not None:
            miner = threading.Thread(target=self._mine_by_itself, name="sandbox-miner", daemon=True)
            miner.start()
            self._threads.append(miner)
        self._run_file.write(self.status())

    def stop(self) -> None:
        """End everything; may be called twice."""
        if not self._started:
            return
        self._started = False
        self._run_file.remove()
        self._mining_stopped.set()
        for calendar in self._calendars:
            calendar.aggregator.stop()
        self.acceptor.stop()
        for thread in self._threads:
            thread.join()
        if self.archive is not None:
            self.archive.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    @property
    def node_auth_url(self) -> str:
        """The node's address with user and password, as `ots --bitcoin-node` wants it."""
        return self.node_url.replace("://", f"://{USER}:{self.node_password}@")

    @property
    def peer_address(self) -> str:
        """Address of the first peer, `host:port`."""
        return self.peer_addresses[0]

    @property
    def requests(self) -> dict[str, dict[str, int]]:
        """How often each service was asked for what."""
        return self.counts.all()

    @property
    def height(self) -> int:
        """Height of the chain's tip."""
        return self.chain.height

    def mine(self, count: int = 1) -> list[Block]:
        """Mine blocks; the first holds a transaction of every calendar with something pending."""
        for calendar in self._calendars:
            calendar.scan()
        return self.chain.mine(count)

    def reorg(self, depth: int, *, drop: bool = False) -> list[Block]:
        """Replace the last `depth` blocks by `depth + 1` others.

        Transactions come back as the real server brings them back; with `drop` the new blocks
        are empty, and what was lost is stamped again in the next block that is mined.
        """
        return self.chain.reorg(depth, drop=drop)

    def fault(self, service: str, kind: str, count: int | None = None, **options: Option) -> None:
        """Let a service, or a group of them (`calendars`), go wrong; see faults.KINDS.

        Args:
            service: `calendar-1`, `explorer-2`, `node`, `peer-1`, ..., or a group.
            kind: what goes wrong.
            count: heal after this many requests; None: until cleared.
            **options: of the kind, and `on`: only requests of this route (as in `requests`).

        Raises:
            ConfigError: such a fault cannot strike.
        """
        self.board.add(service, kind, count, options)

    def clear_faults(self, service: str | None = None) -> None:
        """Heal everything, or one service."""
        self.board.clear(service)

    def pending(self) -> tuple[int, int]:
        """Return how many commitments and transactions wait, over all calendars."""
        counts = [calendar.stamper.counts() for calendar in self._calendars]
        return sum(pending for pending, _ in counts), sum(waiting for _, waiting in counts)

    def status(self) -> Status:
        """Return where everything is and how it stands."""
        pending, waiting = self.pending()
        return Status(
            notice=NOTICE,
            height=self.chain.height,
            best_block=self.chain.tip.display_hash,
            pending_commitments=pending,
            waiting_transactions=waiting,
            mine_every_s=self.mine_every_s,
            calendars={calendar.name: calendar.url for calendar in self.calendars},
            node=self.node_url,
            node_cookie_file=str(self.cookie_file),
            explorers=dict(zip(self._explorer_names, self.explorer_urls, strict=True)),
            peers=dict(zip(self._peer_names, self.peer_addresses, strict=True)),
            authorities={name: one.url for name, one in self.authorities.items()},
            archive=self._archive_places(),
            archive_now="" if self.archive is None else utc(int(self.archive.clock.now())),
            archive_counts={} if self.archive is None else self.archive.reports(),
            control=self.control_url,
            faults=self.board.waiting(),
            requests=self.requests,
        )

    def _archive_places(self) -> dict[str, str]:
        if self.archive is None:
            return {}
        urls = (self.wayback.url, self.items.api_url, self.items.s3_url)
        return dict(zip(SERVICES, urls, strict=True))

    def advance(self, seconds: float) -> float:
        """Move the archive's clock on; return its moment, Unix seconds.

        Raises:
            ConfigError: there is no archive, or it would go back.
        """
        return self._the_archive().advance(seconds)

    def change_site(self, change: SiteChange) -> None:
        """Change what the web says to the archive.

        Raises:
            ConfigError: there is no archive, or no such URL can be.
        """
        self._the_archive().change_site(change)

    def _the_archive(self) -> InternetArchive:
        if self.archive is None:
            raise ConfigError("this sandbox has no archive: start it without --no-archive")
        return self.archive

    def write_config(self) -> Path:
        """Write `anchord.toml` for this sandbox into the directory and return its path.

        A file the sandbox wrote before is renewed.

        Raises:
            ConfigError: a configuration is there that the sandbox did not write.
        """
        addresses = Addresses(
            calendars=[calendar.url for calendar in self.calendars],
            node=self.node_url,
            cookie_file=str(self.cookie_file.relative_to(self.directory)),
            explorers=self.explorer_urls,
            peers=self.peer_addresses,
            confirmations=self.confirmations,
            authorities=list(self.authorities.values()),
            archive=self._archive_addresses(),
        )
        return write_config(self.directory / "anchord.toml", addresses)

    def _archive_addresses(self) -> ArchiveAddresses | None:
        if self.archive is None:
            return None
        return ArchiveAddresses(
            web=self.wayback.url,
            api=self.items.api_url,
            s3=self.items.s3_url,
            credentials_file=str(self.wayback.credentials_file.relative_to(self.directory)),
        )

    def _mine_by_itself(self) -> None:
        while not self._mining_stopped.wait(self.mine_every_s):
            if any(self.pending()):
                self.mine()
