"""Predictions hold where data are not as in a book.

Many cells that noise drowns, a prior that stays in the rows, a budget of which a share is gone.
"""

from __future__ import annotations

import numpy as np
import pytest

import dpmarkov as dpm
from dpmarkov.planning import calibrated, compare, expected_error, plan, public_shape
from dpmarkov.planning.simulation import Truth, simulated_errors

TARGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def uneven():
    """30 states of which a third of the cells count less than the noise, as in New York."""
    cells = np.random.default_rng(5).lognormal(0, 2, 900)
    cells = np.rint(cells / cells.mean() * 76).astype(int)
    return dpm.TransitionCounts(dpm.StateSpace(range(30)), cells)


def errors(counts, unit, draws, **settings):
    shape = public_shape(counts.space, unit=unit, row_totals=counts.row_totals)
    setting = calibrated(settings.pop("mechanism"), shape, unit=unit, **settings, **TARGET)
    truth = Truth(counts.space, counts.cells.astype(float))
    found = simulated_errors(setting, truth, draws=draws, rng=np.random.default_rng(1))
    return {name: values.mean() for name, values in found.items()}


@pytest.mark.parametrize("unit", ["destination", "transition"])
@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
def test_cells_that_noise_drowns_are_given_their_share_of_the_divergence(uneven, unit, mechanism):
    """To first order each would add its noise over its count: three times too much in all."""
    actual = errors(uneven, unit, 100, mechanism=mechanism)["row_kl"]
    known = {"row_totals": uneven.row_totals, "matrix": uneven.proportions()}
    planned = plan(uneven.space, unit=unit, mechanism=mechanism, **known, **TARGET).prediction
    told = expected_error(dpm.release(uneven, unit=unit, mechanism=mechanism, **TARGET))
    for predicted in (planned, told):
        assert predicted.row_kl == pytest.approx(actual, rel=0.35)


@pytest.mark.parametrize("unit", ["destination", "transition"])
def test_a_prior_that_stays_moves_the_long_run_as_far_as_is_told(uneven, unit):
    chosen = {"prior": 64.0, "debias": False}
    actual = errors(uneven, unit, 100, mechanism="dirichlet", **chosen)["stationary_tv"]
    known = {"row_totals": uneven.row_totals, "matrix": uneven.proportions()}
    planned = plan(uneven.space, unit=unit, **chosen, **known, **TARGET).prediction
    told = expected_error(dpm.release(uneven, unit=unit, **chosen, **TARGET))
    noise = expected_error(dpm.release(uneven, unit=unit, **TARGET)).stationary_tv
    assert actual > 3 * noise
    for predicted in (planned, told):  # what the prior moves and what noise does add up at most
        assert 0.9 < predicted.stationary_tv / actual < 1.5


@pytest.mark.parametrize("mechanism", ["dirichlet", "geometric", "gaussian"])
def test_what_was_spent_on_merging_is_taken_off_before_planning(uneven, mechanism):
    ring = [(i, (i + 1) % 30) for i in range(30)]
    merged = dpm.merge_states(uneven, ring, to=10, unit="transition", epsilon=0.4)
    target = {"unit": "transition", "epsilon": 1.0, "delta": 1e-6}
    chosen = {"prior": 500.0} if mechanism == "dirichlet" else {}
    noise = dpm.release(merged, mechanism=mechanism, **chosen, **target).guarantee.noise
    planned = plan(merged, mechanism=mechanism, **chosen, **target)
    parameter = noise.rate if mechanism == "dirichlet" else noise.scale
    assert planned.prediction.parameter == parameter
    assert [line.epsilon for line in planned.by_epsilon] == [0.5, 1.0, 2.0, 4.0]
    if mechanism != "dirichlet":
        contenders = {x.name: x for x in compare(merged, draws=2, **target).contenders}
        assert contenders[mechanism].parameter == parameter
    with pytest.raises(dpm.DpmarkovError, match=r"has spent epsilon = 0.4, which leaves nothing"):
        plan(merged, mechanism=mechanism, **{**target, "epsilon": 0.3})
