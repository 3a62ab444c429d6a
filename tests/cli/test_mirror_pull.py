"""`anchord mirror pull`: what is new comes in once, what is false is named, and nothing stops."""

from __future__ import annotations

import copy
import json
import shutil
from hashlib import sha256

import pytest
from support.http_server import RESET, dead_port, reply
from support.parties import FakeSigner
from support.static_site import StaticSite
from support.trees import publish_tree, tree_files
from support.workplace import Workplace, bare, run, sample

from anchord.core.canonical import pith_suffix
from anchord.core.event import event_digest, signer_block
from anchord.core.key_document import to_document
from anchord.core.signed_document import signed
from anchord.core.tree_index import index_body, line_of, render_shard, shard_name
from anchord.engine.export import record_bundle

FILE = sha256(b"a file").digest()
RECORDS = [*[sample(number) for number in range(4)], bare(FILE)]
RATE = ("--rate", "1000")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Return a workplace with five anchored records, and the tree it published."""
    folder = tmp_path_factory.mktemp("source")
    place = Workplace(folder)
    place.anchor(*RECORDS)
    publish_tree(place, folder.parent / "published-tree")
    return place, folder.parent / "published-tree"


@pytest.fixture
def tree(source, tmp_path):
    shutil.copytree(source[1], tmp_path / "tree")
    return tmp_path / "tree"


@pytest.fixture(scope="module")
def fresh(source, tmp_path_factory):
    """Return an empty workplace that trusts the source's key, to be copied."""
    place = Workplace(tmp_path_factory.mktemp("fresh"))
    key = source[1] / "pith-signing-key.json"
    assert place.run("key", "trust", str(key)).exit_code == 0
    return place


@pytest.fixture
def place(tmp_path, fresh):
    return moved(fresh, tmp_path / "work")


def moved(place, folder):
    """Return a copy of a workplace in another folder."""
    shutil.copytree(place.folder, folder)
    copied = copy.copy(place)
    copied.folder = folder
    return copied


def suffix(number):
    return pith_suffix(sample(number).digest)


def bundle_path(number):
    return f"pith/{suffix(number)}/bundle.json"


def pull(place, *words, code=0):
    return place.json("mirror", "pull", *map(str, words), *RATE, code=code)


def kinds(found):
    return found["counts"]


def changed(tree, number, change):
    """Change a served bundle without touching the index."""
    path = tree / bundle_path(number)
    bundle = json.loads(path.read_bytes())
    change(bundle)
    path.unlink()
    path.write_bytes(json.dumps(bundle).encode())


def drop_newest(bundle):
    """Take the newest event out, with what proves that it is in the log."""
    bundle["events"].pop()
    bundle.pop("inclusion", None)


def resign(tree, signer, **files):
    """Sign an index over what lies in a tree, as its publisher could."""
    shards = {}
    for path, data in tree_files(tree).items():
        if not path.startswith("index") and not path.startswith(".publishing"):
            shards.setdefault(shard_name(path), []).append(line_of(path, data))
    shutil.rmtree(tree / "index")
    (tree / "index").mkdir()
    made = []
    for name, lines in shards.items():
        data, shard = render_shard(name, lines)
        (tree / name).write_bytes(data)
        made.append(shard)
    block = signer_block(signer.key_id, signer.public_key, signer.signer_id)
    body = index_body(made, block, 1_722_600_000)
    (tree / "index.json").write_bytes(signed(body, signer.sign(event_digest(body))))


def signer_of(source):
    with source[0].app() as app:
        return app.signer


# ---------------------------------------------------------------------- all is well


@pytest.mark.parametrize("way", ["folder", "url", "manifest"])
def test_everything_comes_in_once(place, tree, way):
    with StaticSite(tree) as site:
        where = {"folder": tree, "url": site.url, "manifest": f"{site.url}/pith-mirrors.json"}[way]
        found = pull(place, where)
        (mirror,) = found["mirrors"]
        assert (mirror["fetched"], mirror["states"], mirror["index"]) == (5, 5, "verified")
        assert (found["new"], found["counts"], found["false"]) == (5, {}, 0)
        asked = len(site.asked)
        again = pull(place, where)
        (mirror,) = again["mirrors"]
        assert (mirror["asked"], mirror["fetched"], again["new"]) == (0, 0, 0)
        if way != "folder":
            assert site.paths()[asked:] == ["pith-mirrors.json", "index.json"]
    with place.app() as app:
        assert sum(len(chunk) for chunk in app.store.records.walk()) == 5


def test_what_was_pulled_leaves_again_as_it_came(place, tree):
    pull(place, tree)
    with place.app() as app:
        for chunk in app.store.records.walk():
            for record in chunk:
                stem = record.digest.hex() if record.year is None else pith_suffix(record.digest)
                kind = "record" if record.year is None else "pith"
                served = (tree / kind / stem / "bundle.json").read_bytes()
                assert record_bundle(app.store, app.keyring, record) + b"\n" == served


def test_only_what_changed_is_fetched_again(place, source, tmp_path):
    tree = tmp_path / "growing"
    shutil.copytree(source[1], tree)
    with StaticSite(tree) as site:
        pull(place, site.url)
        # The publisher's store goes on: one record more.
        grown = moved(source[0], tmp_path / "other")
        grown.add(sample(9))
        publish_tree(grown, tree)
        asked = len(site.asked)
        found = pull(place, site.url)
        fresh = site.paths()[asked:]
    assert found["mirrors"][0]["fetched"] == 1
    assert [path for path in fresh if path.endswith("bundle.json")] == [bundle_path(9)]


def test_a_dry_run_fetches_no_bundle_and_writes_nothing(place, tree):
    with StaticSite(tree) as site:
        found = pull(place, site.url, "--dry-run")
        assert found["mirrors"][0]["wanted"] == 5
        assert not [path for path in site.paths() if path.endswith("bundle.json")]
    with place.app() as app:
        assert list(app.store.records.walk()) == []
        assert list(app.store.pulls.of_mirror(site.url)) == []


def test_named_records_alone_are_fetched(place, tree):
    with StaticSite(tree) as site:
        found = pull(place, site.url, "--record", f"pith:2001:{suffix(1)}", "--record", FILE.hex())
        bundles = {path for path in site.paths() if path.endswith("bundle.json")}
    assert bundles == {bundle_path(1), f"record/{FILE.hex()}/bundle.json"}
    assert found["new"] == 2
    # That was not all: the rest still comes.
    assert pull(place, tree)["mirrors"][0]["fetched"] == 5


def test_a_limit_leaves_the_rest_for_the_next_time(place, tree):
    with StaticSite(tree) as site:
        assert pull(place, site.url, "--limit", "2")["mirrors"][0]["fetched"] == 2
        assert pull(place, site.url, "--limit", "2")["mirrors"][0]["fetched"] == 2
        assert pull(place, site.url)["mirrors"][0]["fetched"] == 1
        bundles = [path for path in site.paths() if path.endswith("bundle.json")]
    assert len(bundles) == len(set(bundles)) == 5


def test_an_unknown_signer_of_the_index_is_reported(tmp_path, tree):
    (tmp_path / "stranger").mkdir()
    place = Workplace(tmp_path / "stranger")
    found = pull(place, tree)
    assert kinds(found)["index-unverified"] == 1
    assert set(kinds(found)) == {"index-unverified", "state-differs"}
    assert found["new"] == 5
    assert found["false"] == 0


# ---------------------------------------------------------------------- the registry's shape


def registry(tmp_path, tree, **changes):
    """Serve the tree as the registry would: no index, addresses with a host."""
    served = tmp_path / "registry"
    shutil.copytree(tree, served)
    (served / "index.json").unlink()
    manifest = json.loads((served / "pith-mirrors.json").read_bytes())
    for name in ("index", "log", "record_pattern", "proof_pattern"):
        del manifest["mirrors"][0][name]
    manifest["mirrors"][0].update(changes)
    (served / "pith-mirrors.json").write_text(json.dumps(manifest))
    return served


def test_a_mirror_without_an_index_is_asked_for_our_records(place, tree, tmp_path):
    place.add(sample(1), sample(2), sample(77), bare(FILE))
    with StaticSite(registry(tmp_path, tree)) as site:
        found = pull(place, site.url)
        (mirror,) = found["mirrors"]
        assert (mirror["asked"], mirror["fetched"], mirror["absent"]) == (4, 2, 2)
        assert mirror["index"] is None
        again = pull(place, site.url)["mirrors"][0]
        assert (again["fetched"], again["unchanged"], again["absent"]) == (0, 2, 2)


def test_without_validators_what_just_came_is_not_fetched_again(place, tree, tmp_path):
    place.add(sample(1), sample(2))
    with StaticSite(registry(tmp_path, tree), validators=False) as site:
        pull(place, site.url)
        asked = len(site.asked)
        assert pull(place, site.url)["mirrors"][0]["unchanged"] == 2
        assert site.paths()[asked:] == ["pith-mirrors.json"]


# ---------------------------------------------------------------------- what is false


def test_a_forged_bundle_is_refused_and_the_rest_comes(place, tree):
    def forge(bundle):
        bundle["events"][0]["payload"]["commitment"] = "00" * 32

    changed(tree, 1, forge)
    found = pull(place, tree, code=1)
    assert kinds(found) == {"bundle-refused": 1, "file-differs": 1}
    assert {one["record"] for one in found["differences"]} == {suffix(1)}
    assert (found["mirrors"][0]["fetched"], found["mirrors"][0]["refused"]) == (4, 1)
    assert found["new"] == 4
    # It is told again as long as it is served, and comes in once it is mended.
    assert kinds(pull(place, tree, code=1))["bundle-refused"] == 1


def test_a_bundle_that_was_mended_comes_in(place, tree, source):
    changed(tree, 1, lambda bundle: bundle.update(canonical_sha256="00" * 32))
    pull(place, tree, code=1)
    (tree / bundle_path(1)).write_bytes((source[1] / bundle_path(1)).read_bytes())
    found = pull(place, tree)
    assert (found["new"], found["counts"]) == (1, {})


def test_a_forged_bundle_in_a_well_signed_index_is_refused_too(place, tree, source):
    changed(tree, 1, lambda bundle: bundle["events"][1].update(signature_b64="AAAA"))
    resign(tree, signer_of(source))
    assert kinds(pull(place, tree, code=1)) == {"bundle-refused": 1}


def test_a_bundle_of_another_record_is_named(place, tree, source):
    data = (tree / bundle_path(2)).read_bytes()
    (tree / bundle_path(1)).write_bytes(data)
    resign(tree, signer_of(source))
    found = pull(place, tree, code=1)
    assert kinds(found) == {"wrong-record": 1}
    assert found["differences"][0]["record"] == suffix(1)


def test_a_file_the_index_does_not_speak_of_is_named(place, tree):
    changed(tree, 1, lambda bundle: bundle.update(novel=1))
    found = pull(place, tree, code=1)
    assert kinds(found) == {"file-differs": 1}
    assert found["new"] == 5, "evidence stands by itself"


def test_a_bundle_the_index_lists_and_that_is_withheld_is_named(place, tree):
    (tree / bundle_path(1)).unlink()
    assert kinds(pull(place, tree, code=1)) == {"file-differs": 1}


def test_a_tree_published_anew_meanwhile_is_not_called_false(place, tree, source):
    before = (tree / "index.json").read_bytes()
    changed(tree, 1, lambda bundle: bundle.update(novel=1))
    resign(tree, signer_of(source))
    with StaticSite(tree) as site:
        now = (tree / "index.json").read_bytes()
        shards = {f"index/{n:02x}.jsonl" for n in range(256)}
        for name in shards:
            old = source[1] / name
            site.faults[name] = (reply(old.read_bytes() if old.exists() else b"", "200 OK"),)
        site.faults["index.json"] = [(reply(before),), (reply(now),)]
        found = pull(place, site.url, code=3)
    assert kinds(found) == {"changed-meanwhile": 1}


def test_an_index_that_was_changed_is_named(place, tree):
    raw = (tree / "index.json").read_bytes()
    (tree / "index.json").write_bytes(raw.replace(b'"files":1', b'"files":2', 1))
    found = pull(place, tree, code=1)
    assert kinds(found) == {"index-forged": 1}
    assert found["mirrors"][0]["index"] == "forged"


def test_a_shard_that_was_changed_is_named(place, tree):
    shard = tree / shard_name(bundle_path(1))
    shard.write_bytes(shard.read_bytes().replace(b"bundle", b"bandle", 1))
    found = pull(place, tree, code=1)
    assert kinds(found) == {"index-forged": 1}
    assert found["new"] < 5


def test_an_index_by_somebody_else_in_our_signers_name_is_named(place, tree, source):
    forger = FakeSigner(signer_of(source).key_id, signer_of(source).signer_id)
    resign(tree, forger)
    assert "index-forged" in kinds(pull(place, tree, code=1))


def test_a_manifest_with_another_key_of_that_name_is_named(place, tree, source):
    forger = FakeSigner(signer_of(source).key_id, signer_of(source).signer_id)
    manifest = json.loads((tree / "pith-mirrors.json").read_bytes())
    manifest["mirrors"][0]["public_key"] = to_document(forger.public())
    (tree / "pith-mirrors.json").write_text(json.dumps(manifest))
    resign(tree, signer_of(source))
    assert kinds(pull(place, tree, code=1)) == {"key-differs": 1}


def test_a_state_that_is_not_what_the_bundle_comes_to_is_named(place, tree, source):
    path = tree / f"pith/{suffix(1)}/state.json"
    state = json.loads(path.read_bytes())
    state["valid_event_count"] = 7
    path.write_text(json.dumps(state))
    resign(tree, signer_of(source))
    found = pull(place, tree, code=1)
    assert kinds(found) == {"state-false": 1}
    assert "valid_event_count 7 (the bundle gives 2)" in found["differences"][0]["what"]


def test_states_are_left_alone_on_request(place, tree):
    with StaticSite(tree) as site:
        assert pull(place, site.url, "--no-states")["mirrors"][0]["states"] == 0
        assert not [path for path in site.paths() if path.endswith("state.json")]


def test_events_that_a_mirror_takes_back_silently_are_noticed(place, tree, source):
    pull(place, tree)
    changed(tree, 1, drop_newest)
    resign(tree, signer_of(source))
    found = pull(place, tree, "--no-states")
    assert kinds(found) == {"stale": 1}
    assert found["differences"][0]["record"] == suffix(1)


# ---------------------------------------------------------------------- between mirrors


def two(tmp_path, tree, source, change):
    """Return a second mirror that tells some things otherwise, well signed."""
    other = tmp_path / "second"
    shutil.copytree(tree, other)
    manifest = json.loads((other / "pith-mirrors.json").read_bytes())
    manifest["mirrors"][0]["name"] = "second.example.org"
    (other / "pith-mirrors.json").write_text(json.dumps(manifest))
    change(other)
    resign(other, signer_of(source))
    return other


def test_mirrors_that_agree_differ_in_nothing(place, tree, source, tmp_path):
    other = two(tmp_path, tree, source, lambda _tree: None)
    found = pull(place, tree, other)
    assert (found["compared"], found["counts"]) == (5, {})


def test_a_mirror_that_is_behind_is_named_for_each_record(place, tree, source, tmp_path):
    def change(other):
        changed(other, 1, drop_newest)
        shutil.rmtree(other / f"pith/{suffix(2)}")

    found = pull(place, tree, two(tmp_path, tree, source, change), "--no-states")
    assert kinds(found) == {"behind": 1, "absent": 1}
    told = {one["kind"]: (one["mirror"], one["record"]) for one in found["differences"]}
    assert told["behind"] == ("second.example.org", suffix(1))
    assert told["absent"] == ("second.example.org", suffix(2))
    # The same is told when nothing has to be fetched.
    assert kinds(pull(place, tree, tmp_path / "second")) == kinds(found)


def test_two_contents_under_one_id_are_named(place, tree, source, tmp_path):
    event = {"event_type": "citation_seen", "event_id": "sha256:" + "c" * 64, "payload": {"a": 1}}

    def give(word):
        def change(bundle):
            bundle["events"].append({**event, "payload": {"a": word}})

        return change

    changed(tree, 1, give("one"))
    resign(tree, signer_of(source))
    other = two(tmp_path, tree, source, lambda other: changed(other, 1, lambda b: (
        b["events"].pop(), give("other")(b))))  # fmt: skip
    found = pull(place, tree, other, "--no-states", code=1)
    assert kinds(found) == {"two-contents": 1}
    assert "c" * 64 in found["differences"][0]["what"]


# ---------------------------------------------------------------------- servers that fail


def test_a_server_that_is_away_leaves_work(place, tree):
    url = f"http://127.0.0.1:{dead_port()}"
    found = pull(place, url, tree, code=3)
    assert kinds(found) == {"unreachable": 1}
    assert found["new"] == 5, "the others are pulled"


def test_one_bad_answer_does_not_stop_the_rest(place, tree):
    with StaticSite(tree) as site:
        site.faults[bundle_path(1)] = [(RESET,)]
        site.faults[bundle_path(2)] = [(reply(b"", "302 Found", "Location: https://x.org/\r\n"),)]
        site.faults[bundle_path(3)] = [(reply(b"{", length=50),)]
        found = pull(place, site.url, code=3)
        assert kinds(found) == {"unreachable": 2, "unusable": 1}
        assert found["new"] == 2
        found = pull(place, site.url)
        assert (found["new"], found["counts"]) == (3, {})


def test_a_server_that_fails_again_and_again_is_left_alone(place, tree):
    with StaticSite(tree) as site:
        for number in range(4):
            site.faults[bundle_path(number)] = (reply(b"", "500 Broken"),)
        site.faults[f"record/{FILE.hex()}/bundle.json"] = (reply(b"", "500 Broken"),)
        pull(place, site.url, code=3)
        assert len([path for path in site.paths() if path.endswith("bundle.json")]) == 3


def test_a_server_that_asks_for_a_long_pause_is_left_at_once(place, tree):
    with StaticSite(tree) as site:
        for number in range(4):
            busy = reply(b"", "429 Too Many Requests", "Retry-After: 3600\r\n")
            site.faults[bundle_path(number)] = (busy,)
        found = pull(place, site.url, code=3)
        limited = [path for path in site.paths() if path in map(bundle_path, range(4))]
    assert len(limited) == 1
    assert not found["mirrors"][0]["complete"]


def test_a_state_that_did_not_come_is_asked_for_again(place, tree):
    with StaticSite(tree) as site:
        site.faults[f"pith/{suffix(1)}/state.json"] = [(RESET,)]
        assert pull(place, site.url, code=3)["mirrors"][0]["states"] == 4
        assert pull(place, site.url)["mirrors"][0]["states"] == 1


def test_an_oversized_bundle_is_not_read(place, tree):
    with StaticSite(tree) as site:
        site.faults[bundle_path(1)] = (reply(b" " * (16 * 1024 * 1024 + 1)),)
        assert kinds(pull(place, site.url, code=3)) == {"unusable": 1}


# ---------------------------------------------------------------------- manifests


def with_manifest(tree, change):
    manifest = json.loads((tree / "pith-mirrors.json").read_bytes())
    change(manifest["mirrors"])
    (tree / "pith-mirrors.json").write_text(json.dumps(manifest))


def test_other_mirrors_of_a_manifest_are_pulled_retired_ones_are_not(place, tree, tmp_path):
    second, third = tmp_path / "b", tmp_path / "c"
    for folder in (second, third):
        shutil.copytree(tree, folder)
    with StaticSite(tree) as site, StaticSite(second) as other, StaticSite(third) as gone:

        def change(mirrors):
            for name, at, status in (("b", other, "mirror"), ("c", gone, "retired")):
                entry = {"name": name, "status": status, "base_url": at.url}
                mirrors.append({**entry, "bundle_pattern": f"{at.url}/pith/{{suffix}}/bundle.json"})

        with_manifest(tree, change)
        found = pull(place, site.url, "--only-this")
        assert [one["name"] for one in found["mirrors"]] == ["mirror.example.org"]
        assert other.asked == []
        found = pull(place, site.url)
        assert [one["name"] for one in found["mirrors"]] == ["mirror.example.org", "b"]
        assert found["compared"] == 5
        assert gone.asked == []


def test_a_tree_with_addresses_is_read_from_the_folder_it_lies_in(place, source, tmp_path):
    tree = tmp_path / "usb"
    publish_tree(source[0], tree, base_url="https://mirror.example.org/graph")
    assert pull(place, tree)["new"] == 5


@pytest.mark.parametrize("status", ["404 Not Found", "200 OK"])
def test_a_place_without_a_manifest_is_named(place, tmp_path, status):
    with StaticSite(tmp_path) as site:
        site.faults["pith-mirrors.json"] = (reply(b"no manifest", status),)
        found = pull(place, site.url, code=1)
    assert kinds(found) == {"manifest-refused": 1}


def test_the_manifest_below_well_known_is_found(place, tree):
    (tree / "pith-mirrors.json").unlink()
    with StaticSite(tree) as site:
        assert pull(place, site.url)["new"] == 5
    assert pull(place, tree)["new"] == 0


def test_a_manifest_that_leads_into_this_machines_files_is_refused(place, tree):
    with_manifest(tree, lambda mirrors: mirrors[0].update(bundle_pattern="file:///x/{suffix}"))
    assert kinds(pull(place, tree, code=1)) == {"manifest-refused": 1}


def test_a_folder_cannot_send_us_to_this_machines_servers(place, tree):
    with StaticSite(tree) as site:

        def change(mirrors):
            entry = {"name": "b", "base_url": site.url}
            mirrors.append({**entry, "bundle_pattern": f"{site.url}/pith/{{suffix}}/bundle.json"})

        with_manifest(tree, change)
        found = pull(place, tree, code=1)
        assert kinds(found)["manifest-refused"] == 1
        assert site.asked == []


@pytest.mark.parametrize("where", ["http://mirror.example.org", "ftp://x", "nowhere/at/all"])
def test_a_place_that_cannot_be_asked_is_a_persons_mistake(place, where):
    assert place.run("mirror", "pull", where).exit_code == 2


def test_people_see_a_table_and_what_is_wrong(place, tree):
    changed(tree, 1, lambda bundle: bundle.update(canonical_sha256="00" * 32))
    result = place.run("mirror", "pull", str(tree))
    assert result.exit_code == 1
    assert "mirror.example.org" in result.stdout
    assert f"bundle-refused: mirror.example.org {suffix(1)}" in result.stderr
    assert run("mirror", "--help").exit_code == 0


@pytest.mark.parametrize("where", ["", "ftp://mirror.example.org", "file:///srv/mirror"])
def test_what_is_neither_an_address_nor_a_folder_is_told_as_it_was_typed(place, where):
    result = place.run("mirror", "pull", where)
    assert result.exit_code == 2
    assert f"{where!r} is no mirror: expected" in result.stderr


def test_an_address_is_told_as_it_was_typed_unless_it_may_hold_a_password(place):
    result = place.run("mirror", "pull", "https://mirror.example.org/a b?c")
    assert (result.exit_code, "'https://mirror.example.org/a b?c'" in result.stderr) == (2, True)
    result = place.run("mirror", "pull", "https://me:secret@mirror.example.org")
    assert (result.exit_code, "secret" in result.stderr) == (2, False)


def test_a_record_that_was_asked_for_and_is_not_listed_is_told(place, tree):
    found = pull(place, tree, "--record", "00" * 32, "--record", RECORDS[0].digest.hex())
    assert (found["mirrors"][0]["absent"], found["mirrors"][0]["fetched"]) == (1, 1)
    assert kinds(found) == {"absent": 1}
    assert found["differences"][0]["record"] == pith_suffix(bytes(32))


def test_a_mirror_may_call_itself_anything_and_stays_one_short_row(place, tree):
    for path in (tree / "pith-mirrors.json", tree / ".well-known" / "pith-mirrors.json"):
        manifest = json.loads(path.read_bytes())
        manifest["mirrors"][0]["name"] = "evil\x1b[31m\n" + "x" * 300
        path.write_text(json.dumps(manifest))
    told = place.run("mirror", "pull", str(tree), *RATE).stdout
    assert "\x1b" not in told
    assert len(told.splitlines()) == 2
    assert max(map(len, told.splitlines())) < 120
