"""Items of archive.org: one question, one answer, through the upload process.

Sources: IAS3 (https://archive.org/developers/ias3.html), the metadata read API
(https://archive.org/developers/md-read.html), and the library the process runs
(https://github.com/jjjake/internetarchive).
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from anchord.adapters.archives import item_messages as messages
from anchord.adapters.archives.credentials import Keys
from anchord.adapters.archives.hosts import stand_in
from anchord.adapters.archives.item_child import ChildError, Children
from anchord.adapters.archives.unknown import log_unknown
from anchord.adapters.http import USER_AGENT, Response, retry_after
from anchord.core.item import Fetched, Headroom, ItemSeen, Sent
from anchord.core.item_answer import (
    OWNER_FIELD,
    Username,
    clean_words,
    is_identifier,
    read_account,
    read_headroom,
    read_item,
    read_refusal,
    read_tasks,
    read_upload,
)
from anchord.core.storage import Refused
from anchord.errors import ConfigError

API_URL = "https://archive.org"
S3_URL = "https://s3.us.archive.org"
MARK = "urn:anchord:"
"""How the external-identifier of our items begins."""

_ASK_S = 90.0
_SLOWEST_BYTES_PER_S = 50_000
_MAX_FETCH_BYTES = 1 << 30
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_FIELD_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_MAX_METADATA_CHARACTERS = 8_192


def mark_of(keys: Keys) -> str:
    """Return what external-identifier says of items that are made with these keys."""
    return MARK + keys.fingerprint


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how much; a process that takes longer is ended."""

    ask_s: float = _ASK_S
    """For an answer, and for what every transfer needs beside its bytes."""
    slowest_bytes_per_s: int = _SLOWEST_BYTES_PER_S
    """A transfer may be this slow."""
    max_fetch_bytes: int = _MAX_FETCH_BYTES
    """The longest download."""


class ArchiveOrg:
    """Implements `anchord.ports.archive.ItemArchive`. Threads may share it.

    Args:
        keys: the account's.
        contact: a URL or address that ends the User-Agent, for whoever looks after the service.
        api_url: archive.org itself, or a stand-in on loopback for it and all of its hosts.
        s3_url: s3.us.archive.org itself, or a stand-in on loopback.
        marks: what external-identifier may say of items that are ours; the first is written to
            new ones. Empty: made of the keys' fingerprint.
        limits: how long and how much.

    Raises:
        ConfigError: an address that is neither the archive's nor on loopback, or one of each.
    """

    def __init__(
        self,
        keys: Keys,
        *,
        contact: str,
        api_url: str = API_URL,
        s3_url: str = S3_URL,
        marks: Sequence[str] = (),
        limits: Limits | None = None,
    ) -> None:
        api = stand_in(api_url, API_URL, "archive.items.api_url")
        s3 = stand_in(s3_url, S3_URL, "archive.items.s3_url")
        if (api is None) != (s3 is None):
            raise ConfigError(
                f"archive: api_url ({api_url}) and s3_url ({s3_url}) must both be archive.org's "
                "or both be on loopback: an item is read where it is written"
            )
        self._marks = tuple(marks) or (mark_of(keys),)
        self._limits = limits or Limits()
        suffix = f"{USER_AGENT} ({clean_words(contact)})".encode("ascii", "replace").decode()
        opening = messages.Opening(keys.access, keys.secret, suffix, api, s3)
        self._children = Children(opening, os.environ)
        # A caller that forgets to close leaves no process behind.
        self._closer = weakref.finalize(self, self._children.close)

    def __repr__(self) -> str:
        return "ArchiveOrg()"

    @property
    def mark(self) -> str:
        """What external-identifier says of the items that are made here."""
        return self._marks[0]

    def processes(self) -> list[int]:
        """Return the numbers of the upload processes that run."""
        return self._children.pids()

    def account(self) -> Username | Refused:
        """Ask check_auth whose keys they are; costs nothing."""
        reply = self._ask(messages.AskAccount())
        if isinstance(reply, Refused):
            return reply
        return read_account(reply.status, reply.body, _wait(reply))

    def headroom(self, identifier: str) -> Headroom | Refused:
        """Ask check_limit."""
        bad = _bad_identifier(identifier)
        reply = bad or self._ask(messages.AskLimit(identifier))
        if isinstance(reply, Refused):
            return reply
        return read_headroom(reply.status, reply.body, _wait(reply))

    def describe(self, identifier: str) -> ItemSeen | Refused:
        """Read an item's metadata once, and what became of its tasks if there may be any.

        An item that nobody has yet may be one whose first task waits, or failed: metadata is
        silent about those.
        """
        bad = _bad_identifier(identifier)
        seen = bad or self._metadata(identifier, self._marks)
        if isinstance(seen, Refused) or seen.dark or seen.failed_tasks:
            return seen
        if seen.exists and not seen.pending_tasks:
            return seen
        reply = self._ask(messages.AskTasks(identifier))
        tasks = None if isinstance(reply, Refused) else read_tasks(reply.status, reply.body)
        # Without a summary it stays at what the metadata said: tasks are pending.
        if tasks is None:
            return seen
        pending = seen.pending_tasks or tasks.pending
        return msgspec.structs.replace(seen, pending_tasks=pending, failed_tasks=tasks.failed)

    def upload(
        self, identifier: str, name: str, path: Path, md5: bytes, metadata: Mapping[str, str]
    ) -> Sent | Refused:
        """PUT one file unless it is there; never one whose name is taken.

        The metadata is read first, so that a second try after an answer that was lost sends
        nothing. A file in the service's queue is not listed yet: the caller knows what it sent.
        """
        bad = _bad_identifier(identifier) or _bad_name(name)
        fields = {**metadata, OWNER_FIELD: metadata.get(OWNER_FIELD, self.mark)}
        _check_metadata(fields)
        seen = bad or self._metadata(identifier, (*self._marks, fields[OWNER_FIELD]))
        if isinstance(seen, Refused):
            return seen
        try:
            size = path.stat().st_size
        except OSError as error:
            return _refused("spool-damaged", f"{name} is not in the spool: {error.strerror}")
        there = _there(seen, identifier, name, size, md5)
        if there is not None:
            return there
        put = messages.Put(identifier, name, str(path.absolute()), md5.hex(), fields)
        reply = self._reply(put, self._transfer_s(size))
        if isinstance(reply, messages.Skipped):
            return Sent(skipped=True)
        answer = _answer(reply)
        if isinstance(answer, Refused):
            return answer
        refused = read_upload(
            answer.status, answer.body, framed=answer.framed, retry_after_s=_wait(answer)
        )
        log_unknown(f"upload to {identifier}", refused, answer.status, "", answer.body)
        return Sent() if refused is None else refused

    def fetch(self, identifier: str, name: str) -> Fetched | Refused:
        """Download a file and hash it as it streams; nothing is kept."""
        bad = _bad_identifier(identifier) or _bad_name(name)
        if bad is not None:
            return bad
        limit = self._limits.max_fetch_bytes
        reply = self._reply(messages.Fetch(identifier, name, limit), self._transfer_s(limit))
        if isinstance(reply, messages.Hashed):
            return Fetched(size=reply.size, sha256=reply.sha256)
        answer = _answer(reply)
        if isinstance(answer, Refused):
            return answer
        return _refusal_of_download(answer)

    def close(self) -> None:
        """End the upload processes; calls in flight are refused. May be called twice."""
        self._closer()

    def _metadata(self, identifier: str, marks: Sequence[str]) -> ItemSeen | Refused:
        reply = self._ask(messages.AskMetadata(identifier))
        if isinstance(reply, Refused):
            return reply
        told = read_item(reply.status, reply.body, identifier, marks, _wait(reply))
        log_unknown(f"metadata of {identifier}", told, reply.status, "", reply.body)
        return told

    def _transfer_s(self, size: int) -> float:
        return self._limits.ask_s + size / self._limits.slowest_bytes_per_s

    def _ask(self, question: messages.Question) -> messages.Answered | Refused:
        return _answer(self._reply(question, self._limits.ask_s))

    def _reply(self, question: messages.Question, within_s: float) -> messages.Reply:
        try:
            return self._children.ask(question, within_s)
        except ChildError as error:
            return messages.Failed("no-answer", str(error))


def _answer(reply: messages.Reply) -> messages.Answered | Refused:
    if isinstance(reply, messages.Answered):
        return reply
    if isinstance(reply, messages.Failed):
        return _refused(reply.code, reply.message)
    return _refused("unknown-answer", "the upload process replied to another question")


def _refused(code: str, message: str) -> Refused:
    return Refused(code=code, message=clean_words(message))


def _wait(answer: messages.Answered) -> float | None:
    headers = {"Retry-After": answer.retry_after, "Date": answer.date}
    return retry_after(Response(answer.status, headers, b""))


def _there(
    seen: ItemSeen, identifier: str, name: str, size: int, md5: bytes
) -> Sent | Refused | None:
    """Return what is known without sending: it is there, or it must not be sent; None: send."""
    if seen.dark:
        return _refused("dark", f"{identifier} was taken down")
    if seen.owned is False:
        return _refused("foreign", f"{identifier} was made by somebody else")
    file = seen.files.get(name)
    if file is None:
        return None
    same = (file.size, file.md5) == (size, md5.hex())
    if (same and seen.pending_tasks) or file.md5 is None:
        return _refused("tasks-pending", f"{identifier} lists {name}, and tasks may change that")
    if same:
        return Sent(skipped=True)
    return _refused("name-taken", f"{identifier} holds another file named {name}")


def _refusal_of_download(answer: messages.Answered) -> Refused:
    """A file that is not served says nothing against the account, as it would of an upload."""
    refused = read_refusal(answer.status, answer.body, _wait(answer))
    if answer.status in {401, 403, 404, 410}:
        return _refused("not-served", f"HTTP {answer.status}: {refused.message}")
    return refused


def _bad_identifier(identifier: str) -> Refused | None:
    if is_identifier(identifier):
        return None
    return _refused(
        "InvalidBucketName",
        f"expected 5 to 100 of A-Z a-z 0-9 . _ - beginning with a letter or digit, "
        f"got {identifier!r:.120}",
    )


def _bad_name(name: str) -> Refused | None:
    if _FILE_NAME.fullmatch(name):
        return None
    return _refused(
        "bad-name",
        f"expected 1 to 200 of A-Z a-z 0-9 . _ - beginning with a letter or digit, "
        f"got {name!r:.220}",
    )


def _check_metadata(metadata: Mapping[str, str]) -> None:
    """Refuse what cannot be headers of a request, or not in its size.

    Raises:
        ConfigError: a field's name, an empty value (it would be left out), or too much.
    """
    for name, value in metadata.items():
        if not _FIELD_NAME.fullmatch(name) or not value.strip():
            raise ConfigError(
                f"archive.items.metadata: {name!r:.80} is empty or no name of a field; expected "
                "names of a-z, 0-9, _ and -, each with some text"
            )
    if sum(len(name) + len(value) for name, value in metadata.items()) > _MAX_METADATA_CHARACTERS:
        raise ConfigError(
            f"archive.items.metadata: more than {_MAX_METADATA_CHARACTERS:,} characters; "
            "shorten the description"
        )
