"""`python -m benchmarks.tree --size 5000`: what published trees cost beside their signatures.

A store of anchored records is made in the sandbox; then, each in a process of its own: the bare
Ed25519 verification of all its signatures, publishing it as a tree of evidence alone, publishing
it with pages, both again when nothing has changed, and the audit of the tree with pages with one
process and with two. A ratio is CPU time
of the bare verification by CPU time of the work (all of its processes).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anchord.adapters.outputs.tree import TreeOutput
from anchord.adapters.trees.folder import FolderTree
from anchord.app.config import load
from anchord.app.face.site import Site
from anchord.app.tree_pages import TreePages
from anchord.app.wiring import App, chain_name
from anchord.core.audit import AuditOptions
from anchord.core.merge import MERGE_VERSION
from anchord.engine.audit.tree import audit_tree
from anchord.engine.header_view import HeaderView
from anchord.engine.publishing import PublishOptions, publish
from benchmarks import measure
from benchmarks.audit import CONFIRMATIONS, Place, bare, timed

if TYPE_CHECKING:
    from collections.abc import Callable


def _silent(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


def published(config: Path, folder: Path, *, pages: bool) -> dict[str, Any]:
    """Bring a tree up to date with the store."""
    with App(load(str(config))) as app, TreeOutput(folder) as sink:
        signer = app.config.signer.signer_id
        options = PublishOptions(name=signer, merge_version=MERGE_VERSION, origin=signer)

        def work() -> dict[str, Any]:
            done = publish(
                app.store, app.keyring, app.signer, sink, options, int(time.time()), _silent,
                TreePages(Site()) if pages else None,
            )  # fmt: skip
            return {"records": done.records, "files": done.files, "same": done.same}

        return timed(work)


def audited(config: Path, folder: Path, jobs: int) -> dict[str, Any]:
    """Audit a tree, offline but for the headers of the sandbox."""
    with App(load(str(config))) as app:
        headers = HeaderView(app.headers, chain_name(app.config.headers.network), CONFIRMATIONS)
        options = AuditOptions(now=int(time.time()), jobs=jobs)

        def work() -> dict[str, Any]:
            tree = FolderTree(folder)
            outcome, _ = audit_tree(tree, app.keyring, (), headers, options, _silent)
            if outcome.broken:
                raise measure.StageError("the audit found broken evidence")
            return {name: outcome.counted(name) for name in ("records", "events")}

        return timed(work)


def _elsewhere(*words: str) -> dict[str, Any]:
    cost = measure.run([measure.PYTHON, "-m", "benchmarks.tree", *words])
    found: dict[str, Any] = json.loads(cost.stdout)
    return found


def run(folder: Path, count: int) -> dict[str, Any]:
    """Measure one size."""
    place = Place(folder)
    with place.sandbox:
        config = place.sandbox.write_config()
        measure.anchord("init", cwd=folder)
        place.anchor(count, 1)
        where, plain = (str(config), str(folder / "tree")), (str(config), str(folder / "plain"))
        floor = _elsewhere("--bare", *where)
        evidence = [_elsewhere("--evidence", *plain) for _ in range(2)]
        pages = [_elsewhere("--publish", *where) for _ in range(2)]
        one = _elsewhere("--audit", *where, "--jobs", "1")
        two = _elsewhere("--audit", *where, "--jobs", "2")
    names = ("publishing evidence", "evidence again", "publishing", "publishing again")
    stages = dict(zip(names, (*evidence, *pages), strict=True))
    return _figures(floor, {**stages, "audit": one}, two)


def _figures(
    floor: dict[str, Any], stages: dict[str, dict[str, Any]], two: dict[str, Any]
) -> dict[str, Any]:
    records, signed = stages["audit"]["records"], stages["audit"]["events"]
    least = floor["cpu_s"] / floor["signatures"] * signed
    found: dict[str, Any] = {
        "records": records,
        "signatures of events": signed,
        "files of evidence": stages["publishing evidence"]["files"],
        "files": stages["publishing"]["files"],
        "bare Ed25519, ms a record": 1e3 * least / records,
    }
    for name, stage in stages.items():
        found[f"{name}, ms a record"] = 1e3 * stage["cpu_s"] / records
        found[f"bare / {name}"] = least / stage["cpu_s"]
        found[f"{name}, peak MiB"] = stage["peak_mib"]
    found["bare / audit, 2 processes"] = least / two["cpu_s"]
    found["wall s of audit, 1 and 2 processes"] = [stages["audit"]["wall_s"], two["wall_s"]]
    return found


def _work(wanted: argparse.Namespace) -> dict[str, Any] | None:
    """Do one piece of work for another process; None when nothing of the kind is wanted."""
    pieces: dict[str, Callable[[Path, Path], dict[str, Any]]] = {
        "bare": lambda config, _tree: bare(config),
        "evidence": lambda config, tree: published(config, tree, pages=False),
        "publish": lambda config, tree: published(config, tree, pages=True),
        "audit": lambda config, tree: audited(config, tree, wanted.jobs),
    }
    for name, piece in pieces.items():
        where = getattr(wanted, name)
        if where is not None:
            return piece(*where)
    return None


def main() -> int:
    """Measure every size asked for, or do one piece of work for another process."""
    parser = argparse.ArgumentParser(prog="benchmarks.tree", description=__doc__)
    parser.add_argument("--size", default="5000", help="record counts, with commas")
    for name in ("bare", "evidence", "publish", "audit"):
        parser.add_argument(f"--{name}", type=Path, nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    found = _work(wanted)
    if found is not None:
        print(json.dumps(found))
        return 0
    for count in map(int, wanted.size.split(",")):
        with tempfile.TemporaryDirectory(prefix="anchord-tree-") as name:
            print(json.dumps(run(Path(name) / str(count), count), indent=2), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
