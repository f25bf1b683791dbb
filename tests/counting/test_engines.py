"""The same events give the same counts on every engine, and those of plain Python."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
import reference
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from dpmarkov.counting import count_paths, count_transitions

# Zero-padded, of other alphabets, differing in case or accent, of punctuation that files quote.
ODD = ["007", "7", "Zürich", "zürich", "Zu\u0308rich", "東京", 'a "b"', "c,d", "e\tf", "O'H", "NA"]
UNDECLARED = ["nowhere", "07", "zurich", "NULL", "nan", " 7"]
NUMBERS = [7, 3, 0, 9, -5, 300]  # 300 does not fit the narrow integers of some columns
START = datetime(2024, 3, 31, 1, 59)

TEXT = st.sampled_from(ODD) | st.sampled_from(UNDECLARED) | st.none()
NUMBER = st.sampled_from([7, 3, 0, 9, -5, 1, 2]) | st.none()
SECONDS = st.integers(0, 5).map(lambda s: START + timedelta(seconds=20 * s))

BOUNDS: dict[str, Any] = {"user": "user", "max_cells": 2, "max_per_cell": 2, "key": "k'1"}
CATCH_ALL: dict[str, Any] = {"invalid": "other", "other": "NA"}
SHORT_STEPS: dict[str, Any] = {"max_gap": timedelta(seconds=20), "drop_self": True}


def events(state: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Few entities and times, so that most events have one of equal time."""
    event = {
        "entity": st.sampled_from(["x", "y", "z", "É"]) | st.none(),
        "time": SECONDS | st.none(),
        "tie": st.integers(0, 1) | st.none(),
        "state": state,
        "user": st.integers(1, 3) | st.none(),
    }
    return st.lists(st.fixed_dictionaries(event), min_size=30, max_size=60)


def moves(state: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    move = {
        "origin": state,
        "destination": state,
        "count": st.integers(-1, 5) | st.none(),
        "user": st.sampled_from(["ann", "Bob", "7", "É"]) | st.none(),
    }
    return st.lists(st.fixed_dictionaries(move), min_size=30, max_size=60)


def table(rows: list[dict[str, Any]], **types: pa.DataType) -> pa.Table:
    known = {"entity": pa.string(), "time": pa.timestamp("us"), "tie": pa.int64(),
             "count": pa.int32(), **types}  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema([(name, known[name]) for name in rows[0]]))


def check_paths(rows: list[dict[str, Any]], states: list[Any], data: Any, **asked: Any) -> None:
    bounds = {k: asked[k] for k in ("max_cells", "max_per_cell", "key") if k in asked}
    other, gap, drop = (asked.get(name) for name in ("other", "max_gap", "drop_self"))
    found, affected = reference.steps(rows, states, other, gap, bool(drop), by_user=bool(bounds))
    if bounds:
        found = reference.bounded(found, len(states), **bounds)
    asked = {"invalid": "drop", "tie_break": "tie", "states": states, **asked}
    counts = count_paths(data, entity="entity", time="time", state="state", **asked)
    assert counts.cells.tolist() == reference.cells(found, len(states))
    assert counts.affected_rows == affected


def check_transitions(
    rows: list[dict[str, Any]], states: list[Any], data: Any, **asked: Any
) -> None:
    bounds = {k: asked[k] for k in ("max_cells", "max_per_cell", "key") if k in asked}
    used = {"origin", "destination"} | {c for c in ("user", "count") if c in asked}
    rows = [{name: row[name] for name in used} for row in rows]
    found, affected = reference.transitions(rows, states, asked.get("other"))
    if bounds:
        found = reference.bounded(found, len(states), **bounds)
    asked = {"invalid": "drop", "states": states, **asked}
    counts = count_transitions(data, origin="origin", destination="destination", **asked)
    assert counts.cells.tolist() == reference.cells(found, len(states))
    assert counts.affected_rows == affected


def few(examples: int) -> Callable[..., Any]:
    """Try a few large examples: shrinking takes minutes over so many engines."""
    return settings(
        max_examples=examples,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@few(10)
@example(rows=[{"entity": None, "time": None, "tie": None, "state": None, "user": None}], asked={})
@given(rows=events(TEXT), asked=st.sampled_from([{}, SHORT_STEPS, BOUNDS, CATCH_ALL]))
def test_paths_of_text_count_the_same_everywhere(
    engines: Any, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    for hand in engines.values():
        check_paths(rows, ODD, hand(table(rows, state=pa.string(), user=pa.int64())), **asked)


@few(6)
@given(rows=events(NUMBER), asked=st.sampled_from([SHORT_STEPS, BOUNDS, {**CATCH_ALL, "other": 9}]))
def test_paths_of_integers_count_the_same_everywhere(
    engines: Any, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    for hand in engines.values():
        check_paths(rows, NUMBERS, hand(table(rows, state=pa.int8(), user=pa.int16())), **asked)


@few(10)
@given(
    rows=moves(TEXT),
    asked=st.sampled_from([{}, {"count": "count"}, CATCH_ALL, {**BOUNDS, **CATCH_ALL},
                           {**BOUNDS, "count": "count"}]),
)  # fmt: skip
def test_transitions_count_the_same_everywhere(
    engines: Any, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    types = {name: pa.string() for name in ("origin", "destination", "user")}
    for hand in engines.values():
        check_transitions(rows, ODD, hand(table(rows, **types)), **asked)


@pytest.mark.parametrize("asked", [SHORT_STEPS, {**BOUNDS, **CATCH_ALL}], ids=["steps", "users"])
def test_spark_counts_paths_the_same(spark: Any, engines: Any, asked: dict[str, Any]) -> None:
    @few(2)
    @given(rows=events(TEXT))
    def property_(rows: list[dict[str, Any]]) -> None:
        data = table(rows, state=pa.string(), user=pa.int64())
        for hand in (spark.createDataFrame, engines["pandas"], engines["polars"]):
            check_paths(rows, ODD, hand(data), **asked)

    property_()


def test_spark_counts_transitions_the_same(spark: Any, engines: Any) -> None:
    @few(1)
    @given(rows=moves(NUMBER))
    def property_(rows: list[dict[str, Any]]) -> None:
        data = table(rows, origin=pa.int16(), destination=pa.int64(), user=pa.string())
        for asked in ({}, {**BOUNDS, "count": "count"}):
            for hand in (spark.createDataFrame, engines["pyarrow"]):
                check_transitions(rows, NUMBERS, hand(data), **asked)

    property_()
