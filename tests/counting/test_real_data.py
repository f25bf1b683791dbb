"""The real data count the same as a plain SQL query that was written by hand."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from dpmarkov.counting import count_paths, count_transitions
from dpmarkov.counts import TransitionCounts


def agrees(counts: TransitionCounts, query: str) -> None:
    """Compare with (origin, destination, n) of a query, cell by cell."""
    cells = duckdb.sql(query).fetchall()
    assert cells
    expected = TransitionCounts.from_triples([(o, d, int(n)) for o, d, n in cells], counts.space)
    assert np.array_equal(counts.cells, expected.cells)


def test_taxi_trips_between_263_zones(real_data: Path) -> None:
    path = real_data / "nyc_yellow_360k.parquet"
    asked: dict[str, Any] = {"origin": "PULocationID", "destination": "DOLocationID"}
    counts = count_transitions(path, states=range(1, 264), invalid="drop", **asked)
    inside = "PULocationID <= 263 AND DOLocationID <= 263"
    agrees(
        counts,
        f"SELECT PULocationID, DOLocationID, count(*) FROM '{path}' WHERE {inside} GROUP BY ALL",
    )
    (affected,) = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE NOT ({inside})").fetchall()[0]
    assert counts.affected_rows == affected > 0


def test_bike_trips_that_are_counted_already(real_data: Path) -> None:
    path = real_data / "citibike_tract_counts.csv"
    counts = count_transitions(
        path, origin="source", destination="target", count="count", states="from-data"
    )
    query = f"""SELECT source, target, "count" FROM read_csv('{path}', all_varchar = true)"""
    agrees(counts, query)
    assert counts.space.shape == (119, 119)


def test_flights_between_airports_on_a_sparse_support(real_data: Path, tmp_path: Path) -> None:
    path = real_data / "us_flights_2008_counts.csv"
    edges = tmp_path / "edges.csv"
    loops = f"SELECT DISTINCT source, source FROM '{path}'"
    back = f"SELECT target, source FROM '{path}'"
    duckdb.sql(
        f"COPY (SELECT source, target FROM '{path}' UNION {back} UNION {loops}) TO '{edges}'"
    )
    labels = [row[0] for row in duckdb.sql(f"SELECT DISTINCT source FROM '{edges}'").fetchall()]
    counts = count_transitions(
        path, origin="source", destination="target", count="count", states=labels, support=edges
    )
    agrees(counts, f"SELECT source, target, \"count\" FROM '{path}'")


@pytest.mark.parametrize("data", ["nycflights13_by_tail", "sepsis_events"])
def test_bounded_users_of_real_data_keep_their_bounds(real_data: Path, data: str) -> None:
    path = real_data / f"{data}.parquet"
    asked: dict[str, Any] = {"origin": "source", "destination": "target", "states": "from-data"}
    agrees(
        count_transitions(path, **asked),
        f"SELECT source, target, count(*) FROM '{path}' GROUP BY ALL",
    )
    counts = count_transitions(path, user="unit", max_cells=3, max_per_cell=2, key="k", **asked)
    by_user = f"SELECT count(*) AS n FROM '{path}' GROUP BY unit, source, target"
    (unclipped,) = duckdb.sql(f"SELECT sum(least(n, 2)) FROM ({by_user})").fetchall()[0]
    kept = f"SELECT least(count(DISTINCT (source, target)), 3) AS n FROM '{path}' GROUP BY unit"
    (cells,) = duckdb.sql(f"SELECT sum(n) FROM ({kept})").fetchall()[0]
    assert cells <= counts.total <= min(unclipped, 2 * cells)


def test_paths_of_taxi_zones_by_time(real_data: Path) -> None:
    """Trips have no cab, so the pick-up zone itself is taken for the entity."""
    path = real_data / "nyc_yellow_360k.parquet"
    counts = count_paths(
        path, entity="PULocationID", time="pickup_datetime", state="DOLocationID",
        states=range(1, 266), max_gap=timedelta(hours=1), drop_self=True,
    )  # fmt: skip
    window = "OVER (PARTITION BY PULocationID ORDER BY pickup_datetime, DOLocationID)"
    events = f"""SELECT DOLocationID AS d, lag(DOLocationID) {window} AS o,
        pickup_datetime - lag(pickup_datetime) {window} AS gap FROM '{path}'"""
    agrees(
        counts,
        f"""SELECT o, d, count(*) FROM ({events})
        WHERE o <> d AND gap <= INTERVAL 1 HOUR GROUP BY ALL""",
    )
