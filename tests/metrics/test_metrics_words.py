"""Catalogue, document, alert rules and dashboard name the same metrics, and name them well."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics_of
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from support.monitored import REPORT, filled, samples

from anchord.app.cli.main import COMMANDS
from anchord.app.metrics.exposing import Sheet
from anchord.app.metrics.exposition import text_now
from anchord.app.metrics.families import BY_NAME, FAMILIES
from anchord.app.metrics.tally import Tally

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs/metrics.md").read_text("utf-8")
ALERTS = ROOT / "config/alerts.yml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
         for rule in group["rules"]]  # fmt: skip
DASHBOARD = json.loads((ROOT / "config/grafana-dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
ROWS = re.findall(r"^\| `(anchord_\w+)` \| (\w+) \| ([^|]+) \| ([^|]*) \| ([^|]+) \|$", DOCUMENT,
                  re.MULTILINE)  # fmt: skip
ELSEWHERE = {"up", "node_textfile_mtime_seconds"}
"""Metrics of Prometheus and of node_exporter."""
UNITS = {"_timestamp_seconds": "Unix seconds", "_seconds": "seconds", "_bytes": "bytes"}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[frozenset[tuple[str, str]]]]:
    """Return every series of a store that has everything: name -> labels."""
    tally = Tally()
    tally.made("pass", REPORT, 0.5)
    tally.looked()
    sheet = Sheet()
    tally.put(sheet)
    registry = CollectorRegistry()
    registry.register(sheet)
    ProcessCollector(registry=registry)
    found: dict[str, set[frozenset[tuple[str, str]]]] = {}
    for family in registry.collect():
        for one in family.samples:
            found.setdefault(one.name, set()).add(frozenset(one.labels.items()))
    for name, labels in samples(text_now(filled(tmp_path_factory.mktemp("words")))):
        found.setdefault(name, set()).add(labels)
    # Only PostgreSQL has workers.
    found["anchord_workers"] = {frozenset({("state", state)}) for state in ("there", "gone")}
    return found


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_name_follows_the_rules_of_prometheus(family: Any) -> None:
    """https://prometheus.io/docs/practices/naming/ and https://prometheus.io/docs/concepts/."""
    assert re.fullmatch(r"anchord_[a-z][a-z0-9]*(_[a-z0-9]+)*", family.name)
    assert (family.kind == "counter") == family.name.endswith("_total")
    assert not family.name.endswith(("_count", "_sum", "_bucket", "_created", "_milliseconds"))
    for label in family.labels:
        assert re.fullmatch(r"[a-z]+", label)
        assert label not in {"job", "instance", "le", "quantile"}
    assert family.help.endswith(".")
    assert "\n" not in family.help


def test_no_name_is_used_twice() -> None:
    assert len(BY_NAME) == len(FAMILIES)


def test_no_label_could_name_a_record() -> None:
    labels = {label for family in FAMILIES for label in family.labels}
    assert labels <= {"version", "schema", "file", "facet", "state", "what", "calendar",
                      "authority", "role", "lane", "source", "outlet", "kind", "step", "outcome",
                      "way", "code", "level"}  # fmt: skip


def test_the_exposition_is_openmetrics_too() -> None:
    """The stricter format's own parser takes it, so nothing stands twice or in the wrong place."""
    sheet = Sheet()
    for family in FAMILIES:
        values = (1, 2) if family.kind == "summary" else (1,)
        sheet.put(family.name.removeprefix("anchord_"), *values,
                  **dict.fromkeys(family.labels, 'a"\\\nb\u2028'))  # fmt: skip
    registry = CollectorRegistry()
    registry.register(sheet)
    text = openmetrics_of(registry).decode("utf-8")
    assert len(list(text_string_to_metric_families(text))) == len(FAMILIES)
    assert all(line.isprintable() for line in text.split("\n"))


def test_what_the_catalogue_does_not_have_is_a_fault() -> None:
    sheet = Sheet()
    with pytest.raises(KeyError):
        sheet.put("nothing", 1)
    with pytest.raises(KeyError):
        sheet.put("records", 1, facet="anchored")
    with pytest.raises(KeyError):
        sheet.put("store_up", 1, record="2507.00001")


# ---------------------------------------------------------------------- the document


def test_every_metric_is_documented_and_no_other() -> None:
    listed = {name: (kind, re.findall(r"`(\w+)`", labels)) for name, kind, _, labels, _ in ROWS}
    assert len(listed) == len(ROWS)
    assert listed == {family.name: (family.kind, list(family.labels)) for family in FAMILIES}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_documented_unit_is_the_one_in_the_name(row: tuple[str, ...]) -> None:
    name, _, unit, _, meaning = row
    wanted = next((unit for ending, unit in UNITS.items() if name.endswith(ending)), None)
    assert wanted in (None, unit.strip())
    assert meaning.strip()


def test_every_attempt_that_is_counted_is_documented(shown: Any) -> None:
    rows = re.findall(r"^\| `(anchored|stored)` \| `(\w+)` \| (.+) \|$", DOCUMENT, re.MULTILINE)
    listed = {
        (facet, step, outcome)
        for facet, step, words in rows
        for outcome in re.findall(r"`(\w+)`", words)
    }
    counted = {
        (labels["facet"], labels["step"], labels["outcome"])
        for labels in map(dict, shown["anchord_attempts_total"])
    }
    assert counted == listed


def test_every_value_of_a_label_is_documented(shown: Any) -> None:
    """With the metric, or with another one of that label."""
    meanings = {name: meaning for name, _, _, _, meaning in ROWS}
    told: dict[str, str] = {}
    for family in FAMILIES:
        for label in family.labels:
            told[label] = told.get(label, "") + meanings[family.name]
    theirs = {"calendar", "authority", "source", "outlet", "version", "schema", "code"}
    for name, series in shown.items():
        if name in meanings and name != "anchord_attempts_total":
            pairs = {pair for labels in series for pair in labels}
            for label, text in pairs:
                assert label in theirs or f"`{text}`" in told[label], (name, label, text)


# ---------------------------------------------------------------------- the log


def logged() -> Iterator[tuple[str, str]]:
    """Yield (file, event) for every event that the code names."""
    places = {"tell": 1, "_tell_seldom": 1, "say": 2}
    for file in (ROOT / "anchord/app").rglob("*.py"):
        text = file.read_text("utf-8")
        if "service.logs import" not in text and "self.guard" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            at = places.get(name)
            if at is not None and len(node.args) > at:
                event = node.args[at]
                if isinstance(event, ast.Constant):
                    yield file.name, event.value


def test_every_event_of_the_log_is_documented_and_no_other() -> None:
    section = DOCUMENT.partition("| event | what happened |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    named = {event for _, event in logged()}
    by_hand = {"pass", "storing", "fault", "note"}  # given by name, or by a library
    assert listed == named | by_hand


# ---------------------------------------------------------------------- rules and dashboard


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["definition"]


def selectors(expression: str) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Yield (metric, matchers): every word that is no function, label or number."""
    for name, inner in re.findall(
        r"\b((?:anchord|process|node)_[a-z0-9_]+|up)\b(?:\{([^}]*)\})?", expression
    ):
        yield name, re.findall(r'(\w+)(=~|!=|!~|=)"([^"]*)"', inner)


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_what_is_asked_for_is_there(where: str, expression: str, shown: Any) -> None:
    """Every metric exists, and every value that is asked for is one it has."""
    found = list(selectors(expression))
    assert found, where
    for name, matchers in found:
        if name in ELSEWHERE:
            continue
        assert name in shown, (where, name)
        for label, operator, text in matchers:
            if label in ("job", "instance"):
                continue
            assert operator == "=", (where, label)
            assert any((label, text) in labels for labels in shown[name]), (where, label, text)


def test_names_of_alerts_and_groups_are_unique() -> None:
    names = [rule["alert"] for rule in RULES]
    assert len(set(names)) == len(names)
    groups = [group["name"] for group in yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]]
    assert len(set(groups)) == len(groups)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_and_what_to_do(rule: dict[str, Any]) -> None:
    assert re.fullmatch(r"Anchord[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook"}
    for words in rule["annotations"].values():
        assert len(words) > 20
    for command in re.findall(r"\banchord ([a-z]+)", rule["annotations"]["runbook"]):
        assert command in COMMANDS


def test_a_panel_has_words_a_unit_and_a_place_of_its_own() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}  # fmt: skip
        assert at["x"] + at["w"] <= 24
        assert not cells & taken, panel["title"]
        taken |= cells
    for panel in PANELS:
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"


SEEN = (
    "backlog_records", "oldest_waiting_timestamp_seconds", "attempts_total", "calendar_failures",
    "archive_lane_stopped", "ledger_events", "checkpoint_timestamp_seconds", "parked", "build_info",
    "last_pass_timestamp_seconds", "header_tip_timestamp_seconds", "outlet_lag_events",
    "source_taken_records_total",
)  # fmt: skip


def test_every_facet_of_the_work_is_on_the_dashboard() -> None:
    """What an operator must see without asking."""
    asked = " ".join(target["expr"] for panel in PANELS for target in panel["targets"])
    for name in SEEN:
        assert f"anchord_{name}" in asked


# ---------------------------------------------------------------------- promtool, where it is


def promtool(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *map(str, words)], capture_output=True, text=True,
                          check=False, timeout=60)  # fmt: skip


def test_prometheus_itself_takes_rules_and_dashboard(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        return
    asked = [rule["expr"] for rule in RULES]
    asked += [target["expr"].replace("$__rate_interval", "5m")
              for panel in PANELS for target in panel["targets"]]  # fmt: skip
    recorded = [{"record": f"x:{n}", "expr": expression} for n, expression in enumerate(asked)]
    file = tmp_path / "dashboard.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": recorded}]}))
    for one in (ALERTS, file):
        done = promtool("check", "rules", one)
        assert done.returncode == 0, done.stdout + done.stderr


FIRES = {
    "AnchordStoreUnreadable": {"anchord_store_up": "0x120"},
    "AnchordNobodyWorks": {"anchord_next_due_timestamp_seconds": "0x120"},
    "AnchordPaused": {"anchord_paused": "1x120"},
    "AnchordNotSigned": {"anchord_ledger_due_events": "5x300"},
    "AnchordLogNotSigned": {"anchord_ledger_events": "9x600", "anchord_checkpoint_events": "5x600"},
    "AnchordTooFewCalendars": {
        'anchord_calendar_failures{calendar="a"}': "0x300",
        'anchord_calendar_failures{calendar="b"}': "9x300",
    },
    "AnchordParked": {
        'anchord_parked{what="file"}': "1x60",
        'anchord_parked{what="batch"}': "0x60",
    },
    "AnchordArchiveStopped": {'anchord_archive_lane_stopped{lane="spn"}': "1x60"},
    "AnchordHeadersOld": {
        "anchord_header_tip_timestamp_seconds": "0x600",
        'anchord_records{facet="anchored",state="attested"}': "1x600",
    },
}
"""Alert -> series that let it fire: value and minutes. Old moments are those near 1970."""


WELL = {
    "anchord_store_up": "1+0x300",
    "anchord_paused": "0+0x300",
    "anchord_ledger_due_events": "0+0x300",
    "anchord_ledger_events": "9+0x300",
    "anchord_checkpoint_events": "9+0x300",
    'anchord_calendar_failures{calendar="a"}': "0+0x300",
    'anchord_calendar_failures{calendar="b"}': "1+0x300",
    'anchord_parked{what="file"}': "0+0x300",
}
"""Where nothing is wrong."""


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    if shutil.which("promtool") is None:
        return
    tests = []
    for alert, series in FIRES.items():
        minutes = int(next(iter(series.values())).partition("x")[2])
        inputs = [{"series": name, "values": text.replace("x", "+0x")}
                  for name, text in series.items()]  # fmt: skip
        query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
        tests.append({
            "interval": "1m", "input_series": inputs,
            "promql_expr_test": [{"expr": query, "eval_time": f"{minutes}m",
                                  "exp_samples": [{"value": 1}]}],
        })  # fmt: skip
    tests.append({
        "interval": "1m",
        "input_series": [{"series": name, "values": text} for name, text in WELL.items()],
        "promql_expr_test": [{"expr": "count(ALERTS)", "eval_time": "300m", "exp_samples": []}],
    })  # fmt: skip
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": tests}))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr
