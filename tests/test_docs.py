"""Docs that can rot are checked: help, commands, configuration, changelog, worked examples."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import typing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentimestamps.core.notary import BitcoinBlockHeaderAttestation
from opentimestamps.core.serialize import BytesDeserializationContext
from opentimestamps.core.timestamp import DetachedTimestampFile
from support.protocol_examples import EXAMPLE_KEY

import anchord
from anchord.app import archive_config as archive_settings
from anchord.app import config as settings
from anchord.app import outlet_config as outlet_settings
from anchord.app.cli.main import COMMANDS
from anchord.sandbox.run import Sandbox

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
PROTOCOL = (ROOT / "docs/protocol.md").read_text("utf-8")
EXAMPLE = ROOT / "config/anchord.toml"
MARKDOWN = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def example(name: str, text: str = PROTOCOL) -> str:
    """Return the fenced block that follows `<!-- example: NAME -->`."""
    found = re.search(rf"<!-- example: {name} -->\n+```\w*\n(.*?)\n```", text, re.DOTALL)
    assert found, f"there is no example {name}"
    return found[1]


def facts(name: str) -> dict[str, str]:
    """Return the `key = value` lines of an example."""
    return dict(line.split(" = ", 1) for line in example(name).splitlines())


# README and the command line


def test_readme_shows_the_help_as_it_is() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "anchord", "--help"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "COLUMNS": "80"}, cwd=ROOT,
    ).stdout  # fmt: skip
    assert example("help", README).strip() == shown.strip().replace("python -m anchord", "anchord")


def test_readme_names_every_command_and_no_other() -> None:
    rows = re.findall(r"^\| `anchord ([\w-]+)", README, re.MULTILINE)
    assert list(dict.fromkeys(rows)) == list(COMMANDS)


def test_the_five_minutes_of_the_readme_run_as_they_stand(tmp_path: Path) -> None:
    folder = tmp_path / "tour"
    with Sandbox(folder, tick_s=0.05, mine_every_s=0.1) as sandbox:
        sandbox.write_config()
        script = example("tour", README).replace("NODE", sandbox.node_auth_url)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-euc", script], cwd=tmp_path, env={**os.environ, "PATH": path},
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Success! Bitcoin block" in done.stderr


def test_changelog_has_an_entry_for_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert re.search(rf"^## \[{re.escape(anchord.__version__)}\]", text, re.MULTILINE)


@pytest.mark.parametrize("file", MARKDOWN, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_links_within_the_project_lead_somewhere(file: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", file.read_text("utf-8")):
        if "://" not in target and not target.startswith("mailto:"):
            assert (file.parent / target).exists(), f"{file.name} links to {target}"


def test_decision_records_are_numbered_without_gaps() -> None:
    files = sorted((ROOT / "docs/adr").glob("0*.md"))
    assert [int(file.name[:4]) for file in files] == list(range(1, len(files) + 1))


def test_every_decision_and_every_document_can_be_reached() -> None:
    index = (ROOT / "docs/adr/README.md").read_text("utf-8")
    for file in (ROOT / "docs/adr").glob("0*.md"):
        title = file.read_text("utf-8").splitlines()[0].removeprefix("# ")
        number, _, words = title.partition(". ")
        assert f"{number}. [{words}]({file.name})" in index
    for file in (ROOT / "docs").glob("*.md"):
        assert f"(docs/{file.name})" in README


# config/anchord.toml


LEFT_OUT = {
    ("anchoring", "authorities"), ("archive", "captures", "extra_urls"), ("sources",),
    ("outlets",),
}  # fmt: skip
"""Tables there is none of by default: they stand in the example as a comment."""


def nested_structs(kind: type[msgspec.Struct], path: tuple[str, ...] = ()) -> Any:
    """Yield (path, struct type) for a configuration type and all below it."""
    yield path, kind
    for field in msgspec.structs.fields(kind):
        inner = typing.get_args(field.type) or (field.type,)
        for part in inner:
            if isinstance(part, type) and issubclass(part, msgspec.Struct):
                yield from nested_structs(part, (*path, field.encode_name))


STRUCTS = list(nested_structs(settings.Config))


def test_the_example_configuration_has_exactly_the_defaults() -> None:
    assert settings.load(str(EXAMPLE)).config == settings.Config()


@pytest.mark.parametrize(("path", "kind"), STRUCTS, ids=lambda value: ".".join(value) or "top"
                         if isinstance(value, tuple) else "")  # fmt: skip
def test_every_key_stands_in_the_example_with_a_comment(
    path: tuple[str, ...], kind: type[msgspec.Struct]
) -> None:
    text = EXAMPLE.read_text("utf-8")
    for name in LEFT_OUT:
        text = re.sub(rf"(?m)^# (\[\[{re.escape('.'.join(name))}\]\]\n)((?:# .*\n)+)",
                      lambda found: found[1] + found[2].replace("# ", ""), text)  # fmt: skip
    table: Any = tomllib.loads(text)
    for name in path:
        table = table[name]
        table = table[0] if isinstance(table, list) else table
    if path[-1:] == ("urls",):  # tables by kind of source
        path, table = (*path, "arxiv"), table["arxiv"]
    assert set(table) == {field.encode_name for field in msgspec.structs.fields(kind)}
    lines = EXAMPLE.read_text("utf-8").splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip("[]") == ".".join(path)), 0)
    for key, value in table.items():
        if isinstance(value, dict) or (isinstance(value, list) and isinstance(value[:1], dict)):
            continue
        at = [n for n, line in enumerate(lines) if n > start and line.startswith(f"{key} = ")]
        if at:
            assert lines[at[0] - 1].startswith("#"), f"{key} has no comment above it"


def test_operations_lists_every_key() -> None:
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    listed = re.findall(r"^\| `([a-z0-9_.]+)` \|", text, re.MULTILINE)
    tables = {".".join(path) for path, _ in STRUCTS}
    wanted = {
        ".".join([*path, field.encode_name])
        for path, kind in STRUCTS
        for field in msgspec.structs.fields(kind)
    }
    assert set(listed) == wanted - tables | {"anchoring.calendars"}


def test_every_key_is_documented_where_it_is_defined() -> None:
    files = (settings.__file__, archive_settings.__file__, outlet_settings.__file__)
    nodes = [node for file in files for node in ast.parse(Path(file).read_text("utf-8")).body]
    missing = []
    for node in nodes:
        if not isinstance(node, ast.ClassDef) or not node.name.endswith("Config"):
            continue
        for field, after in zip(node.body, [*node.body[1:], None], strict=True):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            inner = isinstance(field, ast.AnnAssign) and "Config" in ast.dump(field.annotation)
            if isinstance(field, ast.AnnAssign) and not documented and not inner:
                missing.append(f"{node.name}.{field.target.id}")  # type: ignore[union-attr]
    assert missing in ([], ["HeadersConfig.network"])  # the names of the four chains say it all


# docs/protocol.md: the worked examples recompute


def canonical(value: Any) -> bytes:
    """The rule, as the document states it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8")


def test_record_example_recomputes() -> None:
    record, stated = json.loads(example("record")), facts("record-facts")
    digest = hashlib.sha256(canonical(record)).digest()
    suffix = base64.b32encode(digest).decode()[:26]
    assert stated["canonical_sha256"] == digest.hex()
    assert stated["pith_number"] == f"pith:{record['metadata']['submitted_at'][:4]}:{suffix}"
    assert stated["pith_short_8"] == suffix[:8]


def test_record_example_is_what_anchord_computes() -> None:
    from anchord.core import canonical as core

    record = core.read_record(example("record").encode())
    assert record.digest.hex() == facts("record-facts")["canonical_sha256"]


def test_tree_example_recomputes() -> None:
    stated = facts("tree")
    leaves = [
        hashlib.sha256(bytes.fromhex(stated[f"digest_{n}"] + stated[f"nonce_{n}"])).digest()
        for n in range(3)
    ]
    assert [stated[f"leaf_{n}"] for n in range(3)] == [leaf.hex() for leaf in leaves]
    pair = hashlib.sha256(leaves[0] + leaves[1]).digest()
    assert stated["root"] == hashlib.sha256(pair + leaves[2]).hexdigest()


@pytest.mark.parametrize("name", ["submitted", "anchored", "withdrawn", "captured", "item"])
def test_event_example_has_its_id_and_signature(name: str) -> None:
    event = json.loads(example(f"event-{name}"))
    signature = base64.b64decode(event.pop("signature_b64"))
    stated = event.pop("event_id")
    digest = hashlib.sha256(canonical(event)).digest()
    raw = _example_key()
    assert stated == "sha256:" + digest.hex()
    assert signature == EXAMPLE_KEY.sign(digest)
    assert event["signer"]["public_key_fingerprint"] == hashlib.sha256(raw).hexdigest()[:32]
    assert base64.b64decode(facts("key")["public_key_b64"]) == raw


@pytest.mark.parametrize("name", ["submitted", "anchored", "withdrawn", "captured", "item"])
def test_event_example_is_what_anchord_renders(name: str) -> None:
    from anchord.core import event as core

    stated = json.loads(example(f"event-{name}"))
    del stated["signature_b64"]
    wanted = stated.pop("event_id")
    slots = tuple(key for key in core._SLOTS if key in stated["payload"])
    common = core.Common(
        event_type=stated["event_type"],
        created_at=stated["created_at"],
        signer=core.signer_block("example-2026", _example_key(), stated["signer"]["signer_id"]),
        payload={key: value for key, value in stated["payload"].items() if key not in slots},
        slots=slots,
        target=stated["target"],
    )
    columns = {key: [stated["payload"][key].encode()] for key in slots}
    columns["subject"] = [core.subject(number=stated["subject_pith_number"], record_id="")]
    (body,) = core.template(common).render(columns)
    assert body == canonical(stated)
    assert core.event_id(core.event_digest(body)) == wanted


def test_the_example_proof_leads_through_the_tree_to_the_example_header() -> None:
    payload = json.loads(example("event-anchored"))["payload"]
    raw = base64.b64decode(payload["proof_b64"])
    proof = DetachedTimestampFile.deserialize(BytesDeserializationContext(raw))
    header = bytes.fromhex(facts("header")["header"])
    paths = {type(claim): (message, claim) for message, claim in proof.timestamp.all_attestations()}
    message, claim = paths[BitcoinBlockHeaderAttestation]

    assert hashlib.sha256(raw).hexdigest() == payload["proof_sha256"]
    assert proof.file_digest.hex() == payload["canonical_sha256"]
    assert facts("tree")["root"] in str(proof.timestamp.str_tree(verbosity=1))
    assert claim.height == payload["block_height"]
    assert header[36:68] == message
    assert payload["block_merkle_root"] == message[::-1].hex()
    assert (
        payload["block_hash"]
        == hashlib.sha256(hashlib.sha256(header).digest()).digest()[::-1].hex()
    )
    assert (
        json.loads(example("event-withdrawn"))["payload"]["withdraws"]
        == (json.loads(example("event-anchored"))["event_id"])
    )


def test_the_example_of_a_day_manifest_is_signed_and_names_the_file_of_the_example_event() -> None:
    from anchord.core.item_name import read_day_manifest
    from anchord.core.keyring import PublicKey, make_keyring
    from anchord.core.trust import Keys

    key = PublicKey(
        key_id="example-2026", public_key=_example_key(), signer_id="registry.example.org"
    )
    read = read_day_manifest(example("day-manifest").encode(), Keys(make_keyring([key])))
    payload = json.loads(example("event-item"))["payload"]
    (found,) = [file for file in read.files if file.name == payload["file"]]
    assert read.identifier == payload["identifier"]
    assert (found.size, found.md5, found.sha1, found.sha256) == tuple(
        payload[name] for name in ("size", "md5", "sha1", "sha256")
    )


def _example_key() -> bytes:
    return EXAMPLE_KEY.public_key().public_bytes_raw()


def test_an_event_is_verified_by_hand_as_the_document_says(tmp_path: Path) -> None:
    """The ten lines of the document run as they stand, on the document's own event."""
    (tmp_path / "event.json").write_text(example("event-anchored"), "utf-8")
    (tmp_path / "key.b64").write_text(facts("key")["public_key_b64"], "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", example("by-hand-python")],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split()[0] == json.loads(example("event-anchored"))["event_id"]
    if shutil.which("openssl"):
        checked = subprocess.run(
            ["sh", "-euc", example("by-hand-openssl")],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert "Signature Verified Successfully" in checked.stdout
