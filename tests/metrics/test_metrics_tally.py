"""What one process counts: exactly what its reports say, under names whose number is bounded."""

from __future__ import annotations

import logging
import threading
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from support.monitored import REPORT, samples, value

from anchord.app.metrics.exposing import Sheet, text_of
from anchord.app.metrics.tally import LineCounter, Tally
from anchord.engine.archiving import ArchiveReport
from anchord.engine.capture_report import CaptureReport
from anchord.engine.itemising import ItemReport
from anchord.engine.run import PassReport

COUNTS = st.integers(0, 1000)
CODES = st.dictionaries(st.text(max_size=60) | st.just("http-429"), st.integers(1, 9), max_size=8)


def made(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(fields).map(lambda values: kind(**values))


CAPTURES = made(CaptureReport, submitted=COUNTS, stored=COUNTS, lost=COUNTS, refused=CODES)
ITEMS = made(ItemReport, uploaded=COUNTS, stored=COUNTS, refused=CODES)
REPORTS = made(
    PassReport, sealed=COUNTS, submitted=COUNTS, upgraded=COUNTS, anchored=COUNTS, signed=COUNTS,
    failed_calls=COUNTS, problems=st.dictionaries(st.text(max_size=5), st.text(), max_size=3),
    stored=st.none() | made(ArchiveReport, captures=CAPTURES, items=ITEMS),
)  # fmt: skip


def shown(tally: Tally) -> Any:
    sheet = Sheet()
    tally.put(sheet)
    return samples(text_of(sheet, process=True))


def attempts(found: Any, step: str, outcome: str, facet: str = "anchored") -> float | None:
    return value(found, "attempts_total", facet=facet, step=step, outcome=outcome)


@settings(max_examples=40)
@given(st.lists(REPORTS, max_size=6))
def test_counts_are_the_sums_of_the_reports(reports: list[PassReport]) -> None:
    tally = Tally()
    for report in reports:
        tally.made("pass", report, 0.25)
    found = shown(tally)
    assert value(found, "sealed_records_total") == sum(one.sealed for one in reports)
    assert value(found, "anchored_batches_total") == sum(one.anchored for one in reports)
    assert value(found, "signed_events_total") == sum(one.signed for one in reports)
    assert attempts(found, "submit", "done") == sum(one.submitted for one in reports)
    assert attempts(found, "upgrade", "done") == sum(one.upgraded for one in reports)
    assert attempts(found, "call", "failed") == sum(one.failed_calls for one in reports)
    assert attempts(found, "headers", "failed") == sum(len(one.problems) for one in reports)
    stored = [one.stored for one in reports if one.stored is not None]
    lost = sum(one.captures.lost for one in stored)
    assert attempts(found, "replay", "lost", "stored") == lost
    refused = sum(sum(one.captures.refused.values()) for one in stored)
    assert attempts(found, "capture", "refused", "stored") == refused
    told = [number for (name, labels), number in found.items()
            if name == "anchord_refusals_total" and ("way", "captures") in labels]  # fmt: skip
    assert sum(told) == refused
    if reports:
        assert value(found, "pass_duration_seconds_count", kind="pass") == len(reports)
        assert value(found, "pass_duration_seconds_sum", kind="pass") == 0.25 * len(reports)


def test_codes_that_a_service_makes_up_do_not_become_series_without_end() -> None:
    tally = Tally()
    for number in range(5_000):
        items = ItemReport(refused={f"code-{number}": 1, f"a b\n{number}": 1})
        captures = CaptureReport(refused={f"{number}" * 30: 1})
        tally.made("storing", PassReport(stored=ArchiveReport(captures=captures, items=items)), 0.1)
    found = shown(tally)
    series = [labels for name, labels in found if name == "anchord_refusals_total"]
    assert len(series) <= 52
    told = sum(number for (name, _), number in found.items() if name == "anchord_refusals_total")
    assert told == 15_000
    assert len(found) < 200


def test_every_attempt_is_there_from_the_start_so_that_the_first_one_is_a_rise() -> None:
    fresh, after = Tally(), Tally()
    after.made("pass", REPORT, 1)
    names = {key for key in shown(after) if key[0] == "anchord_attempts_total"}
    assert {key for key in shown(fresh) if key[0] == "anchord_attempts_total"} == names
    assert attempts(shown(fresh), "submit", "done") == 0


def test_threads_may_count_at_once() -> None:
    tally = Tally()

    def work() -> None:
        for _ in range(500):
            tally.made("pass", PassReport(sealed=1), 0.001)
            tally.line("info")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        shown(tally)
    for thread in threads:
        thread.join()
    found = shown(tally)
    assert value(found, "sealed_records_total") == 2_000
    assert value(found, "log_lines_total", level="info") == 2_000


def test_a_pause_is_told_and_so_is_its_end() -> None:
    tally = Tally()
    assert value(shown(tally), "paused") == 0
    assert value(shown(tally), "last_look_timestamp_seconds") is None
    tally.looked(paused=True)
    assert value(shown(tally), "paused") == 1
    tally.looked()
    assert value(shown(tally), "paused") == 0
    assert value(shown(tally), "last_look_timestamp_seconds") is not None


def test_lines_are_counted_by_level_and_what_is_unknown_as_the_worst() -> None:
    tally, log = Tally(), logging.getLogger("anchord.test-of-lines")
    log.addHandler(LineCounter(tally))
    log.setLevel(logging.INFO)
    for level in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL):
        log.log(level, "a line")
    found = shown(tally)
    assert value(found, "log_lines_total", level="info") == 1
    assert value(found, "log_lines_total", level="warning") == 1
    assert value(found, "log_lines_total", level="error") == 2


def test_a_process_tells_its_memory_as_every_client_does() -> None:
    names = {name for name, _ in shown(Tally())}
    assert {
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
        "process_open_fds",
    } <= names
