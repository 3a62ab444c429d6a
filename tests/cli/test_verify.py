"""`anchord verify` as people run it: what is proved, what is not, and the exit code of each."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.evidence import mined
from support.parties import FakeChain, FakeSigner
from support.workplace import Workplace, bare, lines, run, sample

from anchord.adapters.headers.chainmemo import save_memo
from anchord.core.chain import start
from anchord.core.header import Header, block_hash
from anchord.core.model import Adoption
from anchord.core.network import MAINNET
from anchord.core.verify import read_proof

FILE = b"the text of a paper"
NOTHING_LEFT = "no connection may be opened"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two records and a file anchored together, everything exported."""
    place = Workplace(tmp_path_factory.mktemp("anchored"))
    (place.folder / "paper.txt").write_bytes(FILE)
    place.anchor(sample(1), sample(2), bare(hashlib.sha256(FILE).digest(), "paper.txt"))
    out = str(place.folder / "out")
    assert place.run("export", "--all", "-o", out).exit_code == 0
    assert place.run("export", "--all", "--bundle", "-o", out).exit_code == 0
    return place


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Stand in a folder without a configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headers(place: Workplace) -> list[str]:
    return ["--headers", str(place.folder / "headers.bin"), "--network", "regtest"]


def exported(place: Workplace, number: int, extension: str) -> Path:
    name = place.json("show", f"2507.{number:05d}")["pith_number"].rpartition(":")[2]
    return place.folder / "out" / (name + extension)


def report(*words: str, code: int):
    result = run("verify", *words, "--json")
    assert result.exit_code == code, (result.output, result.stderr)
    (one,) = lines(result)
    return one


def test_a_record_of_the_store_is_proved_by_its_name(place):
    for name in ("2507.00001", "arxiv:2507.00001v1", "10.48550/arxiv.2507.00001"):
        found = place.json("verify", name)
        assert (found["result"], found["block_height"]) == ("proved", 101)
        assert found["existed_before"].endswith("Z")
        assert found["precision"] == "hours"
        assert {event["signature"] for event in found["events"]} == {"trusted"}


def test_people_read_existed_before_and_never_created_at(place):
    text = place.run("verify", "2507.00001").stdout
    assert "existed before 2024-07-26" in text
    assert "created" not in text


def test_a_bundle_needs_no_configuration_and_says_that_its_key_is_not_trusted(place, elsewhere):
    found = report(*headers(place), str(exported(place, 1, ".bundle.json")), code=0)
    assert found["kind"] == "bundle"
    assert {event["signature"] for event in found["events"]} == {"key not trusted"}
    assert found["checked_with"] == ["own headers"]


def test_a_bundle_on_standard_input_is_read(place, elsewhere):
    raw = exported(place, 1, ".bundle.json").read_bytes()
    result = run("verify", *headers(place), "--json", "-", stdin=raw)
    assert result.exit_code == 0
    assert lines(result)[0]["target"] == "-"


def test_a_key_given_by_file_is_trusted(place, elsewhere):
    bundle = exported(place, 1, ".bundle.json")
    document = json.loads(bundle.read_bytes())["public_keys"][0]
    (elsewhere / "key.json").write_text(json.dumps(document))
    found = report(*headers(place), "--key", "key.json", str(bundle), code=0)
    assert {event["trust"] for event in found["events"]} == {"given"}


def test_a_key_that_contradicts_the_trusted_one_of_that_name_is_not_believed(place, elsewhere):
    bundle = json.loads(exported(place, 1, ".bundle.json").read_bytes())
    (elsewhere / "key.json").write_text(json.dumps(bundle["public_keys"][0]))
    other = FakeSigner().public_key
    import base64

    key = bundle["public_keys"][0]
    key["public_key_b64"] = base64.b64encode(other).decode()
    for name in [name for name in key if name.startswith("fingerprint")]:
        del key[name]
    Path("forged.json").write_text(json.dumps(bundle))
    found = report(*headers(place), "--key", "key.json", "forged.json", code=0)
    assert {event["trust"] for event in found["events"]} == {"given"}
    (said,) = [check for check in found["checks"] if check["check"] == "key"]
    assert (said["outcome"], "forged" in said["detail"]) == ("not checked", True)


def test_without_the_signers_key_nothing_of_the_event_counts(place, elsewhere):
    bundle = json.loads(exported(place, 1, ".bundle.json").read_bytes())
    del bundle["public_keys"]
    Path("bare.json").write_text(json.dumps(bundle))
    found = report(*headers(place), "bare.json", code=1)
    assert found["result"] == "not proved"
    assert "not known" in found["reason"]


def test_an_ots_is_compared_with_the_file_beside_it(place, elsewhere):
    raw = place.run("export", hashlib.sha256(FILE).hexdigest(), "-o", "-").stdout_bytes
    Path("paper.txt.ots").write_bytes(raw)
    missing = report(*headers(place), "paper.txt.ots", code=1)
    assert (missing["result"], missing["checks"][0]["outcome"]) == ("not proved", "not checked")
    Path("paper.txt").write_bytes(FILE)
    assert report(*headers(place), "paper.txt.ots", code=0)["result"] == "proved"
    Path("paper.txt").write_bytes(FILE + b".")
    assert report(*headers(place), "paper.txt.ots", code=1)["result"] == "failed"


def test_an_ots_is_compared_with_the_file_or_digest_named(place, elsewhere):
    raw = place.run("export", hashlib.sha256(FILE).hexdigest(), "-o", "-").stdout_bytes
    Path("x.ots").write_bytes(raw)
    Path("paper.txt").write_bytes(FILE)
    good, bad = hashlib.sha256(FILE).hexdigest(), hashlib.sha256(b"").hexdigest()
    assert report(*headers(place), "--file", "paper.txt", "x.ots", code=0)["result"] == "proved"
    assert report(*headers(place), "--digest", good, "x.ots", code=0)["result"] == "proved"
    assert report(*headers(place), "--digest", bad, "x.ots", code=1)["result"] == "failed"


def test_no_header_source_is_never_good(place, elsewhere):
    for extension in (".ots", ".bundle.json"):
        found = report(str(exported(place, 1, extension)), code=1)
        assert found["result"] == "not proved"
        assert "header not checked" in found["reason"]
        assert found["existed_before"] is None


def test_headers_that_end_too_early_are_a_reason_to_try_again(place, elsewhere):
    whole = (place.folder / "headers.bin").read_bytes()
    Path("short.bin").write_bytes(whole[: 80 * 90])
    found = report("--headers", "short.bin", "--network", "regtest",
                   str(exported(place, 1, ".ots")), code=3)  # fmt: skip
    assert (found["result"], found["temporary"]) == ("not proved", True)


def test_a_source_that_cannot_be_reached_is_a_reason_to_try_again(place, elsewhere):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        Path("cookie").write_text("user:secret")
        found = report("--node", url, "--cookie", "cookie", "--network", "regtest",
                       str(exported(place, 1, ".ots")), code=3)  # fmt: skip
    assert (found["result"], found["existed_before"]) == ("not proved", None)
    assert "bitcoin node" in found["reason"]
    assert "secret" not in json.dumps(found)


def test_an_event_of_another_chain_is_not_checked_against_ours(place, elsewhere):
    main = ["--headers", str(place.folder / "headers.bin"), "--network", "mainnet"]
    found = report(*main, str(exported(place, 1, ".bundle.json")), code=1)
    assert found["result"] == "not proved"
    assert "the event is of bitcoin-regtest" in found["reason"]


def test_a_header_file_of_another_network_is_a_persons_business(place, elsewhere):
    main = ["--headers", str(place.folder / "headers.bin"), "--network", "mainnet"]
    assert run("verify", *main, str(exported(place, 1, ".ots"))).exit_code == 2


def test_too_few_confirmations_are_not_proved(place, elsewhere):
    words = [*headers(place), str(exported(place, 1, ".ots"))]
    found = report(*words, "--confirmations", "7", code=1)
    assert found["paths"][0]["outcome"] == "too few confirmations"
    assert report(*words, "--confirmations", "6", code=0)["result"] == "proved"


def test_headers_of_another_chain_do_not_confirm(place, elsewhere):
    place_b = Workplace(elsewhere)
    place_b.chain.mine(b"\x07" * 32)
    place_b.chain.grow(9)
    place_b.write_headers()
    for extension in (".ots", ".bundle.json"):
        found = report(*headers(place_b), str(exported(place, 1, extension)), code=1)
        assert found["result"] == "failed"


def test_offline_opens_no_socket(place, monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError(NOTHING_LEFT)

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert place.json("verify", "--offline", "2507.00001")["result"] == "proved"
    result = place.run("verify", "--offline", "--node", "http://127.0.0.1:1", "2507.00001")
    assert result.exit_code == 2


def test_thousands_of_targets_give_a_line_each(place, elsewhere):
    names = [str(exported(place, number, ".ots")) for number in (1, 2)] * 600
    result = run("verify", *headers(place), "--json", *names)
    assert result.exit_code == 0
    assert len(lines(result)) == 1200


def test_one_bad_target_does_not_hide_the_others(place, elsewhere):
    Path("junk.ots").write_bytes(b"junk")
    good = str(exported(place, 1, ".ots"))
    result = run("verify", *headers(place), "--json", "junk.ots", "absent.ots", good)
    assert result.exit_code == 1
    assert [one["result"] for one in lines(result)] == ["failed", "failed", "proved"]


def test_a_record_without_a_configuration_is_a_persons_business(elsewhere):
    assert run("verify", "2507.00001").exit_code == 2


def test_a_pending_proof_is_pending_and_says_where(tmp_path):
    place = Workplace(tmp_path)
    place.add(sample(1))
    assert place.json("verify", "2507.00001", code=1)["result"] == "not proved"
    place.step()
    found = place.json("verify", "2507.00001", code=1)
    assert found["result"] == "pending"
    assert "alice" in found["reason"]
    assert "bob" in found["reason"]


def test_a_withdrawn_event_proves_nothing(tmp_path):
    place = Workplace(tmp_path)
    place.anchor(sample(1))
    place.chain.reorg(6)
    place.chain.grow(5)
    place.write_headers()
    place.step(90_000)
    found = place.json("verify", "2507.00001", code=1)
    assert found["result"] == "pending"
    assert [event["event_type"] for event in found["events"] if event["withdrawn_by"]] == [
        "timestamp_anchored"
    ]
    place.mine()
    place.step(90_000)
    place.step(90_000)
    assert place.json("verify", "2507.00001")["result"] == "proved"


def test_an_adopted_proof_is_verified_like_our_own(tmp_path, place):
    digest = hashlib.sha256(FILE).digest()
    raw = place.run("export", digest.hex(), "-o", "-").stdout_bytes
    other = Workplace(tmp_path)
    other.chain.headers[:] = place.chain.headers
    other.write_headers()
    other.add(Adoption(record=bare(digest, "paper.txt"), ots=raw))
    other.step()
    found = other.json("verify", digest.hex())
    assert found["result"] == "proved"
    assert other.run("export", digest.hex(), "-o", "-").stdout_bytes == raw


def test_what_strangers_wrote_cannot_move_the_cursor(place, elsewhere):
    bundle = json.loads(exported(place, 1, ".bundle.json").read_bytes())
    signer = {"signer_id": "\x1b[2J\x9b31m"}
    bundle["events"].append({"event_type": "cita\x07tion", "event_id": "x", "signer": signer})
    Path("b.json").write_text(json.dumps(bundle))
    result = run("verify", *headers(place), "b.json")
    assert result.exit_code == 0
    assert not set(result.stdout) & set("\x1b\x9b\x07")
    assert "NOT CHECKED" in result.stdout


def test_usage_errors_exit_with_2(place, elsewhere):
    ots = str(exported(place, 1, ".ots"))
    digest = "00" * 32
    assert run("verify").exit_code == 2
    assert run("verify", "--digest", digest, ots, ots).exit_code == 2
    assert run("verify", "--digest", "zz", ots).exit_code == 2


quick = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@quick
@given(bit=st.integers(min_value=0))
def test_any_flipped_bit_of_the_events_of_a_bundle_fails(place, bit):
    path = exported(place, 1, ".bundle.json")
    raw = bytearray(path.read_bytes())
    start = raw.index(b'"events":[') + len(b'"events":[')
    stop = raw.index(b'],"public_keys"')
    at = 8 * start + bit % (8 * (stop - start))
    raw[at // 8] ^= 1 << at % 8
    result = run("verify", *headers(place), "--json", "-", stdin=bytes(raw))
    assert result.exit_code == 1, (at // 8, bytes(raw[at // 8 - 20 : at // 8 + 20]))


@quick
@given(bit=st.integers(min_value=0))
def test_any_flipped_bit_of_a_path_fails(place, bit):
    raw = bytearray(exported(place, 1, ".ots").read_bytes())
    at = bit % (8 * len(raw))
    raw[at // 8] ^= 1 << at % 8
    digest = place.json("show", "2507.00001")["canonical_sha256"]
    flipped = place.folder / "flipped.ots"
    flipped.write_bytes(raw)
    found = run("verify", *headers(place), "--json", "--digest", digest, str(flipped))
    (one,) = lines(found)
    # What a calendar's address says proves nothing, so a bit of it may change.
    paths = {path["message"] for path in one["paths"] if path["outcome"] == "verified"}
    assert found.exit_code == 1 or paths == _verified(place, digest)


def _verified(place: Workplace, digest: str) -> set[str]:
    words = [*headers(place), "--json", "--digest", digest, str(exported(place, 1, ".ots"))]
    (one,) = lines(run("verify", *words))
    return {path["message"] for path in one["paths"] if path["outcome"] == "verified"}


def test_a_header_file_of_somebody_else_is_checked_whatever_lies_beside_it(elsewhere):
    """Headers without any work, and a note beside them that says they were checked."""
    chain = FakeChain(height=3)
    Path("paper.txt").write_bytes(FILE)
    ots = mined(hashlib.sha256(FILE).digest(), chain, more=0)
    Path("paper.txt.ots").write_bytes(ots)
    (found,) = read_proof(ots).bitcoin
    made = [MAINNET.genesis]
    for height in range(1, 15):
        root = found.message if height == found.attestation.height else bytes(32)
        at = 1231006505 + 600 * height
        made.append(Header(4, block_hash(made[-1]), root, at, 0x1D00FFFF, 0).pack())
    raw = b"".join(made)
    Path("headers.bin").write_bytes(raw)
    end = msgspec.structs.replace(
        start(MAINNET), height=14, hash=block_hash(made[-1]), work=1 << 100
    )
    save_memo(Path("headers.bin"), "mainnet", end, hashlib.sha256(raw).digest())
    one = report("--offline", "--headers", "headers.bin", "paper.txt.ots", code=3)
    assert (one["result"], one["existed_before"]) == ("not proved", None)


def test_a_file_named_for_one_record_and_about_another_is_refused(place, elsewhere):
    mine, others = exported(place, 1, ".bundle.json"), exported(place, 2, ".bundle.json")
    for name in (mine.name, json.loads(mine.read_bytes())["canonical_sha256"] + ".json"):
        Path(name).write_bytes(mine.read_bytes())
        assert report(*headers(place), name, code=0)["result"] == "proved"
        Path(name).write_bytes(others.read_bytes())
        one = report(*headers(place), name, code=1)
        assert (one["result"], one["existed_before"]) == ("failed", None)
    swapped = Path(exported(place, 1, ".ots").name)
    swapped.write_bytes(exported(place, 2, ".ots").read_bytes())
    assert report(*headers(place), str(swapped), code=1)["result"] == "failed"


def test_a_key_document_is_believed_for_what_it_states_also_within_another(place, elsewhere):
    bundle = json.loads(exported(place, 1, ".bundle.json").read_bytes())
    (key,) = bundle["public_keys"]
    for targets, code in ((["timestamp"], 0), (["storage"], 1)):
        Path("key.json").write_text(json.dumps({"public_key": {**key, "targets": targets}}))
        path = str(exported(place, 1, ".bundle.json"))
        report(*headers(place), "--key", "key.json", path, code=code)


def test_one_explorer_alone_is_a_misuse_told_in_the_words_of_the_command(place):
    result = place.run("verify", "2507.00001", "--explorer", "http://127.0.0.1:1/api")
    assert result.exit_code == 2
    assert "--explorer: expected two" in str(result.exception)


def test_what_is_no_key_document_is_told_with_where_to_get_one(place, elsewhere):
    for number, raw in enumerate((b"", b"\xff\xfe", b"-----BEGIN PRIVATE KEY-----\n")):
        wrong = elsewhere / f"{number}.pem"
        wrong.write_bytes(raw)
        result = run("verify", str(exported(place, 1, ".bundle.json")), "--key", str(wrong))
        assert (result.exit_code, "anchord key public" in result.stderr) == (2, True)
        assert f"{number}.pem" in result.stderr


def test_missing_headers_of_the_configuration_are_a_reason_to_try_again(place, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(place.folder, folder)
    (folder / "headers.bin").unlink()
    config = str(folder / "anchord.toml")
    result = run("-c", config, "verify", "2507.00001", "--offline")
    assert (result.exit_code, "anchord headers sync" in result.stdout) == (3, True)
