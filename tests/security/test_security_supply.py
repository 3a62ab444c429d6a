"""Secrets are nowhere but in files of their owner, and what is installed is what was resolved."""

from __future__ import annotations

import ast
import math
import re
import stat
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.workplace import Workplace

from anchord.adapters.archives.credentials import load_keys
from anchord.adapters.headers.credentials import Password
from anchord.adapters.outlets.secret import read_lines
from anchord.adapters.signers.private_key import read_passphrase, read_private_key
from anchord.app.config import load
from anchord.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]

# ---------------------------------------------------------------------- the repository

KEY = "-----BEGIN {}PRIVATE KEY-----"
SECRETS = {
    "a private key": re.compile(r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----\s+[A-Za-z0-9+/=\s]{40,}"),
    "a cloud key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token": re.compile(
        r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abpr]-|sk-)[A-Za-z0-9_-]{20,}\b"
    ),
    "keys in an address": re.compile(
        r"://[^/\s:@{}\"'$]{1,40}:(?!hunter2|secret)[^/\s:@{}\"'$]{6,}@(?!.*example)"
    ),
    "a JSON Web Token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."),
}
_ASSIGNED = re.compile(
    r"(?i)(?:secret|password|passphrase|api_?key|access_?key|token)\w*[\"']?\s*[:=]\s*"
    r"[\"']([A-Za-z0-9+/=_-]{20,})[\"']"
)
MOST_ORDER = 4.2
"""Bits a letter; words and runs of digits have less, what was drawn has more."""


def _files() -> Iterator[Path]:
    """Yield what is in the repository, and what is about to be."""
    said = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, check=True,
    ).stdout  # fmt: skip
    for name in said.decode().split("\0"):
        if name and (ROOT / name).is_file():
            yield ROOT / name


def found_in(text: str) -> list[str]:
    """Return what in a text looks like a secret."""
    seen = [what for what, pattern in SECRETS.items() if pattern.search(text)]
    drawn = [match[1] for match in _ASSIGNED.finditer(text) if _order(match[1]) > MOST_ORDER]
    return seen + [f"assigned: {value[:6]}..." for value in drawn]


def _order(text: str) -> float:
    counts = Counter(text)
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())


def test_no_secret_is_in_the_repository() -> None:
    whole = {path: path.read_text("utf-8", "replace") for path in _files()}
    assert len(whole) > 300
    found = {
        str(path.relative_to(ROOT)): seen
        for path, text in whole.items()
        if (seen := found_in(text))
    }
    assert not found


@pytest.mark.parametrize(
    "text",
    [
        KEY.format("") + "\n" + "MC4CAQAwBQYDK2VwBCIEIB" + "x" * 40,
        "AKIA" + "ABCDEFGHIJKLMNOP", "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2",
        "https://user:" + "correcthorse@host.net/",
        'password = "' + "q9Zt4Lw8Xc2Vb6Nm1Ks7Df3G" + '"',
    ],
    ids=["pem", "cloud", "token", "address", "assigned"],
)  # fmt: skip
def test_what_looks_like_a_secret_is_found(text: str) -> None:
    assert found_in(text)


# ---------------------------------------------------------------------- files of secrets


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    return Workplace(tmp_path_factory.mktemp("place"))


def test_what_anchord_makes_for_secrets_is_the_owners_alone(place: Workplace) -> None:
    keys = place.folder / "keys"
    assert stat.S_IMODE(keys.stat().st_mode) & 0o077 == 0
    private = list(keys.glob("*.pem"))
    assert private
    for path in private:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def _readers(path: Path) -> dict[str, object]:
    return {
        "the archive's keys": lambda: load_keys(path, {}),
        "a passphrase": lambda: read_passphrase(path, {}),
        "a private key": lambda: read_private_key(path, None, encrypted_if_asked=True),
        "the node's password": lambda: Password("user", path).read(),
        "an outlet's secret": lambda: read_lines(path, "secret_file"),
    }


@pytest.mark.parametrize("what", list(_readers(Path())))
def test_a_secret_that_others_can_read_is_refused_and_not_repeated(
    tmp_path: Path, what: str
) -> None:
    path = tmp_path / "secret"
    path.write_text("DISTINCTIVE-ACCESS-1\nDISTINCTIVE-SECRET-2\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError) as refused:
        _readers(path)[what]()  # type: ignore[operator]
    assert "DISTINCTIVE" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u@h/d?password=DISTINCTIVE",
        "postgresql://h/d?a=b&%50assword=DISTINCTIVE",
        # Not written whole, or the test above would take them for what they look like.
        "postgresql://u:{}@h/d".format("DISTINCTIVE"),
        "postgresql+psycopg://u:{}@h/d".format("DIST/INCTIVE"),
        "postgresql://u:{}@/d?host=h".format("DISTINCTIVE"),
    ],
)
@pytest.mark.parametrize(
    "table",
    ['[store]\nurl = "{}"', '[[sources]]\nname = "a"\nkind = "sql"\nurl = "{}"\ntable = "t"',
     '[[outlets]]\nname = "a"\nkind = "sql"\nurl = "{}"'],
    ids=["store", "source", "outlet"],
)  # fmt: skip
def test_a_password_in_the_address_of_a_database_is_refused_and_not_repeated(
    tmp_path: Path, table: str, url: str
) -> None:
    file = tmp_path / "anchord.toml"
    file.write_text(table.format(url))
    with pytest.raises(ConfigError, match="password") as refused:
        load(str(file))
    assert "INCTIVE" not in str(refused.value)


_SECRET = re.compile("secret|password|passphrase")


def test_no_option_of_the_command_line_takes_a_secret() -> None:
    """Others see a command line; secrets come as files or credentials."""
    found = []
    for path in sorted((ROOT / "anchord/app/cli").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "click.option":
                names = [one.value for one in node.args if isinstance(one, ast.Constant)]
                found += [
                    name for name in names if re.search(r"secret|password|passphrase", str(name))
                ]
    assert all("file" in name or "no-" in name for name in found), found


# ---------------------------------------------------------------------- what is installed


def test_everything_is_installed_by_its_hash() -> None:
    """Packages the index swapped are refused; anchord itself is built without fetching anything."""
    places = [ROOT / "Makefile", ROOT / ".ci/run"]
    text = "\n".join(path.read_text("utf-8") for path in places)
    installs = [line for line in text.splitlines() if re.search(r"(?:PIP\)|/pip) install", line)]
    assert len(installs) >= 5
    for line in installs:
        hashed = "--require-hashes" in line
        ours = "--no-deps" in line and ("-e ." in line or "anchord-*.whl" in line)
        resolver = line.strip().endswith("install -qq uv")  # of `make constraints`, run by hand
        assert hashed or ours or resolver, line


def test_advisories_are_asked_for_strictly() -> None:
    """Without --strict, pip-audit says "no known vulnerabilities" of what it could not look up."""
    said = subprocess.run(
        ["make", "-n", "advisories"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    line = next(one for one in said.splitlines() if "pip-audit --" in one)
    for word in ("--strict", "--require-hashes", "--disable-pip", "-r constraints.txt"):
        assert word in line


REVIEWED = {"S101", "S105", "S202", "S311", "S324", "S603", "S607", "S608", "S704"}
"""Rules of bandit that anchord sets aside somewhere, each with a reason in its line."""


def test_every_rule_of_bandit_that_is_set_aside_says_why() -> None:
    for path in sorted((ROOT / "anchord").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            codes = re.search(r"# noqa: ([A-Z0-9, ]+)(.*)", line)
            if codes is None or not (named := set(re.findall(r"\bS[0-9]{3}\b", codes[1]))):
                continue
            where = f"{path.relative_to(ROOT)}:{number}"
            assert named <= REVIEWED, where
            assert "sandbox" in path.parts or len(codes[2].strip(" -()")) > 8, f"{where}: say why"


_SQL = re.compile(
    r"\b(SELECT .* FROM|INSERT INTO|DELETE FROM|UPDATE \w* SET|PRAGMA|DROP)\b", re.DOTALL
)


def test_no_statement_of_sql_is_made_of_anything_but_constants() -> None:
    """What comes from records goes in as values, never into the text of a statement."""
    found = []
    for path in sorted((ROOT / "anchord").rglob("*.py")):
        if {"sandbox", "migrations"} & set(path.parts):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.JoinedStr):
                continue
            fixed = "".join(str(p.value) for p in node.values if isinstance(p, ast.Constant))
            parts = [ast.unparse(p.value) for p in node.values if isinstance(p, ast.FormattedValue)]
            if _SQL.search(fixed) and not all(part.isupper() or part == "pragma" for part in parts):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}: {parts}")
    assert not found
