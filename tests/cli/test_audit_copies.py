"""`anchord audit --online` against the sandbox: copies are fetched again, without keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import record
from support.workplace import run

from anchord.sandbox.run import Sandbox


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Two records, anchored, captured and in an item, while the archive runs."""
    folder = tmp_path_factory.mktemp("copies")
    with Sandbox(folder, tick_s=0.05, mine_every_s=0.1) as sandbox:
        sandbox.write_config()
        config = str(folder / "anchord.toml")
        records = folder / "records.jsonl"
        records.write_text("".join(json.dumps(record(one, 1)) + "\n" for one in (1, 2)), "utf-8")
        assert run("init", str(folder)).exit_code == 0
        assert run("-c", config, "add", str(records)).exit_code == 0
        assert run("-c", config, "run-once", "--wait", "--deadline", "90").exit_code == 0
        yield config


@pytest.fixture(autouse=True)
def _no_fault_stays(config: str) -> Iterator[None]:
    yield
    assert run("-c", config, "sandbox", "fault", "--clear").exit_code == 0


def audit(config: str, *words: str, code: int) -> dict[str, Any]:
    result = run("-c", config, "audit", "--jobs", "1", "--json", *words)
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_copies_that_are_as_signed_are_counted(config: str) -> None:
    found = audit(config, "--online", "10", code=0)
    assert (found["coverage"]["mementos"], found["coverage"]["items"]) == (2, 2)
    assert found["result"] == "sound"


def test_the_seed_draws_which_copies_are_fetched(config: str) -> None:
    found = [audit(config, "--online", "1", "--seed", "3", code=0)["coverage"] for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["mementos"] + found[0]["items"] == 1


def test_nothing_is_fetched_unless_it_was_asked_for(config: str) -> None:
    found = audit(config, code=0)
    assert (found["coverage"]["mementos"], found["coverage"]["items"]) == (0, 0)


@pytest.mark.parametrize(
    ("service", "kind", "finding"),
    [
        ("wayback", "not-archived", "memento-lost"),
        ("archive-org", "download-corrupt", "item-member-changed"),
        ("archive-org", "download-missing", "item-member-lost"),
    ],
)
def test_a_copy_that_is_gone_or_changed_is_broken(
    service: str, kind: str, finding: str, config: str
) -> None:
    assert run("-c", config, "sandbox", "fault", service, kind).exit_code == 0
    found = audit(config, "--online", "10", code=1)
    assert found["result"] == "broken"
    assert found["counts"][finding] == 2


def test_an_archive_that_does_not_answer_is_a_matter_of_trying_again(config: str) -> None:
    for service, kind in (("wayback", "offline"), ("archive-org", "download-503")):
        assert run("-c", config, "sandbox", "fault", service, kind).exit_code == 0
    found = audit(config, "--online", "10", code=3)
    assert found["result"] == "not proved"
    assert {one["severity"] for one in found["findings"]} == {"warning", "note"}


def test_bundles_elsewhere_are_held_against_the_archive_they_name(
    config: str, tmp_path: Path
) -> None:
    out = str(tmp_path / "out")
    assert run("-c", config, "export", "--all", "--bundle", "-o", out).exit_code == 0
    result = run("-c", config, "audit", out, "--jobs", "1", "--json", "--online", "2")
    found = json.loads(result.stdout)
    assert found["kind"] == "bundles"
    assert found["coverage"]["mementos"] + found["coverage"]["items"] == 2
