"""The end of the demo: everything is published as static files, and a stranger audits them."""

from __future__ import annotations

import contextlib
import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PUBLISHED = "published"
DESK = "auditor"
REPORT = "report.json"
PAGE = "report.html"


def publish_and_audit(
    run: Callable[..., Any], config: str, folder: Path, explorers: Sequence[str]
) -> dict[str, Any]:
    """Publish the store's records and audit them from an empty folder; return what came of it.

    The stranger has one file, the public key, and asks block explorers for headers: no store, no
    configuration, nothing the publisher says of itself is believed.

    Args:
        run: runs a command of anchord and returns its JSON document.
        config: the publisher's configuration.
        folder: where the tree and the stranger's desk are made.
        explorers: addresses of the sandbox's explorers.
    """
    tree = (folder / PUBLISHED).resolve()
    run(config, "mirror", "publish", str(tree), "--json", "--quiet")
    desk = folder / DESK
    desk.mkdir(exist_ok=True)
    (desk / "key.json").write_text(json.dumps(run(config, "key", "public")), "utf-8")
    witnesses = [text for url in explorers for text in ("--explorer", url)]
    arguments = ["audit", str(tree), "--key", "key.json", *witnesses, "--network", "regtest"]
    with contextlib.chdir(desk), _without_configuration(), _silence():
        from anchord.app.cli.main import cli

        report = [*arguments, "--quiet", "-o", REPORT, "-o", PAGE]
        cli.main(report, standalone_mode=False, prog_name="anchord")
    return _short(json.loads((desk / REPORT).read_text("utf-8")))


def _short(report: dict[str, Any]) -> dict[str, Any]:
    """Return what the demo says of a report, which lies whole in the stranger's folder."""
    coverage, complete = report["coverage"], report["completeness"]
    return {
        "result": report["result"],
        "records": coverage["records"],
        "anchored": complete["anchored"].get("anchored", 0),
        "stored": complete["stored"].get("stored", 0),
        "events": coverage["events"],
        "signatures": coverage["signatures"],
        "inclusions": coverage["inclusions"],
        "files": coverage["files"],
        "findings": sum(report["counts"].values()),
    }


def told(report: dict[str, Any]) -> str:
    """Say in one sentence what the stranger found."""
    return (
        f"A stranger with the public key found the published files {report['result']}: "
        f"{report['records']} records, {report['signatures']} signatures, "
        f"{report['inclusions']} events in the log, {report['files']} files."
    )


@contextlib.contextmanager
def _without_configuration() -> Iterator[None]:
    named = os.environ.pop("ANCHORD_CONFIG", None)
    try:
        yield
    finally:
        if named is not None:
            os.environ["ANCHORD_CONFIG"] = named


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    words = io.StringIO()
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
        yield
