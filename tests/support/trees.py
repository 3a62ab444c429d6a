"""Published trees for tests: made by the publisher itself, and held against their own index."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from anchord.adapters.outputs.tree import TreeOutput
from anchord.app.face.site import Site
from anchord.app.tree_pages import TreePages
from anchord.core.merge import MERGE_VERSION
from anchord.engine.publishing import Published, PublishOptions, publish
from support.workplace import Workplace


def publish_tree(
    place: Workplace, folder: Path, *, pages: bool = False, force: bool = False, **options: Any
) -> Published:
    """Publish what a workplace holds into a folder."""
    chosen = {"name": "mirror.example.org", "merge_version": MERGE_VERSION, **options}
    with (
        place.app() as app,
        TreeOutput(folder, force=force, private=[place.folder / "keys"]) as sink,
    ):
        return publish(
            app.store,
            app.keyring,
            app.signer,
            sink,
            PublishOptions(**({"origin": "anchord"} | chosen)),
            place.clock.now(),
            lambda _what, _done, _total: None,
            TreePages(Site()) if pages else None,
        )


def tree_files(folder: Path) -> dict[str, bytes]:
    """Return every file of a tree by its path, what publishing itself needs aside."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != ".publishing.lock"
    }


def index_lines(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the shards say, by path, read without the project's own code."""
    found: dict[str, dict[str, Any]] = {}
    for shard in json.loads((folder / "index.json").read_bytes())["shards"]:
        raw = (folder / shard["name"]).read_bytes()
        assert (len(raw), sha256(raw).hexdigest()) == (shard["size"], shard["sha256"])
        lines = [json.loads(line) for line in raw.splitlines()]
        assert len(lines) == shard["files"]
        assert [line["path"] for line in lines] == sorted(line["path"] for line in lines)
        for line in lines:
            assert sha256(line["path"].encode()).hexdigest()[:2] + ".jsonl" in shard["name"]
            found[line["path"]] = line
    return found
