"""What has no cell follows the declared policy, and no message tells a value of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dpmarkov.counting import count_categories, count_paths, count_transitions
from dpmarkov.counting.tally import Tally
from dpmarkov.errors import DpmarkovError
from dpmarkov.states import StateSpace

SECRET = "SECRET-4711"
MOVES = pa.table({"from": ["a", "b", SECRET, None], "to": ["b", "a", "a", "b"]})
ASKED: dict[str, Any] = {"origin": "from", "destination": "to"}


def refusal(*args: Any, ask: Any = count_transitions, **asked: Any) -> str:
    with pytest.raises(DpmarkovError) as caught:
        ask(*args, **asked)
    message = str(caught.value)
    assert SECRET not in message
    assert "4711" not in message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return message


def test_without_states_the_error_explains_why() -> None:
    message = refusal(MOVES, **ASKED)
    assert "never read off the data" in message
    assert "from-data" in message


def test_states_from_the_data_are_marked_as_not_private() -> None:
    counts = count_transitions(MOVES, states="from-data", invalid="drop", **ASKED)
    assert counts.space.labels == (SECRET, "a", "b")
    assert counts.states_from_data
    assert "not private" in repr(counts)
    assert not count_transitions(MOVES, states=["a", "b"], invalid="drop", **ASKED).states_from_data


def test_by_default_undeclared_values_are_an_error_that_shows_none_of_them() -> None:
    message = refusal(MOVES, states=["a", "b"], **ASKED)
    assert "'from' or 'to'" in message
    assert "invalid='drop'" in message
    assert "2" not in message


def test_dropped_rows_are_counted_for_the_curator_only() -> None:
    counts = count_transitions(MOVES, states=["a", "b"], invalid="drop", **ASKED)
    assert counts.to_dense().tolist() == [[0, 1], [1, 0]]
    assert counts.affected_rows == 2
    assert "2," not in repr(counts).replace("2 states", "")


def test_a_catch_all_takes_undeclared_values_and_nulls() -> None:
    counts = count_transitions(
        MOVES, states=["a", "b", "else"], invalid="other", other="else", **ASKED
    )
    assert counts.to_dense()[2].tolist() == [1, 1, 0]
    assert counts.affected_rows == 2


def test_labels_that_are_not_declared_are_one_group_however_many_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came_back = []
    of_pairs = Tally.of_pairs
    monkeypatch.setattr(
        Tally,
        "of_pairs",
        lambda table, *rest: came_back.append(len(table)) or of_pairs(table, *rest),
    )
    names = pa.table({"from": np.arange(5000), "to": np.arange(5000) % 2})
    for data in (names, pl.from_arrow(names)):
        counts = count_transitions(data, states=range(4), invalid="drop", **ASKED)
        assert (counts.total, counts.affected_rows) == (4, 4996)
    assert came_back == [4 + 2, 4 + 2]


SPARSE = [("a", "b"), ("a", "x"), ("b", "x"), ("b", "b"), ("x", "a"), ("x", "x")]


@pytest.mark.parametrize("bounds", [{}, {"user": "who", "max_cells": 9, "max_per_cell": 9}])
def test_transitions_outside_the_support_follow_the_policy(bounds: dict[str, Any]) -> None:
    moves = pa.table({"from": ["a", "b", "b"], "to": ["b", "a", "b"], "who": [1, 2, 3]})
    asked = {**ASKED, **bounds, "states": ["a", "b", "x"], "support": SPARSE}
    assert "support does not have" in refusal(moves, **asked)
    dropped = count_transitions(moves, invalid="drop", **asked)
    assert dropped.cells.tolist() == [1, 0, 1, 0, 0, 0]
    assert dropped.affected_rows == 1
    mapped = count_transitions(moves, invalid="other", other="x", **asked)
    assert mapped.to_dense().tolist() == [[0, 1, 0], [0, 1, 1], [0, 0, 0]]
    assert mapped.affected_rows == 1


def test_a_catch_all_that_a_state_cannot_reach_is_refused() -> None:
    edges = [("a", "b"), ("a", "a"), ("b", "a"), ("b", "b")]
    asked = {**ASKED, "states": ["a", "b"], "support": edges, "invalid": "other"}
    assert "not declared" in refusal(MOVES, other="zzz", **asked)
    with_x = [*edges, ("a", "x"), ("x", "x"), ("x", "a")]
    asked |= {"states": ["a", "b", "x"], "support": with_x}
    assert "'b' -> 'x'" in refusal(MOVES, other="x", **asked)
    assert "go together" in refusal(MOVES, **asked)
    assert "no policy" in refusal(MOVES, **ASKED, states=["a", "b"], invalid="ignore")


def test_an_undeclared_event_is_not_bridged() -> None:
    events = pa.table({"e": [1, 1, 1, 1], "t": [1, 2, 3, 4], "s": ["a", "?", "b", "a"]})
    asked: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": ["a", "b"]}
    counts = count_paths(events, invalid="drop", **asked)
    assert counts.to_dense().tolist() == [[0, 0], [1, 0]]
    assert "'s'" in refusal(events, ask=count_paths, **asked)


def test_an_event_without_time_or_entity_is_named_by_its_column() -> None:
    events = pa.table({"e": [1, 1, None], "t": [1.0, float("nan"), 2.0], "s": ["a", "b", "a"]})
    asked: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": ["a", "b"]}
    message = refusal(events, ask=count_paths, **asked)
    assert "'e' or 't'" in message
    assert count_paths(events, invalid="drop", **asked).affected_rows == 2


def test_single_events_count_nowhere() -> None:
    events = pa.table({"e": [1, 2, 3], "t": [1, 1, 1], "s": ["a", "b", "a"]})
    counts = count_paths(events, entity="e", time="t", state="s", states=["a", "b"])
    assert counts.total == 0
    assert counts.affected_rows == 0


def test_rows_without_a_usable_count_are_named_by_its_column() -> None:
    moves = pa.table({"from": ["a", "a", "a"], "to": ["b", "b", "a"], "n": [5, -4711, None]})
    asked = {**ASKED, "states": ["a", "b"], "count": "n"}
    assert "'n'" in refusal(moves, **asked)
    counts = count_transitions(moves, invalid="drop", **asked)
    assert counts.to_dense()[0].tolist() == [0, 5]
    assert counts.affected_rows == 2


def test_a_total_beyond_what_is_exact_is_refused() -> None:
    moves = pa.table({"from": ["a"] * 3, "to": ["b"] * 3, "n": [2**53] * 3})
    assert "2^53" in refusal(moves, **ASKED, states=["a", "b"], count="n")


@pytest.mark.parametrize(
    ("column", "states", "told"),
    [
        ([1, 2], ["a", "b"], "text, because the declared states are strings"),
        (["1", "2"], [1, 2], "integers, because the declared states are integers"),
        ([1.0, 2.0], [1, 2], "Int64"),
        ([True, False], [0, 1], "Boolean"),
        (["a", "b"], ["a", 1], "mix"),
        (["a", "b"], [("a", "b"), ("c", "d")], "mix"),
        ([1, 2], [1, 2**70], "64 bits"),
    ],
)
def test_labels_of_another_type_are_refused(column: Any, states: Any, told: str) -> None:
    data = pa.table({"from": column, "to": column})
    for frame in (data, data.to_pandas(), pl.from_arrow(data)):
        assert told in refusal(frame, **ASKED, states=states)


def test_a_type_that_serves_nothing_is_called_by_its_name() -> None:
    people = duckdb.sql("SELECT uuid() AS \"my id\", 'a' AS f, 'b' AS t")
    asked: dict[str, Any] = {"origin": "f", "destination": "t", "states": ["a", "b"]}
    message = refusal(people, user="my id", max_cells=1, max_per_cell=1, **asked)
    assert "'my id' holds UUID" in message


def test_mixed_columns_and_mixed_zones_are_refused() -> None:
    mixed = pd.DataFrame({"from": ["a", 4711], "to": ["a", "a"]})
    assert "mixed types" in refusal(mixed, **ASKED, states=["a", "b"])
    zones = [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="Asia/Tokyo")]
    events = pd.DataFrame({"e": [1, 1], "t": pd.Series(zones, dtype=object), "s": ["a", "b"]})
    message = refusal(events, ask=count_paths, entity="e", time="t", state="s", states=["a", "b"])
    assert "time zones" in message
    text = pa.table({"e": [1], "t": ["2024-01-01"], "s": ["a"]})
    assert "dates, times or numbers" in refusal(
        text, ask=count_paths, entity="e", time="t", state="s", states=["a", "b"]
    )


def test_a_missing_column_is_answered_with_the_nearest_names() -> None:
    message = refusal(MOVES, origin="form", destination="to", states=["a", "b"])
    assert "did you mean 'from'?" in message
    assert "no name is near" in refusal(MOVES, origin="xyz", destination="to", states=["a", "b"])


@pytest.mark.parametrize("kind", ["duckdb", "pyarrow", "pandas", "csv"])
def test_a_column_that_stands_twice_is_refused(kind: str, tmp_path: Path) -> None:
    if kind == "duckdb":
        data: Any = duckdb.connect().sql("SELECT 'a' AS x, 'b' AS y, 'b' AS x")
    elif kind == "pyarrow":
        data = pa.table([["a"], ["b"], ["b"]], names=["x", "y", "x"])
    elif kind == "pandas":
        data = pd.DataFrame([["a", "b", "b"]], columns=["x", "y", "x"])
    else:
        data = tmp_path / "twice.csv"
        data.write_text("x,y,x\na,b,b\n")
    message = refusal(data, origin="x", destination="y", states=["a", "b"])
    assert "'x' stands 2 times" in message or "share a name" in message


def test_names_of_columns_are_text() -> None:
    message = refusal(pd.DataFrame([["a", "b"]]), origin=0, destination=1, states=["a", "b"])
    assert "names of columns are text" in message


def test_the_words_of_an_engine_are_kept_back() -> None:
    import duckdb

    query = f"SELECT CAST(x AS INTEGER) AS f, 1 AS t FROM (VALUES ('{SECRET}')) AS v(x)"
    asked: dict[str, Any] = {"origin": "f", "destination": "t", "states": [1, 2]}
    assert "ConversionException" in refusal(duckdb.sql(query), **asked)
    with duckdb.connect() as connection:
        assert "ConversionException" in refusal(query, database=connection, **asked)


def test_a_count_that_takes_too_much_memory_is_answered_with_the_way_to_more() -> None:
    limited = duckdb.connect(config={"memory_limit": "20MiB", "temp_directory": ""})
    moves = limited.sql("SELECT range AS f, range + 1 AS t FROM range(3_000_000)")
    message = refusal(moves, origin="f", destination="t", states=[1, 2], invalid="drop")
    assert "memory_limit" in message


def test_other_things_than_data_are_refused() -> None:
    assert "cannot be counted" in refusal(42, **ASKED, states=["a", "b"])
    assert "several" not in refusal({"from": ["a"]}, **ASKED, states=["a", "b"])


def test_rectangular_tables_and_single_rows_are_counted() -> None:
    space = StateSpace(origins=["s", "t"], destinations=["u", "v", "w"])
    moves = pa.table({"from": ["s", "t", "t"], "to": ["u", "w", "w"]})
    assert count_transitions(moves, states=space, **ASKED).to_dense().tolist() == [
        [1, 0, 0],
        [0, 0, 2],
    ]
    assert "kind 'row'" in refusal(moves, states=StateSpace(categories=["s", "t"]), **ASKED)
    events = pa.table({"e": [1], "t": [1], "s": ["s"]})
    assert "square" in refusal(
        events, ask=count_paths, entity="e", time="t", state="s", states=space
    )
    graded = pa.table({"g": ["A", "F", "A", "?"], "n": [20, 31, 1, 7]})
    counts = count_categories(
        graded, category="g", categories=["A", "B", "F"], count="n", invalid="other", other="B"
    )
    assert counts.cells.tolist() == [21, 7, 31]
    assert counts.affected_rows == 1


def test_a_gap_follows_elapsed_time_when_the_clocks_change() -> None:
    """Berlin, 31 March 2024: midnight to midnight is 23 hours; DuckDB's calendar says a day."""
    import duckdb

    midnights = pd.to_datetime(["2024-03-31", "2024-04-01"]).tz_localize("Europe/Berlin")
    events = pd.DataFrame({"e": [1, 1], "t": midnights, "s": ["a", "b"]})
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    relation = connection.from_arrow(pa.Table.from_pandas(events.assign(t=midnights.as_unit("us"))))
    for hours, total in ((22, 0), (23, 1)):
        for data in (relation, events, pl.from_pandas(events)):
            counts = count_paths(
                data, entity="e", time="t", state="s", states=["a", "b"],
                max_gap=pd.Timedelta(hours=hours).to_pytimedelta(),
            )  # fmt: skip
            assert counts.total == total


@pytest.mark.parametrize("width", ["int8", "int64"])
@pytest.mark.parametrize("engine", [pa.table, pl.DataFrame])
def test_a_gap_wider_than_the_type_of_the_time_is_long(width: str, engine: Any) -> None:
    limits = np.iinfo(width)
    times = np.array([limits.min, limits.min + 3, limits.max], dtype=width)
    events = engine({"who": ["x"] * 3, "when": times, "at": ["a", "b", "a"]})
    path: dict[str, Any] = {"entity": "who", "time": "when", "state": "at", "states": ["a", "b"]}
    assert count_paths(events, max_gap=5, **path).cells.tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("gap", [-1, float("nan")])
def test_a_gap_is_no_less_than_nothing(gap: float) -> None:
    events = pa.table({"who": ["x"] * 2, "when": [1, 2], "at": ["a", "b"]})
    path: dict[str, Any] = {"entity": "who", "time": "when", "state": "at", "states": ["a", "b"]}
    assert "0 or more" in refusal(events, ask=count_paths, max_gap=gap, **path)


def test_a_gap_is_of_the_kind_that_the_time_is() -> None:
    events = pa.table({"e": [1, 1, 1], "t": [1, 2, 9], "s": ["a", "b", "a"]})
    asked: dict[str, Any] = {"entity": "e", "time": "t", "state": "s", "states": ["a", "b"]}
    assert count_paths(events, max_gap=1, **asked).to_dense().tolist() == [[0, 1], [0, 0]]
    message = refusal(events, ask=count_paths, max_gap=pd.Timedelta(1).to_pytimedelta(), **asked)
    assert "must be a number" in message
    days = events.set_column(1, "t", pa.array(np.array([1, 2, 9], "datetime64[D]")))
    gap = pd.Timedelta(days=1).to_pytimedelta()
    assert count_paths(days, max_gap=gap, **asked).total == 1
    assert count_paths(pl.from_arrow(days), max_gap=gap, **asked).total == 1
