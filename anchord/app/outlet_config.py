"""The tables [[outlets]]: where receipts go by themselves, after they are signed and durable.

Each field's docstring is its documentation, as in `anchord.app.config`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from anchord.app.section import Seconds, Section
from anchord.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EventType = Literal[
    "timestamp_submitted", "timestamp_anchored", "capture_stored", "item_stored", "facet_withdrawn"
]
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_OF_KIND = {
    "folder": ("path", "events"),
    "webhook": ("url", "secret_file", "events", "events_per_request", "timeout_s"),
    "sql": ("url", "password_file", "statements", "timeout_s"),
}
"""The keys that mean something for a kind, beside `name`, `kind` and `from_now`."""
_NEEDED = {"folder": ("path",), "webhook": ("url",), "sql": ("url", "statements")}


class OutletConfig(Section, frozen=True, kw_only=True):
    """One place receipts go to."""

    name: str
    """What it is called in `anchord outlets` and in the store: a to z, 0 to 9, "-" and "_". Under
    another name it is another outlet, and begins anew."""
    kind: Literal["folder", "webhook", "sql"]
    """`folder`: a folder with the newest bundle of every record; `webhook`: signed events posted to
    an address; `sql`: a statement of yours run in your own database."""
    from_now: bool = False
    """Begin with the next event; else with the first of the ledger."""
    events: list[EventType] = msgspec.field(default_factory=list)
    """The events it is about: `timestamp_submitted`, `timestamp_anchored`, `capture_stored`,
    `item_stored`, `facet_withdrawn`. Empty: all; `sql` takes those that have a statement."""
    path: str = ""
    """Of a folder: where it is."""
    url: str = ""
    """Of a webhook: where to post, https, or http on loopback. Of `sql`: a SQLAlchemy URL without
    a password."""
    secret_file: str = ""
    """Of a webhook: file with the secret requests are signed with, `whsec_` and base64, one a line.
    Empty: the systemd credential `anchord-outlet-NAME`."""
    password_file: str = ""
    """Of `sql`: file whose first line is the password. Empty: the systemd credential
    `anchord-outlet-NAME` when there is one, else none is given."""
    statements: dict[EventType, str] = msgspec.field(default_factory=dict)
    """Of `sql`: the statement for each event type; it must come to the same however often it runs.
    It may name :id, :kind, :version, :number, :digest, :event_id, :event_type, :facet, :seq,
    :created_at, :anchored_at, :block_height, :captured_at, :original_url, :capture_url, :item and
    :reason."""
    events_per_request: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    """Of a webhook: most events in one request; above 1 the body is JSON Lines."""
    timeout_s: Seconds = 10.0
    """Total time for one request, or for a statement where the database has such a limit."""


def check_outlets(outlets: Sequence[OutletConfig]) -> None:
    """Refuse what no type can express.

    Raises:
        ConfigError: the first problem.
    """
    for problem in _problems(outlets):
        raise ConfigError(problem)


def _problems(outlets: Sequence[OutletConfig]) -> Iterator[str]:
    names = [outlet.name for outlet in outlets]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"outlets: two are called {name!r:.60}: each needs a name of its own"
    for outlet in outlets:
        where = f"outlets ({outlet.name!r:.60})"
        if not _NAME.fullmatch(outlet.name):
            yield f'{where}: a name is made of a to z, 0 to 9, "-" and "_", at most 40'
        for key in _NEEDED[outlet.kind]:
            if not getattr(outlet, key):
                yield f"{where}: a {outlet.kind} needs {key}"
        yield from (
            f"{where}: {key} means nothing for the kind {outlet.kind}: remove it"
            for key in _meaningless(outlet)
        )
        for key in ("path", "url", "secret_file", "password_file"):
            if not getattr(outlet, key).isprintable():
                yield f"{where}: {key} has characters that cannot be printed"


def _meaningless(outlet: OutletConfig) -> list[str]:
    """Return the keys that are set and belong to another kind."""
    mine = {"name", "kind", "from_now", *_OF_KIND[outlet.kind]}
    bare = OutletConfig(name=outlet.name, kind=outlet.kind)
    others = (field.name for field in msgspec.structs.fields(OutletConfig))
    return [key for key in others if key not in mine and getattr(outlet, key) != getattr(bare, key)]
