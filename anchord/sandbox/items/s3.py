"""The errors of the upload host, as it words them.

Codes and texts: https://archive.org/developers/ias3.html and the issues of the `internetarchive`
library (#392, #427, #574, #578).
"""

from __future__ import annotations

import uuid
from xml.sax.saxutils import escape

from anchord.sandbox.web import Answer

CODES = {
    "AccessDenied": (403, "Access Denied"),
    "BadDigest": (400, "The Content-MD5 you specified did not match what we received."),
    "BucketAlreadyExists": (
        409,
        (
            "The requested bucket name is not available. The bucket namespace is shared by all "
            "users of the system. Please select a different name and try again."
        ),
    ),
    "InternalError": (500, "We encountered an internal error. Please try again."),
    "InvalidBucketName": (400, "The specified bucket is not valid."),
    "InvalidURI": (400, "Couldn't parse the specified URI."),
    "MethodNotAllowed": (405, "The specified method is not allowed against this resource."),
    "MissingContentLength": (411, "You must provide the Content-Length HTTP header."),
    "NoSuchBucket": (404, "The specified bucket does not exist."),
    "NoSuchKey": (404, "The specified key does not exist."),
    "OperationAborted": (
        409,
        (
            "A conflicting conditional operation is currently in progress against this resource. "
            "Please try again."
        ),
    ),
    "SlowDown": (503, "Please reduce your request rate."),
}
"""HTTP status and message by code."""
GLOBAL = "total_tasks_queued exceeds global_limit"
ACCESSKEY = "accesskey_tasks_queued exceeds accesskey_ration"
BUCKET = "bucket_tasks_queued exceeds bucket_ration"
LOCKED = "Failed to get necessary short term bucket lock"
SIMULATED = (
    "simulated error caused by x-(amz|archive)-simulate-error, try x-archive-simulate-error:help"
)
BUCKET_RULE = (
    "Bucket names should be valid archive identifiers; try someting matching this regular "
    "expression: ^[a-zA-Z0-9][a-zA-Z0-9_.-]{4,100}$ (or, if you are making unusual identifiers, "
    "this user may lack the special permission to do so)"
)
NO_COLLECTION = "You lack sufficient privileges to write to those collections"
NOT_YOURS = "You lack sufficient privileges to write to this item"


class S3Error(Exception):
    """An upload or a deletion is refused."""

    def __init__(self, code: str, resource: str = "") -> None:
        super().__init__(code, resource)
        self.code = code
        self.resource = resource

    def answer(self) -> Answer:
        """Return the XML document the upload host answers with."""
        status, message = CODES[self.code]
        parts = {
            "Code": self.code,
            "Message": message,
            "Resource": self.resource,
            "RequestId": str(uuid.uuid4()),
        }
        inner = "".join(f"<{name}>{escape(text)}</{name}>" for name, text in parts.items())
        body = f"<?xml version='1.0' encoding='UTF-8'?><Error>{inner}</Error>"
        return Answer(status, body.encode(), "application/xml")


def spam(identifier: str, username: str) -> S3Error:
    """Return the refusal of the spam filter; it stands until a human lifts it."""
    return S3Error(
        "SlowDown",
        f"Your upload of {identifier} from username {username} appears to be spam. If you believe "
        "this is a mistake, contact info at archive dot org and include this entire message in "
        "your email.",
    )
