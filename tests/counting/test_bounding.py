"""A user's bounded result depends on that user's rows alone, and keeps its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmarkov.counting import count_categories, count_paths, count_transitions
from dpmarkov.errors import DpmarkovError

STATES = range(6)
CODE = st.integers(0, 7)  # 6 and 7 are not declared
MOVES = st.lists(st.tuples(st.integers(1, 4), CODE, CODE), min_size=1, max_size=60)


def count(moves: list[tuple[int, int, int]], **bounds: Any) -> np.ndarray[Any, Any]:
    user, origin, destination = zip(*moves, strict=True) if moves else ((), (), ())
    data = pa.table({
        name: pa.array(column, pa.int64())
        for name, column in {"user": user, "origin": origin, "destination": destination}.items()
    })  # fmt: skip
    return count_transitions(
        data, origin="origin", destination="destination", states=STATES, invalid="drop",
        user="user", key="a key", **bounds,
    ).to_dense()  # fmt: skip


@settings(max_examples=8)
@given(moves=MOVES, max_cells=st.integers(1, 4), max_per_cell=st.integers(1, 3))
def test_taking_a_user_out_takes_out_what_the_user_has_alone(
    moves: list[tuple[int, int, int]], max_cells: int, max_per_cell: int
) -> None:
    bounds = {"max_cells": max_cells, "max_per_cell": max_per_cell}
    alone = [move for move in moves if move[0] == 1]
    others = [move for move in moves if move[0] != 1]
    own = count(alone, **bounds)
    assert (count(moves, **bounds) - count(others, **bounds) == own).all()
    assert np.count_nonzero(own) <= max_cells
    assert own.max() <= max_per_cell


def test_pairs_of_an_entity_that_users_share_are_of_one_user_each() -> None:
    events = pa.table({
        "bike": ["b"] * 5, "rider": [1, 2, 1, 2, 1], "time": range(5), "at": list("xyzyx")
    })  # fmt: skip
    asked: dict[str, Any] = {
        "entity": "bike", "time": "time", "state": "at", "states": ["x", "y", "z"],
        "user": "rider", "max_cells": 9, "max_per_cell": 9,
    }  # fmt: skip
    alone = events.filter(pa.compute.equal(events["rider"], 1))
    others = events.filter(pa.compute.equal(events["rider"], 2))
    together = count_paths(events, **asked).cells
    assert (
        together == count_paths(alone, **asked).cells + count_paths(others, **asked).cells
    ).all()
    assert together.sum() == 3


def test_the_same_user_as_text_and_as_integer_keeps_the_same_cells() -> None:
    rows = [(u, u % 5, k) for u in range(20) for k in range(6)]
    data = pa.table(
        {"u": [r[0] for r in rows], "o": [r[1] for r in rows], "d": [r[2] for r in rows]}
    )
    asked: dict[str, Any] = {"origin": "o", "destination": "d", "states": STATES, "user": "u",
                             "max_cells": 2, "max_per_cell": 1, "key": "k"}  # fmt: skip
    text = data.set_column(0, "u", data["u"].cast(pa.string()))
    assert count_transitions(data, **asked) == count_transitions(text, **asked)


def test_the_lot_is_fair_and_differs_between_keys_and_users() -> None:
    """A cell of ten is kept by 2,000 users with probability 1/10, 4.9 standard errors wide.

    Ten cells at two sides: false alarm below 1e-5; and the keys are fixed.
    """
    users, cells = 2000, 10
    kept = np.zeros((2, users, cells), dtype=bool)
    for k, key in enumerate(("one", "two")):
        for user in range(users):
            kept[k, user, min(range(cells), key=lambda c: reference.lot(user, c, key))] = True
    spread = np.sqrt(users * 0.1 * 0.9)
    assert abs(kept.sum(axis=1) - users / cells).max() < 4.9 * spread
    agreement = (kept[0] & kept[1]).sum()
    assert abs(agreement - users / cells) < 4.9 * spread


def test_a_cell_of_no_transitions_takes_no_place() -> None:
    data = pa.table({"u": [1] * 6, "o": [0] * 6, "d": range(6), "n": [0, 0, 0, 3, 0, 0]})
    counts = count_transitions(
        data, origin="o", destination="d", states=STATES, count="n", user="u",
        max_cells=1, max_per_cell=2,
    )  # fmt: skip
    assert counts.to_dense()[0].tolist() == [0, 0, 0, 2, 0, 0]


def test_categories_are_bounded_too() -> None:
    data = pa.table({"who": ["a", "a", "a", "b"], "grade": ["A", "A", "B", "A"]})
    counts = count_categories(
        data, category="grade", categories=["A", "B"], user="who", max_cells=1, max_per_cell=1
    )
    assert counts.total == 2
    assert (counts.max_cells, counts.max_per_cell) == (1, 1)


def test_the_counts_remember_their_bounds_and_show_them() -> None:
    data = pa.table({"u": [1], "o": [0], "d": [1]})
    counts = count_transitions(
        data, origin="o", destination="d", states=[0, 1], user="u", max_cells=3, max_per_cell=2
    )
    assert (counts.max_cells, counts.max_per_cell) == (3, 2)
    assert "users bounded to 3 cells of 2" in repr(counts)


@pytest.mark.parametrize(
    "asked",
    [
        {"user": "u"},
        {"max_cells": 1},
        {"user": "u", "max_cells": 1},
        {"user": "u", "max_cells": 0, "max_per_cell": 1},
        {"user": "u", "max_cells": 1, "max_per_cell": 1.5},
        {"user": "u", "max_cells": 1, "max_per_cell": 1, "key": 7},
    ],
)
def test_half_a_bound_is_refused(asked: dict[str, Any]) -> None:
    data = pa.table({"u": [1], "o": [0], "d": [1]})
    with pytest.raises(DpmarkovError, match=r"user=|whole number|key="):
        count_transitions(data, origin="o", destination="d", states=[0, 1], **asked)
