"""The catalogue of metrics: every name that is ever exposed, with its kind, labels and meaning.

Names follow https://prometheus.io/docs/practices/naming/: seconds and bytes as units, `_total` on
what only grows, moments as Unix seconds in `_timestamp_seconds` (an age is `time()` less that, and
stays right when a file of metrics is read late). No label ever names a record, a URL of one, or a
host of one: their number has no bound. docs/metrics.md says the same for people; a test holds both
equal.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Kind = Literal["gauge", "counter", "summary"]


class Family(msgspec.Struct, frozen=True):
    """One metric."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


def _gauge(name: str, text: str, *labels: str) -> Family:
    return Family(f"anchord_{name}", "gauge", labels, text)


def _counter(name: str, text: str, *labels: str) -> Family:
    return Family(f"anchord_{name}_total", "counter", labels, text)


STORE = (
    _gauge("build_info", "The program and the schema it works on; always 1.", "version", "schema"),
    _gauge("store_up", "Whether the store could be read at the last try: 1 or 0."),
    _gauge("store_reading_timestamp_seconds", "When the store's numbers were last known right."),
    _gauge("store_reading_seconds", "How long the last reading of the store's numbers took."),
    _gauge("store_size_bytes", "Bytes of the store, and of the log beside it.", "file"),
    _gauge("records", "Records by facet and where they stand in it.", "facet", "state"),
    _gauge("backlog_records", "Records on their way in a facet, parked ones left out.", "facet"),
    _gauge(
        "oldest_waiting_timestamp_seconds",
        "No record on its way in a facet has waited longer than since then; absent: none waits.",
        "facet",
    ),
    _gauge("batches", "Batches by state; adopted proofs are batches of one.", "state"),
    _gauge(
        "next_due_timestamp_seconds",
        "When a call or a check for Bitcoin is due next; absent: never. Long past: nobody works.",
    ),
    _gauge("workers", "Workers of a PostgreSQL store, by whether they are there.", "state"),
    _gauge("parked", "What was set aside and needs a person.", "what"),
)
"""Of records and the store, read from the store."""

LEDGER = (
    _gauge("ledger_events", "Events in the ledger."),
    _gauge("ledger_due_events", "Events that were decided and are not signed yet."),
    _gauge("ledger_last_event_timestamp_seconds", "When the newest event was decided."),
    _gauge("checkpoint_events", "Events that the newest checkpoint of the log covers."),
    _gauge("checkpoint_timestamp_seconds", "When the newest checkpoint of the log was signed."),
)
"""Of the ledger, read from the store."""

SERVICES = (
    _gauge("calendar_failures", "Failures in a row of a configured calendar.", "calendar"),
    _gauge(
        "calendar_last_success_timestamp_seconds", "Last good answer of a calendar.", "calendar"
    ),
    _gauge("calendar_last_error_timestamp_seconds", "Last failure of a calendar.", "calendar"),
    _gauge("authority_tokens", "Tokens kept of a time-stamping authority.", "authority"),
    _gauge("authority_waiting_batches", "Batches that wait for its token.", "authority"),
    _gauge("authority_last_success_timestamp_seconds", "Last token of the authority.", "authority"),
    _gauge("header_tip_height", "Height of the newest block header in anchord's own file."),
    _gauge("header_tip_timestamp_seconds", "Time that header states."),
)
"""Of calendars, authorities and headers."""

ARCHIVE = (
    _gauge("captures", "Captures by role (source, extra) and state.", "role", "state"),
    _gauge("bundles", "Bundles in files of items, by the file's state.", "state"),
    _gauge("unclaimed_records", "Records not looked at yet for a page to capture."),
    _gauge("unpacked_records", "Records in no file of an item yet."),
    _gauge("archive_lane_stopped", "1: a way to the archive waits for a person.", "lane"),
    _gauge(
        "archive_lane_paused_until_timestamp_seconds",
        "A way to the archive pauses until then; absent: it does not.",
        "lane",
    ),
    _gauge("archive_lane_calls_today", "Calls by a way to the archive this UTC day.", "lane"),
    _gauge("archive_lane_refusals", "Refusals in a row by a way to the archive.", "lane"),
    _gauge("archive_hosts", "Captured hosts by how their way stands.", "state"),
    _gauge("archive_alerts", "Lines with ALERT that `anchord status` shows of the archive."),
)
"""Of the Internet Archive, read from the store."""

EXCHANGE = (
    _gauge("source_failures", "Looks at a source in a row that went wrong.", "source"),
    _gauge("source_last_success_timestamp_seconds", "Last look that went well.", "source"),
    _gauge("source_next_look_timestamp_seconds", "When the source is looked at next.", "source"),
    _counter("source_taken_records", "New records taken from a source.", "source"),
    _counter("source_refused_records", "Rows of a source that were refused.", "source"),
    _gauge("outlet_lag_events", "Events that an outlet was not given yet.", "outlet"),
    _gauge("outlet_failures", "Deliveries in a row that went wrong.", "outlet"),
    _gauge("outlet_last_success_timestamp_seconds", "Last delivery that went well.", "outlet"),
    _gauge("outlet_aside_events", "Events of an outlet that were set aside.", "outlet", "state"),
    _counter("outlet_delivered_events", "Events handed over to an outlet.", "outlet"),
)
"""Of sources and outlets, read from the store."""

PROCESS = (
    Family(
        "anchord_pass_duration_seconds",
        "summary",
        ("kind",),
        "Passes, steps of storing and stages of this process, and the time they took.",
    ),
    _gauge("last_pass_timestamp_seconds", "When the last one of a kind ended.", "kind"),
    _gauge("last_pass_duration_seconds", "How long the last one of a kind took.", "kind"),
    _gauge("last_look_timestamp_seconds", "When this process last looked for work."),
    _gauge("paused", "1: work is paused until a person acts."),
    _counter("sealed_records", "Records put into new batches."),
    _counter("anchored_batches", "Batches that became anchored."),
    _counter("signed_events", "Events signed and appended."),
    _counter("attempts", "Calls and looks by what came of them.", "facet", "step", "outcome"),
    _counter("refusals", "Refusals of the Internet Archive by its code.", "way", "code"),
    _counter("log_lines", "Lines this process logged.", "level"),
)
"""Of this process, since it began; only where a service or a worker shows them."""

FAMILIES = (*STORE, *LEDGER, *SERVICES, *ARCHIVE, *EXCHANGE, *PROCESS)
BY_NAME = {family.name: family for family in FAMILIES}
