"""The `anchord.toml` that points anchord at a sandbox."""

from __future__ import annotations

from pathlib import Path

import msgspec

from anchord.errors import ConfigError
from anchord.sandbox.state import replace_file

MARK = "# Written by `anchord sandbox`: sandbox, not Bitcoin."
"""First line of a configuration that a sandbox may renew."""


class ArchiveAddresses(msgspec.Struct, frozen=True, kw_only=True):
    """Where the Internet Archive of the sandbox is."""

    web: str
    api: str
    s3: str
    credentials_file: str


class AuthorityAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a time-stamping authority is, and the root of its certificates."""

    url: str
    certificates: str


class Addresses(msgspec.Struct, frozen=True, kw_only=True):
    """What the configuration must name."""

    calendars: list[str]
    node: str
    cookie_file: str
    explorers: list[str]
    peers: list[str]
    confirmations: int
    authorities: list[AuthorityAddress] = []
    archive: ArchiveAddresses | None = None


def write_config(file: Path, addresses: Addresses) -> Path:
    """Write the configuration; one that the sandbox wrote before is renewed.

    Raises:
        ConfigError: the file is there and not the sandbox's.
    """
    text = _text(addresses)
    if file.exists() and not file.read_text("utf-8").startswith(MARK):
        raise ConfigError(
            f"{file} was not written by the sandbox and is left alone: use another --dir"
        )
    replace_file(file, text)
    return file


def _text(at: Addresses) -> str:
    sources = ["node", "file"] if len(at.explorers) < 2 else ["node", "explorers", "file"]
    sources = sources if at.peers else sources[:-1]
    sections = [
        MARK,
        "# A restart of the sandbox writes it again; keys and store are never touched.",
        "",
        "[anchoring]",
        f"min_answers = {min(2, len(at.calendars))}",
        "poll_min_s = 0",
        "poll_max_s = 2",
        f"confirmations = {at.confirmations}",
        "not_before = true",
        "",
        *[
            f'[[anchoring.authorities]]\nurl = "{one.url}"\ncertificates = "{one.certificates}"\n'
            for one in at.authorities
        ],
        *[f'[[anchoring.calendars]]\nurl = "{url}"\nuris = ["{url}"]\n' for url in at.calendars],
        "[headers]",
        'network = "regtest"',
        f"sources = {_list(sources)}",
        "",
        "[headers.node]",
        f'url = "{at.node}"',
        f'cookie_file = "{at.cookie_file}"',
        "",
        "[headers.file]",
        'path = "headers.bin"',
        f"peers = {_list(at.peers)}",
        "timeout_s = 5",
    ]
    if "explorers" in sources:
        sections += ["", "[headers.explorers]", f"urls = {_list(at.explorers)}"]
    if at.archive is not None:
        sections += ["", _archive_text(at.archive)]
    return "\n".join(sections) + "\n"


def _archive_text(at: ArchiveAddresses) -> str:
    """Return [archive] with waits of seconds, and a pace just below what the sandbox allows."""
    return "\n".join(
        [
            "[archive]",
            'stored_when = "both"',
            f'credentials_file = "{at.credentials_file}"',
            'contact = "https://sandbox.example.org/"',
            'account_dir = "sandbox/account"',
            "",
            "[archive.captures]",
            f'web_url = "{at.web}"',
            "submits_per_minute = 50",
            "index_per_minute = 500",
            "replays_per_minute = 500",
            "first_poll_s = 1",
            "poll_s = 1",
            "slot_poll_s = 1",
            "job_deadline_s = 20",
            "check_after_s = [1, 2, 4, 8, 15, 30, 60]",
            "confirm_after_s = [60, 300]",
            "timeout_s = 10",
            "",
            "[archive.items]",
            f'api_url = "{at.api}"',
            f's3_url = "{at.s3}"',
            'prefix = "anchord-sandbox"',
            'collection = "test_collection"',
            "flush_after_s = 0",
            "wait_for_anchor_s = 3600",
            "check_after_s = [1, 2, 4, 8, 15, 30, 60, 120]",
            "confirm_after_s = 60",
            "timeout_s = 10",
        ]
    )


def _list(values: list[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
