"""Where the shared data lies: beside the repository."""

from pathlib import Path

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "data"
