"""A log that its keeper renames, and keys that are rotated to another name, stay whole."""

from __future__ import annotations

import json
import shutil

import pytest
from support.parties import make_parts
from support.workplace import Workplace, run, sample

from anchord.adapters.signers.file import rotate_key
from anchord.engine.run import run_pass

ORIGIN = "log.example.org/two"


class Keeper(Workplace):
    """A workplace whose log has a name that can be changed."""

    origin = "anchord"

    def step(self, seconds=61):
        with self.app() as app:
            parts = make_parts(
                self.folder, calendars=self.calendars, headers=[self.chain], signer=app.signer,
                store=app.store, origin=self.origin,
            )  # fmt: skip
            return run_pass(parts, self.clock.advance(seconds))

    def rename(self, origin):
        self.origin = origin
        self.config.write_text(f'{self.config.read_text()}\n[ledger]\norigin = "{origin}"\n')

    def rotate(self, signer_id):
        rotate_key(self.folder / "keys", None, self.clock.advance(3000), signer_id=signer_id)
        text = self.config.read_text().replace("registry.example.org", signer_id)
        self.config.write_text(text)

    def key_ids(self):
        return [one["key_id"] for one in json.loads(self.run("key", "list", "--json").stdout)]


@pytest.fixture
def keeper(tmp_path):
    (tmp_path / "keeper").mkdir()
    made = Keeper(tmp_path / "keeper")
    made.anchor(*map(sample, range(3)))
    made.add(*map(sample, range(10, 13)))
    made.step()
    return made


def go_on(keeper):
    """Bring what waits into a block, then more."""
    keeper.mine()
    keeper.step(1000)
    keeper.anchor(*map(sample, range(20, 23)))


def audit(keeper, tree, keys, *words):
    """Audit the published tree with some of the keys."""
    given = []
    for name in keys:
        file = keeper.folder / f"{name}.json"
        file.write_text(keeper.run("key", "public", name).stdout)
        given += ["--key", str(file)]
    headers = ["--headers", str(keeper.folder / "headers.bin"), "--network", "regtest"]
    result = run("audit", str(tree), "--jobs", "1", *given, *headers, *words, "--json")
    assert result.exit_code in (0, 1), result.output
    return json.loads(result.stdout)


def codes(report):
    return {one["code"] for one in report["findings"]}


def test_a_renamed_log_is_the_same_log(keeper, tmp_path):
    kept = tmp_path / "kept"
    keeper.run("audit", "--jobs", "1", "--save-checkpoint", str(kept))
    keeper.rename(ORIGIN)
    go_on(keeper)
    assert keeper.run("mirror", "publish", str(tmp_path / "tree")).exit_code == 0
    for words in ((), ("--since-checkpoint", str(kept))):
        report = audit(keeper, tmp_path / "tree", keeper.key_ids(), *words)
        assert report["result"] == "sound", report["findings"]
        assert codes(report) == {"log-renamed"}
        assert keeper.json("audit", "--jobs", "1", *words)["result"] == "sound"
    assert keeper.run("ledger", "check").exit_code == 0


def test_another_log_does_not_pass_for_a_renamed_one(keeper, tmp_path):
    """A checkpoint that our key signed for another log does not get in by its other name."""
    (tmp_path / "other").mkdir()
    other = Keeper(tmp_path / "other")
    shutil.rmtree(other.folder / "keys")
    shutil.copytree(keeper.folder / "keys", other.folder / "keys")
    other.rename(ORIGIN)
    other.anchor(*map(sample, range(40, 43)))
    for one, name in ((keeper, "tree"), (other, "strange")):
        assert one.run("mirror", "publish", str(tmp_path / name)).exit_code == 0
    kept = tmp_path / "strange" / "log" / "checkpoint"
    report = audit(keeper, tmp_path / "tree", keeper.key_ids(), "--since-checkpoint", str(kept))
    assert report["result"] == "broken"
    assert "log-replaced" in codes(report)
    (tmp_path / "tree" / "log" / "checkpoints" / "3").write_bytes(
        (tmp_path / "strange" / "log" / "checkpoints" / "3").read_bytes()
    )
    assert "checkpoint-misplaced" in codes(audit(keeper, tmp_path / "tree", keeper.key_ids()))


@pytest.mark.parametrize("signer_id", ["registry.example.org", "other.example.org"])
def test_a_rotated_key_breaks_nothing_and_the_one_that_is_missing_is_named(
    keeper, tmp_path, signer_id
):
    old = keeper.key_ids()
    keeper.rotate(signer_id)
    go_on(keeper)
    assert keeper.run("mirror", "publish", str(tmp_path / "tree")).exit_code == 0
    new = [name for name in keeper.key_ids() if name not in old]
    assert keeper.json("audit", "--jobs", "1")["result"] == "sound"
    assert audit(keeper, tmp_path / "tree", old + new)["result"] == "sound"
    for given, missing in ((old, new), (new, old)):
        report = audit(keeper, tmp_path / "tree", given)
        assert report["result"] == "not proved", report["findings"]
        assert any(f"not given: key {missing[0]}" in why for why in report["reasons"])
