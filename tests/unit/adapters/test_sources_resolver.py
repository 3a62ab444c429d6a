"""A resolver: each name is asked for once, politely, and only its own record is taken."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from support.http_server import ScriptedServer, dead_port, reply
from support.parties import make_parts
from support.sourcing import digests, to_the_end
from support.workplace import sample

from anchord.adapters.http import Client
from anchord.adapters.mirrors.http import HttpMirror
from anchord.adapters.sources import resolver as resolving
from anchord.adapters.sources.resolver import ACCEPT, PATIENCE, Resolver
from anchord.core.number import pith_number, pith_suffix
from anchord.engine import receiving
from anchord.errors import TransientError

NOW = 2_000_000_000
DAY = 86_400
RECORDS = [sample(number) for number in range(6)]


class Registry(ScriptedServer):
    """Answers for records by suffix, digest or arXiv id; `faults` by name come first."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.records = {}
        self.faults: dict[str, bytes] = {}
        for record in RECORDS:
            names = (pith_suffix(record.digest), record.digest.hex(), f"{record.source_id}v1")
            self.records.update(dict.fromkeys(names, record))

    def _answer(self, asked):
        name = asked.path.removeprefix("/pith/")
        if name in self.faults:
            return [self.faults[name]]
        record = self.records.get(name)
        if record is None:
            return [reply(b"nothing here", "404 Not Found")]
        etag = f'"{record.digest.hex()[:8]}"'
        if asked.headers.get("if-none-match") == etag:
            return [reply(b"", "304 Not Modified")]
        said = {"canonical_record": json.loads(record.canonical), "hits": 12.0,
                "canonical_sha256": record.digest.hex()}  # fmt: skip
        return [reply(json.dumps(said).encode(), headers=f"ETag: {etag}\r\n")]

    def names(self):
        return [asked.path.removeprefix("/pith/") for asked in self.asked]


@pytest.fixture
def registry():
    with Registry() as server:
        yield server


@pytest.fixture
def parts(tmp_path: Path):
    found = make_parts(tmp_path)
    yield found
    found.store.close()


def resolver(url, parts, names, **more) -> Resolver:
    web = HttpMirror("registry", Client(5.0), 1000.0, local=True, accept=ACCEPT)
    return Resolver("registry", 60, f"{url}/pith/{{id}}", lambda: iter(names), web,
                    lambda: parts.store.pulls, **more)  # fmt: skip


def numbers(records) -> list[str]:
    return [pith_number(record.digest, record.year) for record in records]


def test_every_name_of_the_list_comes_in_and_is_asked_for_once(registry, parts):
    names = [*numbers(RECORDS[:2]), RECORDS[2].digest.hex(), f"arXiv:{RECORDS[3].source_id}v1"]
    source = resolver(registry.url, parts, names)
    assert to_the_end(parts, source, NOW) == []
    assert digests(parts) == {record.digest.hex() for record in RECORDS[:4]}
    assert {asked.headers["accept"] for asked in registry.asked} == {"application/ld+json"}
    to_the_end(parts, source, NOW + 60)
    assert len(registry.asked) == 4


def test_a_name_that_is_added_is_asked_for_and_no_other(registry, parts):
    names = numbers(RECORDS[:2])
    source = resolver(registry.url, parts, names)
    to_the_end(parts, source, NOW)
    names.insert(0, numbers(RECORDS[5:])[0])
    to_the_end(parts, source, NOW + 60)
    assert registry.names()[2:] == [pith_suffix(RECORDS[5].digest)]


def test_the_next_day_only_what_changed_is_sent_again(registry, parts):
    source = resolver(registry.url, parts, numbers(RECORDS[:2]))
    to_the_end(parts, source, NOW)
    to_the_end(parts, source, NOW + DAY - 1)
    assert len(registry.asked) == 2
    to_the_end(parts, source, NOW + DAY)
    assert [asked.headers.get("if-none-match") is not None for asked in registry.asked[2:]] == [
        True, True,
    ]  # fmt: skip
    to_the_end(parts, source, NOW + DAY + 60)
    assert len(registry.asked) == 4


@pytest.mark.parametrize(
    "name",
    ["nonsense!", "ABCDEFGH", "../../etc/passwd", "http://127.0.0.1/pith/x y", "\x1b[31mred",
     "a" * 900, pith_number(sample(99).digest, "2020")],
)  # fmt: skip
def test_a_name_that_means_nothing_is_refused_and_asked_for_rarely(registry, parts, name):
    source = resolver(registry.url, parts, [name, *numbers(RECORDS[:1])])
    (refused,) = to_the_end(parts, source, NOW)
    assert refused.where.isprintable()
    assert digests(parts) == {RECORDS[0].digest.hex()}
    assert to_the_end(parts, source, NOW + 60) == []


def test_a_record_that_was_not_asked_for_is_refused(registry, parts):
    asked, other = RECORDS[0], RECORDS[1]
    names = [pith_suffix(asked.digest), asked.digest.hex(), f"{asked.source_id}v1",
             f"pith:1999:{pith_suffix(other.digest)}"]  # fmt: skip
    for name in names[:3]:
        registry.records[name] = other
    refused = to_the_end(parts, resolver(registry.url, parts, names), NOW)
    assert len(refused) == 4
    assert all("another record" in one.reason for one in refused)
    assert digests(parts) == set()


@pytest.mark.parametrize(
    "answer",
    [reply(b"{"), reply(b"<html>"), reply(b"", "302 Found", "Location: http://elsewhere.example/\r\n"),
     reply(b"no", "403 Forbidden")],
)  # fmt: skip
def test_an_answer_that_is_no_use_costs_its_own_record_only(registry, parts, answer):
    registry.faults[pith_suffix(RECORDS[0].digest)] = answer
    refused = to_the_end(parts, resolver(registry.url, parts, numbers(RECORDS[:3])), NOW)
    assert len(refused) == 1
    assert digests(parts) == {record.digest.hex() for record in RECORDS[1:3]}


def test_a_name_that_cannot_be_answered_now_does_not_hold_up_the_others(registry, parts):
    registry.faults[pith_suffix(RECORDS[0].digest)] = reply(b"", "500 Internal Server Error")
    source = resolver(registry.url, parts, numbers(RECORDS))
    looked = receiving.look(parts, source, NOW)
    assert isinstance(looked.error, TransientError)
    assert looked.received.new == 5
    registry.faults.clear()
    to_the_end(parts, source, NOW + 60)
    assert len(digests(parts)) == 6
    assert len(registry.asked) == 7


@pytest.mark.parametrize("answer", ["500 Broken", "503 Later\r\nRetry-After: 600"])
def test_names_that_never_answer_do_not_hold_up_the_rest_of_the_list(
    registry, parts, monkeypatch, answer
):
    """As many as it takes to give up on the resolver, in each part of the list."""
    monkeypatch.setattr(resolving, "_LOOK_UP", PATIENCE + 1)
    bad = [f"{number:064x}" for number in range(2 * PATIENCE)]
    registry.faults = dict.fromkeys(bad, reply(b"", answer))
    names = [*bad[:PATIENCE], *numbers(RECORDS[:3]), *bad[PATIENCE:], *numbers(RECORDS[3:])]
    source = resolver(registry.url, parts, names)
    for look in range(4 * PATIENCE):
        receiving.look(parts, source, NOW + 3_600 * look)
    assert len(digests(parts)) == len(RECORDS)


def test_a_resolver_that_is_away_or_wants_patience_is_left_alone(registry, parts):
    source = resolver(f"http://127.0.0.1:{dead_port()}", parts, numbers(RECORDS))
    assert isinstance(receiving.look(parts, source, NOW).error, TransientError)
    for record in RECORDS:
        registry.faults[pith_suffix(record.digest)] = reply(b"", "503 Service Unavailable")
    source = resolver(registry.url, parts, numbers(RECORDS))
    assert isinstance(receiving.look(parts, source, NOW).error, TransientError)
    assert len(registry.asked) == PATIENCE
    patience = reply(b"", "429 Too Many Requests", "Retry-After: 7200\r\n")
    registry.faults = dict.fromkeys(registry.faults, patience)
    assert receiving.look(parts, source, NOW).error.retry_after == 7200
    assert len(registry.asked) == PATIENCE + 1
    assert parts.store.sources.get("registry").next_at >= NOW + 7200


def test_a_long_list_is_asked_for_by_parts_and_goes_on_where_it_paused(
    registry, parts, monkeypatch
):
    """Each look at the clock finds it thirty seconds later."""
    monkeypatch.setattr(resolving, "_LOOK_UP", 2)
    ticks = itertools.count(0, 30)
    source = resolver(registry.url, parts, numbers(RECORDS), monotonic=lambda: next(ticks))
    places = []
    for _ in range(4):
        looked = receiving.look(parts, source, NOW)
        places.append((looked.paused, source.place(parts.store.sources.get("registry").cursor)))
    assert places == [
        (True, "2 names of the list done"), (True, "4 names of the list done"),
        (True, "6 names of the list done"), (False, "at the start of the list"),
    ]  # fmt: skip
    assert len(registry.asked) == len(digests(parts)) == len(RECORDS)


def test_a_name_that_stands_twice_is_asked_for_once(registry, parts):
    to_the_end(parts, resolver(registry.url, parts, numbers(RECORDS[:1]) * 60), NOW)
    assert len(registry.asked) == 1
