"""The projection to positive rows: nearest, on the simplex, and from private values only."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dpmarkov import StateSpace
from dpmarkov.mechanisms.dirichlet import private_rows
from dpmarkov.mechanisms.projection import project


@given(st.lists(st.floats(-50, 100), min_size=2, max_size=30))
def test_the_result_is_the_nearest_row_with_that_total_and_floor(values):
    v = np.array(values)
    space, n = StateSpace(categories=range(len(v))), len(v)
    total = v.sum()
    rows, touched = project(v, np.array([total]), space)
    assert rows.sum() == pytest.approx(1)
    if total <= 0:
        assert rows == pytest.approx(np.full(n, 1 / n))
        return
    floor, x = min(0.5, 0.2 * total / n), rows * total
    assert np.all(x >= floor * (1 - 1e-9))
    assert touched == np.count_nonzero(x <= floor * (1 + 1.001e-9))
    # Optimality (Karush-Kuhn-Tucker): one shift for all cells above the floor, none would gain.
    above = x > floor * (1 + 1e-9) + 1e-9
    if above.any():
        tau = np.mean((v - x)[above])
        assert (v - x)[above] == pytest.approx(np.full(above.sum(), tau), abs=1e-7)
        assert np.all(v[~above] - tau <= floor + 1e-7)


def test_a_general_optimiser_finds_nothing_nearer():
    rng = np.random.default_rng(4)
    v = rng.normal(5, 20, 6)
    v += 10 - v.mean()
    space = StateSpace(categories=range(6))
    x = project(v, np.array([60.0]), space)[0] * 60
    found = minimize(
        lambda y: ((y - v) ** 2).sum(),
        np.full(6, 10.0),
        bounds=[(0.5, None)] * 6,
        constraints={"type": "eq", "fun": lambda y: y.sum() - 60},
    )
    assert ((x - v) ** 2).sum() <= found.fun * (1 + 1e-9)
    assert x == pytest.approx(found.x, abs=1e-3)


def test_rows_on_a_sparse_support_are_projected_by_themselves():
    rng = np.random.default_rng(7)
    mask = rng.random((40, 30)) < 0.4
    mask[:, :2] = True
    space = StateSpace(origins=range(40), destinations=range(30), support=mask)
    v = rng.normal(3, 20, space.n_cells)
    together, touched = project(v, space.row_sums(v), space)
    alone = []
    for a, b in zip(space.row_starts[:-1], space.row_starts[1:], strict=True):
        row = StateSpace(categories=range(b - a))
        alone.append(project(v[a:b], np.array([v[a:b].sum()]), row))
    assert together == pytest.approx(np.concatenate([x for x, _ in alone]), abs=1e-12)
    assert touched == sum(t for _, t in alone)


def test_estimates_that_need_nothing_are_left_as_they_are():
    space = StateSpace(categories=range(3))
    rows, touched = project(np.array([5.0, 3.0, 2.0]), np.array([10.0]), space)
    assert rows == pytest.approx([0.5, 0.3, 0.2], rel=1e-14)
    assert touched == 0


def test_variates_that_underflow_leave_positive_rows():
    # at shape 1e-4 half the variates are below exp(-7000); their ratios still make a row
    space = StateSpace(origins=range(2), destinations=range(3))
    rows = private_rows(np.array([-9000.0, -20000.0, -9001.0, 3.0, 2.0, -1e6]), space)
    assert np.all(rows > 0)
    assert rows[:3] == pytest.approx([1 / (1 + np.exp(-1)), 0, 1 / (1 + np.e)])
    assert space.row_sums(rows) == pytest.approx([1, 1])
