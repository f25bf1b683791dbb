"""StateSpace: what may be declared, and how cells are laid out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, random_array

from dpmarkov import DpmarkovError, StateSpace

EDGES = [("a", "b"), ("a", "c"), ("b", "a"), ("b", "b"), ("c", "a"), ("c", "c")]


@st.composite
def spaces(draw, largest=6):
    m, n = draw(st.integers(1, largest)), draw(st.integers(2, largest))
    mask = np.array(draw(st.lists(st.booleans(), min_size=m * n, max_size=m * n))).reshape(m, n)
    mask[:, :2] = True
    return StateSpace(origins=range(m), destinations=range(n), support=mask)


def test_a_complete_space_stores_no_support():
    space = StateSpace(range(10_000))
    assert space.n_cells == 10**8
    assert space.is_complete
    assert space._compressed is None


def test_a_support_with_every_edge_is_complete():
    space = StateSpace(["a", "b"], support=[("a", "a"), ("a", "b"), ("b", "a"), ("b", "b")])
    assert space.is_complete
    assert space == StateSpace(["a", "b"])


def test_edges_and_boolean_matrices_declare_the_same_support():
    mask = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=bool)
    by_edges = StateSpace(["a", "b", "c"], support=EDGES)
    assert by_edges == StateSpace(["a", "b", "c"], support=reversed(EDGES + EDGES[:2]))
    assert by_edges == StateSpace(["a", "b", "c"], support=mask)
    assert by_edges == StateSpace(["a", "b", "c"], support=coo_array(mask))
    assert hash(by_edges) == hash(StateSpace(["a", "b", "c"], support=mask))
    assert by_edges != StateSpace(["a", "b", "c"])
    assert by_edges != StateSpace(["a", "b", "d"])
    assert by_edges != "abc"


@given(spaces())
def test_cells_run_row_by_row_over_the_support(space):
    flat = np.arange(space.n_cells)
    dense = space.to_dense(flat + 1)
    assert np.array_equal(np.argwhere(dense)[:, 0], space.rows)
    assert np.array_equal(np.argwhere(dense)[:, 1], space.columns)
    assert np.array_equal(dense[dense > 0], flat + 1)
    assert np.array_equal(space.to_sparse(flat + 1).toarray(), dense)
    assert np.array_equal(space.row_sums(flat + 1), dense.sum(axis=1))
    assert np.array_equal(space.cell_positions(space.rows, space.columns), flat)
    assert np.array_equal(np.bincount(space.rows), space.row_sizes)
    for row, column in np.argwhere(dense == 0):
        assert space.cell_positions(np.array([row]), np.array([column]))[0] == -1
    last = space.n_cells - 1
    assert space.name_of(last) == space.cell_name(space.rows[-1], space.columns[-1])
    assert np.array_equal(space.spread(np.arange(space.shape[0])), space.rows)


def test_the_three_forms_have_their_own_words():
    square = StateSpace(np.array([3, 1, 2]))
    assert square.labels == (3, 1, 2)
    assert type(square.labels[0]) is int
    table = StateSpace(origins=[("s", 1), ("s", 2)], destinations=["s", "t"])
    assert repr(table) == "StateSpace(2 origins x 2 destinations, all 4 transitions feasible)"
    assert table.cell_name(0, 1) == "('s', 1) -> 't'"
    with pytest.raises(DpmarkovError, match=r"use \.origins or \.destinations"):
        _ = table.labels
    row = StateSpace(categories=["A", "B"])
    assert row.shape == (1, 2)
    assert row.labels == ("A", "B")
    assert row.cell_name(0, 1) == "'B'"
    assert repr(StateSpace(["a", "b", "c"], support=EDGES)) == (
        "StateSpace(3 states, 6 of 9 transitions feasible)"
    )


def test_positions_of_unknown_labels_are_minus_one_and_types_are_not_mixed():
    space = StateSpace([0, 1, "1"])
    found = space.origin_positions([1, "1", True, 1.0, "x", np.int64(0), None])
    assert found.tolist() == [1, 2, -1, -1, -1, 0, -1]
    assert space.destination_positions(np.array([1, 7])).tolist() == [1, -1]


def test_a_million_states_with_ten_edges_each_fit():
    n = 1_000_000
    support = random_array((n, n), density=1e-6, random_state=np.random.default_rng(1)).tocoo()
    rows = np.concatenate([np.arange(n), np.arange(n), support.row])
    columns = np.concatenate([np.arange(n), (np.arange(n) + 1) % n, support.col])
    space = StateSpace(range(n), support=coo_array((np.ones(rows.size, bool), (rows, columns))))
    assert 2_900_000 < space.n_cells <= 3_000_000
    assert space.row_sizes.min() == 2


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: StateSpace(), "one of three ways"),
        (lambda: StateSpace(["a", "b"], categories=["a", "b"]), "one of three ways"),
        (lambda: StateSpace(origins=["a", "b"]), "one of three ways"),
        (lambda: StateSpace(["a", "b", "a"]), "'a' stands twice in labels"),
        (lambda: StateSpace([1, np.int64(1)]), "1 stands twice"),
        (lambda: StateSpace([1.5, 2.5]), "1.5 in labels is a float"),
        (lambda: StateSpace([True, False]), "bool"),
        (lambda: StateSpace([("a", None), "b"]), "NoneType"),
        (lambda: StateSpace(b"ab"), "must be a list of labels"),
        (lambda: StateSpace(5), "must be a list of labels, not 5"),
        (lambda: StateSpace(["a", "\ud800"]), "half a character"),
        (lambda: StateSpace(["a"]), "'a' has 1 feasible destinations.*needs at least 2"),
        (lambda: StateSpace([]), "labels must not be empty"),
        (lambda: StateSpace(["a", "b", "c"], support=EDGES[:5]), "'c' has 1 feasible"),
        (
            lambda: StateSpace(["a", "b", "c"], support=[*EDGES, ("a", "z")]),
            r"'a' -> 'z' \(number 6",
        ),
        (
            lambda: StateSpace(["a", "b", "c"], support=["ab"]),
            "a pair .origin, destination., not 'ab'",
        ),
        (lambda: StateSpace(["a", "b", "c"], support=[("a", "b", 1)]), "a pair"),
        (lambda: StateSpace(["a", "b", "c"], support=[1, 2]), "a pair .*, not 1"),
        (lambda: StateSpace(["a", "b", "c"], support=5), "must be a list of edges or a matrix"),
        (lambda: StateSpace(["a", "b"], support=[(["a"], "b")]), r"\['a'\] -> 'b' .number 0"),
        (
            lambda: StateSpace(["a", "b", "c"], support=np.ones((2, 3), bool)),
            r"\(2, 3\), the space has \(3",
        ),
    ],
)
def test_what_may_not_be_declared_is_refused_by_name(declare, message):
    with pytest.raises(DpmarkovError, match=message):
        declare()
