"""`anchord doctor` about what comes in and goes out by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.workplace import Workplace, sample

from anchord.ports.outlet import Progress, SetAside


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    text = place.config.read_text("utf-8")
    place.config.write_text(
        f"""{text}
[[sources]]
name = "incoming"
kind = "folder"
path = "in"

[[outlets]]
name = "bundles"
kind = "folder"
path = "out"
""",
        "utf-8",
    )
    place.anchor(sample(1))
    return place


def found(place: Workplace, code: int = 0) -> dict[str, dict[str, object]]:
    document = place.json("doctor", "--offline", code=code)
    return {one["name"]: one for one in document["checks"]}


def test_sources_and_outlets_that_were_never_asked_are_all_right(place: Workplace) -> None:
    told = found(place)
    assert (told["source incoming"]["state"], told["outlet bundles"]["state"]) == ("ok", "ok")


def test_a_source_that_fails_again_and_again_is_worth_a_look(place: Workplace) -> None:
    now = place.clock.now()
    with place.app() as app:
        app.store.sources.begin("incoming", "folder", now)
        for _ in range(3):
            app.store.sources.failed("incoming", now, now + 60, "the disk is away")
    told = found(place)["source incoming"]
    assert (told["state"], told["todo"]) == (
        "warn", "mend it, then anchord sources pull incoming",
    )  # fmt: skip
    assert "the disk is away" in str(told["what"])


def test_an_outlet_that_is_stopped_wants_a_person(place: Workplace) -> None:
    now = place.clock.now()
    with place.app() as app:
        app.store.outlets.begin("bundles", "folder", 0, now)
        app.store.outlets.fail("bundles", now, None, "410 Gone")
    told = found(place, code=2)["outlet bundles"]
    assert (told["state"], told["todo"]) == ("fail", "mend it, then anchord retry --outlet bundles")


def test_events_that_an_outlet_refused_want_a_person(place: Workplace) -> None:
    now = place.clock.now()
    with place.app() as app:
        app.store.outlets.begin("bundles", "folder", 0, now)
        refused = SetAside(seq=1, record_id=1, state="parked", attempts=9, next_attempt_at=None,
                           last_error="no")  # fmt: skip
        app.store.outlets.advance("bundles", Progress(before=0, seq=1, aside=(refused,)), now)
    told = found(place, code=2)["outlet bundles"]
    assert "1 event(s) were refused" in str(told["what"])


_SQL = """kind = "sql"\nurl = "sqlite:///here.db"\n"""
_NAMES = """kind = "pith"\nurl = "https://r.example.org/{id}"\nids_file = "no\""""
_SET = "statements = { timestamp_anchored = 'UPDATE papers SET at = :anchored_at' }"


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ('[[sources]]\nname = "a"\nkind = "folder"\npath = "nowhere"', "sources (a)", "a folder"),
        ('[[sources]]\nname = "a"\nkind = "sql"\ntable = "t"\nurl = "sqlite:///no.db"',
         "sources (a)", "no file"),
        ('[[sources]]\nname = "a"\nkind = "sql"\ntable = "t"\nurl = "nodatabase://h/d"',
         "sources (a)", "driver"),
        (f'[[sources]]\nname = "a"\n{_SQL}table = "t"\npassword_file = "no"',
         "sources (a)", "cannot be read"),
        (f'[[sources]]\nname = "a"\n{_NAMES}', "sources (a)", "cannot be read"),
        ('[[outlets]]\nname = "a"\nkind = "folder"\npath = "here.db"', "outlets (a)", "a folder"),
        ('[[outlets]]\nname = "a"\nkind = "webhook"\nurl = "https://hook.example.org/"',
         "outlets (a)", "needs a secret"),
        (f'[[outlets]]\nname = "a"\n{_SQL}{_SET.replace(":anchored_at", ":when")}',
         "outlets (a)", ":when"),
        (f'[[outlets]]\nname = "a"\n{_SQL}{_SET}\npassword_file = "no"',
         "outlets (a)", "cannot be read"),
    ],
)  # fmt: skip
def test_what_a_source_or_an_outlet_names_in_vain_is_found_before_a_pass_stumbles_over_it(
    text: str, name: str, expected: str, tmp_path: Path
) -> None:
    place = Workplace(tmp_path)
    (tmp_path / "here.db").touch()
    place.config.write_text(f"{place.config.read_text('utf-8')}\n{text}\n", "utf-8")
    document = place.json("config", "check", code=2)
    told = {one["name"]: one for one in document["checks"]}[name]
    assert told["state"] == "fail"
    assert expected in told["what"]
    assert not told["what"].startswith(name)  # it is not said twice
    assert told["todo"]
