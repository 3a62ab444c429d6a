"""The pictures of the documents: `make screenshots` makes them anew, from pages as they are.

The seed records go the whole way in the sandbox; nothing of it is drawn.
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image

from support.browser import PHONE, Chromium
from support.seed_path import SeedPath

MAX_BYTES = 150_000
"""Of one picture: it is cloned by everybody."""
_COLOURS = 128
_TALL = {"width": 1000, "height": 1150}


def take(folder: Path) -> list[Path]:
    """Write the pictures into a folder; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="anchord-screenshots-") as place,
        SeedPath(Path(place)) as path,
        Chromium() as chromium,
    ):
        path.add()
        path.submit()
        path.mine()
        path.finish()
        record = path.places[0]
        shown: dict[str, tuple[str, dict[str, Any]]] = {
            "dashboard": ("", {"size": _TALL}),
            "record": (record, {"size": _TALL}),
            "record-dark": (record, {"size": _TALL, "scheme": "dark"}),
            "record-phone": (record, {"size": PHONE}),
        }
        made = []
        for name, (where, how) in shown.items():
            with chromium.visit(**how) as visit:
                visit.open(f"{path.url}/{where}")
                visit.page.wait_for_timeout(500)
                made.append(_write(folder / f"{name}.png", visit.page.screenshot()))
        return made


def _write(path: Path, picture: bytes) -> Path:
    """Write a picture with as few colours as a page has."""
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").quantize(_COLOURS).save(path, optimize=True)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise SystemExit(f"{path} has {size} bytes: expected at most {MAX_BYTES}")
    return path


if __name__ == "__main__":
    for one in take(Path(sys.argv[1])):
        print(one)  # noqa: T201
