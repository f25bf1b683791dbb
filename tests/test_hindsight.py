"""How far off numbers are: predicted one by one, and measured by the curator."""

from __future__ import annotations

import numpy as np
import pytest

import dpmarkov as dpm
from dpmarkov.planning import actual_errors, expected_deviations
from dpmarkov.planning.hindsight import after_merging, at_other_epsilon

TARGET = {"epsilon": 1.0, "delta": 1e-6}
RELEASES = 400
# The standard deviation of 400 draws is known to 1 / sqrt(800); five of these for some 40 numbers,
# and 5% beyond first order: a false alarm in one of 10^5 runs.
MARGIN = 5 / np.sqrt(2 * RELEASES) + 0.05


@pytest.fixture(scope="module")
def counts():
    cells = [[900, 300, 420, 500], [800, 700, 560, 250], [340, 330, 900, 420], [610, 590, 480, 400]]
    return dpm.TransitionCounts.from_dense(cells, dpm.StateSpace(["a", "b", "c", "d"]))


@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
@pytest.mark.parametrize("unit", ["destination", "transition"])
def test_the_deviations_of_a_release_are_those_of_many(counts, mechanism, unit):
    made = [dpm.release(counts, unit=unit, mechanism=mechanism, **TARGET) for _ in range(RELEASES)]
    off = expected_deviations(made[0])
    cells = np.array([release.probabilities for release in made]).std(axis=0)
    assert off.cells == pytest.approx(cells, rel=MARGIN)
    pi = np.array([release.chain.stationary_distribution() for release in made]).std(axis=0)
    assert off.states == pytest.approx(pi, rel=MARGIN)
    rows = [np.abs(release.matrix - counts.proportions()).sum(axis=1) / 2 for release in made]
    assert off.rows == pytest.approx(np.mean(rows, axis=0), rel=MARGIN)


def test_nothing_is_predicted_to_be_further_off_than_1():
    few = dpm.TransitionCounts.from_dense([[1, 0], [2, 1]], dpm.StateSpace(["a", "b"]))
    off = expected_deviations(dpm.release(few, unit="transition", epsilon=0.01, delta=1e-6))
    for values in (off.cells, off.rows, off.states):
        assert np.all((values >= 0) & (values <= 1))


def test_errors_at_other_budgets_fall_with_epsilon_and_include_the_chosen_one(counts):
    release = dpm.release(counts, unit="transition", **TARGET)
    found = at_other_epsilon(release, counts)
    errors = [x.row_tv for x in found]
    assert errors == sorted(errors, reverse=True)
    assert 1.0 in [x.epsilon for x in found]
    measured = actual_errors(release, counts)["row_tv"]
    assert 0.2 < measured / next(x.row_tv for x in found if x.epsilon == 1) < 5


def test_merging_is_followed_down_to_few_states():
    n = 16
    rng = np.random.default_rng(2)
    counts = dpm.TransitionCounts(dpm.StateSpace(range(n)), rng.poisson(40, n * n))
    release = dpm.release(counts, unit="transition", **TARGET)
    found = after_merging(release, counts, [(i, i + 1) for i in range(n - 1)])
    assert [x.states for x in found] == [16, 8, 4]
    errors = [x.row_tv for x in found]
    assert errors == sorted(errors, reverse=True)
