"""The units of systemd/: well formed, tight, and calling commands that are there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anchord.app.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "systemd").iterdir())
SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]
MOST_EXPOSED = 2.0
_NO_ANALYZE = shutil.which("systemd-analyze") is None and not os.environ.get("CI")
"""CI installs it; there a test that cannot run fails."""
needs_systemd = pytest.mark.skipif(_NO_ANALYZE, reason="systemd-analyze is not installed")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Return a folder of the units, with the anchord of this environment in them."""
    program = Path(sys.executable).parent / "anchord"
    for unit in UNITS:
        text = unit.read_text("utf-8").replace("/opt/anchord/bin/anchord", str(program))
        (tmp_path / unit.name).write_text(text, "utf-8")
    return tmp_path


def analyze(*words: str | Path) -> str:
    done = subprocess.run(
        ["systemd-analyze", *map(str, words)],
        capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "SYSTEMD_PAGER": "", "SYSTEMD_COLORS": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
def test_units_are_well_formed(units: Path) -> None:
    assert analyze("verify", *sorted(units.iterdir())) == ""


@needs_systemd
@pytest.mark.parametrize("service", SERVICES, ids=lambda unit: unit.name)
def test_services_are_hardly_exposed(service: Path, units: Path) -> None:
    said = analyze("security", "--offline=true", units / service.name)
    (level,) = re.findall(r"Overall exposure level for \S+: ([0-9.]+)", said)
    assert float(level) < MOST_EXPOSED


@pytest.mark.parametrize("service", SERVICES, ids=lambda unit: unit.name)
def test_services_call_commands_and_options_that_are_there(service: Path) -> None:
    (words,) = re.findall(r"^ExecStart=/opt/anchord/bin/anchord (.*)$", service.read_text("utf-8"),
                          re.MULTILINE)  # fmt: skip
    name, *arguments = words.split()
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    command.make_context(name, arguments, resilient_parsing=False)


@pytest.mark.parametrize("service", SERVICES, ids=lambda unit: unit.name)
def test_services_share_one_user_and_one_folder(service: Path) -> None:
    lines = service.read_text("utf-8").splitlines()
    for wanted in ("DynamicUser=yes", "User=anchord", "StateDirectory=anchord", "UMask=0077"):
        assert wanted in lines


@pytest.mark.parametrize("unit", [u for u in UNITS if u.suffix == ".timer"], ids=lambda u: u.name)
def test_each_timer_has_its_service(unit: Path) -> None:
    assert unit.with_suffix(".service").is_file()
