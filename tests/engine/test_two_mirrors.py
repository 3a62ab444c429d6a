"""Two mirrors that hold the same publish the same bytes, however and whenever it came to them."""

from __future__ import annotations

import json
import random
from hashlib import sha256

import pytest
from support.evidence import body_of, sign
from support.parties import FakeSigner
from support.trees import index_lines, publish_tree, tree_files
from support.workplace import Workplace, bare, sample

from anchord.core.canonical import pith_suffix
from anchord.core.key_document import to_document

RECORDS = [*[sample(number) for number in range(6)], bare(sha256(b"a file").digest())]
READER = FakeSigner("reader-2024", "reader.example.org")


def citation(record, number):
    """Return somebody else's signed citation of another work by a record."""
    payload = {"relation": "extends", "cited": {"doi": f"10.1000/{number}"}}
    at = f"2024-08-01T12:00:{number:02d}Z"
    event = body_of(record, READER, payload, event_type="citation", target="citation")
    return sign({**event, "created_at": at}, READER)


@pytest.fixture(scope="module")
def origins(tmp_path_factory):
    """Return three trees with different parts of what is known, and bundles in files."""
    trees, files = [], tmp_path_factory.mktemp("bundles")
    for number, records in enumerate((RECORDS[:5], RECORDS[2:], RECORDS[:3])):
        place = Workplace(tmp_path_factory.mktemp(f"origin-{number}"))
        place.clock.advance(1000 * number)
        place.anchor(*records)
        tree = tmp_path_factory.mktemp("tree") / "tree"
        publish_tree(place, tree, name=f"origin-{number}.example.org")
        trees.append(tree)
    for number in range(3):
        raw = (trees[0] / "pith" / pith_suffix(sample(number).digest) / "bundle.json").read_bytes()
        bundle = json.loads(raw)
        bundle["events"] = [citation(sample(number), n) for n in (number, 9 - number)]
        bundle.pop("inclusion", None)
        bundle["novel"] = {"said": number}
        (files / f"claims-{number}.json").write_text(json.dumps(bundle, indent=1))
    return trees, sorted(files.iterdir())


def keyed(tmp_path, name, origins):
    """Return a new mirror with the keyring that both have, its own key aside."""
    (tmp_path / name).mkdir()
    place = Workplace(tmp_path / name)
    for tree in origins[0]:
        key = str(tree / "pith-signing-key.json")
        assert place.run("key", "trust", key).exit_code == 0
    document = to_document(READER.public(targets=("citation",)))
    (place.folder / "reader.json").write_text(json.dumps(document))
    assert place.run("key", "trust", str(place.folder / "reader.json")).exit_code == 0
    return place


def steps(origins):
    """Return all that reaches a mirror, each as a command."""
    trees, files = origins
    pulls = [("mirror", "pull", str(tree), "--only-this", "--no-states") for tree in trees]
    one = f"pith:2001:{pith_suffix(sample(1).digest)}"
    pulls.append((*pulls[0], "--record", one))
    pulls.append((*pulls[1], "--limit", "2"))
    adds = [("add", str(file)) for file in files]
    suffixes = [pith_suffix(sample(number).digest) for number in (3, 4)]
    adds += [("add", str(trees[1] / "pith" / suffix / "bundle.json")) for suffix in suffixes]
    return [*pulls, *adds]


def published(place, tree):
    """Return what is the same on every mirror: bundles and states."""
    publish_tree(place, tree)
    return {
        path: data
        for path, data in tree_files(tree).items()
        if path.endswith(("bundle.json", "state.json"))
    }


@pytest.mark.parametrize("seed", [1, 2])
def test_order_batches_and_ways_of_arrival_do_not_show(tmp_path, origins, seed):
    first, second = keyed(tmp_path, "one", origins), keyed(tmp_path, "two", origins)
    # Both know the same keys, each other's own included.
    for here, there in ((first, second), (second, first)):
        document = json.dumps(here.json("key", "public"))
        (there.folder / "other.json").write_text(document)
        assert there.run("key", "trust", str(there.folder / "other.json")).exit_code == 0
    dice = random.Random(seed)
    for place, repeats in ((first, 1), (second, 2)):
        order = steps(origins) * repeats
        dice.shuffle(order)
        place.clock.advance(dice.randrange(10**6))
        for words in order:
            assert place.run(*words).exit_code == 0, words
        # What was limited comes in whole at the end.
        assert place.run(*steps(origins)[1]).exit_code == 0
    one, two = published(first, tmp_path / "a"), published(second, tmp_path / "b")
    assert len(one) == 7 * 2 + 6
    assert one.keys() == two.keys()
    for path in one:
        assert one[path] == two[path], path
    lines = index_lines(tmp_path / "a"), index_lines(tmp_path / "b")
    assert all(lines[0][path] == lines[1][path] for path in one)
    # Record 1 is of two origins, each with two events, and was cited twice.
    bundle = json.loads(one[f"pith/{pith_suffix(sample(1).digest)}/bundle.json"])
    assert (len(bundle["events"]), bundle["novel"]) == (6, {"said": 1})
    state = json.loads(one[f"pith/{pith_suffix(sample(1).digest)}/state.json"])
    assert (state["valid_event_count"], state["invalid_event_count"]) == (6, 0)
    assert len(state["current"]["citations"]["extends"]) == 2


def test_a_mirror_of_a_mirror_is_the_mirror(tmp_path, origins):
    first, second = keyed(tmp_path, "one", origins), keyed(tmp_path, "two", origins)
    for words in steps(origins):
        assert first.run(*words).exit_code == 0
    one = published(first, tmp_path / "a")
    key = str(tmp_path / "a" / "pith-signing-key.json")
    assert second.run("key", "trust", key).exit_code == 0
    found = second.json("mirror", "pull", str(tmp_path / "a"))
    assert found["counts"] == {}
    assert published(second, tmp_path / "b") == one
