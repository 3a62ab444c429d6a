"""The table [archive]: how records are stored at the Internet Archive.

Each field's docstring is its documentation, as in `anchord.app.config`. The numbers keep to what
the archive's own documents ask for (Save Page Now 2 Public API, IAS3, "Uploading: what is not OK")
and leave room for people who use the same account.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import TYPE_CHECKING, Annotated

import msgspec

from anchord.app.section import Bytes, Count, PositiveInt, Seconds, Section
from anchord.core.storage import StoredWhen
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PerMinute = Annotated[int, msgspec.Meta(ge=1, le=600)]
Waits = Annotated[tuple[PositiveInt, ...], msgspec.Meta(min_length=1, max_length=50)]

RECORD_FIELDS = ("id", "version", "digest", "number", "suffix")
"""What a URL template may hold."""
NAMES_OF_RECORDS = ("id", "digest", "number", "suffix")
"""What a URL template must hold one of."""
_PREFIX = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,65}")
"""With the day and a part the identifier stays within the 5 to 80 characters archive.org advises
(IAS3 documentation, "identifiers")."""
_COLLECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}")
_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?/[!-~]*")
_CONTACT = re.compile(r"https?://[!-'*-~]+|[!-'*-?A-~]+@[!-'*-?A-~]+")
"""A URL or an address; neither spaces nor brackets, because it goes into a comment of a header
(RFC 9110, 5.6.5)."""


class UrlConfig(Section, frozen=True, kw_only=True):
    """How the URL that is captured comes about."""

    url: str
    """The URL, with {id}, {version}, {digest}, {number}, {suffix} of the record; a record that
    lacks one of them has no such URL. Empty: nothing of this kind is captured."""
    contains: str = ""
    """Text (a template too) that the archived bytes must hold, so that an error page never counts;
    empty: nothing is asked for."""
    plain: bool = False
    """Have it fetched without a browser: JSON, PDF and static files."""


def default_urls() -> dict[str, UrlConfig]:
    """Return the URL of the records this registry has: abstracts of arXiv.

    What the page must hold is how arXiv cites that version. The id alone would be on every page
    that repeats its own address, such as one that asks whether a robot is reading.
    """
    return {
        "arxiv": UrlConfig(
            url="https://arxiv.org/abs/{id}v{version}", contains="arXiv:{id}v{version}"
        )
    }


class CapturesConfig(Section, frozen=True, kw_only=True):
    """Captures by the Wayback Machine (Save Page Now)."""

    enabled: bool = True
    """Have records' pages captured."""
    web_url: str = "https://web.archive.org"
    """The Wayback Machine itself, or a stand-in on loopback for trials: keys go nowhere else."""
    adopt_younger_than_s: Count = 2_592_000
    """A capture younger than this is adopted instead of made again; 0: always make one."""
    submits_per_minute: PerMinute = 7
    """Submits in any minute; the service allows an account 7."""
    parallel: Annotated[int, msgspec.Meta(ge=1, le=20)] = 3
    """Captures that run at once; the service allows an account 3."""
    daily_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.9
    """Of the account's daily captures; the rest is left to people who use the account."""
    status_per_day: PositiveInt = 60_000
    """Status reads a UTC day; the service allows 70,000."""
    index_per_minute: PerMinute = 24
    """Questions to the index (CDX) in any minute; the service allows 30."""
    replays_per_minute: PerMinute = 12
    """Mementos fetched in any minute."""
    first_poll_s: PositiveInt = 15
    """First wait before a job's status is read."""
    poll_s: PositiveInt = 10
    """Wait between two reads of jobs' status."""
    slot_poll_s: PositiveInt = 2
    """Wait before the account is asked again for a free slot."""
    job_deadline_s: PositiveInt = 900
    """A job without an end after this long is given up, and the index asked: the service says
    "pending" of jobs it has forgotten, for ever."""
    check_after_s: Waits = (300, 1_800, 10_800, 43_200, 86_400, 259_200)
    """Looks for a reported capture, in seconds after the report; after the last it is made anew."""
    confirm_after_s: Waits = (86_400, 2_592_000)
    """Later replays of a stored capture, in seconds after it was stored."""
    timeout_s: Seconds = 60.0
    """Total time for one call; a look into the index gets 90 s at least."""
    max_replay_bytes: Bytes = 67_108_864
    """A memento that is bigger is not fetched to its end and does not count."""
    urls: dict[str, UrlConfig] = msgspec.field(default_factory=default_urls)
    """What is captured, by kind of source: `[archive.captures.urls.KIND]` tables add kinds to
    arxiv, or replace it."""
    extra_urls: list[UrlConfig] = msgspec.field(default_factory=list)
    """Further URLs for every record, opted in: `[[archive.captures.extra_urls]]` tables. They do
    not earn the word "stored"."""

    def templates(self) -> dict[str, UrlConfig]:
        """Return what is captured by kind: the defaults, with what the file says instead."""
        return {kind: one for kind, one in (default_urls() | self.urls).items() if one.url}


class ItemsConfig(Section, frozen=True, kw_only=True):
    """Items at archive.org that hold the records' bundles."""

    enabled: bool = True
    """Upload bundles."""
    api_url: str = "https://archive.org"
    """Metadata, tasks and downloads; https, or http on loopback."""
    s3_url: str = "https://s3.us.archive.org"
    """Uploads (IAS3); https, or http on loopback."""
    prefix: str = ""
    """Items are named `<prefix>-YYYY-MM-DD`. Names are taken once and for all, and for everybody:
    choose with care. Empty: no item is made."""
    spool_dir: str = "spool"
    """Folder where ZIPs wait until archive.org has confirmed them."""
    collection: str = "opensource"
    """Collection of new items: `opensource` is open to every account, `test_collection` is for
    trials and emptied after 30 days. It cannot be changed by anchord later."""
    title: str = "Records and their receipts, {day}"
    """Title of new items; {day} stands for the UTC day."""
    description: str = (
        "Bundles of records (canonical bytes, OpenTimestamps proof, signed events), "
        "packed on {day}, with manifests."
    )
    """Description of new items; {day} stands for the UTC day."""
    creator: str = ""
    """Creator of new items; empty: none is stated."""
    licenseurl: str = ""
    """Licence of new items, a URL; empty: none is stated."""
    subject: str = "provenance;opentimestamps"
    """Subjects of new items, with semicolons between them; empty: none."""
    max_members: Annotated[int, msgspec.Meta(ge=1, le=65_000)] = 1_000
    """Most bundles in one ZIP."""
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=4_000_000_000)] = 200_000_000
    """Most bytes in one ZIP, before its last bundle."""
    item_max_files: Annotated[int, msgspec.Meta(ge=3, le=10_000)] = 400
    """Most files in one item; the next goes into `<prefix>-YYYY-MM-DD-02`."""
    item_max_bytes: Bytes = 20_000_000_000
    """Most bytes in one item."""
    flush_after_s: Count = 21_600
    """A ZIP that is not full is packed when its oldest record has waited this long."""
    wait_for_anchor_s: Count = 172_800
    """A record is packed without its Bitcoin proof after this long."""
    check_after_s: Waits = (60, 300, 1_800, 7_200, 21_600, 86_400, 259_200)
    """Looks for an uploaded file in the item's metadata, in seconds after the upload."""
    confirm_after_s: PositiveInt = 86_400
    """The second look, in seconds after a file was stored."""
    sample_every: PositiveInt = 20
    """One file in so many is downloaded whole at the second look; an item's first always is."""
    account_headroom: Count = 10
    """Tasks the account must have left before an upload."""
    item_headroom: Count = 5
    """Tasks the item must have left before an upload."""
    timeout_s: Seconds = 120.0
    """Time for an answer, and for what a transfer needs beside its bytes."""


class ArchiveConfig(Section, frozen=True, kw_only=True):
    """The Internet Archive: what earns the word "stored", and who asks."""

    stored_when: StoredWhen = StoredWhen.EITHER
    """Which receipt earns the word "stored": "either", "capture", "item" or "both"."""
    credentials_file: str = ""
    """File with the account's S3 keys, mode 0600 (https://archive.org/account/s3.php). Empty: the
    systemd credential `anchord-archive` when there is one, else nothing is sent."""
    contact: str = ""
    """URL or mail address the archive can reach you at; stands in the User-Agent of every call.
    Empty: nothing is sent."""
    account_dir: str = ""
    """Folder of the locks that keep one process to an account. Empty: the user's own state
    folder; name one when several users share an account."""
    captures: CapturesConfig = msgspec.field(default_factory=CapturesConfig)
    items: ItemsConfig = msgspec.field(default_factory=ItemsConfig)


def check_archive(archive: ArchiveConfig) -> None:
    """Refuse what no type can express.

    Raises:
        ConfigError: what is wrong, with the key; the caller adds the file.
    """
    if archive.contact and not _CONTACT.fullmatch(archive.contact):
        raise ConfigError(
            f"archive.contact is {archive.contact!r}: expected a URL or a mail address, "
            "without spaces and brackets"
        )
    _check_hosts(archive)
    for problem in (*_capture_problems(archive.captures), *_item_problems(archive.items)):
        raise ConfigError(problem)


def _check_hosts(archive: ArchiveConfig) -> None:
    """Nothing is ever sent in clear; the address check costs an import, so defaults are believed.

    Raises:
        ConfigError: not https, or not an address.
    """
    for name, section, key in (
        ("captures", archive.captures, "web_url"),
        ("items", archive.items, "api_url"),
        ("items", archive.items, "s3_url"),
    ):
        if getattr(section, key) != getattr(type(section)(), key):
            from anchord.adapters.http.address import base_url

            base_url(getattr(section, key), f"archive.{name}.{key}")
    items, own = archive.items, ItemsConfig()
    if (items.api_url == own.api_url) != (items.s3_url == own.s3_url):
        raise ConfigError(
            "archive.items: api_url and s3_url must both be archive.org's or both of a stand-in: "
            "an item is read where it is written"
        )


def _capture_problems(captures: CapturesConfig) -> Iterator[str]:
    where = "archive.captures"
    yield from _ascending(f"{where}.check_after_s", captures.check_after_s)
    yield from _ascending(f"{where}.confirm_after_s", captures.confirm_after_s)
    if captures.job_deadline_s < captures.first_poll_s:
        yield f"{where}.job_deadline_s is below first_poll_s: no job could end in time"
    for kind, one in captures.urls.items():
        if one.url:
            yield from _template_problems(f"{where}.urls.{kind}", one)
    for number, one in enumerate(captures.extra_urls, 1):
        if not one.url:
            yield f"{where}.extra_urls, table {number}: url is empty"
        yield from _template_problems(f"{where}.extra_urls, table {number}: ", one)
    urls = [one.url for one in captures.extra_urls]
    if len(set(urls)) != len(urls):
        yield f"{where}.extra_urls names a URL twice"


def _template_problems(where: str, one: UrlConfig) -> Iterator[str]:
    dot = "" if where.endswith(" ") else "."
    yield from _unknown_fields(f"{where}{dot}url", one.url, RECORD_FIELDS)
    yield from _unknown_fields(f"{where}{dot}contains", one.contains, RECORD_FIELDS)
    if not _URL.fullmatch(one.url):
        yield (
            f"{where}{dot}url is {one.url!r}: expected http(s)://host/..., with a host that is "
            "the same for every record"
        )
    elif not any(f"{{{name}}}" in one.url for name in NAMES_OF_RECORDS):
        names = ", ".join(f"{{{name}}}" for name in NAMES_OF_RECORDS)
        yield (
            f"{where}{dot}url is {one.url!r}, one page for all records: expected one of {names} "
            "in it, or no record could be told from another by its capture"
        )


def _item_problems(items: ItemsConfig) -> Iterator[str]:
    where = "archive.items"
    if items.prefix and not _PREFIX.fullmatch(items.prefix):
        yield (
            f"{where}.prefix is {items.prefix!r}: expected 1 to 66 letters, digits, '.', '_' and "
            "'-', the first one a letter or digit (archive.org's rule for identifiers)"
        )
    if not _COLLECTION.fullmatch(items.collection):
        yield f"{where}.collection is {items.collection!r}: expected a collection's identifier"
    if not items.title.strip():
        yield f"{where}.title is empty: archive.org shows every item by its title"
    yield from _unknown_fields(f"{where}.title", items.title, ("day",))
    yield from _unknown_fields(f"{where}.description", items.description, ("day",))
    if items.licenseurl and not _URL.fullmatch(items.licenseurl):
        yield f"{where}.licenseurl is {items.licenseurl!r}: expected http(s)://host/..."
    for key in ("title", "description", "creator", "subject"):
        if not getattr(items, key).isprintable():
            yield f"{where}.{key} holds characters that cannot be printed"
    yield from _ascending(f"{where}.check_after_s", items.check_after_s)
    if items.max_bytes > items.item_max_bytes:
        yield f"{where}.max_bytes is above item_max_bytes: no ZIP would fit into an item"


def _ascending(key: str, waits: tuple[int, ...]) -> Iterator[str]:
    if list(waits) != sorted(set(waits)):
        yield f"{key} is {list(waits)}: expected each wait to be longer than the one before"


def _unknown_fields(key: str, template: str, allowed: tuple[str, ...]) -> Iterator[str]:
    """Yield what is wrong with a template; a plain name in braces is all that is understood."""
    known = ", ".join(f"{{{name}}}" for name in allowed)
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        yield f"{key} is {template!r}: {error}; understood are {known}"
        return
    for text, name, spec, conversion in parts:
        if "{" in text or "}" in text:
            yield f"{key} is {template!r}: braces stand around names only; understood are {known}"
        elif name is not None and (name not in allowed or spec or conversion):
            yield f"{key} holds {{{name}}}: understood are {known}"


def item_metadata(items: ItemsConfig) -> Mapping[str, str]:
    """Return the metadata of new items, without what is left empty."""
    keys = ("collection", "title", "description", "creator", "licenseurl", "subject")
    return {key: getattr(items, key) for key in keys if getattr(items, key)}
