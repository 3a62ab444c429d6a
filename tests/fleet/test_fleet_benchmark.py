"""The benchmark of workers lives through a small size from end to end."""

from __future__ import annotations

from support.postgres import Cluster

from benchmarks.fleet import round_of


def test_workers_are_measured_from_the_first_record_to_the_last_event(cluster: Cluster) -> None:
    took = round_of(cluster, "2 workers, PostgreSQL", 100)
    assert 0 < took["added_s"] <= took["submitted_s"] < took["whole_s"]
    assert abs(took["whole_s"] - took["submitted_s"] - took["anchored_s"]) < 0.001
