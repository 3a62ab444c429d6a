"""From numbers to the text Prometheus reads, by its own client library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from anchord.app.cli.output import printable
from anchord.app.metrics.families import BY_NAME, FAMILIES, Family

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""https://prometheus.io/docs/instrumenting/exposition_formats/"""
_LONGEST_LABEL = 200


class Sheet(Collector):
    """Values by metric and labels, checked against the catalogue as they are put in."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[tuple[str, ...], tuple[float, ...]]] = {}

    def put(self, name: str, *value: float | None, **labels: str) -> None:
        """Put one value of `anchord_<name>`; None: it is absent. A summary has count and sum.

        Raises:
            KeyError: the catalogue does not have the metric, or not with these labels.
        """
        family = BY_NAME[f"anchord_{name}"]
        kept = tuple(_label(labels.pop(label)) for label in family.labels)
        if labels:
            raise KeyError(f"{family.name} has no label {', '.join(labels)}")
        known = [one for one in value if one is not None]
        if known:
            self._rows.setdefault(family.name, {})[kept] = tuple(map(float, known))

    def collect(self) -> Iterator[Metric]:
        """Yield what was put in, in the order of the catalogue."""
        for family in FAMILIES:
            if family.name in self._rows:
                yield _metric(family, self._rows[family.name])


def text_of(sheet: Sheet, *, process: bool) -> bytes:
    """Return the exposition of a sheet.

    Args:
        sheet: what is exposed.
        process: also memory, CPU and files of this process, as every Prometheus client has them.
    """
    registry = CollectorRegistry()
    registry.register(sheet)
    if process:
        ProcessCollector(registry=registry)
    return generate_latest(registry)


def _metric(family: Family, rows: dict[tuple[str, ...], tuple[float, ...]]) -> Metric:
    if family.kind == "summary":
        summary = SummaryMetricFamily(family.name, family.help, labels=family.labels)
        for labels, (count, total) in rows.items():
            summary.add_metric(labels, int(count), total)
        return summary
    kind = GaugeMetricFamily if family.kind == "gauge" else CounterMetricFamily
    metric = kind(family.name, family.help, labels=family.labels)
    for labels, (value,) in rows.items():
        metric.add_metric(labels, value)
    return metric


def _label(value: str) -> str:
    """Return a label's value that is one short line, whoever wrote it."""
    return printable(value)[:_LONGEST_LABEL]
