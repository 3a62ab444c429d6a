"""The S3-like upload host (s3.us.archive.org): uploads, deletions, check_limit, check_auth.

IAS3: https://archive.org/developers/ias3.html. A body is always taken in whole before an upload
is refused, because clients send it without waiting for 100-continue
(https://github.com/jjjake/internetarchive/issues/203).
"""

from __future__ import annotations

import json

from anchord.sandbox.items import headers as said
from anchord.sandbox.items import s3
from anchord.sandbox.items.admission import Admission, Wish
from anchord.sandbox.items.archive import ItemsArchive
from anchord.sandbox.items.s3 import S3Error
from anchord.sandbox.items.target import Target
from anchord.sandbox.items.tasks import ERROR, PAUSED, Version
from anchord.sandbox.web import Answer, HangUpError, Request

_PIECE = 1 << 18
_SCOPES = {
    "global": s3.GLOBAL,
    "accesskey": s3.ACCESSKEY,
    "bucket": s3.BUCKET,
    "simulated": s3.SIMULATED,
}
_PAGE = Answer(200, b"<html><body>Internet Archive</body></html>", "text/html")


class Ias3:
    """What the upload host says."""

    def __init__(self, archive: ItemsArchive) -> None:
        self._archive = archive
        self._admission = Admission(archive)

    def route(self, method: str, target: Target) -> str:
        """Return `put`, `delete`, `head`, `check-limit`, `check-auth` or `other`."""
        if "check_limit" in target.query:
            return "check-limit"
        if "check_auth" in target.query:
            return "check-auth"
        plain = {"PUT": "put", "DELETE": "delete", "HEAD": "head", "GET": "head"}
        return plain.get(method, "other") if target.parts else "other"

    def answer(self, request: Request, target: Target) -> Answer:
        """Answer as the upload host does."""
        route = self.route(request.method, target)
        if route == "put":
            return self._put(request, target)
        if route == "check-limit":
            return self._check_limit(request, target)
        if route == "check-auth":
            return self._check_auth(request)
        try:
            return self._delete_or_head(route, request, target)
        except S3Error as error:
            return error.answer()

    # ------------------------------------------------------------------ uploads

    def _put(self, request: Request, target: Target) -> Answer:
        tally = self._archive.tally
        with tally.one_put():
            try:
                length = said.length(request.headers)
            except S3Error as error:
                tally.refused(error.code)
                return error.answer()
            tally.add("puts_without_md5", int("Content-MD5" not in request.headers))
            try:
                return self._taken(request, Wish.of(request, target, length))
            except S3Error as error:
                tally.refused(error.code)
                return error.answer()

    def _taken(self, request: Request, wish: Wish) -> Answer:
        """Take an upload in, or refuse it once its body has come."""
        try:
            self._struck(request, wish)
            with self._admission.admitted(wish):
                version = self._received(request, wish)
                self._accept(request, wish, version)
        except S3Error:
            self._drain(request, wish)
            raise
        return self._accepted_answer(request)

    def _received(self, request: Request, wish: Wish) -> Version:
        archive = self._archive
        try:
            version = archive.receive(wish.key, wish.length, wish.read(request))
        except (EOFError, ConnectionError):
            raise HangUpError from None  # the sender went away: nothing was stored
        came = "0" * 32 if request.fault_is("bad-digest") else version.md5
        try:
            said.check_md5(request.headers, came)
        except S3Error:
            archive.discard(version)
            raise
        return version

    def _accept(self, request: Request, wish: Wish, version: Version) -> None:
        self._admission.accept(wish, version)
        for kind, state in (("task-error", ERROR), ("task-paused", PAUSED)):
            if request.fault_is(kind):
                self._archive.fail_tasks(wish.identifier, state)

    def _accepted_answer(self, request: Request) -> Answer:
        if request.fault_is("stored-cut"):
            raise HangUpError
        if request.fault_is("stored-500"):
            return Answer(500, b"", None)
        return Answer(200, b"", None)

    def _struck(self, request: Request, wish: Wish) -> None:
        """Refuse what a fault refuses, or what the client asks to be refused.

        Raises:
            S3Error: so.
        """
        simulated = request.headers.get("x-archive-simulate-error")
        if simulated in s3.CODES:
            raise S3Error(simulated, s3.SIMULATED)
        slow = request.fault_is("slow-down")
        if slow:
            raise S3Error("SlowDown", _SCOPES.get(slow.text("scope", "global"), s3.GLOBAL))
        if request.fault_is("spam"):
            self._archive.spammer = True
        errors = {
            "bucket-lock": S3Error("OperationAborted", s3.LOCKED),
            "bucket-exists": S3Error("BucketAlreadyExists", "auto_make_bucket requested"),
            "access-denied": S3Error("AccessDenied", wish.identifier),
            "internal-error": S3Error("InternalError"),
            "empty-500": EmptyError(),
        }
        for kind, error in errors.items():
            if request.fault_is(kind):
                raise error

    def _drain(self, request: Request, wish: Wish) -> None:
        left = wish.left
        self._archive.tally.add("bytes_refused", wish.length)
        while left > 0 and (piece := request.read(min(left, _PIECE))):
            left -= len(piece)
        wish.left = 0

    # ------------------------------------------------------------------ the rest

    def _delete_or_head(self, route: str, request: Request, target: Target) -> Answer:
        if route == "delete":
            return self._delete(request, target)
        if route == "head":
            return self._head(target)
        raise S3Error("MethodNotAllowed", target.path)

    def _delete(self, request: Request, target: Target) -> Answer:
        identifier, key = Wish.names(target)
        archive = self._archive
        if not archive.knows(said.credentials(request.headers)):
            raise S3Error("AccessDenied", identifier)
        item = archive.item(identifier)
        if item is None:
            raise S3Error("NoSuchBucket", identifier)
        if item.uploader != archive.username or item.dark or _is_own_file(identifier, key):
            raise S3Error("AccessDenied", s3.NOT_YOURS)
        if item.coming(key) is None:
            raise S3Error("NoSuchKey", key)
        keep_old = said.flag(request.headers, "keep-old-version")
        archive.queue(identifier, "delete.php", key, keep_old=keep_old)
        archive.tally.add("deletes")
        return Answer(204, b"", None)

    def _head(self, target: Target) -> Answer:
        identifier, key = Wish.names(target)
        item = self._archive.item(identifier)
        if item is None or not item.shown or item.dark:
            raise S3Error("NoSuchBucket", identifier)
        version = item.files.get(key)
        if version is None:
            raise S3Error("NoSuchKey", key)
        etag = (("ETag", f'"{version.md5}"'),)
        kind = "application/octet-stream"
        return Answer(200, b"", kind, etag, file=self._archive.blob(version))

    def _check_limit(self, request: Request, target: Target) -> Answer:
        self._archive.tally.add("check_limits")
        if request.fault_is("limit-html"):
            return _PAGE
        bucket = target.query.get("bucket", "")
        detail = self._archive.limits(bucket)
        if request.fault_is("over-limit"):
            detail["limit_reason"] = s3.GLOBAL
        value = {
            "accesskey": target.query.get("accesskey", ""),
            "bucket": bucket,
            "detail": detail,
            "over_limit": int(bool(detail["limit_reason"])),
        }
        return _json(value)

    def _check_auth(self, request: Request) -> Answer:
        archive = self._archive
        known = archive.knows(said.credentials(request.headers))
        if not known or request.fault_is("auth-error"):
            return _json({"error": "Invalid S3 keys: no such account"})
        return _json(
            {"username": archive.username, "itemname": "@sandbox", "screenname": "Sandbox"}
        )


class EmptyError(S3Error):
    """An internal error without a word."""

    def __init__(self) -> None:
        super().__init__("InternalError")

    def answer(self) -> Answer:
        """Return a 500 without a body."""
        return Answer(500, b"", None)


def _is_own_file(identifier: str, key: str) -> bool:
    """Tell whether the archive itself writes this file."""
    return key in {f"{identifier}_meta.xml", f"{identifier}_files.xml"}


def _json(value: object) -> Answer:
    body = json.dumps(value, separators=(",", ":")).encode()
    return Answer(200, body, "application/json")
