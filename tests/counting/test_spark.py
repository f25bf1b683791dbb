"""On Spark no row reaches the driver: the plan groups before it collects."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import narwhals as nw
import pyarrow as pa
import pytest

from dpmarkov.counting import count_paths, count_transitions, engines, sources

EVENTS = pa.table({
    "e": [k % 50 for k in range(2000)], "t": [k * 7919 % 1009 for k in range(2000)],
    "s": [k * k % 3 for k in range(2000)],
})  # fmt: skip
PATHS: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": [0, 1, 2]}


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Note the physical plan of everything that is brought to the driver, and its rows."""
    notes: list[tuple[str, int]] = []

    def noting(frame: nw.LazyFrame[Any]) -> pa.Table:
        table = engines.fetched(frame)
        plan = frame.to_native()._jdf.queryExecution().executedPlan().toString()
        notes.append((plan, table.num_rows))
        return table

    monkeypatch.setattr(sources, "fetched", noting)
    return notes


@pytest.mark.parametrize("bounds", [{}, {"user": "e", "max_cells": 2, "max_per_cell": 3}])
def test_pairing_and_bounding_are_spark_jobs_and_only_cells_come_back(
    spark: Any, collected: list[tuple[str, int]], bounds: dict[str, Any]
) -> None:
    count_paths(spark.createDataFrame(EVENTS), **PATHS, **bounds)
    [(plan, rows)] = collected
    assert rows <= 16  # 3 states and "no pair", twice
    assert "Window" in plan
    assert "HashAggregate" in plan
    # The outermost operator that sees rows is the aggregation: above it there are only cells.
    assert plan.index("HashAggregate") < plan.index("Window")


def test_counting_is_a_spark_job_and_only_cells_come_back(
    spark: Any, collected: list[tuple[str, int]]
) -> None:
    data = spark.createDataFrame(EVENTS)
    counts = count_transitions(data, origin="s", destination="s", states=[0, 1, 2])
    assert counts.total == 2000
    [(plan, rows)] = collected
    assert rows == 2
    assert "HashAggregate" in plan


def test_a_column_of_names_instead_of_states_does_not_reach_the_driver(
    spark: Any, collected: list[tuple[str, int]]
) -> None:
    data = spark.range(5000).selectExpr("id AS name", "id % 2 AS s")
    counts = count_transitions(
        data, origin="name", destination="s", states=range(2000), invalid="drop"
    )
    assert counts.total == 2000
    [(_, rows)] = collected
    assert rows == 2000 + 2


@pytest.mark.parametrize(
    ("change", "minutes"),
    [(datetime(2024, 3, 31, 1), (-15, 15, 75)), (datetime(2024, 10, 27, 1), (-45, -15, 75))],
    ids=["forward", "back"],
)
def test_a_gap_follows_elapsed_time_when_the_clocks_of_the_session_change(
    spark: Any, change: datetime, minutes: tuple[int, ...]
) -> None:
    """Clocks in Berlin jump by an hour; events are 30 minutes apart, and then more."""
    times = [change + timedelta(minutes=m) for m in minutes]
    events = pa.table(
        {"e": [1] * 3, "t": pa.array(times, pa.timestamp("us", "UTC")), "s": range(3)}
    )
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        data = spark.createDataFrame(events)
        counts = count_paths(data, max_gap=timedelta(minutes=30), **PATHS)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert counts.to_dense().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
