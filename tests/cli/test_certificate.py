"""`anchord certificate`: made of what is proved now, by name or from a bundle, or refused."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from support.evidence import (
    anchored_payload,
    body_of,
    bundle_with,
    mined,
    sign,
    stored_event,
    withdrawal,
)
from support.parties import FakeChain, FakeSigner
from support.workplace import Workplace, bare, run, sample

from anchord.core.canonical import pith_suffix
from anchord.core.key_document import to_document

FILE = b"the text of a paper"
TITLE = "On  the Persistence of\nRecords"


def titled(number: int):
    canon = hashlib.sha256(b"on the persistence of records").hexdigest()
    metadata = {
        "abstract_canon_sha256": "0" * 64, "cross_cats_sorted": [], "license": "",
        "primary_cat": "cs.DL", "submitted_at": "2025-07-14T15:31:31Z",
        "title_canon_sha256": canon,
    }  # fmt: skip
    return sample(number, metadata=metadata)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Workplace(tmp_path_factory.mktemp("anchored"))
    place.anchor(sample(1), titled(2), bare(hashlib.sha256(FILE).digest(), "paper.txt"))
    assert place.run("export", "--all", "--bundle", "-o", str(place.folder / "out")).exit_code == 0
    place.add(sample(9))
    place.step()
    return place


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Stand in a folder without a configuration."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def headers(place: Workplace) -> list[str]:
    return ["--headers", str(place.folder / "headers.bin"), "--network", "regtest"]


def bundle(place: Workplace, number: int = 1) -> Path:
    name = pith_suffix(sample(number).digest)
    return place.folder / "out" / f"{name}.bundle.json"


def refused(*words: str, code: int = 1) -> str:
    result = run("certificate", *words)
    assert result.exit_code == code, (result.output, result.exception)
    assert not list(Path().glob("*.certificate.*")), "a certificate was made of what is not proved"
    return result.stderr


def test_a_record_gets_both_forms_named_after_it(place, tmp_path):
    result = place.run("certificate", "2507.00001", "-o", str(tmp_path))
    assert result.exit_code == 0, result.output
    stem = pith_suffix(sample(1).digest)
    names = [f"{stem}.certificate.html", f"{stem}.certificate.pdf"]
    assert sorted(file.name for file in tmp_path.iterdir()) == names
    assert sorted(Path(line).name for line in result.stdout.splitlines()) == names
    assert (tmp_path / names[1]).read_bytes().startswith(b"%PDF-")
    text = (tmp_path / names[0]).read_text("utf-8")
    shown = place.json("verify", "2507.00001")
    for fact in (shown["digest"], shown["pith_number"], shown["block_hash"], "26 July 2024"):
        assert fact in text
    assert "existed before" in text
    assert "created" not in text
    assert shown["paths"][0]["message"] in text, "the Merkle root is what people compare"


def test_a_bundle_needs_neither_store_nor_configuration(place, elsewhere):
    assert run("certificate", str(bundle(place)), *headers(place), "-o", "wall.pdf").exit_code == 0
    raw = Path("wall.pdf").read_bytes()
    assert sample(1).digest.hex().encode() in raw
    assert b"as the bundle says" in raw, "nobody confirmed whose key it is"
    assert not list(Path().glob("*.html"))


def test_the_same_record_gives_the_same_bytes_from_store_and_bundle_while_the_chain_grows(
    place, elsewhere
):
    (elsewhere / "key.json").write_text(json.dumps(_key(place)))
    for where in ("one", "two"):
        words = [str(bundle(place)), "--key", "key.json", *headers(place), "-o", where]
        assert run("certificate", *words).exit_code == 0
        place.chain.grow(3)
        place.write_headers()
    names = sorted(file.name for file in Path("one").iterdir())
    for name in names:
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes()
    place.run("certificate", "2507.00001", "-o", "store")
    page, _ = names
    here, there = Path("one", page).read_bytes(), Path("store", page).read_bytes()
    assert here.replace(b"given by hand", b"in the keyring") == there


def _key(place: Workplace):
    return json.loads(bundle(place).read_bytes())["public_keys"][0]


def test_what_is_pending_is_refused_and_the_calendars_are_named(place, elsewhere):
    words = place.run("certificate", "2507.00009").stderr
    assert "pending" in words
    assert "calendar.example.org" in words
    assert place.run("certificate", "2507.00009").exit_code == 1
    assert not list(Path().iterdir())


def test_without_a_header_source_it_is_refused_and_told_how_to_give_one(place, elsewhere):
    words = refused(str(bundle(place)))
    assert "header not checked" in words
    assert "--headers" in words


def test_with_too_few_confirmations_it_is_refused(place, elsewhere):
    assert "confirmations" in refused(
        str(bundle(place)), *headers(place), "--confirmations", "5000"
    )


def test_headers_that_end_before_the_block_are_a_matter_of_waiting(place, elsewhere):
    short = FakeChain(height=50)
    short.write(Path("short.bin"))
    words = [str(bundle(place)), "--headers", "short.bin", "--network", "regtest"]
    assert "end at block 50" in refused(*words, code=3)


def test_a_tampered_bundle_is_refused(place, elsewhere):
    text = bundle(place).read_text("utf-8")
    Path("bad.json").write_text(text.replace('"cs.DL"', '"cs.CY"'), "utf-8")
    assert "failed" in refused("bad.json", *headers(place))


def test_a_name_nobody_knows_is_refused(place, elsewhere):
    result = place.run("certificate", "2507.99999")
    assert (result.exit_code, list(elsewhere.iterdir())) == (1, [])


def test_a_file_is_certified_when_it_is_at_hand_or_named_by_its_digest(place, elsewhere):
    Path("paper.txt").write_bytes(FILE)
    digest = hashlib.sha256(FILE).hexdigest()
    for words in ([digest], [digest, "--file", "paper.txt"], [digest, "--digest", digest]):
        result = place.run("certificate", *words, "--format", "html", "-o", "-")
        assert result.exit_code == 0, result.stderr
        assert "sha256sum FILE" in result.stdout
        assert f"sha256:{digest}" in result.stdout
    Path("paper.txt").write_bytes(FILE + b".")
    assert place.run("certificate", digest, "--file", "paper.txt").exit_code == 1


def test_a_title_is_held_against_its_hash_in_the_record(place):
    def page(title: str) -> str:
        words = ["2507.00002", "--title", title, "--format", "html", "-o", "-"]
        return place.run("certificate", *words).stdout

    assert "the record holds the SHA-256 of this title" in page(TITLE)
    assert "the record does not confirm it" in page("Another title")


def test_another_file_is_kept_unless_forced_and_an_old_certificate_is_replaced(place, elsewhere):
    Path("mine.pdf").write_bytes(b"%PDF-1.4 my thesis")
    words = ["2507.00001", "-o", "mine.pdf"]
    kept = place.run("certificate", *words)
    assert (kept.exit_code, Path("mine.pdf").read_bytes()[-6:]) == (1, b"thesis")
    assert "--force" in kept.stderr
    assert place.run("certificate", *words, "--force").exit_code == 0
    before = Path("mine.pdf").read_bytes()
    assert place.run("certificate", *words, "--title", "With a title").exit_code == 0
    assert Path("mine.pdf").read_bytes() != before


@pytest.mark.parametrize(
    "words",
    [("-o", "x.pdf", "--format", "html"), ("-o", "-"), ("-o", "x.docx")],
    ids=["contradiction", "stdout of two", "no form"],
)
def test_a_destination_that_means_nothing_is_refused_before_anything_is_opened(place, words):
    assert place.run("certificate", "2507.00001", *words).exit_code == 2


def test_an_ots_has_nothing_signed_to_certify(place, elsewhere):
    place.run("export", "2507.00001", "-o", "x.ots")
    assert "no bundle" in refused("x.ots", *headers(place))


def test_the_steps_on_the_page_work_as_they_stand(place, elsewhere):
    """With Python's standard library and the standard client; the block's root is on the page."""
    shutil.copy(bundle(place), "bundle.json")
    text = run("certificate", "bundle.json", *headers(place), "--format", "html", "-o", "-").stdout
    hash_it, verify = (html.unescape(code) for code in re.findall(r"<li>.*?<code>(.*?)</code>",
                       text, re.DOTALL))  # fmt: skip
    path = {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def shell(script: str) -> str:
        done = subprocess.run(
            ["sh", "-uc", script], capture_output=True, text=True, check=False,
            env={**os.environ, **path, "HOME": str(elsewhere)},
        )  # fmt: skip
        return done.stdout + done.stderr

    digest = sample(1).digest.hex()
    assert shell(hash_it).strip() == digest
    assert f"sha256 {digest}" in text
    events = json.loads(Path("bundle.json").read_bytes())["events"]
    (event,) = [one for one in events if one["event_id"] in text]
    proof = base64.b64decode(event["payload"]["proof_b64"])
    assert hashlib.sha256(proof).hexdigest() in text
    Path("proof.ots").write_bytes(proof)
    assert verify == f"ots verify -d {digest} proof.ots"
    said = shell(verify.replace("ots verify", "ots --no-bitcoin verify"))
    root = re.search(r"Bitcoin block 101 has merkleroot ([0-9a-f]{64})", said)
    assert root, said
    assert root[1] in text
    stated, signature = event.pop("event_id"), event.pop("signature_b64")
    body = json.dumps(event, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert stated == "sha256:" + hashlib.sha256(body).hexdigest()
    key = _key(place)
    raw = base64.b64decode(key["public_key_b64"])
    Ed25519PublicKey.from_public_bytes(raw).verify(
        base64.b64decode(signature), bytes.fromhex(stated[7:])
    )
    assert key["fingerprint_sha256_hex"] in text


# What was signed and does not stand


@pytest.fixture
def made(elsewhere):
    """Return a function that certifies a bundle of events about one record."""
    chain, signer, record = FakeChain(), FakeSigner(), sample(1)
    anchored = sign(body_of(record, signer, anchored_payload(mined(record.digest, chain), chain)),
                    signer)  # fmt: skip
    Path("key.json").write_text(json.dumps(to_document(signer.public())))

    def certify(*events):
        chain.write(Path("headers.bin"))
        Path("b.json").write_bytes(bundle_with(record, [anchored, *events], [signer]))
        words = ["--headers", "headers.bin", "--network", "regtest", "--key", "key.json"]
        return run("certificate", "b.json", *words, "--format", "html", "-o", "-")

    certify.anchored, certify.record, certify.signer, certify.chain = (
        anchored, record, signer, chain,
    )  # fmt: skip
    return certify


def test_a_withdrawn_timestamp_is_refused(made):
    result = made(withdrawal(made.record, made.signer, made.anchored["event_id"]))
    assert result.exit_code == 1
    assert "withdrawn" in result.stderr


def test_a_block_that_a_reorganisation_took_is_refused(made):
    made.chain.reorg(8)
    made.chain.grow(10)
    result = made()
    assert result.exit_code == 1
    assert "Merkle root" in result.stderr


def test_a_signer_who_says_two_things_of_one_block_is_believed_in_neither(made):
    payload = {**made.anchored["payload"], "block_time": "2024-07-26T07:00:00Z"}
    result = made(sign(body_of(made.record, made.signer, payload), made.signer))
    assert result.exit_code == 1


def test_copies_are_those_the_signer_states_and_has_not_taken_back(made):
    capture = stored_event(made.record, made.signer)
    assert capture["payload"]["capture_url"] in made(capture).stdout
    gone = withdrawal(made.record, made.signer, capture["event_id"], "storage")
    assert capture["payload"]["capture_url"] not in made(capture, gone).stdout
    stranger = FakeSigner("stranger-2024", "stranger.example.org")
    other = stored_event(made.record, stranger, x_archive_src="stranger.warc.gz")
    result = made(other)
    assert result.exit_code == 0
    assert other["payload"]["capture_url"] not in result.stdout
