"""What is installed is what was tested: hashed constraints for every Python, and a whole wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = [ROOT / "constraints.txt", ROOT / "constraints-dev.txt"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
SYSTEMS = ["linux", "darwin"]


def entries(file: Path) -> dict[str, tuple[Requirement, int]]:
    """Return name -> pinned requirement and number of hashes."""
    joined = file.read_text("utf-8").replace("\\\n", " ")
    found = {}
    for line in joined.splitlines():
        if line.strip() and not line.startswith("#"):
            requirement = Requirement(line.split("--hash")[0].strip())
            found[canonicalize_name(requirement.name)] = (requirement, line.count("--hash=sha256:"))
    return found


def wanted(*groups: str) -> list[Requirement]:
    texts = list(PROJECT["project"]["dependencies"])
    for group in groups:
        texts += PROJECT["dependency-groups"][group]
    return [Requirement(text) for text in texts]


@pytest.mark.parametrize("file", CONSTRAINTS, ids=lambda file: file.name)
def test_constraints_name_no_index_and_no_path(file: Path) -> None:
    text = file.read_text("utf-8")
    addresses = r"://|--(extra-)?index|--find-links|--trusted|file:|@ |^-"
    assert not re.search(addresses, text, re.MULTILINE)
    assert not re.search(r"(?<![\w`])/\w+/", text)


@pytest.mark.parametrize("file", CONSTRAINTS, ids=lambda file: file.name)
def test_every_constraint_is_one_version_with_hashes(file: Path) -> None:
    for requirement, hashes in entries(file).values():
        assert re.fullmatch(r"==[^*,]+", str(requirement.specifier)), requirement
        assert hashes > 0, requirement


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("file", "groups"),
    [(CONSTRAINTS[0], ("build",)), (CONSTRAINTS[1], ("build", "test", "lint"))],
    ids=["run", "dev"],
)
def test_constraints_hold_what_the_project_asks_for(
    file: Path, groups: tuple[str, ...], python: str, system: str
) -> None:
    here = {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": system,
        "platform_python_implementation": "CPython",
        "implementation_name": "cpython",
    }
    pinned = entries(file)
    for requirement in wanted(*groups):
        if requirement.marker and not requirement.marker.evaluate(here):
            continue
        found, _ = pinned[canonicalize_name(requirement.name)]
        assert found.marker is None or found.marker.evaluate(here), found
        version = str(found.specifier).removeprefix("==")
        assert requirement.specifier.contains(version, prereleases=True), found


def test_both_constraints_agree() -> None:
    run, dev = (entries(file) for file in CONSTRAINTS)
    assert {name: str(entry[0]) for name, entry in run.items()}.items() <= {
        name: str(entry[0]) for name, entry in dev.items()
    }.items()


def test_the_dependencies_the_user_named_are_there() -> None:
    names = {canonicalize_name(requirement.name) for requirement in wanted()}
    assert {"opentimestamps-client", "internetarchive", "apscheduler", "cryptography"} <= names


def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    for name in ["pyproject.toml", "README.md", "LICENSE"]:
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(
        ROOT / "anchord", tmp_path / "anchord", ignore=shutil.ignore_patterns("__pycache__")
    )
    script = "from setuptools import build_meta; build_meta.build_wheel('dist')"
    subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, timeout=120
    )
    (wheel,) = (tmp_path / "dist").glob("anchord-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("anchord/")}
        licences = [name for name in archive.namelist() if name.endswith("LICENSE")]
    source = {
        file.relative_to(tmp_path).as_posix()
        for file in (tmp_path / "anchord").rglob("*")
        if file.is_file()
    }
    assert packed == source
    assert len(licences) == 1
