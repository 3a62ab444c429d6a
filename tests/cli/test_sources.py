"""`anchord sources` and the tables [[sources]]: from the configuration to sealed records."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from support.sourcing import PAPERS, Database
from support.static_site import StaticSite
from support.trees import publish_tree
from support.workplace import Workplace, sample

from anchord.app.config import load
from anchord.app.service.agenda import Agenda
from anchord.app.service.session import Session
from anchord.engine import receiving
from anchord.engine.run import PassReport
from anchord.errors import ConfigError


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def configure(place: Workplace, **tables: str) -> None:
    text = place.config.read_text("utf-8").partition("[[sources]]")[0]
    for name, keys in tables.items():
        text += f'[[sources]]\nname = "{name}"\n{keys}\n'
    place.config.write_text(text, "utf-8")


def papers(place: Workplace) -> Database:
    found = Database(f"sqlite:///{place.folder / 'papers.db'}")
    found.run(PAPERS)
    return found


SQL = 'kind = "sql"\nurl = "sqlite:///papers.db"\ntable = "papers"'
FOLDER = 'kind = "folder"\npath = "inbox"\nsettle_s = 0'


def test_without_sources_it_says_where_they_are_configured(place):
    assert "[[sources]]" in place.run("sources").stdout
    assert place.json("sources") == {"sources": []}
    assert place.run("sources", "pull").exit_code == 2


def test_sources_are_read_now_shown_and_sealed_by_the_next_pass(place):
    papers(place).fill([1, 2, 3])
    (place.folder / "inbox").mkdir()
    (place.folder / "inbox/notes.txt").write_text("notes")
    configure(place, registry=SQL, inbox=FOLDER)
    place.clock.now = lambda: int(time.time()) + 2  # type: ignore[method-assign]
    before = place.json("sources")["sources"]
    assert [(one["place"], one["taken"]) for one in before] == [("at the start", 0)] * 2
    time.sleep(1.1)
    told = place.json("sources", "pull")
    assert (told["new"], told["failed"], told["looked_at"]) == (4, 0, ["registry", "inbox"])
    after = place.json("sources")["sources"]
    assert [one["taken"] for one in after] == [3, 1]
    shown = place.run("sources").stdout
    assert "after 3, to the end" in shown
    assert "after notes.txt" in shown


def test_what_is_refused_is_named_and_cannot_move_the_cursor_of_a_terminal(place):
    row = {"id": 1, "record": "{\x1b[31m"}
    papers(place).run("INSERT INTO papers (id, record) VALUES (:id, :record)", row)
    configure(place, registry=SQL)
    result = place.run("sources", "pull")
    assert result.exit_code == 1
    assert "registry, id 1:" in result.stderr
    assert "\x1b" not in result.output


def test_one_that_cannot_be_read_does_not_keep_others_from_it(place):
    papers(place).fill([1])
    configure(place, away=SQL.replace("papers.db", "none.db"), registry=SQL)
    result = place.run("sources", "pull")
    assert result.exit_code == 2
    shown = {one["name"]: one for one in place.json("sources")["sources"]}
    assert (shown["away"]["failures"], shown["registry"]["taken"]) == (1, 1)
    assert "failed 1 time(s)" in place.run("sources").stderr
    configure(place, registry=SQL)
    shown = {one["name"]: one for one in place.json("sources")["sources"]}
    assert (shown["away"]["configured"], shown["away"]["place"]) == (False, None)


def test_only_those_that_are_named_are_read_and_again_means_from_the_beginning(place):
    database = papers(place)
    database.fill([1, 2])
    configure(place, one=SQL, two=SQL)
    assert place.json("sources", "pull", "one")["looked_at"] == ["one"]
    assert place.json("sources", "pull", "one")["known"] == 0
    assert place.json("sources", "pull", "one", "--again")["known"] == 2
    assert place.run("sources", "pull", "three").exit_code == 2


def test_a_pass_says_what_came_and_what_could_not_be_read(place):
    papers(place).fill([1, 2])
    configure(place, registry=SQL, away=SQL.replace("papers.db", "none.db"))
    result = place.run("run-once", "--json")
    told = json.loads(result.stdout)
    assert (told["received"]["new"], told["sealed"]) == (2, 2)
    assert (told["received"]["failed"], result.exit_code) == (1, 3)
    assert list(told["received"]["problems"]) == ["away"]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('kind = "sql"\ntable = "t"', "needs url"),
        ('kind = "sql"\nurl = "sqlite:///x.db"', "query or table"),
        (f'{SQL}\nquery = "SELECT 1"', "query or table"),
        ('kind = "sql"\nurl = "postgresql://u:hunter2@db.example.org/x"\ntable = "t"', "password"),
        (f'{SQL}\npath = "x"', "means nothing"),
        (f'{SQL}\nurl_hosts = ["https://x.example.org"]', "url_hosts"),
        ('kind = "folder"', "needs path"),
        ('kind = "pith"\nurl = "https://r.example.org/{id}"', "ids or ids_file"),
        ('kind = "pith"\nurl = "https://m.example.org"\nids = ["x"]', "for a resolver"),
        ('kind = "pith"\nurl = "http://m.example.org"', "https"),
        ('kind = "pith"\nurl = "https://u:hunter2@m.example.org"', "@"),
        ('kind = "ftp"', "kind"),
        (f"{SQL}\nevery_s = 0", "every_s"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_asked(place, keys, words):
    configure(place, registry=keys)
    with pytest.raises(ConfigError) as caught:
        load(str(place.config))
    assert words in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_names_are_unique_and_safe(place):
    configure(place, **{"Bad Name": SQL})
    with pytest.raises(ConfigError, match="a name is made of"):
        load(str(place.config))
    configure(place, registry=f'{SQL}\n[[sources]]\nname = "registry"\n{FOLDER}')
    with pytest.raises(ConfigError, match="two are called"):
        load(str(place.config))


def test_a_password_comes_from_its_file_and_one_open_to_all_is_refused(place):
    secret = place.folder / "secret"
    secret.write_text("hunter2\n")
    secret.chmod(0o644)
    configure(place, registry='kind = "sql"\nurl = "postgresql://u@127.0.0.1:1/x"\ntable = "t"\n'
              'password_file = "secret"')  # fmt: skip
    result = place.run("sources", "pull")
    assert (result.exit_code, "chmod" in result.stderr) == (2, True)
    secret.chmod(0o600)
    result = place.run("sources", "pull")
    assert (result.exit_code, "hunter2" in result.output) == (3, False)


def test_the_names_of_a_resolver_come_from_a_file_that_may_grow(place):
    site = place.folder / "site"
    (site / "pith").mkdir(parents=True)
    records = [sample(number) for number in range(3)]
    for record in records:
        (site / "pith" / record.digest.hex()).write_bytes(record.canonical or b"")
    names = place.folder / "names"
    names.write_text(f"# ours\n\n{records[0].digest.hex()}\n")
    with StaticSite(site) as server:
        configure(place, registry=f'kind = "pith"\nurl = "{server.url}/pith/{{id}}"\n'
                  'ids_file = "names"\nrate = 1000')  # fmt: skip
        assert place.json("sources", "pull")["new"] == 1
        with names.open("a") as file:
            file.writelines(f"{record.digest.hex()}\n" for record in records[1:])
        assert place.json("sources", "pull")["new"] == 2
        assert len(server.asked) == 3
    names.unlink()
    assert place.run("sources", "pull").exit_code == 2


def test_a_mirror_is_pulled_by_its_index_and_then_only_what_is_new(place, tmp_path_factory):
    other = Workplace(tmp_path_factory.mktemp("other"))
    other.anchor(sample(1), sample(2))
    tree = tmp_path_factory.mktemp("tree") / "tree"
    publish_tree(other, tree, name="other.example.org")
    with StaticSite(tree) as server:
        configure(place, other=f'kind = "pith"\nurl = "{server.url}"\nrate = 1000')
        told = place.json("sources", "pull")
        assert (told["new"], told["failed"]) == (2, 0), told
        bundles = [path for path in server.paths() if path.endswith("bundle.json")]
        assert place.json("sources", "pull")["known"] == 0
        other.add(sample(3))
        other.step()
        publish_tree(other, tree, name="other.example.org")
        assert place.json("sources", "pull")["new"] == 1
        assert len(bundles) == 2
    assert place.run("sources", "pull").exit_code == 3


def test_a_mirror_without_an_index_is_told_what_to_do_instead(place):
    site = place.folder / "site"
    site.mkdir()
    mirror = {"name": "m", "bundle_pattern": "pith/{suffix}/bundle.json"}
    manifest = {"manifest_type": "pith_mirror_manifest", "manifest_version": "1.0",
                "generated_at": "2026-01-01T00:00:00Z", "merge_version": "x",
                "mirrors": [mirror]}  # fmt: skip
    (site / "pith-mirrors.json").write_text(json.dumps(manifest))
    with StaticSite(site) as server:
        configure(place, other=f'kind = "pith"\nurl = "{server.url}"')
        result = place.run("sources", "pull")
    assert (result.exit_code, "{id}" in result.stderr) == (2, True)


def test_the_service_wakes_when_a_source_is_due(place):
    papers(place).fill([1])
    configure(place, registry=f"{SQL}\nevery_s = 3600")
    session = Session(load(str(place.config)), lambda *_: None)
    try:
        agenda, now = Agenda(session), int(time.time())
        assert receiving.next_moment(session.parts, now) == now
        receiving.receive(session.parts, now)
        # What came waits for no batch here: only the source can make a pass due.
        place.step()
        agenda.passed(now, PassReport())
        assert receiving.next_moment(session.parts, now) == now + 3600
        assert agenda.pass_due(now + 3600)
    finally:
        session.close()
