"""TransitionCounts: the three ways in, the paper's query, and what is refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import coo_array, csc_array

from dpmarkov import DpmarkovError, StateSpace, TransitionCounts

AB = StateSpace(["a", "b"])
SPARSE = StateSpace(
    ["a", "b", "c"], support=np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=bool)
)


@given(arrays(np.int64, (3, 3), elements=st.integers(0, 2**40)))
def test_dense_sparse_and_triples_agree(matrix):
    matrix = matrix * (SPARSE.to_dense(np.ones(6, dtype=np.int64)))
    triples = [
        (SPARSE.labels[i], SPARSE.labels[j], int(c)) for (i, j), c in np.ndenumerate(matrix) if c
    ]
    dense = TransitionCounts.from_dense(matrix, SPARSE)
    assert dense == TransitionCounts.from_sparse(csc_array(matrix), SPARSE)
    assert dense == TransitionCounts.from_triples(triples, SPARSE)
    assert dense == TransitionCounts.from_dense(matrix.astype(float), SPARSE)
    assert np.array_equal(dense.to_dense(), matrix)
    assert np.array_equal(dense.to_sparse().toarray(), matrix)
    assert np.array_equal(dense.row_totals, matrix.sum(axis=1))
    assert dense.total == matrix.sum()


def test_repeated_entries_are_summed():
    triples = [("a", "b", 2), ("a", "b", 3), ("b", "b", 0)]
    assert TransitionCounts.from_triples(triples, AB).cells.tolist() == [0, 5, 0, 0]
    twice = coo_array(([2, 3], ([0, 0], [1, 1])), shape=(2, 2))
    assert TransitionCounts.from_sparse(twice, AB).cells.tolist() == [0, 5, 0, 0]
    assert TransitionCounts.from_triples([], AB).total == 0


def test_a_single_row_takes_vectors_and_pairs():
    space = StateSpace(categories=["A", "B", "C", "D", "F"])
    counts = TransitionCounts.from_dense([20, 16, 16, 15, 31], space)
    pairs = zip("ABCDF", [20, 16, 16, 15, 31], strict=True)
    assert counts == TransitionCounts.from_triples(pairs, space)
    assert counts.proportions() == pytest.approx(np.array([20, 16, 16, 15, 31]) / 98)


def test_the_paper_s_query_stacks_the_rows():
    table = StateSpace(origins=["x", "y"], destinations=["a", "b", "c"])
    counts = TransitionCounts.from_dense([[1, 2, 1], [0, 0, 5]], table)
    assert counts.proportions() == pytest.approx(np.array([[0.25, 0.5, 0.25], [0, 0, 1]]))


def test_a_row_without_data_has_no_proportions_and_the_message_does_not_name_it():
    counts = TransitionCounts.from_dense([[0, 0], [1, 2]], AB)
    with pytest.raises(DpmarkovError, match=r"no transitions.*0/0") as error:
        counts.proportions()
    assert "'a'" not in str(error.value)


def test_ten_thousand_states_cost_eight_bytes_a_cell():
    space = StateSpace(range(2000))
    counts = TransitionCounts(space, np.zeros(space.n_cells, dtype=np.int32))
    assert counts.cells.nbytes == 8 * space.n_cells
    assert counts.cells.base is None or counts.cells.base.nbytes == counts.cells.nbytes


def test_cells_are_a_copy_that_nobody_can_change():
    mine = np.array([1, 2, 3, 4])
    counts = TransitionCounts(AB, mine)
    mine[0] = 99
    assert counts.cells[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        counts.cells[0] = 5


def test_no_count_is_shown():
    assert repr(TransitionCounts(AB, [1234, 5678, 9, 87])) == (
        "TransitionCounts(2 states, all 4 transitions feasible; sensitive)"
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TransitionCounts(AB, [1, -777, 3, 4]), "'a' -> 'b' is negative"),
        (lambda: TransitionCounts(AB, [1, 777.5, 3, 4]), "'a' -> 'b' is not a whole"),
        (lambda: TransitionCounts(AB, [1, 2, np.nan, 4]), "'b' -> 'a' is not a number"),
        (lambda: TransitionCounts(AB, [1, 2, 3, np.inf]), "'b' -> 'b' is too large"),
        (lambda: TransitionCounts(AB, np.uint64([1, 2, 3, 2**63])), "'b' -> 'b' is too large"),
        (lambda: TransitionCounts(AB, [1, 2, 3, 10**30]), "'b' -> 'b' is too large"),
        (lambda: TransitionCounts(AB, [1, 2, 3, 10**400]), "'b' -> 'b' is too large"),
        (lambda: TransitionCounts(AB, [1, None, 3, 10**30]), "'a' -> 'b' is not a number"),
        (lambda: TransitionCounts.from_dense([[1, 777], [3]], AB), "differ in length"),
        (lambda: TransitionCounts.from_dense(coo_array((2, 2)), AB), "use from_sparse"),
        (lambda: TransitionCounts.from_dense(pa.table({"b": [777, 1]}), AB), "names of their own"),
        (lambda: TransitionCounts.from_dense(np.ma.masked_equal([[777]], 777), AB), "fill it"),
        (lambda: TransitionCounts.from_sparse(np.eye(2), AB), "use from_dense"),
        (lambda: TransitionCounts.from_triples([777], AB), "give .origin, destination"),
        (lambda: TransitionCounts.from_triples([(["secret"], "b", 7)], AB), "undeclared origin"),
        (lambda: TransitionCounts(AB, [2**53, 2, 0, 0]), "together exceed 2.53"),
        (lambda: TransitionCounts(AB, ["x"] * 4), "not of type"),
        (lambda: TransitionCounts(AB, [1, 2, 3]), r"shape \(3,\), the support has 4"),
        (lambda: TransitionCounts.from_dense([[1, 777]], AB), r"shape \(1, 2\)"),
        (lambda: TransitionCounts.from_sparse(coo_array((3, 3)), AB), r"shape \(3, 3\)"),
        (
            lambda: TransitionCounts.from_dense([[777, 0, 0], [0, 0, 0], [0, 0, 0]], SPARSE),
            "transitions 'a' -> 'a', which the support declares",
        ),
        (lambda: TransitionCounts.from_triples([("b", "c", 777)], SPARSE), "'b' -> 'c', which"),
        (lambda: TransitionCounts.from_triples([("b", "b", -777)], SPARSE), "'b' -> 'b' is neg"),
        (
            lambda: TransitionCounts.from_triples([("a", "b", 1), ("secret", "b", 777)], AB),
            "triple number 1 has an undeclared origin",
        ),
        (lambda: TransitionCounts.from_triples([("a", "b")], AB), "give .origin, destination"),
    ],
)
def test_bad_counts_are_refused_by_cell_and_never_by_value(make, message):
    with pytest.raises(DpmarkovError, match=message) as error:
        make()
    assert "777" not in str(error.value)
    assert "secret" not in str(error.value)


def test_zeros_outside_the_support_are_no_transitions():
    assert TransitionCounts.from_triples([("a", "a", 0), ("a", "b", 2)], SPARSE).total == 2
