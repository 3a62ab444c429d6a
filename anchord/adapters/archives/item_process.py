"""The upload process: the only place where `internetarchive` is imported.

The library (https://github.com/jjjake/internetarchive, AGPL-3.0, used unmodified) replaces
`socket.connect` of its whole process, sends the access key in the User-Agent, prints and logs, and
parses foreign XML. Here it may: nothing of this process but framed replies reaches anybody. The
keys come through the pipe. When the pipe closes the process ends, in the middle of an upload too,
so it never outlives its parent.

Run as `python -m anchord.adapters.archives.item_process`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import queue
import resource
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import SplitResult, quote, urlsplit, urlunsplit

import requests
import urllib3
from internetarchive.auth import S3Auth
from internetarchive.item import Item
from internetarchive.session import ArchiveSession
from requests.adapters import HTTPAdapter

from anchord.adapters.archives import item_messages as messages
from anchord.core.item_answer import MAX_ERROR_BYTES, MAX_METADATA_BYTES

ARCHIVE = "https://archive.org"
S3 = "https://s3.us.archive.org"
_ASK_TIMEOUT_S = (15.0, 30.0)
_PUT_TIMEOUT_S = (60.0, 120.0)
_MAX_REDIRECTS = 5
"""A download takes one or two (to the server that holds the item); more is a loop."""
_PIECE_BYTES = 256 * 1024
_PLAIN = {"Accept-Encoding": "identity"}


class ElsewhereError(requests.exceptions.RequestException):
    """A redirect leads to a host that is none of the archive's: nothing is sent there."""


class Door(HTTPAdapter):
    """The one way out: to archive.org by https, or to the configured loopback instead of it.

    The library sends keys to every host that a redirect names if it ends in "archive.org"
    (session.py, `rebuild_auth`), and its own S3 host is fixed; both are settled here.

    Args:
        api: base URL that stands for archive.org and its hosts; None: they themselves.
        s3: base URL that stands for s3.us.archive.org; None: itself.
    """

    def __init__(self, api: str | None, s3: str | None) -> None:
        super().__init__(max_retries=0)
        self._instead = {False: urlsplit(api), True: urlsplit(s3)} if api and s3 else None

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send, and read no more than a little of an answer that is about an upload or an error.

        Raises:
            ElsewhereError: the address is not the archive's.
        """
        url = urlsplit(str(request.url))
        if self._instead is not None:
            request.url = self._rewritten(url, request)
            kwargs["proxies"] = {}
        elif not (url.scheme == "https" and _is_archive(url) and url.port in {None, 443}):
            raise ElsewhereError
        response = super().send(request, *args, **kwargs)
        if request.method == "PUT" or response.status_code >= 400:
            body = response.raw.read(MAX_ERROR_BYTES, decode_content=True)
            # The library would hand the body to an XML parser; no error of theirs has a DTD.
            response._content = b"" if b"<!" in body else body  # noqa: SLF001
            response._content_consumed = True  # noqa: SLF001
        return response

    def _rewritten(self, url: SplitResult, request: requests.PreparedRequest) -> str:
        places = self._instead or {}
        if _is_archive(url):
            base = places[url.hostname == "s3.us.archive.org"]
            request.headers["Host"] = url.netloc
            path = base.path.rstrip("/") + url.path
            return urlunsplit((base.scheme, base.netloc, path, url.query, ""))
        if any((url.scheme, url.netloc) == (base.scheme, base.netloc) for base in places.values()):
            request.headers.pop("Host", None)
            return url.geturl()
        raise ElsewhereError


def _is_archive(url: SplitResult) -> bool:
    host = (url.hostname or "").lower()
    return host == "archive.org" or host.endswith(".archive.org")


class Library:
    """A session of `internetarchive`, and what is asked through it. Used by one thread."""

    def __init__(self, opening: messages.Opening) -> None:
        self._session = ArchiveSession(
            config={
                "s3": {"access": opening.access, "secret": opening.secret},
                # The text "False" would mean True, so it is a bool.
                "general": {"secure": True, "user_agent_suffix": opening.contact},
            },
            # An empty one: without it the library looks for ia.ini in half a dozen places.
            config_file=os.devnull,
            http_adapter_kwargs={"max_retries": 0},
        )
        self._auth = S3Auth(opening.access, opening.secret)
        self._access = opening.access
        self._secrets = _spellings(opening.secret, opening.access)
        self._session.max_redirects = _MAX_REDIRECTS
        self._session.adapters.clear()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, Door(opening.api_url, opening.s3_url))

    def reply(self, question: messages.Question) -> messages.Reply:
        """Ask the service once; every failure is a reply."""
        try:
            return self._ask(question)
        except Exception as error:  # noqa: BLE001 - the library raises bare Exception, too
            return _failed(error)

    def _ask(self, question: messages.Question) -> messages.Reply:
        match question:
            case messages.AskMetadata(identifier):
                return self._get(f"{ARCHIVE}/metadata/{identifier}")
            case messages.AskTasks(identifier):
                params = {"identifier": identifier, "summary": "1", "history": "0", "catalog": "0"}
                return self._get(f"{ARCHIVE}/services/tasks.php", params)
            case messages.AskLimit(identifier):
                params = {"check_limit": "1", "accesskey": self._access, "bucket": identifier}
                return self._get(S3, params)
            case messages.AskAccount():
                return self._get(S3, {"check_auth": "1"})
            case messages.Put():
                return self._put(question)
            case messages.Fetch():
                return self._fetch(question)

    def _get(self, url: str, params: Mapping[str, str] | None = None) -> messages.Reply:
        with self._session.get(
            url,
            params=params,
            auth=self._auth,
            headers=_PLAIN,
            stream=True,
            timeout=_ASK_TIMEOUT_S,
        ) as response:
            body = bytearray()
            for piece in _pieces(response):
                body += piece
                if len(body) > MAX_METADATA_BYTES:
                    return messages.Failed("unknown-answer", "the answer does not end")
            return self._answered(response, bytes(body))

    def _put(self, put: messages.Put) -> messages.Reply:
        try:
            with Path(put.path).open("rb") as file:
                md5 = hashlib.file_digest(file, "md5").hexdigest()
        except OSError as error:
            return messages.Failed("spool-damaged", f"{put.name}: {error.strerror}")
        if md5 != put.md5:
            return messages.Failed("spool-damaged", f"{put.name} has not the md5 it had")
        with Path(put.path).open("rb") as file:
            return self._send(put, file)

    def _send(self, put: messages.Put, file: BinaryIO) -> messages.Reply:
        # Without metadata: the library would make attributes of whatever a stranger wrote there,
        # and reads nothing from it that we want.
        item = Item(self._session, put.identifier, {})
        response: Any
        try:
            response = item.upload_file(
                file,
                key=put.name,
                metadata=put.metadata,
                queue_derive=False,
                verify=True,
                retries=0,
                request_kwargs={"timeout": _PUT_TIMEOUT_S},
            )
        except requests.exceptions.HTTPError as error:
            response = error.response
            if response is None:
                raise
        # An upload that was skipped gives a Response without a status, on which everything but
        # this question raises TypeError.
        if response.status_code is None:
            return messages.Skipped()
        if response.request.method != "PUT":
            return messages.Failed("unknown-answer", "the upload was redirected to a page")
        return self._answered(response, response.content)

    def _fetch(self, fetch: messages.Fetch) -> messages.Reply:
        url = f"{ARCHIVE}/download/{fetch.identifier}/{quote(fetch.name)}"
        with self._session.get(url, headers=_PLAIN, stream=True, timeout=_ASK_TIMEOUT_S) as got:
            if got.status_code != requests.codes.ok:
                return self._answered(got, got.content)
            if got.headers.get("Content-Encoding", "identity") != "identity":
                return messages.Failed("unknown-answer", "the download came encoded, unasked")
            if not _framed(got):
                return messages.Failed("no-answer", "the download does not tell its length")
            size, sha256 = 0, hashlib.sha256()
            for piece in _pieces(got):
                size += len(piece)
                if size > fetch.max_bytes:
                    return messages.Failed("unknown-answer", "the download is too long")
                sha256.update(piece)
            return messages.Hashed(size, sha256.digest())

    def _answered(self, response: requests.Response, body: bytes) -> messages.Answered:
        """Pass an answer on, without the keys: check_limit repeats one, and errors may."""
        for secret in self._secrets:
            body = body.replace(secret, b"***")
        return messages.Answered(
            response.status_code,
            body,
            response.headers.get("Retry-After", ""),
            response.headers.get("Date", ""),
            _framed(response),
        )


def _spellings(*keys: str) -> list[bytes]:
    """Return the keys as an answer may quote them: plain and percent-encoded."""
    found = {spelt for key in keys for spelt in (key, quote(key, safe=""))}
    return [spelt.encode() for spelt in sorted(found, key=len, reverse=True) if len(spelt) >= 4]


def _pieces(response: requests.Response) -> Iterator[bytes]:
    """Yield the body as it came on the wire; a body cut short raises."""
    if response._content_consumed:  # noqa: SLF001
        yield response.content
        return
    while piece := response.raw.read(_PIECE_BYTES, decode_content=False):
        yield piece


def _framed(response: requests.Response) -> bool:
    return any(name in response.headers for name in ("Content-Length", "Transfer-Encoding"))


_REASONS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((ElsewhereError,), "elsewhere", "it redirects to a host that is not archive.org's"),
    ((requests.exceptions.TooManyRedirects,), "no-answer", "it redirects without end"),
    (
        (requests.exceptions.SSLError, urllib3.exceptions.SSLError),
        "certificate",
        "its certificate was not accepted",
    ),
    ((ConnectionRefusedError,), "connection-refused", "the connection was refused"),
    ((socket.gaierror,), "offline", "the name cannot be looked up"),
    (
        (TimeoutError, requests.exceptions.Timeout, urllib3.exceptions.TimeoutError),
        "no-answer",
        "no answer in time",
    ),
    ((OSError, urllib3.exceptions.HTTPError), "no-answer", "the connection broke"),
)
"""What an error means, the first that fits; requests' own errors are OSErrors."""


def _failed(error: BaseException) -> messages.Failed:
    """Say what went wrong without the error's words: they hold URLs, and those hold the key."""
    causes = tuple(_causes(error))
    for kinds, code, words in _REASONS:
        if any(isinstance(cause, kinds) for cause in causes):
            return messages.Failed(code, words)
    return messages.Failed("unknown-answer", f"the library failed ({type(error).__name__})")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and all that lies below it, at most a dozen."""
    todo, seen = [error], 0
    while todo and seen < 12:
        found = todo.pop(0)
        seen += 1
        yield found
        below = [found.__cause__, found.__context__, getattr(found, "reason", None), *found.args]
        todo += [one for one in below if isinstance(one, BaseException)]


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Read who we are, then answer questions until the pipe closes."""
    opening = messages.read_frame(source.read, messages.MAX_QUESTION_BYTES)
    if opening is None:
        return
    library = Library(messages.decode_opening(opening))
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def read() -> None:
        while (found := messages.read_frame(source.read, messages.MAX_QUESTION_BYTES)) is not None:
            questions.put(found)
        os._exit(0)  # nobody is there to hear the reply: stop in the middle of whatever it is

    threading.Thread(target=read, name="anchord-questions", daemon=True).start()
    while True:
        reply = library.reply(messages.decode_question(questions.get()))
        target.write(messages.frame(reply))
        target.flush()


def main() -> None:
    """Keep the pipes to ourselves, then serve: whatever the library prints goes nowhere."""
    logging.disable(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash would write the keys to disk
    source, target = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for shown in (0, 1, 2):
        os.dup2(nowhere, shown)
    try:
        serve(os.fdopen(source, "rb"), os.fdopen(target, "wb"))
    finally:
        # At once: an orderly end would wait for the thread that waits for questions.
        os._exit(0)


if __name__ == "__main__":
    main()
