"""`anchord ledger`: what is checked, what is proved, and what a rewritten ledger looks like."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path

import pytest
import sqlalchemy as sa
from support.ots_oracle import read_file
from support.workplace import Workplace, bare, run, sample

from anchord.core import checkpoint, note, tlog_proof

FIRST = "2507.00001"
ORIGIN = "anchord"
"""What the passes of a `Workplace` call the log."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Return a place with 602 events, four checkpoints, three of them in a batch with a block."""
    place = Workplace(tmp_path_factory.mktemp("whole"))
    place.anchor(sample(1), *[bare(hashlib.sha256(b"%d" % n).digest()) for n in range(299)])
    place.anchor(sample(2))
    return place


@pytest.fixture
def place(whole: Workplace, tmp_path: Path) -> Workplace:
    """Return a copy of it that a test may damage."""
    copy = Workplace.__new__(Workplace)
    copy.folder = tmp_path / "copy"
    shutil.copytree(whole.folder, copy.folder)
    copy.clock, copy.chain, copy.calendars = whole.clock, whole.chain, whole.calendars
    return copy


def damage(place: Workplace, statement: str) -> None:
    engine = sa.create_engine(f"sqlite:///{place.folder / 'anchord.db'}")
    with engine.begin() as connection:
        assert connection.execute(sa.text(statement)).rowcount
    engine.dispose()


# ---------------------------------------------------------------------- check


def test_a_whole_ledger_is_sound(whole):
    found = whole.json("ledger", "check")
    assert (found["result"], found["findings"], found["faults"]) == ("sound", [], 0)
    assert (found["rows"], found["covered"], found["tiles"]) == (602, 602, 2)
    assert (found["checkpoints"], found["carried"], found["confirmed"]) == (4, 2, 2)
    assert found["unconfirmed"] == 0
    text = whole.run("ledger", "check")
    assert text.exit_code == 0
    assert text.stdout.startswith("sound\n")


def test_a_check_writes_nothing(whole):
    before = (whole.folder / "anchord.db").read_bytes()
    whole.json("ledger", "check")
    assert (whole.folder / "anchord.db").read_bytes() == before


DAMAGE = [
    ("ledger-row-broken", "row 7", "UPDATE events SET event_id = zeroblob(32) WHERE seq = 7"),
    ("ledger-row-broken", "row 400", "UPDATE events SET signature = zeroblob(64) WHERE seq = 400"),
    ("ledger-row-broken", "row 602", "UPDATE events SET chain = zeroblob(32) WHERE seq = 602"),
    ("ledger-rows-missing", "ledger", "DELETE FROM events WHERE seq = 300"),
    ("checkpoint-beyond-ledger", "checkpoint 602", "DELETE FROM events WHERE seq = 602"),
    ("tile-wrong", "tile 1 of level 1",
     "UPDATE log_nodes SET hash = zeroblob(32) WHERE level = 1 AND place = 1"),
    ("tile-missing", "level 1", "DELETE FROM log_nodes WHERE level = 1 AND place = 0"),
    ("checkpoint-root-wrong", "checkpoint 600",
     "UPDATE checkpoints SET root = zeroblob(32) WHERE size = 600"),
    ("checkpoint-note-wrong", "checkpoint 600",
     "UPDATE checkpoints SET root = zeroblob(32) WHERE size = 600"),
    ("checkpoint-signature-wrong", "checkpoint 300",
     "UPDATE checkpoints SET note = CAST(replace(CAST(note AS TEXT), '300', '301') AS BLOB)"),
    ("checkpoint-signature-wrong", "checkpoint 601",
     "UPDATE checkpoints SET key_id = 'stranger' WHERE size = 601"),
    ("checkpoint-signature-wrong", "checkpoint 602",
     "UPDATE checkpoints SET created_at = 5 WHERE size = 602"),
    ("checkpoint-misplaced", "checkpoint 300",
     "UPDATE checkpoints SET note = CAST(CAST(note AS TEXT) || x'0a' AS BLOB) WHERE size = 300"),
    ("checkpoint-misplaced", "checkpoint 600", "DELETE FROM checkpoints WHERE size = 300"),
    ("checkpoint-misplaced", "checkpoint 300",
     "UPDATE checkpoints SET batch_id = 2 WHERE size = 601"),
    ("checkpoint-misplaced", "checkpoint 300",
     "UPDATE checkpoints SET batch_id = 1 WHERE batch_id = 2"),
    ("checkpoint-misplaced", "checkpoint 300",
     "UPDATE batches SET trailer = zeroblob(32) WHERE id = 2"),
    ("checkpoint-dropped", "batch 2", "DELETE FROM checkpoints WHERE batch_id = 2"),
    ("checkpoint-dropped", "batch 2",
     "UPDATE checkpoints SET batch_id = NULL WHERE batch_id = 2"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "subject", "statement"), DAMAGE)
def test_what_was_changed_is_found_and_named(place, code, subject, statement):
    damage(place, statement)
    found = place.json("ledger", "check", code=1)
    assert found["result"] == "broken"
    assert (code, subject) in {(one["code"], one["subject"]) for one in found["findings"]}
    assert place.run("ledger", "check").exit_code == 1


def test_a_block_that_is_not_there_any_more_confirms_nothing(place):
    from support.parties import FakeChain

    other = FakeChain("another", height=130, time=1_700_000_000)
    other.write(place.folder / "headers.bin")
    found = place.json("ledger", "check", "--offline", code=1)
    assert {one["code"] for one in found["findings"]} == {"checkpoint-not-anchored"}


def test_without_headers_the_log_itself_is_still_checked(place):
    (place.folder / "headers.bin").unlink()
    found = place.json("ledger", "check", "--offline", code=3)
    assert "anchord headers sync" in found["problems"][0]
    assert (found["result"], found["confirmed"], found["unconfirmed"]) == ("sound", 0, 2)


# ---------------------------------------------------------------------- prove, verify


@pytest.fixture
def proved(whole: Workplace, tmp_path: Path) -> tuple[Path, Path, str]:
    """Return a bundle, a folder of the proofs of its events, and the log's verifier key."""
    out = tmp_path / "proofs"
    assert whole.run("ledger", "prove", FIRST, "-o", str(out)).exit_code == 0
    bundle = tmp_path / "bundle.json"
    assert whole.run("export", FIRST, "--bundle", "-o", str(bundle)).exit_code == 0
    return bundle, out, whole.run("ledger", "checkpoint", "--vkey").stdout.strip()


def test_every_event_of_a_record_is_proved_and_verified_without_a_store(proved, tmp_path):
    bundle, out, vkey = proved
    events = json.loads(bundle.read_text())["events"]
    assert len(events) == 2
    for event in events:
        alone = tmp_path / "event.json"
        alone.write_text(json.dumps(event))
        proof = out / f"{event['event_id'].removeprefix('sha256:')}.tlog-proof"
        for about in (alone, bundle):
            result = run("ledger", "verify", str(proof), str(about), "--vkey", vkey, "--json")
            assert result.exit_code == 0, result.output
            (found,) = json.loads(result.stdout)["events"]
            assert found["event_id"] == event["event_id"]
            assert found["origin"] == ORIGIN
        changed = {**event, "created_at": "2024-08-01T12:00:01Z"}
        alone.write_text(json.dumps(changed))
        assert run("ledger", "verify", str(proof), str(alone), "--vkey", vkey).exit_code == 1


def test_proofs_on_standard_output_are_one_after_another(whole, proved, tmp_path):
    bundle, _, vkey = proved
    both = tmp_path / "both.tlog-proof"
    both.write_bytes(whole.run("ledger", "prove", FIRST).stdout_bytes)
    key = tmp_path / "log.vkey"
    key.write_text(vkey + "\n")
    result = run("ledger", "verify", str(both), str(bundle), "--vkey", str(key))
    assert result.exit_code == 0, result.output
    assert result.stdout.count(f" of {ORIGIN}, ") == 2


def test_a_proof_of_another_log_or_key_is_refused(proved):
    bundle, out, _ = proved
    proof = str(next(out.iterdir()))
    other = note.make_verifier(ORIGIN, bytes(range(32))).vkey
    result = run("ledger", "verify", proof, str(bundle), "--vkey", other)
    assert result.exit_code == 1
    assert "expected a signature by" in result.stderr
    assert run("ledger", "verify", proof, str(bundle), "--vkey", "nonsense").exit_code == 1
    assert run("ledger", "verify", str(bundle), str(bundle), "--vkey", other).exit_code == 1


def test_one_event_is_proved_by_its_id_and_with_the_checkpoint_asked_for(whole, proved):
    bundle, _, _ = proved
    name = json.loads(bundle.read_text())["events"][0]["event_id"]
    sizes = []
    for more in ((), ("--checkpoint", "602")):
        raw = whole.run("ledger", "prove", name, *more).stdout_bytes
        sizes.append(checkpoint.parse(tlog_proof.parse(raw).note).size)
    assert sizes == [300, 602]
    assert whole.run("ledger", "prove", name, "--checkpoint", "5").exit_code == 1
    assert whole.run("ledger", "prove", name.replace("sha256:", "")).exit_code == 0


def test_what_is_not_there_is_not_proved(whole, tmp_path):
    for target in ("sha256:" + "00" * 32, "2507.99999"):
        result = whole.run("ledger", "prove", target)
        assert (result.exit_code, "no record" in result.stderr) == (1, True)
    one = str(tmp_path / "one.tlog-proof")
    assert "name a folder" in whole.run("ledger", "prove", FIRST, "-o", one).stderr


# ---------------------------------------------------------------------- checkpoint


def test_the_newest_checkpoint_is_printed_as_it_was_signed(whole):
    raw = whole.run("ledger", "checkpoint").stdout_bytes
    verifier = note.parse_vkey(whole.run("ledger", "checkpoint", "--vkey").stdout.strip())
    assert checkpoint.open_checkpoint(raw, [verifier]).size == 602
    assert raw.startswith(f"{ORIGIN}\n602\n".encode())
    older = whole.run("ledger", "checkpoint", "--size", "300").stdout_bytes
    assert checkpoint.open_checkpoint(older, [verifier]).size == 300
    assert whole.run("ledger", "checkpoint", "--size", "301").exit_code == 1
    lines = whole.run("ledger", "checkpoint", "--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["300", "600", "601", "602"]


def test_a_checkpoints_timestamp_is_one_of_the_file_it_is_written_to(whole, tmp_path):
    file = tmp_path / "head.txt"
    assert whole.run("ledger", "checkpoint", "--ots", "-o", str(file)).exit_code == 0
    ots = read_file((tmp_path / "head.txt.ots").read_bytes())
    assert ots.file_digest == hashlib.sha256(file.read_bytes()).digest()
    assert checkpoint.parse(file.read_bytes()).size == 600
    result = whole.run("verify", str(file) + ".ots", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["result"] == "proved"
    waiting = whole.run("ledger", "checkpoint", "--size", "602", "--ots", "-o", str(file))
    assert (waiting.exit_code, "next batch" in waiting.stderr) == (1, True)


def test_options_that_exclude_each_other_are_refused(whole):
    for words in (["--ots"], ["--vkey", "--list"], ["--vkey", "--size", "300"]):
        assert whole.run("ledger", "checkpoint", *words).exit_code == 2


def test_before_anything_was_signed_there_is_no_checkpoint(tmp_path):
    place = Workplace(tmp_path)
    for words in (["checkpoint"], ["checkpoint", "--ots", "-o", str(tmp_path / "x")]):
        assert place.run("ledger", *words).exit_code == 1
    assert place.json("ledger", "check")["result"] == "sound"


# ---------------------------------------------------------------------- consistency


def test_the_log_continues_every_checkpoint_it_ever_signed(whole, tmp_path):
    for size in (300, 600, 601, 602):
        kept = tmp_path / f"{size}.txt"
        words = ["ledger", "checkpoint", "--size", str(size), "-o", str(kept)]
        assert whole.run(*words).exit_code == 0
        found = whole.json("ledger", "consistency", str(kept))
        assert found["holds"]
        assert (found["old"]["size"], found["new"]["size"]) == (size, 602)
        assert found["old"]["signed_by"].startswith("registry.example.org-")
        assert whole.json("ledger", "consistency", str(size), "602")["proof"] == found["proof"]
        assert all(len(base64.b64decode(line)) == 32 for line in found["proof"])
    assert whole.json("ledger", "consistency", "17", "599")["holds"]
    assert whole.run("ledger", "consistency", "17").stdout.startswith("the log of 602 events")


def test_a_rewritten_ledger_does_not_continue_what_was_kept(whole, tmp_path):
    """Another history of the same length, signed by the same key: only who kept a head can tell."""
    kept = tmp_path / "kept.txt"
    whole.run("ledger", "checkpoint", "--size", "600", "-o", str(kept))
    (tmp_path / "other").mkdir()
    other = Workplace(tmp_path / "other")
    other.anchor(*[bare(hashlib.sha256(b"other %d" % n).digest()) for n in range(400)])
    found = other.json("ledger", "consistency", str(kept), code=1)
    assert "rewritten" in found["words"]
    assert found["old"]["signed_by"] is None
    text = other.run("ledger", "consistency", str(kept))
    assert (text.exit_code, "rewritten" in text.stdout) == (1, True)


def test_a_ledger_that_was_cut_does_not_reach_what_was_kept(place, tmp_path):
    kept = tmp_path / "kept.txt"
    place.run("ledger", "checkpoint", "-o", str(kept))
    damage(place, "DELETE FROM checkpoints WHERE size > 600")
    found = place.json("ledger", "consistency", str(kept), code=1)
    assert "rewritten" in found["words"]


def test_a_kept_checkpoint_that_was_changed_is_refused(whole, tmp_path):
    kept = tmp_path / "kept.txt"
    whole.run("ledger", "checkpoint", "-o", str(kept))
    kept.write_bytes(kept.read_bytes().replace(b"\n602\n", b"\n601\n"))
    result = whole.run("ledger", "consistency", str(kept))
    assert (result.exit_code, "does not hold" in result.stderr) == (1, True)


@pytest.mark.parametrize("old", ["603", "x", "-1", "602.5"])
def test_sizes_that_are_none_are_refused(whole, old):
    assert whole.run("ledger", "consistency", "--", old).exit_code == 2


def test_what_is_no_checkpoint_of_this_log_is_not_called_a_rewritten_ledger(whole, tmp_path):
    """Exit code 1 accuses whoever keeps the ledger; a wrong file is a mistake of who asks."""
    wrong = tmp_path / "wrong.txt"
    for raw in (b"", b"hello\n", b"\xff\x00"):
        wrong.write_bytes(raw)
        result = whole.run("ledger", "consistency", str(wrong))
        assert (result.exit_code, "wrong.txt" in result.stderr) == (2, True)
    whole.run("ledger", "checkpoint", "-o", str(tmp_path / "ours.txt"))
    note = (tmp_path / "ours.txt").read_text("utf-8")
    wrong.write_text(note.replace(ORIGIN, "other.example.org"), "utf-8")
    result = whole.run("ledger", "consistency", str(wrong))
    assert (result.exit_code, "other.example.org" in result.stderr) == (2, True)


def test_a_file_of_something_else_is_never_written_over(whole, tmp_path):
    mine = tmp_path / "notes.txt"
    mine.write_text("mine\n")
    for words in (["checkpoint"], ["checkpoint", "--ots"]):
        result = whole.run("ledger", *words, "-o", str(mine))
        assert (result.exit_code, "notes.txt" in result.stderr) == (1, True)
    assert mine.read_text() == "mine\n"
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    head = tmp_path / "head.txt"
    for size in ("300", "600"):
        assert whole.run("ledger", "checkpoint", "--size", size, "-o", str(head)).exit_code == 0
    assert checkpoint.parse(head.read_bytes()).size == 600


def test_nothing_is_written_where_there_is_no_timestamp_yet(whole, tmp_path):
    words = ["checkpoint", "--size", "602", "--ots", "-o", str(tmp_path / "head.txt")]
    assert whole.run("ledger", *words).exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_the_checkpoint_that_was_written_is_told(whole, tmp_path):
    told = whole.run("ledger", "checkpoint", "--ots", "-o", str(tmp_path / "head.txt")).stderr
    assert "checkpoint of 600 events" in told
    assert "the newest is of 602" in told


@pytest.mark.parametrize("words", [["checkpoint", "--size"], ["prove", FIRST, "--checkpoint"]])
def test_a_number_no_database_holds_is_refused_as_any_other(whole, words):
    assert whole.run("ledger", *words, "9" * 20).exit_code == 2


def test_swapped_sizes_are_told(whole):
    result = whole.run("ledger", "consistency", "600", "300")
    assert (result.exit_code, "swap them" in result.stderr) == (2, True)


def test_show_tells_where_a_records_events_stand(whole):
    found = whole.json("show", FIRST)["log"]
    assert [(one["index"], one["checkpoint"]) for one in found] == [(0, 300), (300, 600)]
    assert "2 of 2 events in signed checkpoints (entries 0, 300)" in whole.run("show", FIRST).stdout
