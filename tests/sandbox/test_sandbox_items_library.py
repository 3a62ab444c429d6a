"""The real `internetarchive` library works against the stand-in as it does against archive.org.

It runs in a process of its own: it patches `socket.connect` for the whole process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from support.items_site import ITEM, KEYS, ItemsSite, know_faults, md5, noise, zipped

from anchord.sandbox.clock import SandboxClock
from anchord.sandbox.items.faults import ARCHIVE_ORG, IAS3

BEGIN = """
import io, json, os, sys, time
from urllib.parse import urlsplit, urlunsplit
import internetarchive, requests

ITEM, S3, SITE, FOLDER = sys.argv[1:5]
KEYS = {"access": os.environ["A"], "secret": os.environ["S"]}
said = {}

class Rewrite(requests.adapters.HTTPAdapter):
    def __init__(self, base):
        self.base = urlsplit(base)
        super().__init__()
    def send(self, request, **kwargs):
        address = urlsplit(request.url)
        request.headers["Host"] = address.netloc
        parts = (self.base.scheme, self.base.netloc, address.path, address.query, "")
        request.url = urlunsplit(parts)
        return super().send(request, **kwargs)

def wait(holds):
    for _ in range(200):
        found = holds()
        if found:
            return found
        time.sleep(0.05)
    raise SystemExit("it never became so")

def visible(name):
    def holds():
        item = session.get_item(ITEM)
        return item if name in [f["name"] for f in item.files] and not item.tasks else None
    return wait(holds)
"""
MOUNTED = """
session = internetarchive.get_session(config={"s3": KEYS}, config_file=FOLDER + "/none.ini")

def mount(*_, **__):
    for host, base in (("archive.org", SITE), ("s3.us.archive.org", S3)):
        session.mount("https://" + host, Rewrite(base))

mount()
session.mount_http_adapter = mount  # File.download and File.delete would mount their own
"""
PROXY = """
session = internetarchive.get_session(
    config={"s3": KEYS, "general": {"secure": False}}, config_file=FOLDER + "/none.ini"
)
"""
END = "\nprint(json.dumps(said))\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    know_faults(monkeypatch)
    with ItemsSite(tmp_path / "items", clock=SandboxClock()) as running:
        yield running


@pytest.fixture
def library(site, tmp_path):
    """Return a function that runs a script with the library and gives what it said."""

    def run(script, *, proxy=False):
        known = ("PATH", "PYTHONPATH", "LANG")
        environment = {name: os.environ[name] for name in known if name in os.environ}
        environment |= {"A": KEYS[0], "S": KEYS[1], "HOME": str(tmp_path)}
        if proxy:
            environment |= {"HTTP_PROXY": site.url(IAS3), "http_proxy": site.url(IAS3)}
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                BEGIN + (PROXY if proxy else MOUNTED) + script + END,
                ITEM,
                site.url(IAS3),
                site.url(ARCHIVE_ORG),
                str(tmp_path),
            ],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_an_item_is_made_verified_and_downloaded(site, library, tmp_path):
    bundle = zipped({"one.json": b'{"a":1}', "big.json": noise(1_500_000)})
    (tmp_path / "bundles-1-2.zip").write_bytes(bundle)
    said = library(
        """
item = session.get_item(ITEM)
said["before"] = item.exists
said["overloaded"] = session.s3_is_overloaded(ITEM, KEYS["access"])
metadata = {"mediatype": "data", "collection": "test_collection", "title": "T\\u00ebst  title",
            "subject": ["a", "b"], "external-identifier": "urn:example:1", "long_name": "x"}
answers = item.upload(
    {"bundles-1-2.zip": FOLDER + "/bundles-1-2.zip"}, metadata=metadata, verify=True,
    queue_derive=False, validate_identifier=True,
)
said["status"] = [answer.status_code for answer in answers]
item = visible("bundles-1-2.zip")
said["metadata"] = item.metadata
file = item.get_file("bundles-1-2.zip")
said["file"] = {"md5": file.md5, "sha1": file.sha1, "size": file.size}
file.download(FOLDER + "/back.zip", ignore_existing=False)
member = session.get(f"https://archive.org/download/{ITEM}/bundles-1-2.zip/one.json")
said["member"] = [member.text, member.history[0].status_code]
again = item.upload_file(FOLDER + "/bundles-1-2.zip", verify=True, checksum=True)
said["skipped"] = again.status_code
said["tasks"] = [task.category for task in item.get_all_item_tasks()]
said["idle"] = item.no_tasks_pending()
item.get_file("bundles-1-2.zip").delete()
mount()  # File.delete took the upload host's away
said["deleted"] = wait(lambda: not session.get_item(ITEM).get_file("bundles-1-2.zip").exists)
said["rate"] = session.get_tasks_api_rate_limit()["value"]["task_limits"]
"""
    )
    assert (said["before"], said["overloaded"], said["status"]) == (False, False, [200])
    fields = said["metadata"]
    assert (fields["title"], fields["subject"]) == ("Tëst title", ["a", "b"])
    assert (fields["external-identifier"], fields["long_name"]) == ("urn:example:1", "x")
    assert said["file"]["md5"] == md5(bundle)
    assert said["file"]["size"] == len(bundle)
    assert (tmp_path / "back.zip").read_bytes() == bundle
    assert said["member"] == ['{"a":1}', 302]
    assert (said["skipped"], said["tasks"], said["idle"]) == (None, ["history"], True)
    assert (said["deleted"], said["rate"]) == (True, 500)
    report = site.archive.report()
    assert (report["puts"], report["puts_without_md5"], report["derives_requested"]) == (1, 0, 0)
    assert report["keys_in_foreign_user_agents"] == 0


def test_the_library_understands_every_refusal(site, library):
    refusals = ["slow-down", "bucket-lock", "bad-digest", "internal-error", "empty-500"]
    for kind in refusals:
        site.board.add(IAS3, kind, 1, {})
    site.board.add(IAS3, "limit-html", 1, {})
    said = library(
        """
said["overloaded"] = session.s3_is_overloaded(ITEM, KEYS["access"])
item, said["words"] = session.get_item(ITEM), []
for _ in range(5):
    try:
        item.upload_file(io.BytesIO(b"x" * 2_000_000), key="a", verify=True)
    except requests.exceptions.HTTPError as error:
        said["words"].append([error.response.status_code, str(error)])
"""
    )
    assert said["overloaded"] is True
    statuses = [status for status, _ in said["words"]]
    assert statuses == [503, 409, 400, 500, 500]
    expected = ["exceeds global_limit", "bucket lock", "not match", "internal error", "b''"]
    for (_, words), part in zip(said["words"], expected, strict=True):
        assert part in words


def test_a_cut_connection_after_storing_is_an_error_although_the_file_comes(site, library):
    site.board.add(IAS3, "stored-cut", 1, {})
    said = library(
        """
try:
    session.get_item(ITEM).upload_file(io.BytesIO(b"one"), key="a", verify=True)
except requests.exceptions.ConnectionError:
    said["cut"] = True
said["md5"] = visible("a").get_file("a").md5
"""
    )
    assert said == {"cut": True, "md5": md5(b"one")}


def test_through_a_proxy_one_port_is_both_hosts_and_files_can_be_deleted(site, library):
    said = library(
        """
item = session.get_item(ITEM)
item.upload({"b/one \\u00fc#?.json": io.BytesIO(b"12345678")}, verify=True,
            queue_derive=False, metadata={"title": "t"})
item = visible("b/one \\u00fc#?.json")
item.upload_file(io.BytesIO(b""), key="empty", verify=True)
item = visible("empty")
said["names"] = [f["name"] for f in item.files if f["format"] != "Metadata"]
said["text"] = session.get(item.get_file("b/one \\u00fc#?.json").url).text
said["deleted"] = item.get_file("empty").delete().status_code
wait(lambda: "empty" not in [f["name"] for f in session.get_item(ITEM).files])
said["exists"] = session.get_item(ITEM).exists
""",
        proxy=True,
    )
    assert said["names"] == ["b/one ü#?.json", "empty"]
    assert (said["text"], said["deleted"], said["exists"]) == ("12345678", 204, True)
    counts = site.counts.of(IAS3)
    assert (counts["put"], counts["delete"], counts["other"]) == (2, 1, 0)
    assert counts["metadata"] > 2
