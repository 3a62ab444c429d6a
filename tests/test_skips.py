"""The suite fails when a test was skipped that should have run; and this test would notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import skips

TESTS = Path(__file__).resolve().parent

PASSING = "def test_passes():\n    pass\n"
SKIPPED = "import pytest\ndef test_is_skipped():\n    pytest.skip('because')\n"
NOT_IMPORTED = "import pytest\npytest.importorskip('no_such_module')\n"
NO_DATA = "import pytest\ndef test_needs_data():\n    pytest.skip('../shared/data is absent')\n"
EXPECTED_FAILURE = "import pytest\n@pytest.mark.xfail\ndef test_fails():\n    assert False\n"


def run(folder: Path, source: str, *words: str, ci: bool = False) -> int:
    (folder / "test_passing.py").write_text(PASSING, "utf-8")
    (folder / "test_sample.py").write_text(source, "utf-8")
    env = {key: value for key, value in os.environ.items() if key != "CI"}
    env |= {"PYTHONPATH": str(TESTS)} | ({"CI": "true"} if ci else {})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "support.skips",
        "-p",
        "no:cacheprovider",
    ]
    return subprocess.run(
        [*command, *words, str(folder)], cwd=folder, env=env, capture_output=True, check=False
    ).returncode


@pytest.mark.parametrize("source", [SKIPPED, NOT_IMPORTED])
@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_an_unexpected_skip_fails_the_run(tmp_path: Path, source: str, workers: list[str]) -> None:
    assert run(tmp_path, source, "--fail-on-skip", *workers) == 1


@pytest.mark.parametrize("source", [PASSING, NO_DATA, EXPECTED_FAILURE])
def test_what_is_allowed_passes(tmp_path: Path, source: str) -> None:
    assert run(tmp_path, source, "--fail-on-skip") == 0


def test_absent_data_fails_in_ci(tmp_path: Path) -> None:
    assert run(tmp_path, NO_DATA, "--fail-on-skip", ci=True) == 1


def test_without_the_option_a_skip_is_a_skip(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPPED) == 0


def test_the_oracle_may_be_absent_only_where_it_has_no_wheels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    oracle = tmp_path / "test_oracle.py"
    oracle.write_text("import pbk\n", "utf-8")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    for version, left_out in [((3, 13), None), ((3, 14), True)]:
        monkeypatch.setattr(sys, "version_info", version)
        assert skips.pytest_ignore_collect(oracle) is left_out
    assert skips.pytest_ignore_collect(TESTS / "conftest.py") is None
