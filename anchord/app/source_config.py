"""The tables [[sources]]: where records come from by themselves, at the start of every pass.

Each field's docstring is its documentation, as in `anchord.app.config`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from anchord.app.database_address import holds_password
from anchord.app.section import Count, PositiveInt, Seconds, Section
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?")
_OF_KIND = {
    "sql": (
        "url", "password_file", "query", "table", "key", "start", "url_hosts", "timeout_s",
        "again_every_s", "scheme",
    ),
    "pith": ("url", "ids", "ids_file", "rate", "timeout_s", "again_every_s", "scheme"),
    "folder": ("path", "settle_s", "scheme"),
}  # fmt: skip
"""The keys that mean something for a kind, beside `name`, `kind` and `every_s`."""
_NEEDED = {"sql": ("url",), "pith": ("url",), "folder": ("path",)}


class SourceConfig(Section, frozen=True, kw_only=True):
    """One place records come from."""

    name: str
    """What it is called in `anchord sources` and in the store: a to z, 0 to 9, "-" and "_". Under
    another name it is another source, and is read from the beginning."""
    kind: Literal["sql", "pith", "folder"]
    """`sql`: rows of a database; `pith`: records of a resolver by their names, or a mirror with a
    signed index; `folder`: files that are put into a folder."""
    every_s: PositiveInt = 60
    """Seconds from one look to the next."""
    scheme: Literal["pith-json-v1", "rfc8785"] = "pith-json-v1"
    """How JSON records are made canonical before they are hashed."""
    url: str = ""
    """Of `sql`: a SQLAlchemy URL without a password. Of `pith`: a resolver's address of a record
    with {id} in it, or a mirror's address, as `anchord mirror pull` takes it."""
    password_file: str = ""
    """Of `sql`: file whose first line is the password. Empty: the systemd credential
    `anchord-source-NAME` when there is one, else none is given."""
    query: str = ""
    """Of `sql`: a SELECT that gives `id`, `canonical_sha256` or `record` (JSON), and if there are
    `url`, `not_anchored`, `not_stored`. With :cursor in it, it gives rows whose `key` is above it,
    in the order of `key`; without, all that is to be done, each time."""
    table: str = ""
    """Of `sql`, instead of `query`: a table or view with columns of these names."""
    key: str = "id"
    """Of `sql`: the column that only grows."""
    start: int | str = 0
    """Of `sql`: what :cursor is at the beginning; `""` where `key` is text."""
    url_hosts: list[str] = msgspec.field(default_factory=list)
    """Of `sql`: hosts that the column `url` may name, `registry.example.org`; that page is then
    what is captured. A row that names another is refused."""
    timeout_s: Seconds = 30.0
    """Of `sql`: for one statement, and each batch of its rows. Of `pith`: for one answer."""
    again_every_s: Count = 86_400
    """Of `sql`: seconds after which all is read again, for rows that came below the cursor. Of a
    resolver: after which a name is asked for again, as its bundle may have grown. 0: never."""
    ids: list[str] = msgspec.field(default_factory=list)
    """Of a resolver: the names to ask for: whole Pith Numbers, SHA-256 in hex, arXiv ids."""
    ids_file: str = ""
    """Of a resolver, instead of `ids`: file with such names, one a line; it may grow."""
    rate: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 5.0
    """Of `pith`: most requests a second."""
    path: str = ""
    """Of a folder: where it is. Hidden files and links in it are passed over."""
    settle_s: Count = 10
    """Of a folder: a file is taken when it did not change for this long, seconds."""


def check_sources(sources: Sequence[SourceConfig]) -> None:
    """Refuse what no type can express.

    Raises:
        ConfigError: the first problem.
    """
    for problem in _problems(sources):
        raise ConfigError(problem)


def _problems(sources: Sequence[SourceConfig]) -> Iterator[str]:
    names = [source.name for source in sources]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"sources: two are called {name!r:.60}: each needs a name of its own"
    for source in sources:
        where = f"sources ({source.name!r:.60})"
        if not _NAME.fullmatch(source.name):
            yield f'{where}: a name is made of a to z, 0 to 9, "-" and "_", at most 40'
        for key in _NEEDED[source.kind]:
            if not getattr(source, key):
                yield f"{where}: {source.kind} needs {key}"
        yield from (
            f"{where}: {key} means nothing for the kind {source.kind}: remove it"
            for key in _meaningless(source)
        )
        for key in ("path", "url", "password_file", "ids_file", "key", "table"):
            if not getattr(source, key).isprintable():
                yield f"{where}: {key} has characters that cannot be printed"
        yield from (f"{where}: {words}" for words in _OF[source.kind](source))


def _meaningless(source: SourceConfig) -> list[str]:
    """Return the keys that are set and belong to another kind."""
    mine = {"name", "kind", "every_s", *_OF_KIND[source.kind]}
    bare = SourceConfig(name=source.name, kind=source.kind)
    others = (field.name for field in msgspec.structs.fields(SourceConfig))
    return [key for key in others if key not in mine and getattr(source, key) != getattr(bare, key)]


def _of_sql(source: SourceConfig) -> Iterator[str]:
    if bool(source.query) == bool(source.table):
        yield "sql needs query or table, and not both"
    if holds_password(source.url):
        yield "url holds a password: put that into a file of its own and name it in password_file"
    if not source.key:
        yield "key is empty: expected the name of the column that only grows"
    for host in source.url_hosts:
        if not _HOST.fullmatch(host):
            yield f"url_hosts holds {host!r:.80}: expected a host in lower case, without https://"


def _of_pith(source: SourceConfig) -> Iterator[str]:
    from anchord.adapters.http.address import base_url

    named = bool(source.ids) + bool(source.ids_file)
    gaps = source.url.count("{id}")
    if gaps > 1:
        yield "url has {id} more than once"
    if gaps and named != 1:
        yield "a resolver (url has {id} in it) needs ids or ids_file, and not both"
    if not gaps and named:
        yield "ids are for a resolver: put {id} into url where the name goes, or remove them"
    try:
        base_url(source.url.replace("{id}", "id"), "url")
    except ConfigError as error:
        yield str(error)


def _of_folder(_source: SourceConfig) -> Iterator[str]:
    yield from ()


_OF = {"sql": _of_sql, "pith": _of_pith, "folder": _of_folder}
