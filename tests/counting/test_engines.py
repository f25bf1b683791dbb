"""The same events give the same counts on every engine, and those of plain Python."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import reference
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dpmarkov.counting import count_paths

# Zero-padded, of other alphabets, differing in case or accent, of punctuation that files quote.
ODD = [
    "007",
    "7",
    "Zürich",
    "zürich",
    "Zu\u0308rich",
    "東京",
    'a "b"',
    "c,d",
    "e\tf",
    "O'Hare",
    "NA",
]
UNDECLARED = ["nowhere", "07", "zurich", "NULL", "nan"]
START = datetime(2024, 3, 31, 1, 59)

text = st.sampled_from(ODD) | st.sampled_from(UNDECLARED) | st.none()
number = st.integers(-2, 9) | st.none()


def events(state: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Few entities and times, so that most events have one of equal time."""
    seconds = st.integers(0, 5).map(lambda s: START + timedelta(seconds=20 * s))
    event = st.fixed_dictionaries(
        {
            "entity": st.sampled_from(["x", "y", "z", "É"]) | st.none(),
            "time": seconds | st.none(),
            "tie": st.integers(0, 1) | st.none(),
            "state": state,
            "user": st.integers(1, 3) | st.none(),
        }
    )
    return st.lists(event, max_size=40)


def table(rows: list[dict[str, Any]], state: pa.DataType) -> pa.Table:
    schema = {"entity": pa.string(), "time": pa.timestamp("us"), "tie": pa.int64(),
              "state": state, "user": pa.int64()}  # fmt: skip
    return pa.Table.from_pylist(rows, pa.schema(schema))


def check_paths(rows: list[dict[str, Any]], states: list[Any], data: Any, **asked: Any) -> None:
    other, gap = asked.get("other"), asked.get("max_gap")
    bounds = {k: asked[k] for k in ("max_cells", "max_per_cell", "key") if k in asked}
    found, affected = reference.steps(
        rows, states, other, gap, asked.get("drop_self", False), by_user=bool(bounds)
    )
    if bounds:
        found = reference.bounded(found, len(states), **bounds)
    counts = count_paths(
        data, entity="entity", time="time", state="state", tie_break="tie", states=states, **asked
    )
    assert counts.cells.tolist() == reference.cells(found, len(states))
    assert counts.affected_rows == affected


ASKED: list[dict[str, Any]] = [
    {"invalid": "drop"},
    {"invalid": "drop", "max_gap": timedelta(seconds=20), "drop_self": True},
    {"invalid": "drop", "user": "user", "max_cells": 2, "max_per_cell": 1, "key": "k'1"},
]
# Shrinking takes minutes over so many engines, and the examples are small as they are.
QUICK = settings(
    max_examples=12,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@QUICK
@given(rows=events(text), asked=st.sampled_from([*ASKED, {"invalid": "other", "other": "NA"}]))
def test_paths_of_text_count_the_same_everywhere(
    engines: Any, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    for name, hand in engines.items():
        if not rows and name == "json lines":
            continue  # an empty file, which is refused
        check_paths(rows, ODD, hand(table(rows, pa.string())), **asked)


@QUICK
@given(rows=events(number), asked=st.sampled_from([*ASKED, {"invalid": "other", "other": 9}]))
def test_paths_of_integers_count_the_same_everywhere(
    engines: Any, rows: list[dict[str, Any]], asked: dict[str, Any]
) -> None:
    states = [7, 3, 0, 9, 5, 1]
    for name, hand in engines.items():
        if not rows and name == "json lines":
            continue
        check_paths(rows, states, hand(table(rows, pa.int64())), **asked)
