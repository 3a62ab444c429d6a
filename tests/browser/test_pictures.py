"""What the browser tests need is told, and the documents' pictures are few, small and shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.browser import find_chromium
from support.screenshots import MAX_BYTES

ROOT = Path(__file__).resolve().parents[2]


def test_a_machine_without_chromium_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="apt-get install chromium"):
        find_chromium()


def test_pictures_of_the_documents_are_small_and_shown() -> None:
    pictures = sorted((ROOT / "docs/screenshots").iterdir())
    texts = [path.read_text("utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/*.md")]]
    assert pictures
    for picture in pictures:
        assert picture.stat().st_size <= MAX_BYTES
        assert any(f"screenshots/{picture.name})" in text for text in texts), picture.name
